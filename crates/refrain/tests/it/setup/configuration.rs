//! Configuration and trust from outside: how a start uses files and variables, and what it refuses.

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

fn project_file(sandbox: &Sandbox, text: &str) {
    testkit::write(&sandbox.project().join("refrain.toml"), text);
}

fn trusted(sandbox: &Sandbox, text: &str) {
    project_file(sandbox, text);
    sandbox.trust();
}

fn user_file(sandbox: &Sandbox, text: &str) {
    let folder = sandbox.root().join("home/config/refrain");
    std::fs::create_dir_all(&folder).unwrap();
    testkit::write(&folder.join("config.toml"), text);
}

fn spec(sandbox: &Sandbox, id: &str) -> Value {
    sandbox.journal(id)[0]["event"]["data"]["spec"].clone()
}

fn value(shown: &Value, key: &str) -> Value {
    let values = shown["values"].as_array().unwrap();
    values.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("{key}")).clone()
}

#[test]
fn a_configured_project_needs_no_words() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo \"$A $#: $1\" > $NOTES/said\n{CLAIM}"));
    testkit::write(&sandbox.project().join("task.md"), "Mend the tests.");
    user_file(&sandbox, "[start]\nmax-iterations = 9\ntimeout = \"5m\"\n");
    trusted(
        &sandbox,
        &format!(
            "[start]\nagent = \"work\"\nprompt-name = \"fix\"\ntimeout = \"2m\"\noutput-cap = \"1MiB\"\n\
             [agents.work]\ncommand = [{agent:?}]\nenv = {{ A = \"set\" }}\n[prompts.fix]\nfile = \"task.md\"\n"
        ),
    );
    let run = sandbox.command(&["start", "--name", "job"]).env("REFRAIN_PAUSE", "1").run().with_code(0);
    let said =
        "note: trusted since the last start here: refrain.toml; refrain trust --revoke takes that back\n";
    assert_eq!(run.stderr, said);
    assert!(sandbox.note("said").starts_with("set 1: Mend the tests."), "{}", sandbox.note("said"));
    let spec = spec(&sandbox, "job");
    let limits = &spec["limits"];
    assert_eq!((&limits["max_iterations"], &limits["timeout_ms"]), (&json!(9), &json!(120_000)));
    assert_eq!((&limits["pause_ms"], &spec["output_cap"]), (&json!(1_000), &json!(1 << 20)));

    let words = ["start", "--name", "other", "-m", "2", "--timeout", "none", "--prompt", "Else."];
    sandbox.refrain(&words).with_code(0);
    assert_eq!(self::spec(&sandbox, "other")["limits"]["timeout_ms"], json!(null));
    assert!(sandbox.note("said").contains("Else."));
}

#[test]
fn an_untrusted_file_is_ignored_and_every_start_says_so() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "p"];
    project_file(&sandbox, "[start]\nmax-iterations = 3\n");
    for _ in 0..2 {
        let run = sandbox.refrain(&start).with_code(0);
        assert!(run.stdout.contains("at most 20 iterations"), "{}", run.stdout);
        assert!(run.stderr.contains("refrain.toml is not trusted") && run.stderr.contains("refrain trust"));
    }
    for words in [["list"].as_slice(), &["status"], &["list", "--json"]] {
        assert!(!sandbox.refrain(words).stderr.contains("trust"), "{words:?}");
    }
    let shown = sandbox.refrain(&["config", "show"]).with_code(0).stdout;
    assert!(shown.contains("is not trusted") && shown.contains("start.max-iterations = 20"), "{shown}");

    sandbox.trust();
    let run = sandbox.refrain(&start).with_code(0);
    assert!(run.stdout.contains("at most 3 iterations"), "{}", run.stdout);
    assert!(run.stderr.contains("trusted since the last start here: refrain.toml"), "{}", run.stderr);
    assert_eq!(sandbox.refrain(&start).with_code(0).stderr, "", "it is named once");

    project_file(&sandbox, "[start]\nmax-iterations = 4\n");
    let run = sandbox.refrain(&start).with_code(0);
    assert!(run.stdout.contains("at most 20 iterations") && run.stderr.contains("not trusted"), "changed");
    project_file(&sandbox, "[start]\nmax-iterations = 3\n");
    sandbox.refrain(&["trust", "--revoke"]).with_code(0);
    assert!(sandbox.refrain(&start).with_code(0).stderr.contains("not trusted"), "revoked");
}

#[test]
fn trust_shows_the_effects_of_a_file_and_lists_trusted_files() {
    let sandbox = sandbox();
    trusted(
        &sandbox,
        "[start]\ncommand = \"agent --fast\"\n[agents.work]\nkind = \"codex\"\npermissions = \"full\"\n\
         args = [\"--x\\u001b[31m\"]\nenv = { TOKEN = \"hunter2\" }\n[gates.test]\ncommand = \"cargo test\"\n",
    );
    let run = sandbox.refrain(&["trust"]).with_code(0);
    for part in
        ["is trusted already", "agent --fast", "codex", "permissions = \"full\"", "TOKEN", "cargo test"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("hunter2") && !run.stdout.contains('\u{1b}'), "{}", run.stdout);
    let listed = sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json();
    assert_eq!(listed[0]["project"], json!(sandbox.project().canonicalize().unwrap()));
    let again = sandbox.refrain(&["trust", "--list"]).with_code(0).stdout;
    assert!(again.contains(&listed[0]["hash"].as_str().unwrap()[..16]), "{again}");
    sandbox.refrain(&["trust", "--revoke"]).with_code(0);
    assert_eq!(sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json(), json!([]));
}

#[test]
fn a_file_that_cannot_be_trusted_is_refused_and_nothing_changes() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let path = sandbox.project().join("refrain.toml");
    sandbox.refrain(&["trust"]).with_code(2);
    for (content, says) in [
        (
            b"[start]\nmax-iteration = 3\n".as_slice(),
            "refrain.toml:2: max-iteration is no key of [start]; did you mean max-iterations?",
        ),
        (b"[start]\n\xff = 3\n", "line 2 is no UTF-8"),
    ] {
        testkit::write(&path, content);
        let before = sandbox.snapshot();
        let run = sandbox.refrain(&["trust"]).with_code(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
        assert!(sandbox.snapshot() == before, "something was touched");
    }
    std::fs::remove_file(&path).unwrap();
    sandbox.tool("mkfifo", &["refrain.toml"]).run().with_code(0);
    for words in [["trust"].as_slice(), &["config", "show"], &["start", "--command", &agent, "p"]] {
        let run = sandbox.refrain(words).with_code(2);
        assert!(run.stderr.contains("refrain.toml cannot be used: it is no regular file"), "{}", run.stderr);
    }
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("README.md", &path).unwrap();
    let run = sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(2);
    assert!(run.stderr.contains("symbolic link"), "{}", run.stderr);
    assert!(!sandbox.project().join(".git/refrain").exists(), "nothing was begun");
}

#[test]
fn a_wrong_value_is_refused_wherever_it_stands_and_nothing_is_begun() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let codex = sandbox.agent("codex", CLAIM);
    let start = |words: &[&str], says: &[&str]| {
        let before = sandbox.snapshot();
        let run = sandbox.refrain(&[&["start", "p"], words].concat()).with_code(2);
        let line = run.stderr.lines().next().unwrap_or_default();
        says.iter().for_each(|part| assert!(run.stderr.contains(part), "{part}: {}", run.stderr));
        assert!(line.starts_with("refrain: ") && sandbox.snapshot() == before, "{}", run.stderr);
    };
    user_file(
        &sandbox,
        "[prompts.fix]\ntext = \"x\"\n[start]\nmax-cost = 2\n[agents.quick]\ncommand = \"x\"\n",
    );
    start(&["--command", &agent], &["config.toml:4: start.max-cost", "generic", "--max-cost none"]);
    start(&["--command", &codex], &["config.toml:4: start.max-cost", "codex", "--max-tokens", "price"]);
    start(&["--agent", "quik"], &["--agent", "\"quik\"", "did you mean quick?", "generic"]);
    start(&["--agent", "acp"], &["--command"]);
    start(&[], &["--command", "--agent"]);
    user_file(&sandbox, "[start]\nprompt-mode = \"file\"\nagent = \"acp\"\ncommand = \"x\"\n");
    start(&[], &["config.toml:2: start.prompt-mode", "ACP"]);
    user_file(&sandbox, "[prompts.fix]\ntext = \"x\"\n");
    let run = sandbox.refrain(&["start", "--command", &agent, "--prompt-name", "fx"]).with_code(2);
    assert!(
        run.stderr.contains("--prompt-name fx") && run.stderr.contains("did you mean fix?"),
        "{}",
        run.stderr
    );
    let run = sandbox.command(&["start", "--command", &agent, "p"]).env("REFRAIN_MAX_ITERATIONS", "0").run();
    assert!(run.with_code(2).stderr.contains("REFRAIN_MAX_ITERATIONS: \"0\": accepted:"));
    sandbox.refrain(&["start", "--command", &agent, "--max-cost", "none", "p"]).with_code(0);
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let sandbox = sandbox();
    user_file(&sandbox, "[start]\nmodel = \"opus\"\nenv = { TOKEN = \"hunter2\" }\n");
    trusted(&sandbox, "# ours\n[start]\nmax-cost = 2.5\n");
    let show = |words: &[&str]| {
        sandbox.command(&[&["config", "show"], words].concat()).env("REFRAIN_TIMEOUT", "90").run()
    };
    let shown = show(&["--json"]).with_code(0).json();
    let file = |path: &str| sandbox.root().join(path).to_str().unwrap().to_owned();
    for (key, expected, origin) in [
        ("start.max-cost", json!(2.5), file("project/refrain.toml:3")),
        ("start.model", json!("opus"), file("home/config/refrain/config.toml:2")),
        ("start.timeout", json!("90"), "REFRAIN_TIMEOUT".to_owned()),
        ("start.max-iterations", json!(20), "default".to_owned()),
        ("start.retry-for", json!(null), "default".to_owned()),
        ("start.env.TOKEN", json!("[redacted]"), file("home/config/refrain/config.toml:3")),
    ] {
        assert_eq!(value(&shown, key), json!({ "key": key, "value": expected, "origin": origin }));
    }
    assert_eq!(shown["project_file"]["trusted"], json!(true));
    let text = show(&["--origin"]).with_code(0).stdout;
    assert!(text.contains("start.timeout = \"90\"  # REFRAIN_TIMEOUT\n"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(show(&[]).with_code(0).stdout.contains("start.max-cost = 2.5\n"));
}

#[test]
fn a_loop_keeps_the_settings_of_its_start() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo \"$REFRAIN_MAX_ITERATIONS\" >> $NOTES/caps");
    trusted(&sandbox, "[start]\nmax-iterations = 2\n");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(10);
    trusted(&sandbox, "[start]\nmax-iterations = 1\ncommand = \"false\"\ntimeout = 1\n");
    sandbox.refrain(&["resume", "job", "-m", "3"]).with_code(10);
    assert_eq!(sandbox.note("caps"), "2\n2\n3\n");
    assert_eq!(sandbox.status("job")["max_iterations"], json!(3));
}

/// The variables of an attempt are its loop's: a loop started in it does not take them for configuration. Nor can a
/// process in it trust a project.
#[test]
fn inside_an_attempt_no_variable_is_configuration_and_nothing_is_trusted() {
    let sandbox = sandbox();
    let inner = sandbox.agent("inner", CLAIM);
    project_file(&sandbox, "[start]\nmax-iterations = 4\n");
    let script = format!(
        "export REFRAIN_TIMEOUT=never
\"$REFRAIN\" start --command {inner} --name inner p > $NOTES/inner 2>&1
\"$REFRAIN\" config show > $NOTES/shown 2>&1
\"$REFRAIN\" trust --list > $NOTES/listed 2>&1
for words in trust 'trust --revoke'; do \"$REFRAIN\" $words > $NOTES/said 2>&1; echo \"$? $(cat $NOTES/said | tr '\\n' ' ')\" >> $NOTES/tried; done
{CLAIM}"
    );
    let outer = sandbox.agent("outer", &script);
    let program = format!("REFRAIN={}", env!("CARGO_BIN_EXE_refrain"));
    let start = ["start", "--command", &outer, "--name", "outer", "-m", "3", "--env", &program, "p"];
    sandbox.refrain(&start).with_code(0);
    assert_eq!(spec(&sandbox, "inner")["limits"]["max_iterations"], json!(20), "{}", sandbox.note("inner"));
    assert!(sandbox.note("shown").contains("start.max-iterations = 20"), "{}", sandbox.note("shown"));
    assert_eq!(sandbox.note("listed"), "Nothing is trusted.\n");
    let tried = sandbox.note("tried");
    assert_eq!(tried.lines().count(), 2, "{tried}");
    for line in tried.lines() {
        assert!(
            line.starts_with("17 ") && line.contains("outer") && line.contains("a person does that"),
            "{tried}"
        );
    }
    assert_eq!(sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json(), json!([]));
}

#[test]
fn a_linked_worktree_has_a_file_of_its_own_and_the_trust_of_its_project() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    trusted(&sandbox, "[start]\nmax-iterations = 3\n");
    sandbox.git(&["worktree", "add", "--quiet", "../side"]);
    let side = sandbox.root().join("side");
    let start = || sandbox.command(&["start", "--command", &agent, "p"]).dir(&side).run().with_code(0);
    assert!(start().stdout.contains("at most 20 iterations"), "it has none");
    testkit::write(&side.join("refrain.toml"), "[start]\nmax-iterations = 3\n");
    assert!(start().stdout.contains("at most 3 iterations"), "the same content");
    testkit::write(&side.join("refrain.toml"), "[start]\nmax-iterations = 5\n");
    assert!(start().stderr.contains("side/refrain.toml is not trusted"), "another");
    let hash = sandbox.command(&["trust", "--show"]).dir(&side).run().with_code(0).stdout;
    let hash = hash.lines().find_map(|line| line.strip_prefix("hash ")).unwrap();
    sandbox.command(&["trust", "--hash", hash]).dir(&side).run().with_code(0);
    assert!(start().stdout.contains("at most 5 iterations"));
    let main = sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(0);
    assert!(main.stdout.contains("at most 3 iterations"), "both branches count");
}

/// 500 tokens in at $1 a million, 100 cached at $0.1, 40 out at $10: $0.00091 for each iteration.
#[test]
fn with_a_price_for_its_model_a_cap_on_money_is_kept_with_an_agent_that_tells_no_cost() {
    let sandbox = sandbox();
    let script = r#"cat > /dev/null
printf '{"type":"thread.started","thread_id":"t%s"}\n{"type":"turn.started"}\n' "$REFRAIN_ITERATION"
printf '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"not yet"}}\n'
printf '{"type":"turn.completed","usage":{"input_tokens":600,"cached_input_tokens":100,"output_tokens":40}}\n'"#;
    let codex = sandbox.agent("codex", script);
    user_file(&sandbox, "[prices.\"gpt-5.5\"]\ninput = 1\ncached-input = 0.1\noutput = 10\n");
    let start = |name: &str, model: &str| {
        sandbox.refrain(&[
            "start",
            "--command",
            &codex,
            "--model",
            model,
            "--max-cost",
            "0.002",
            "--name",
            name,
            "p",
        ])
    };
    assert!(start("no", "gpt-4").with_code(2).stderr.contains("--max-tokens"));
    let run = start("job", "gpt-5.5").with_code(11);
    assert!(run.stdout.contains("spent"), "{}", run.stdout);
    assert!(run.stdout.contains("gpt-5.5, reckoned at $1.00 in and $10.00 out"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["usage"]["cost_usd"]), (&json!(2), &json!(0.00182)));
    user_file(&sandbox, "");
    sandbox.refrain(&["resume", "job", "--max-cost", "0.003"]).with_code(11);
    assert_eq!(sandbox.status("job")["usage"]["cost_usd"], json!(0.00273), "the price is pinned");
}

#[test]
fn the_demo_ignores_the_configuration() {
    let sandbox = sandbox();
    user_file(&sandbox, "[start]\nmax-cost = 1\nmodel = \"opus\"\npromise = false\n");
    let run =
        sandbox.command(&["demo", "--dir", "there"]).env("REFRAIN_MAX_DURATION", "1ms").run().with_code(0);
    assert!(run.stdout.contains("it says <promise>COMPLETE</promise>"), "{}", run.stdout);
}

#[test]
fn every_piece_of_toml_in_the_documentation_can_be_used() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let pieces: Vec<_> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(pieces.len() >= 6, "{}", pieces.len());
    let sandbox = sandbox();
    for piece in pieces {
        user_file(&sandbox, piece);
        let shown = sandbox.refrain(&["config", "show", "--json"]).with_code(0).json();
        let keys = piece.lines().filter(|line| line.contains(" = ")).count();
        let given = shown["values"].as_array().unwrap().iter().filter(|entry| entry["origin"] != "default");
        assert!(given.count() >= keys, "{piece}");
    }
}

#[test]
fn a_notify_command_runs_and_a_broken_file_does_not_stop_a_resume() {
    let sandbox = sandbox();
    let tell = sandbox.agent("tell", "{ echo \"$REFRAIN_NOTIFY_STATUS\"; cat; } >> $NOTES/told");
    let agent = sandbox.agent("agent", "echo not yet");
    user_file(&sandbox, &format!("[notify]\ncommand = [{tell:?}]\n"));
    let words = ["start", "--command", &agent, "--name", "job", "-m", "1", "--prompt", "Work."];
    sandbox.refrain(&words).with_code(10);
    assert!(sandbox.note("told").starts_with("iteration-cap\n"), "{}", sandbox.note("told"));

    user_file(&sandbox, "[notify]\nhw = \"auto\"\n");
    let run = sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert!(run.stderr.contains("note: [notify] is not read: "), "{}", run.stderr);
    assert_eq!(sandbox.status("job")["charged"], 2);
}

#[test]
fn single_configuration_keys_are_read_and_set() {
    let sandbox = sandbox();
    user_file(&sandbox, "# Mine.\n[start]\nagent = 'codex' # for now\n");
    let path = sandbox.root().join("home/config/refrain/config.toml");
    let run = |words: &[&str]| sandbox.refrain(&[&["config"], words].concat());
    assert_eq!(run(&["path"]).with_code(0).stdout, format!("{}\n", path.display()));
    assert_eq!(run(&["get", "start.agent"]).with_code(0).stdout, "codex\n");
    run(&["set", "start.agent", "claude"]).with_code(0);
    run(&["set", "start.max-iterations", "7"]).with_code(0);
    run(&["set", "git.worktree", "true"]).with_code(0);
    let text =
        "# Mine.\n[start]\nmax-iterations = 7\nagent = \"claude\" # for now\n\n[git]\nworktree = true\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(run(&["get", "start.max-iterations"]).with_code(0).stdout, "7\n");
    let shown = run(&["get", "start.agent", "--json"]).with_code(0).json();
    assert_eq!((&shown["value"], &shown["key"]), (&json!("claude"), &json!("start.agent")));
    assert!(shown["origin"].as_str().unwrap().ends_with("config.toml:4"), "{shown}");
    assert!(run(&["get", "start.model"]).with_code(1).stderr.contains("start.model is not set"));

    for (words, says) in [
        (&["set", "start.agnet", "x"][..], "did you mean agent?"),
        (&["get", "max-iterations"], "it belongs into [start]"),
        (&["set", "start", "x"], "start is a table"),
        (&["set", "start.max-iterations", "900"], "start.max-iterations: "),
    ] {
        let refused = run(words).with_code(2).stderr;
        assert!(refused.contains(says), "{says}: {refused}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "what is refused touches nothing");
}

#[test]
fn config_edit_opens_the_editor_and_checks_the_file() {
    let sandbox = sandbox();
    let editor =
        sandbox.agent("editor", "printf '[start]\nmodel = \"x\"\n' >> \"$2\"; echo \"$1\" > $NOTES/said");
    let run = |more: &[(&str, &str)]| {
        let edit = sandbox.command(&["config", "edit"]);
        more.iter().fold(edit, |edit, (name, value)| edit.env(name, value)).run()
    };
    assert!(run(&[]).with_code(2).stderr.contains("neither VISUAL nor EDITOR names an editor"));
    let words = format!("{editor} --wait");
    run(&[("EDITOR", &words)]).with_code(0);
    assert_eq!(sandbox.note("said"), "--wait\n");
    assert_eq!(sandbox.refrain(&["config", "get", "start.model"]).with_code(0).stdout, "x\n");
    // A second table of the same name is no TOML.
    let refused = run(&[("EDITOR", &words)]).with_code(2).stderr;
    assert!(refused.contains("config.toml:3"), "{refused}");
}
