//! How the programs are started.

use std::ffi::OsString;
use std::path::Path;

use refrain_agents::adapter::{Call, Launch, Schema};
use refrain_agents::gemini;
use refrain_agents::judge::judge;
use refrain_core::Spec;
use refrain_core::agent::Usd;
use refrain_core::spec::{AgentKind, Permissions, PromptMode, Secret};
use refrain_proc::StopLadder;

use crate::play::{AGENTS, adapter, call, spec};

use Permissions::{Agent, Auto, Full};

const CLAUDE: &str = "claude -p --output-format stream-json --verbose";
const MAY: &str = "--allowedTools Bash,Edit,Write,NotebookEdit --permission-mode acceptEdits";
const OPENCODE: &str = "opencode run --format json";
const GEMINI: &str = "gemini --output-format stream-json";
const CODEX: &str = "codex exec --json --skip-git-repo-check";
const BOX: &str = "--sandbox workspace-write -c approval_policy=\"never\"";
const BYPASS: &str = "--dangerously-bypass-approvals-and-sandbox";

type Variables<'a> = &'a [(&'a str, &'a str)];

fn launch<'a>(agent: &str, spec: &'a Spec, change: impl FnOnce(&mut Call<'a>)) -> Launch {
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
        // the user chooses the output: text, or one object
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
        // after `--` there are no flags
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
        // a list of images must not consume the dash
        ("codex", Agent, &["-i", "a.png"], format!("{CODEX} -i a.png -- -")),

        ("opencode", Auto, &[], OPENCODE.into()),
        ("opencode", Full, &[], format!("{OPENCODE} --auto")),
        ("opencode", Agent, &[], OPENCODE.into()),
        ("opencode", Full, &["--auto"], format!("{OPENCODE} --auto")),
        ("opencode", Auto, &["--auto"], format!("{OPENCODE} --auto")),
        ("opencode", Full, &["--dangerously-skip-permissions"], format!("{OPENCODE} --dangerously-skip-permissions")),
        ("opencode", Full, &["--format", "json"], "opencode run --auto --format json".into()),
        ("opencode", Full, &["run", "--agent", "build"], format!("{OPENCODE} --auto --agent build")),
        // options of the program precede the subcommand
        ("opencode", Auto, &["--print-logs", "run", "--title=x"], "opencode --print-logs run --format json --title=x".into()),

        ("gemini", Auto, &[], format!("{GEMINI} --yolo")),
        ("gemini", Full, &[], format!("{GEMINI} --yolo")),
        ("gemini", Agent, &[], GEMINI.into()),
        ("gemini", Full, &["-y"], format!("{GEMINI} -y")),
        ("gemini", Auto, &["--yolo"], format!("{GEMINI} --yolo")),
        ("gemini", Full, &["--approval-mode=plan"], format!("{GEMINI} --approval-mode=plan")),
        ("gemini", Auto, &["--allowed-tools", "run_shell_command(cargo)"], format!("{GEMINI} --allowed-tools run_shell_command(cargo)")),
        ("gemini", Auto, &["-o", "stream-json"], "gemini --yolo -o stream-json".into()),
        ("gemini", Auto, &["--sandbox"], format!("{GEMINI} --yolo --sandbox")),
    ];
    for (agent, permissions, args, expected) in cases {
        for root in [false, true] {
            let mut spec = spec(agent, args);
            spec.agent.permissions = *permissions;
            let launch = launch(agent, &spec, |call| call.root = root);
            assert_eq!(launch.argv.join(" "), *expected, "{agent} {permissions:?} {args:?}");
            assert_eq!(launch.stdin.as_deref(), Some("-do it"));
            let is_boxed = launch.env.contains(&("IS_SANDBOX".to_owned(), "1".to_owned()));
            assert_eq!(is_boxed, root && *agent == "claude" && *permissions == Full, "{args:?}");
        }
    }
}

/// A judge must neither write nor use the knowledge that its worker arguments would allow.
#[test]
fn a_judge_only_reads() {
    const READS: &str = "--tools Read,Glob,Grep --disallowedTools Bash,Edit,Write,NotebookEdit --strict-mcp-config \
                         --setting-sources user";
    const BOX: &str = "--sandbox read-only -c approval_policy=\"never\" -c project_doc_max_bytes=0";
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], String)] = &[
        ("claude", &[], format!("{CLAUDE} {READS}")),
        ("claude", &["--dangerously-skip-permissions", "--effort", "high"], format!("{CLAUDE} {READS} --effort high")),
        ("claude", &["--allowedTools", "Bash", "Edit", "--verbose"], format!("claude -p --output-format stream-json {READS} --verbose")),
        ("claude", &["--allowedTools=Bash", "--permission-mode", "bypassPermissions"], format!("{CLAUDE} {READS}")),
        ("claude", &["--resume", "ID", "-c", "--mcp-config", "a.json", "b.json"], format!("{CLAUDE} {READS}")),
        ("codex", &[], format!("{CODEX} {BOX} -")),
        ("codex", &["--yolo"], format!("{CODEX} {BOX} -")),
        ("codex", &["-s", "danger-full-access", "-m", "x"], format!("{CODEX} {BOX} -m x -")),
        ("codex", &["exec", "-m", "x", "resume", "--last"], format!("{CODEX} {BOX} -m x -")),
        ("codex", &["resume", "ID"], format!("{CODEX} {BOX} -")),
        ("opencode", &["--auto", "-c", "--agent", "build"], format!("{OPENCODE} --agent build")),
        ("gemini", &["--yolo"], format!("{GEMINI} --approval-mode default")),
        ("gemini", &["--approval-mode=yolo", "-r", "latest"], format!("{GEMINI} --approval-mode default")),
    ];
    for (agent, args, expected) in cases {
        let mut spec = spec(agent, args);
        spec.agent.kind = AgentKind::named(agent).unwrap();
        spec.agent.permissions = Full;
        spec.agent = judge(&spec.agent);
        let launch = launch(agent, &spec, |call| call.root = true);
        assert_eq!(launch.argv.join(" "), *expected, "{agent} {args:?}");
        assert!(!launch.env.iter().any(|(name, _)| name == "IS_SANDBOX"), "{agent}");
        let denies =
            launch.env.iter().any(|(name, value)| name == "OPENCODE_PERMISSION" && value.contains("deny"));
        assert_eq!(denies, *agent == "opencode");
    }
    let mut generic = spec("./review.sh", &["--yolo"]);
    generic.agent = judge(&generic.agent);
    assert_eq!(generic.agent.args, ["--yolo"], "the meaning of a command's arguments is unknown");
}

#[test]
fn agents_with_schema_support_get_the_schema() {
    let held = |agent: &str| {
        let spec = spec(agent, &[]);
        let schema = Schema { text: "{}", file: "/schema".into() };
        launch(agent, &spec, |call| call.schema = Some(schema)).argv.join(" ")
    };
    assert!(held("claude").ends_with("--json-schema {}"), "{}", held("claude"));
    assert!(held("codex").ends_with("--output-schema /schema -"), "{}", held("codex"));
    for (agent, takes) in [("claude", true), ("codex", true), ("opencode", false), ("gemini", false)] {
        assert_eq!(adapter(agent).takes_schema(), takes, "{agent}");
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
        ("opencode", &[], format!("{OPENCODE} --model big")),
        ("opencode", &["--model=c/d"], format!("{OPENCODE} --model=c/d")),
        ("opencode", &["-m", "c/d"], format!("{OPENCODE} -m c/d")),
        ("gemini", &[], format!("{GEMINI} --model big")),
        ("gemini", &["-m", "pro"], format!("{GEMINI} -m pro")),
        ("gemini", &["--model=pro"], format!("{GEMINI} --model=pro")),
    ];
    for (agent, args, expected) in cases {
        let mut spec = spec(agent, args);
        spec.agent.permissions = Agent;
        spec.agent.model = Some("big".to_owned());
        assert_eq!(launch(agent, &spec, |_| {}).argv.join(" "), *expected);
        let own = adapter(agent).own_model(&spec.agent.args);
        let named = own.unwrap_or_else(|| "big".to_owned());
        assert!(
            expected.contains(&named) && (named == "big") == expected.contains("big"),
            "{agent} {args:?}"
        );
    }
}

#[test]
fn claude_gets_the_budget_of_a_capped_loop() {
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
    #[rustfmt::skip]
    let cases: &[(&str, Permissions, Variables<'_>)] = &[
        ("claude", Auto, &[("CLAUDE_CODE_MAX_RETRIES", "1"), ("DISABLE_AUTOUPDATER", "1")]),
        ("claude", Full, &[("IS_SANDBOX", "1"), ("CLAUDE_CODE_MAX_RETRIES", "1"), ("DISABLE_AUTOUPDATER", "1")]),
        ("codex", Full, &[]),
        ("opencode", Full, &[("OPENCODE_DISABLE_AUTOUPDATE", "1")]),
        ("gemini", Auto, &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")]),
        ("gemini", Full, &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")]),
        // the user decides whether the folder is trusted
        ("gemini", Agent, &[("GEMINI_CLI_NO_RELAUNCH", "true")]),
    ];
    for (agent, permissions, ours) in cases {
        let mut spec = spec(agent, &[]);
        spec.agent.permissions = *permissions;
        let ours: Vec<_> = ours.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let env = |spec: &Spec, env: &[(OsString, OsString)]| {
            launch(agent, spec, |call| (call.root, call.env) = (true, env)).env
        };
        // Other variables in the user's environment do not matter.
        assert_eq!(env(&spec, &[("PATH".into(), "/bin".into())]), ours, "{agent} {permissions:?}");
        for theirs in &ours {
            let others: Vec<_> = ours.iter().filter(|other| *other != theirs).cloned().collect();
            let exported = [(OsString::from(&theirs.0), "5".into())];
            assert_eq!(env(&spec, &exported), others, "{agent}: exported in the shell");
            spec.agent.env = [(theirs.0.clone(), Secret::new("7".to_owned()))].into();
            assert_eq!(env(&spec, &[]), others, "{agent}: set for this loop");
            spec.agent.env.clear();
        }
    }
}

#[test]
fn a_prompt_in_a_variable_is_this_loops() {
    let mut spec = spec("claude", &[]);
    spec.agent.prompt_mode = PromptMode::Env;
    let exported = [("PROMPT".into(), "$ ".into())];
    let env = launch("claude", &spec, |call| call.env = &exported).env;
    assert!(env.contains(&("PROMPT".to_owned(), "-do it".to_owned())));
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
        ("opencode", PromptMode::Stdin, &[], "", true),
        ("opencode", PromptMode::Arg, &[], " -- -do it", false),
        ("opencode", PromptMode::Arg, &["--", "First:"], " -- First: -do it", false),
        ("opencode", PromptMode::File, &["-f"], " -f /prompt", false),
        ("opencode", PromptMode::Env, &[], "", false),
        ("gemini", PromptMode::Stdin, &["--debug"], " --debug", true),
        // in one piece: a prompt that begins with a dash would be taken for a flag
        ("gemini", PromptMode::Arg, &["--debug"], " --debug --prompt=-do it", false),
        ("gemini", PromptMode::File, &["--debug"], " --debug /prompt", false),
        ("gemini", PromptMode::Env, &["--debug"], " --debug", false),
    ];
    for (agent, mode, args, end, is_stdin) in cases {
        let mut spec = spec(agent, args);
        spec.agent.permissions = Agent;
        spec.agent.prompt_mode = *mode;
        let launch = launch(agent, &spec, |_| {});
        let start = match *agent {
            "claude" => CLAUDE,
            "codex" => CODEX,
            "opencode" => OPENCODE,
            _ => GEMINI,
        };
        assert_eq!(launch.argv.join(" "), format!("{start}{end}"), "{mode:?}");
        assert_eq!(launch.stdin, is_stdin.then(|| "-do it".to_owned()), "{mode:?}");
        let is_env = launch.env.contains(&("PROMPT".to_owned(), "-do it".to_owned()));
        assert_eq!(is_env, *mode == PromptMode::Env);
    }
}

#[test]
fn a_relative_program_is_found_from_the_loops_folder() {
    let cases =
        [("./it", "/repo/sub/./it"), ("bin/it", "/repo/sub/bin/it"), ("/opt/it", "/opt/it"), ("it", "it")];
    for (agent, (program, expected)) in AGENTS.into_iter().flat_map(|agent| cases.map(|case| (agent, case))) {
        let mut spec = spec(agent, &[]);
        spec.agent.program = program.to_owned();
        assert_eq!(launch(agent, &spec, |_| {}).argv[0], expected);
    }
}

#[test]
fn arguments_that_would_change_the_stream_are_objected_to() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        ("opencode", &[], None),
        ("opencode", &["--format", "json"], None),
        ("opencode", &["run", "--format=json"], None),
        ("opencode", &["--format", "default"], Some("--format default: of opencode its stream is read; accepted: --format json")),
        ("opencode", &["run", "--format=default"], Some("--format default: of opencode its stream is read; accepted: --format json")),
        ("opencode", &["--", "--format", "default"], None),
        ("opencode", &["--format"], None),
        ("gemini", &[], None),
        ("gemini", &["-o", "stream-json"], None),
        ("gemini", &["--output-format=stream-json"], None),
        ("gemini", &["-o", "json"], Some("--output-format json: of gemini its stream is read; accepted: --output-format stream-json")),
        ("gemini", &["-ojson"], Some("--output-format json: of gemini its stream is read; accepted: --output-format stream-json")),
        ("gemini", &["--output-format", "text"], Some("--output-format text: of gemini its stream is read; accepted: --output-format stream-json")),
        // if a flag is given twice it is unknown which one counts
        ("gemini", &["-o", "stream-json", "-o", "text"], Some("--output-format text: of gemini its stream is read; accepted: --output-format stream-json")),
        // all of these are read
        ("claude", &["--output-format", "text"], None),
        ("claude", &["--output-format=json"], None),
        ("codex", &["--json"], None),
    ];
    for (agent, args, expected) in cases {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        assert_eq!(adapter(agent).objection(&args).as_deref(), *expected, "{agent} {args:?}");
    }
}

#[test]
fn any_signal_to_its_group_ends_each_so_the_default_ladder_does() {
    for agent in AGENTS {
        assert_eq!(adapter(agent).ladder(), StopLadder::default(), "{agent}");
    }
}

#[test]
fn the_lock_of_gemini_is_in_its_home() {
    #[rustfmt::skip]
    let cases: [(Variables<'_>, Option<&str>); 5] = [
        (&[("HOME", "/home/a")], Some("/home/a/.gemini/projects.json.lock")),
        (&[("HOME", "/home/a"), ("HOME", "/b")], Some("/b/.gemini/projects.json.lock")),
        (&[("GEMINI_CLI_HOME", "/g"), ("HOME", "/home/a")], Some("/g/.gemini/projects.json.lock")),
        (&[("GEMINI_CLI_HOME", ""), ("HOME", "/home/a")], Some("/home/a/.gemini/projects.json.lock")),
        (&[("PATH", "/bin")], None),
    ];
    for (env, path) in cases {
        let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(gemini::lock(&env).as_deref(), path.map(Path::new), "{env:?}");
    }
}
