//! How the prompt reaches the agent, and what else it receives: its environment, its state file.

use crate::{CLAIM, sandbox};

/// Writes down everything that it is given, byte for byte, and claims.
fn scribe() -> String {
    format!(
        r#"echo "$#" > "$NOTES/count"
for word in "$@"; do printf '%s\n' "$word"; done > "$NOTES/args"
printf '%s' "${{PROMPT-unset}}" > "$NOTES/variable"
cat > "$NOTES/stdin"
env > "$NOTES/env"
{CLAIM}"#
    )
}

const PROMPT: &str = "Say \"hi\" to $HOME; `rm -rf` 'nothing'\nand ünïcode. <promise>COMPLETE</promise>";

#[test]
fn each_prompt_mode_brings_the_prompt_unchanged_and_only_there() {
    let sandbox = sandbox();
    let agent = sandbox.agent("scribe", &scribe());
    let command = format!("{agent} one 'two words'");
    for mode in ["auto", "arg", "stdin", "env", "file"] {
        let start = [
            "start",
            "--command",
            &command,
            "--agent-arg",
            "--three",
            "--name",
            mode,
            "--prompt-mode",
            mode,
            "--no-iteration-context",
            "--prompt",
            PROMPT,
        ];
        sandbox.refrain(&start).with_code(0);
        assert_eq!(sandbox.kept_text(mode, "0001", "prompt.md"), PROMPT);
        let file = sandbox.loop_dir(mode).join("iterations/0001/prompt.md");
        let last = match mode {
            "auto" | "arg" => Some(PROMPT.to_owned()),
            "file" => Some(file.to_str().unwrap().to_owned()),
            _ => None,
        };
        let args = ["one", "two words", "--three"]
            .map(str::to_owned)
            .into_iter()
            .chain(last)
            .fold(String::new(), |all, arg| all + &arg + "\n");
        assert_eq!(sandbox.note("args"), args, "{mode}");
        assert_eq!(
            sandbox.note("stdin"),
            if mode == "stdin" { PROMPT } else { "" },
            "{mode}: stdin is otherwise empty"
        );
        assert_eq!(sandbox.note("variable"), if mode == "env" { PROMPT } else { "unset" }, "{mode}");
    }
}

#[test]
fn a_prompt_over_the_argument_limit_goes_by_stdin_in_auto() {
    let sandbox = sandbox();
    let agent = sandbox.agent("scribe", &scribe());
    let long = format!("<promise>COMPLETE</promise> {}", "long ".repeat(40_000));
    testkit::write(&sandbox.project().join("long.md"), &long);
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--prompt-file", "long.md"])
        .with_code(0);
    assert!(sandbox.note("stdin").starts_with(&long), "it is told whole");
    assert_eq!(sandbox.note("count"), "0\n");
}

#[test]
fn a_prompt_is_read_from_stdin_a_file_or_the_words() {
    let sandbox = sandbox();
    let agent = sandbox.agent("scribe", &scribe());
    let bare = |id: &'static str| {
        ["start", "--command", &agent, "--no-iteration-context", "--name", id].map(str::to_owned).to_vec()
    };
    let run = |id: &'static str, words: &[&str], stdin: &str| {
        let all = [bare(id), words.iter().map(|word| (*word).to_owned()).collect()].concat();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        sandbox.command(&all).stdin(stdin).run().with_code(0);
        sandbox.kept_text(id, "0001", "prompt.md")
    };
    testkit::write(&sandbox.project().join("task.md"), "From a file.\n");
    assert_eq!(run("dash", &["-"], "From a pipe.\n"), "From a pipe.\n");
    assert_eq!(run("dash-text", &["--prompt", "-"], "From a pipe.\n"), "From a pipe.\n");
    assert_eq!(run("dash-file", &["--prompt-file", "-"], "\u{feff}From a pipe.\n"), "From a pipe.\n");
    assert_eq!(run("device", &["--prompt-file", "/dev/stdin"], "From a pipe.\n"), "From a pipe.\n");
    assert_eq!(run("file", &["--prompt-file", "task.md"], "not this"), "From a file.\n");
    assert_eq!(run("words", &["From", "the  words"], "not this"), "From the  words");
    assert_eq!(run("text", &["--prompt", "- from text"], "not this"), "- from text");
    assert_eq!(sandbox.note("stdin"), "", "the agent does not get the person's stdin");
}

#[test]
fn the_agent_sees_the_contracts_variables() {
    let sandbox = sandbox();
    let agent = sandbox.agent("scribe", &scribe());
    let start = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-m",
        "9",
        "--env",
        "MINE=a=b",
        "--env",
        "LANG=C",
        "p",
    ];
    let around = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "OPENCODE", "GEMINI_CLI"];
    let run = around.iter().fold(sandbox.command(&start), |run, name| run.env(name, "1"));
    run.env("REFRAIN_LOOP_ID", "outer").env("YOURS", "kept").run().with_code(0);
    let seen = sandbox.note("env");
    let has = |line: &str| seen.lines().any(|found| found == line);
    let project = sandbox.project();
    let project = project.to_str().unwrap();
    for line in [
        "REFRAIN_LOOP_ID=job",
        "REFRAIN_ITERATION=1",
        "REFRAIN_ATTEMPT=1",
        "REFRAIN_MAX_ITERATIONS=9",
        &format!("REFRAIN_STATE_FILE={project}/.refrain/job/state.md"),
        &format!("REFRAIN_CONTEXT_FILE={project}/.refrain/job/context.md"),
        &format!("REFRAIN_PROJECT={project}"),
        "REFRAIN_DEPTH=1",
        "MINE=a=b",
        "LANG=C",
        "YOURS=kept",
    ] {
        assert!(has(line), "{line} is not in\n{seen}");
    }
    for name in around {
        assert!(!seen.contains(&format!("{name}=")), "{name} is what a surrounding agent set for itself");
    }
}

#[test]
fn the_context_file_holds_the_failure_and_exists_only_then() {
    let sandbox = sandbox();
    let keep = "cp \"$REFRAIN_CONTEXT_FILE\" $NOTES/context.$REFRAIN_ITERATION 2> /dev/null";
    let script = format!(
        "{keep}\ncase $REFRAIN_ITERATION in 1) echo 'no rule to make the target'; exit 3;; 3) {CLAIM};; esac; true"
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let told = sandbox.note("context.2");
    assert!(told.contains("exit code 3") && told.contains("no rule to make the target"), "{told}");
    assert_eq!((sandbox.note("context.1"), sandbox.note("context.3")), (String::new(), String::new()));
}

#[test]
fn clean_env_starts_from_a_short_list() {
    let sandbox = sandbox();
    let notes = sandbox.root().join("notes");
    let agent = sandbox.agent("clean", &format!("env > {}/env\n{CLAIM}", notes.display()));
    let start = ["start", "--command", &agent, "--clean-env", "--env", "MINE=1", "p"];
    sandbox.command(&start).env("YOURS", "secret").run().with_code(0);
    let seen = sandbox.note("env");
    for name in ["PATH", "HOME", "MINE", "REFRAIN_LOOP_ID", "REFRAIN_STATE_FILE"] {
        assert!(seen.lines().any(|line| line.starts_with(&format!("{name}="))), "{name} is missing:\n{seen}");
    }
    for name in ["YOURS", "NOTES", "XDG_DATA_HOME"] {
        assert!(!seen.contains(&format!("{name}=")), "{name} came through:\n{seen}");
    }
}

#[test]
fn a_loop_in_a_loop_runs_and_one_more_is_refused() {
    let sandbox = sandbox();
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let inner = sandbox.agent(
        "inner",
        &format!("echo \"$REFRAIN_DEPTH\" > $NOTES/depth\n{refrain} start --command true --name c --share-worktree p 2> $NOTES/refused\necho $? > $NOTES/code\n{CLAIM}"),
    );
    let outer = sandbox.agent(
        "outer",
        &format!(
            "{refrain} start --command {inner} --name b --share-worktree p > $NOTES/log 2>&1 || exit\n{CLAIM}"
        ),
    );
    sandbox.refrain(&["start", "--command", &outer, "--name", "a", "-m", "1", "p"]).with_code(0);
    assert_eq!((sandbox.note("depth"), sandbox.note("code")), ("2\n".to_owned(), "17\n".to_owned()));
    assert!(!sandbox.loop_dir("c").exists(), "nothing was touched");
    assert_eq!(sandbox.status("b")["status"], "completed");
}

#[test]
fn the_state_file_is_written_once_claims_and_belongs_to_the_agent() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        r#"test -e "$NOTES/first" || cp "$REFRAIN_STATE_FILE" "$NOTES/first"
echo "- a note of $REFRAIN_ITERATION" >> "$REFRAIN_STATE_FILE"
test "$REFRAIN_ITERATION" = 1 && exit
sed -i 's/^status:.*/status: done/' "$REFRAIN_STATE_FILE""#,
    );
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--prompt", "Write a poem."])
        .with_code(0);
    let first = sandbox.note("first");
    for part in ["loop_id: job", "status:", "Goal", "Progress", "Next Action", "Notes", "Write a poem."] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let last = std::fs::read_to_string(sandbox.project().join(".refrain/job/state.md")).unwrap();
    assert!(last.contains("- a note of 1") && last.contains("- a note of 2"), "{last}");
    let status = sandbox.status("job");
    assert_eq!(
        (&status["claim"]["source"], &status["iteration"]),
        (&serde_json::json!("state-file"), &serde_json::json!(2))
    );
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "git does not see .refrain");
}

#[test]
fn an_echo_of_the_prompt_is_no_claim() {
    let sandbox = sandbox();
    let agent = sandbox.agent("parrot", "printf '%s\\n' \"$1\"");
    for (id, prompt) in [
        ("plain", "Do it."),
        ("tagged", "Do it, then print:\n<promise>COMPLETE</promise>"),
        ("bare", "Say COMPLETE\n\nCOMPLETE"),
    ] {
        sandbox
            .refrain(&["start", "--command", &agent, "--name", id, "-m", "2", "--prompt", prompt])
            .with_code(10);
    }
}

/// An adapter sets only defaults: a variable that the user exported reaches the agent unchanged.
#[test]
fn a_variable_that_is_exported_is_not_overridden() {
    let sandbox = sandbox();
    let told = r#"cat > /dev/null
echo "$CLAUDE_CODE_MAX_RETRIES $DISABLE_AUTOUPDATER" >> $NOTES/told
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>"}'"#;
    let claude = sandbox.agent("claude", told);
    let start = |name| sandbox.command(&["start", "--command", &claude, "--name", name, "p"]);
    start("as-it-is").run().with_code(0);
    start("exported").env("CLAUDE_CODE_MAX_RETRIES", "5").run().with_code(0);
    // A variable that was exported and removed again cannot be kept.
    let notes = format!("NOTES={}", sandbox.root().join("notes").display());
    let clean = ["start", "--command", &claude, "--name", "clean", "--clean-env", "--env", &notes, "p"];
    sandbox.command(&clean).env("CLAUDE_CODE_MAX_RETRIES", "5").run().with_code(0);
    assert_eq!(sandbox.note("told"), "1 1\n5 1\n1 1\n");
}

#[test]
fn the_next_prompt_says_that_a_run_changed_no_file() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo 'I have a question.'");
    let words =
        ["start", "--command", &agent, "--name", "job", "--git-workflow", "commit", "--gate", "false"];
    sandbox.refrain(&[&words[..], &["--max-iterations", "2", "p"]].concat()).with_code(10);
    let prompt = std::fs::read_to_string(sandbox.loop_dir("job").join("iterations/0002/prompt.md")).unwrap();
    assert!(prompt.contains("Run 1 changed no file.") && !prompt.contains("Not committed"), "{prompt}");
}
