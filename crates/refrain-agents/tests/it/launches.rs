//! How the programs are started.

use camino::Utf8PathBuf;
use refrain_agents::adapter::{Call, Launch};
use refrain_core::Spec;
use refrain_core::agent::Usd;
use refrain_core::spec::{Permissions, PromptMode, Secret};

use crate::play::{adapter, call, spec};

use Permissions::{Agent, Auto, Full};

const CLAUDE: &str = "claude -p --output-format stream-json --verbose";
const MAY: &str = "--allowedTools Bash,Edit,Write,NotebookEdit --permission-mode acceptEdits";
const CODEX: &str = "codex exec --json --skip-git-repo-check";
const BOX: &str = "--sandbox workspace-write -c approval_policy=\"never\"";
const BYPASS: &str = "--dangerously-bypass-approvals-and-sandbox";

fn launch(agent: &str, spec: &Spec, change: impl FnOnce(&mut Call<'_>)) -> Launch {
    let mut call = call(spec);
    change(&mut call);
    adapter(agent).launch(&call)
}

#[test]
fn no_argument_stands_there_twice() {
    #[rustfmt::skip]
    let cases: &[(&str, Permissions, &[&str], String)] = &[
        ("claude", Auto, &[], format!("{CLAUDE} {MAY}")),
        ("claude", Full, &[], format!("{CLAUDE} --dangerously-skip-permissions")),
        ("claude", Agent, &[], CLAUDE.into()),
        ("claude", Agent, &["-p"], "claude --output-format stream-json --verbose -p".into()),
        ("claude", Agent, &["--print"], "claude --output-format stream-json --verbose --print".into()),
        ("claude", Agent, &["--verbose"], "claude -p --output-format stream-json --verbose".into()),
        ("claude", Agent, &["--output-format=stream-json"], "claude -p --verbose --output-format=stream-json".into()),
        ("claude", Agent, &["--output-format", "stream-json"], "claude -p --verbose --output-format stream-json".into()),
        // what is printed is the person's: text, or one object
        ("claude", Agent, &["--output-format", "text"], "claude -p --output-format text".into()),
        ("claude", Agent, &["--output-format=json"], "claude -p --output-format=json".into()),
        ("claude", Auto, &["--permission-mode", "plan"], format!("{CLAUDE} --permission-mode plan")),
        ("claude", Auto, &["--permission-mode=dontAsk"], format!("{CLAUDE} --permission-mode=dontAsk")),
        ("claude", Auto, &["--dangerously-skip-permissions"], format!("{CLAUDE} --dangerously-skip-permissions")),
        ("claude", Full, &["--dangerously-skip-permissions"], format!("{CLAUDE} --dangerously-skip-permissions")),
        ("claude", Full, &["--permission-mode", "plan"], format!("{CLAUDE} --permission-mode plan")),
        ("claude", Auto, &["--allowedTools", "Read"], format!("{CLAUDE} --permission-mode acceptEdits --allowedTools Read")),
        ("claude", Auto, &["--allowed-tools=Read"], format!("{CLAUDE} --permission-mode acceptEdits --allowed-tools=Read")),
        ("claude", Agent, &["--resume", "ID"], format!("{CLAUDE} --resume ID")),
        // flags behind `--` are none
        ("claude", Agent, &["--", "--verbose"], format!("{CLAUDE} -- --verbose")),

        ("codex", Auto, &[], format!("{CODEX} {BOX} -")),
        ("codex", Full, &[], format!("{CODEX} {BYPASS} -")),
        ("codex", Agent, &[], format!("{CODEX} -")),
        ("codex", Agent, &["exec"], format!("{CODEX} -")),
        ("codex", Agent, &["e", "--json"], "codex exec --skip-git-repo-check --json -".into()),
        ("codex", Agent, &["--skip-git-repo-check"], "codex exec --json --skip-git-repo-check -".into()),
        ("codex", Auto, &["exec", "resume", "ID"], format!("{CODEX} {BOX} resume ID -")),
        ("codex", Auto, &["resume", "--last"], format!("{CODEX} {BOX} resume --last -")),
        ("codex", Auto, &["-m", "exec"], format!("{CODEX} {BOX} -m exec -")),
        ("codex", Auto, &["-a", "never", "exec", "-sread-only"], "codex -a never exec --json --skip-git-repo-check -sread-only -".into()),
        ("codex", Auto, &["-s", "read-only"], format!("{CODEX} -c approval_policy=\"never\" -s read-only -")),
        ("codex", Auto, &["--sandbox=read-only"], format!("{CODEX} -c approval_policy=\"never\" --sandbox=read-only -")),
        ("codex", Auto, &["-c", "sandbox_mode=x"], format!("{CODEX} -c approval_policy=\"never\" -c sandbox_mode=x -")),
        ("codex", Auto, &["-capproval_policy=x"], format!("{CODEX} --sandbox workspace-write -capproval_policy=x -")),
        ("codex", Auto, &["--config=approval_policy=x"], format!("{CODEX} --sandbox workspace-write --config=approval_policy=x -")),
        ("codex", Auto, &[BYPASS], format!("{CODEX} {BYPASS} -")),
        ("codex", Full, &[BYPASS], format!("{CODEX} {BYPASS} -")),
        ("codex", Full, &["-s", "read-only"], format!("{CODEX} -s read-only -")),
        // a list of images must not swallow the dash
        ("codex", Agent, &["-i", "a.png"], format!("{CODEX} -i a.png -- -")),
    ];
    for (agent, permissions, args, expected) in cases {
        for root in [false, true] {
            let mut spec = spec(agent, args);
            spec.agent.permissions = *permissions;
            let launch = launch(agent, &spec, |call| call.root = root);
            assert_eq!(launch.argv.join(" "), *expected, "{agent} {permissions:?} {args:?}");
            assert_eq!(launch.stdin.as_deref().map(|path| path.as_str()), Some("/prompt"));
            let is_boxed = launch.env.contains(&("IS_SANDBOX".to_owned(), "1".to_owned()));
            assert_eq!(is_boxed, root && *agent == "claude" && *permissions == Full, "{args:?}");
        }
    }
}

#[test]
fn the_model_is_asked_for_once() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], String)] = &[
        ("claude", &[], format!("{CLAUDE} --model big")),
        ("claude", &["--model", "small"], format!("{CLAUDE} --model small")),
        ("claude", &["--model=small"], format!("{CLAUDE} --model=small")),
        ("codex", &[], format!("{CODEX} -m big -")),
        ("codex", &["-m", "small"], format!("{CODEX} -m small -")),
        ("codex", &["-msmall"], format!("{CODEX} -msmall -")),
        ("codex", &["--model=small"], format!("{CODEX} --model=small -")),
        ("codex", &["-c", "model=small"], format!("{CODEX} -c model=small -")),
        ("codex", &["-c", "model_provider=p"], format!("{CODEX} -m big -c model_provider=p -")),
    ];
    for (agent, args, expected) in cases {
        let mut spec = spec(agent, args);
        spec.agent.permissions = Agent;
        spec.agent.model = Some("big".to_owned());
        assert_eq!(launch(agent, &spec, |_| {}).argv.join(" "), *expected);
    }
}

#[test]
fn claude_is_told_of_caps() {
    let mut loop_ = spec("claude", &[]);
    loop_.agent.permissions = Agent;
    let capped = launch("claude", &loop_, |call| {
        call.capped = true;
        call.budget = Some(Usd(1_250_000_000));
    });
    assert_eq!(capped.argv.join(" "), format!("{CLAUDE} --include-partial-messages --max-budget-usd 1.25"));
    loop_.agent.args = ["--max-budget-usd=2", "--output-format=text"].map(str::to_owned).to_vec();
    let theirs = launch("claude", &loop_, |call| {
        call.capped = true;
        call.budget = Some(Usd(1_250_000_000));
    });
    assert_eq!(theirs.argv.join(" "), "claude -p --max-budget-usd=2 --output-format=text");
}

#[test]
fn variables_that_the_person_set_are_left_alone() {
    let mut spec = spec("claude", &[]);
    let env = |spec: &Spec| launch("claude", spec, |_| {}).env;
    let ours = [("CLAUDE_CODE_MAX_RETRIES", "1"), ("DISABLE_AUTOUPDATER", "1")];
    assert_eq!(env(&spec), ours.map(|(name, value)| (name.to_owned(), value.to_owned())));
    spec.agent.env.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), Secret::new("7".to_owned()));
    assert_eq!(env(&spec), [("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned())]);
}

#[test]
fn the_prompt_travels_as_it_is_asked_to() {
    #[rustfmt::skip]
    let cases: &[(&str, PromptMode, &[&str], &str, bool)] = &[
        ("claude", PromptMode::Auto, &[], "", true),
        ("claude", PromptMode::Stdin, &[], "", true),
        ("claude", PromptMode::Arg, &[], " -- -do it", false),
        ("claude", PromptMode::Arg, &["--"], " -- -do it", false),
        ("claude", PromptMode::File, &[], " -- /prompt", false),
        ("claude", PromptMode::Env, &[], "", false),
        ("codex", PromptMode::Stdin, &[], " -", true),
        ("codex", PromptMode::Arg, &[], " -- -do it", false),
        ("codex", PromptMode::File, &[], " -- /prompt", false),
        ("codex", PromptMode::Env, &[], "", false),
    ];
    for (agent, mode, args, end, is_stdin) in cases {
        let mut spec = spec(agent, args);
        spec.agent.permissions = Agent;
        spec.agent.prompt_mode = *mode;
        let launch = launch(agent, &spec, |_| {});
        let start = if *agent == "claude" { CLAUDE } else { CODEX };
        assert_eq!(launch.argv.join(" "), format!("{start}{end}"), "{mode:?}");
        assert_eq!(launch.stdin, is_stdin.then(|| Utf8PathBuf::from("/prompt")), "{mode:?}");
        let is_env = launch.env.contains(&("PROMPT".to_owned(), "-do it".to_owned()));
        assert_eq!(is_env, *mode == PromptMode::Env);
    }
}

#[test]
fn a_relative_program_is_found_from_the_loops_folder() {
    for (program, expected) in
        [("./claude", "/repo/./claude"), ("/opt/claude", "/opt/claude"), ("claude", "claude")]
    {
        let mut spec = spec("claude", &[]);
        spec.agent.program = program.to_owned();
        assert_eq!(launch("claude", &spec, |_| {}).argv[0], expected);
    }
}
