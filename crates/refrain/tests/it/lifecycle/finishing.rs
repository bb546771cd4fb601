//! How a loop that has stopped is shown. What a person does with it then is in `scenarios/finish`.

use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, sandbox};

#[test]
fn a_loop_says_who_paused_it_and_when_it_crashed() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x >> $NOTES/began; read -r _ < $GATES/go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("began");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
    assert_eq!(sandbox.status("job")["reason"], "by a person");
    let session = sandbox.spawn(&["resume", "job"]);
    sandbox.wait_for_event("job", "loop.resumed");
    testkit::eventually("the second attempt runs", || (sandbox.note("began") == "x\nx\n").then_some(()));
    session.kill();
    sandbox.wait_for_status("job", "crashed");
    // Its supervisor ends the agent a moment later; until then the reason names that.
    testkit::eventually("the agent has ended", || {
        let status = sandbox.status("job");
        status["reason"].as_str().unwrap().starts_with("its runner is gone; nothing is lost").then_some(())
    });
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("  2      interrupted"), "{shown}");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("verified     no\n"), "{shown}");
}

#[test]
fn refrain_without_a_verb_shows_the_last_ended_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit"];
    sandbox.refrain(&[&start[..], &["--gate", "true", "Add work."]].concat()).with_code(0);
    let (code, text) = Terminal::open(&sandbox, &[], &[("NO_COLOR", "1")]).wait();
    assert_eq!(code, 0, "{text}");
    for part in ["Ended last", "job ✔ verified: ", "next: refrain diff job"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
