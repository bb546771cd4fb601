//! Starting under names, resuming after every kind of end, archiving, and the default loop of a verb.

use serde_json::json;
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// Starts a loop that stops at its cap after one iteration.
fn capped(sandbox: &Sandbox, id: &str) {
    let agent = sandbox.agent("silent", "echo nothing yet");
    sandbox.refrain(&["start", "--command", &agent, "--name", id, "-m", "1", "p"]).with_code(10);
}

#[test]
fn three_lost_attempts_in_a_row_block_the_loop() {
    let sandbox = sandbox();
    let agent =
        sandbox.agent("agent", "echo \"$REFRAIN_ATTEMPT\" > $NOTES/at.$REFRAIN_ATTEMPT\nexec sleep 1000");
    let mut session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    for k in 1..=3 {
        sandbox.wait_for_note(&format!("at.{k}"));
        session.kill();
        session = sandbox.spawn(&["resume", "job"]);
    }
    let run = session.wait().with_code(14);
    assert!(run.stdout.contains("blocked"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["charged"], &status["started"], &status["status"]),
        (&json!(0), &json!(3), &json!("blocked"))
    );
    sandbox.no_process_is_left();
}

#[test]
fn resume_last_takes_the_one_that_was_touched_last_and_all_takes_every_paused_or_crashed_one() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo x > $NOTES/$REFRAIN_LOOP_ID.$REFRAIN_ATTEMPT\ntest $REFRAIN_ATTEMPT = 1 || {{ {CLAIM}; exit; }}\nexec sleep 1000"),
    );
    let start = |id: &str| {
        let session = sandbox.spawn(&["start", "--command", &agent, "--name", id, "--share-worktree", "p"]);
        sandbox.wait_for_note(&format!("{id}.1"));
        session
    };
    for id in ["one", "two", "three"] {
        start(id).kill();
    }
    let session = start("four");
    session.signal(testkit::Signal::TERM);
    session.wait().with_code(16);
    capped(&sandbox, "five");
    sandbox.refrain(&["cancel", "one"]).with_code(0);
    // `five` was touched after `four`, but needs a grant.
    sandbox.refrain(&["steer", "four", "go on"]).with_code(0);
    let run = sandbox.refrain(&["resume", "--last"]).with_code(0);
    assert!(run.stderr.contains("four"), "{}", run.stderr);
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    for id in ["two", "three"] {
        sandbox.wait_for_status(id, "completed");
    }
    let words = ["one", "four", "five"].map(|id| sandbox.status(id)["status"].clone());
    assert_eq!(words, [json!("cancelled"), json!("completed"), json!("iteration-cap")]);
}

#[test]
fn of_two_starts_with_one_name_the_other_hears_that_it_is_taken() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "same", "--worktree", "--gate", "true", "p"];
    let both = [sandbox.spawn(&start), sandbox.spawn(&start)].map(|session| session.wait());
    let (won, lost): (Vec<_>, Vec<_>) = both.iter().partition(|run| run.code == 0);
    assert_eq!((won.len(), lost.len()), (1, 1), "{both:?}");
    assert!(lost[0].code == 17 && lost[0].stderr.contains("same exists already"), "{both:?}");
}

/// The errors that a formatter finds in the manual pages, without style warnings.
fn lint(sandbox: &Sandbox) -> String {
    sandbox.tool("sh", &["-c", "mandoc -T lint -W error ../man/*.1"]).run().stdout
}

#[test]
fn completions_and_manuals_know_every_verb_but_the_hidden_ones() {
    let sandbox = sandbox();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.refrain(&["completions", shell]).with_code(0).stdout;
        assert!(script.contains("_REFRAIN_COMPLETES"), "{shell}: it asks the program: {script}");
        let ask = sandbox.command(&["--", "refrain", ""]).env("_REFRAIN_COMPLETES", shell);
        let answer = ask.env("_CLAP_COMPLETE_INDEX", "1").run().with_code(0).stdout;
        let verbs: Vec<_> = answer.lines().filter_map(|line| line.split([':', '\t']).next()).collect();
        assert!(["archive", "loop", "promise"].iter().all(|verb| verbs.contains(verb)), "{shell}: {answer}");
        assert!(!verbs.contains(&"drive") && !verbs.contains(&"generate"), "{shell}: {answer}");
    }
    let man = sandbox.root().join("man");
    sandbox.refrain(&["man", man.to_str().unwrap()]).with_code(0);
    let pages =
        std::fs::read_dir(&man).unwrap().flatten().map(|page| page.file_name().into_string().unwrap());
    let pages: Vec<_> = pages.collect();
    assert!(pages.contains(&"refrain-start.1".to_owned()), "{pages:?}");
    assert!(!pages.iter().any(|page| page.contains("drive") || page.contains("generate")), "{pages:?}");
    let steer = std::fs::read_to_string(man.join("refrain-steer.1")).unwrap();
    assert!(steer.contains("\\fBrefrain steer\\fR [OPTIONS] [ID] [TEXT]..."), "{steer}");
    assert!(sandbox.tool("sh", &["-c", "command -v mandoc"]).run().code != 0 || lint(&sandbox).is_empty());
    let page = sandbox.refrain(&["man"]).with_code(0).stdout;
    assert!(page.contains("Exit codes"), "{page}");
    assert!(page.contains("refrain\\-start") && !page.contains("refrain\\-drive"), "{page}");
}
