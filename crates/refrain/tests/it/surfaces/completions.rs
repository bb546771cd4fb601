//! Completion in real shells in a real terminal, with existing loops.

use testkit::Sandbox;

use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, plain_folder, sandbox};

/// A sandbox with a completed loop, one at its cap, and one that runs.
fn with_loops() -> Sandbox {
    let sandbox = sandbox();
    let [claims, fails] =
        [("claims", CLAIM), ("fails", "exit 1")].map(|(name, script)| sandbox.agent(name, script));
    let stays = sandbox.agent("stays", "echo x > $NOTES/up; exec sleep 1000");
    sandbox.refrain(&["start", "--command", &claims, "--name", "finished", "p"]).with_code(0);
    sandbox.refrain(&["start", "--command", &fails, "--name", "capped", "-m", "1", "p"]).with_code(10);
    sandbox.refrain(&["start", "--command", &stays, "--name", "alive", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up");
    sandbox.wait_for_event("alive", "attempt.spawned");
    sandbox
}

/// The candidates that bash gets for the next word, as its script asks for them, without options.
fn follow(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut words = candidates(sandbox, words);
    words.retain(|word| !word.starts_with('-'));
    words
}

fn candidates(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let run = sandbox
        .command(&[&["--"], words].concat())
        .env("_REFRAIN_COMPLETES", "bash")
        .env("_CLAP_COMPLETE_INDEX", &index)
        .run()
        .with_code(0);
    assert_eq!(run.stderr, "", "a shell prompt is no place for words");
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn each_verb_is_completed_with_the_loops_that_it_can_mean() {
    let sandbox = with_loops();
    let before = sandbox.snapshot();
    let all = ["alive", "capped", "finished"].as_slice();
    for (verb, ids) in [
        ("resume", ["capped"].as_slice()),
        ("pause", &["alive"]),
        ("watch", all),
        ("cancel", &["alive", "capped"]),
        ("steer", &["alive", "capped"]),
        ("archive", &["capped", "finished"]),
        ("status", all),
        ("show", all),
        ("logs", all),
        ("verify", all),
    ] {
        assert_eq!(follow(&sandbox, &["refrain", verb, ""]), ids, "{verb}: last touched first");
        assert_eq!(follow(&sandbox, &["refrain", "loop", verb, ""]), ids, "loop {verb}");
    }
    assert_eq!(follow(&sandbox, &["refrain", "status", "c"]), ["capped"]);
    assert_eq!(follow(&sandbox, &["refrain", "start", "--agent", "c"]), ["claude", "codex"]);
    assert_eq!(follow(&sandbox, &["refrain", "start", "--prompt-file", "R"]), ["README.md"]);
    // What counts only for a loop of another system does not bury them.
    let options = candidates(&sandbox, &["refrain", "resume", ""]);
    assert!(options.iter().any(|word| word == "--max-iterations"), "{options:?}");
    assert!(!options.iter().any(|word| word == "--model"), "{options:?}");
    assert_eq!(candidates(&sandbox, &["refrain", "resume", "--mode"]), ["--mode", "--model"]);
    assert!(sandbox.snapshot() == before, "asking touches nothing");
}

#[test]
fn agents_and_prompts_of_the_configuration_are_completed() {
    let sandbox = sandbox();
    let file = "[agents.careful]\nkind = \"claude\"\n[agents.house]\ncommand = \"./a.sh\"\n[prompts.fix]\ntext = \"Mend\\nit.\"\n[modes.polish]\ntext = \"Polish.\"\n";
    testkit::write(&sandbox.project().join("refrain.toml"), file);
    let adapters = ["acp", "claude", "codex", "gemini", "generic", "opencode"];
    let sorted = |words: &[&str]| {
        let mut found = follow(&sandbox, words);
        found.sort_unstable();
        found
    };
    assert_eq!(sorted(&["refrain", "start", "--agent", ""]), adapters, "the file is not trusted yet");
    assert_eq!(follow(&sandbox, &["refrain", "start", "--mode", ""]), ["implement", "research"]);
    sandbox.trust();
    assert_eq!(sorted(&["refrain", "start", "--agent", "c"]), ["careful", "claude", "codex"]);
    assert_eq!(follow(&sandbox, &["refrain", "loop", "start", "--agent", "ho"]), ["house"]);
    assert_eq!(follow(&sandbox, &["refrain", "start", "--prompt-name", ""]), ["fix"]);
    assert_eq!(follow(&sandbox, &["refrain", "start", "--mode", ""]), ["implement", "polish", "research"]);
    assert_eq!(follow(&sandbox, &["refrain", "loop", "research", "--agent", "ho"]), ["house"]);
    let ask = ["--", "refrain", "start", "--prompt-name", ""];
    let fish = sandbox.command(&ask).env("_REFRAIN_COMPLETES", "fish").run().with_code(0);
    assert!(fish.has_line("fix\tMend it."), "with its begin as help: {fish:?}");
    testkit::write(&sandbox.project().join("refrain.toml"), "[agents");
    assert_eq!(sorted(&["refrain", "start", "--agent", ""]), adapters);
}

#[test]
fn ids_are_those_of_the_project_that_the_words_name() {
    let sandbox = with_loops();
    let project = sandbox.project();
    let project = project.to_str().unwrap();
    for [flag, dir] in [["-C", project], ["-C", "project"]] {
        let ask = ["--", "refrain", flag, dir, "pause", ""];
        let elsewhere =
            sandbox.command(&ask).env("_REFRAIN_COMPLETES", "fish").dir(sandbox.root()).run().with_code(0);
        assert!(
            elsewhere.has_line("alive\trunning at iteration 1/20"),
            "with its status as help: {elsewhere:?}"
        );
    }
}

#[test]
fn unreadable_values_are_omitted_from_completions_silently() {
    let empty = plain_folder();
    assert_eq!(follow(&empty, &["refrain", "status", ""]), [""; 0]);
    assert_eq!(follow(&empty, &["refrain", "-C", "nowhere", "status", ""]), [""; 0]);
    let sandbox = with_loops();
    let broken = sandbox.loop_dir("broken");
    std::fs::create_dir_all(&broken).unwrap();
    testkit::write(&broken.join("journal.jsonl"), "no journal\n");
    assert_eq!(follow(&sandbox, &["refrain", "pause", ""]), ["alive"]);
}

/// Types into a shell that has read the script, and waits for its output.
fn type_into(shell: &str, flags: &[&str], set_up: &str, sandbox: &Sandbox) {
    let there = sandbox.tool("sh", &["-c", &format!("command -v {shell}")]).run().code == 0;
    if !there {
        assert_ne!(shell, "bash");
        println!("note: no {shell} here; its completions were not tried");
        return;
    }
    let program = env!("CARGO_BIN_EXE_refrain");
    let mut terminal =
        Terminal::of_program(shell, 120, sandbox, flags, &[("REFRAIN", program), ("PS1", "ready> ")]);
    // Typed before the shell listens, it is read when it does.
    terminal.type_keys(&format!("{set_up}; echo set''up\n"));
    terminal.wait_for("setup");
    terminal.type_keys("refrain pause al\t");
    terminal.wait_for("refrain pause alive");
    terminal.type_keys("\u{15}refrain archive \t\t");
    terminal.wait_for("finished");
    assert_eq!(sandbox.status("alive")["status"], "running", "nothing was done");
}

#[test]
fn bash_completes_the_typed_word() {
    type_into("bash", &["--norc", "-i"], "source <(\"$REFRAIN\" completions bash)", &with_loops());
}

#[test]
fn zsh_completes_the_typed_word() {
    let set_up = "autoload -U compinit; compinit -u -D; source <(\"$REFRAIN\" completions zsh)";
    type_into("zsh", &["-f", "-i"], set_up, &with_loops());
}

#[test]
fn fish_completes_the_typed_word() {
    type_into("fish", &["--no-config", "-i"], "$REFRAIN completions fish | source", &with_loops());
}
