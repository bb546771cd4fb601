//! What a person asks of a loop on the fleet, from their own machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use testkit::{Signal, within};

use crate::lab::{HELD_IN_SECOND, LONG, Lab, bound, hold, script};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_cancelled_loop_ends_within_seconds() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    hold(&machine);
    let _worker = lab.work(&machine, &[]);
    let begins = lab.start_and_time("job", &script(4, 2), &machine);
    machine.wait_for_note("held");
    let asked = Instant::now();
    lab.person.refrain(&["cancel", "job", "--now"]).with_code(0);
    within(LONG, "the agent is gone", || machine.processes_named("sleep").is_empty().then_some(()));
    let gone = asked.elapsed();
    let most = bound(Duration::from_secs(2), begins);
    println!(
        "cancelled: its agent is gone after {gone:?} of at most {most:?}, where a loop begins in {begins:?}"
    );
    assert!(gone <= most, "{gone:?}\n{}", lab.events("job"));
    lab.wait_for_status("job", "cancelled");
    within(LONG, "it is over", || {
        let again = lab.person.refrain(&["cancel", "job"]).with_code(0);
        again.stdout.contains("already cancelled").then_some(())
    });
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_paused_loop_is_steered_and_resumed_elsewhere() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let gate = one.gate("second");
    let first = lab.work(&one, &[]);
    let waits = r#"if [ $REFRAIN_ITERATION = 2 ] && [ -e $GATES/second ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi
case "$*" in *"Use tabs."*) echo told > $NOTES/told ;; esac"#;
    lab.start("job", &format!("{waits}\n{}", script(3, 0)), &[]);
    one.wait_for_note("held");
    lab.person.refrain(&["pause", "job"]).with_code(0);
    within(LONG, "the journal has the request", || {
        lab.person.refrain(&["show", "job"]).stdout.contains(" asked ").then_some(())
    });
    gate.let_one_pass();
    lab.wait_for_status("job", "paused");
    first.signal(Signal::TERM);
    first.wait().with_code(0);
    let _second = lab.work(&two, &[]);
    lab.person.refrain(&["steer", "job", "Use tabs."]).with_code(0);
    lab.person.refrain(&["resume", "job"]).with_code(0);
    lab.wait_for_status("job", "completed");
    assert_eq!(two.note("told"), "told\n", "{}", two.note("attempts"));
    lab.assert_whole("job", 3);
    let texts = lab.person.git(&["-C", &lab.state, "for-each-ref", "refs/refrain/job/requests"]);
    assert_eq!(texts, "", "what the journal has is needed at the remote no longer");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_text_that_cannot_be_fetched_is_told_by_the_next_worker() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let gate = one.gate("second");
    let tells = r#"case "$*" in *"Use tabs."*) echo told >> $NOTES/told ;; esac"#;
    lab.start("job", &format!("{HELD_IN_SECOND}\n{tells}\n{}", script(4, 0)), &[]);
    lab.person.refrain(&["steer", "job", "Use tabs."]).with_code(0);
    let git = |words: &[&str]| lab.person.git(&[&["-C", &lab.state][..], words].concat()).trim().to_owned();
    let texts = || git(&["for-each-ref", "--format=%(refname)", "refs/refrain/job/requests"]);
    let text = git(&["rev-parse", &format!("{}:text", texts())]);
    let object = Path::new(&lab.state).join("objects").join(&text[..2]).join(&text[2..]);
    let aside = lab.person.root().join("object");
    fs::rename(&object, &aside).unwrap();
    let first = lab.work(&one, &[]);
    one.wait_for_note("held");
    assert_ne!(texts(), "", "it is still to be told: {}", first.stderr());
    fs::rename(&aside, &object).unwrap();
    first.signal(Signal::TERM);
    within(LONG, "it drains", || first.stderr().contains("drains").then_some(()));
    gate.let_one_pass();
    first.wait().with_code(0);
    let _second = lab.work(&two, &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!((one.note("told"), two.note("told")), (String::new(), "told\n".to_owned()));
    assert_eq!(texts(), "", "what the journal has is needed at the remote no longer");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_result_is_approved_from_the_persons_machine() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let _worker = lab.work(&machine, &[]);
    lab.start("job", &script(2, 0), &["--require-approval", "--gate", "true"]);
    let status = lab.wait_for_status("job", "blocked");
    let tree = status["approval"]["tree"].as_str().unwrap_or_default().to_owned();
    lab.person.refrain(&["approve", "job", "--tree", &tree]).with_code(0);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 2);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_at_its_cap_is_given_more() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let _worker = lab.work(&machine, &[]);
    let agent = lab.person.agent("job", &script(3, 0));
    let words =
        ["start", "--on", "fleet", "--name", "job", "--command", &agent, "--max-iterations", "2", "Go."];
    lab.person.refrain(&words).with_code(0);
    lab.wait_for_status("job", "iteration-cap");
    lab.person.refrain(&["resume", "job", "--max-iterations", "4"]).with_code(0);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 3);
}
