//! Machines of two versions: an older worker meets a journal with an event that it does not know.

use testkit::{Signal, within};

use crate::lab::{LONG, Lab, script};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn an_older_worker_leaves_a_newer_journal_to_a_newer_worker() {
    let lab = Lab::new();
    let (newer, older) = (lab.machine("w1"), lab.machine("w2"));
    let gate = newer.gate("second");
    let first = lab.work(&newer, &[]);
    let waits = r#"if [ $REFRAIN_ITERATION = 2 ] && [ -e $GATES/second ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi"#;
    lab.start("job", &format!("{waits}\n{}", script(4, 0)), &["--gate", "true"]);
    newer.wait_for_note("held");
    // Its journal has an event by now that the older worker does not know.
    first.signal(Signal::TERM);
    within(LONG, "it drains", || first.stderr().contains("drains").then_some(()));
    let old = lab.work_with(&lab.program_without("gate.finished"), &older);
    gate.let_one_pass();
    first.wait().with_code(0);
    within(LONG, "the older worker declines", || {
        old.stderr().contains("cannot be continued here").then_some(())
    });
    let said = old.stderr();
    assert!(said.contains("a later one may have gone on"), "{said}");
    let _again = lab.work(&newer, &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!(older.note("attempts"), "");
    // It takes what it understands.
    lab.person.refrain(&["worker", "drain", "w1"]).with_code(0);
    lab.start("plain", &script(2, 0), &[]);
    lab.wait_for_status("plain", "completed");
    lab.assert_whole("plain", 2);
    assert_eq!(older.note("attempts"), "1.1\n2.1\n", "{}", old.stderr());
}
