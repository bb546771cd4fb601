//! What fails beside a worker: the server with it, the connection, the clock.

use std::time::Instant;

use serde_json::Value;
use testkit::{Signal, eventually, within};

use crate::lab::link::{Link, Passes};
use crate::lab::{LEASE, LONG, Lab, hold, script};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn server_and_worker_that_die_at_once_continue_with_one_refund() {
    let mut lab = Lab::new();
    let machine = lab.machine("w1");
    hold(&machine);
    let first = lab.work(&machine, &[]);
    lab.start("job", &script(4, 2), &[]);
    machine.wait_for_note("held");
    lab.kill_server();
    first.kill();
    std::fs::remove_file(machine.root().join("notes/hold")).unwrap();
    lab.start_server();
    let _again = lab.work(&machine, &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!(machine.note("attempts"), "1.1\n2.1\n2.2\n3.1\n4.1\n");
}

/// A loop that hangs on the first worker while its connection is cut: another continues, and the two never work at once.
fn cut(passes: Passes) {
    let lab = Lab::new();
    let link = Link::to(lab.port());
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    hold(&one);
    let reaches = [("TEMPORAL_ADDRESS", format!("127.0.0.1:{}", link.port))];
    let first = one.command(&["worker"]).env(reaches[0].0, &reaches[0].1).spawn();
    within(LONG, "the worker is ready", || first.stderr().contains("loops at a time").then_some(()));
    lab.start("job", &script(4, 2), &[]);
    one.wait_for_note("held");
    let _second = lab.work(&two, &[]);
    link.let_pass(passes);
    let since = Instant::now();
    eventually("the agent of the worker that is cut off is gone", || {
        one.processes_named("sleep").is_empty().then_some(())
    });
    let gone = since.elapsed();
    assert_eq!(two.note("attempts"), "", "the other one waited for that");
    println!("cut off: its agent is gone after {gone:?}, with a lease of {LEASE:?}");
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    link.let_pass(Passes::All);
    within(LONG, "it lets go", || {
        let said = first.stderr();
        (said.contains("another worker has it") || said.contains("not renewed in time")).then_some(())
    });
    assert_eq!(one.note("attempts"), "1.1\n2.1\n", "nothing was begun after that");
    first.signal(Signal::TERM);
    first.wait().with_code(0);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_worker_that_is_cut_off_ends_its_agent_before_another_begins() {
    cut(Passes::Nothing);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_worker_that_gets_no_answers_ends_its_agent_before_another_begins() {
    cut(Passes::Requests);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_short_cut_is_not_noticed() {
    let lab = Lab::new();
    let link = Link::to(lab.port());
    let machine = lab.machine("w1");
    let gate = machine.gate("second");
    let address = format!("127.0.0.1:{}", link.port);
    let worker = machine.command(&["worker"]).env("TEMPORAL_ADDRESS", &address).spawn();
    let waits =
        r#"if [ $REFRAIN_ITERATION = 2 ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi"#;
    lab.start("job", &format!("{waits}\n{}", script(3, 0)), &[]);
    machine.wait_for_note("held");
    link.let_pass(Passes::Nothing);
    let since = Instant::now();
    within(LONG, "a second is over", || (since.elapsed() > LEASE / 6).then_some(()));
    link.let_pass(Passes::All);
    gate.let_one_pass();
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 3);
    assert_eq!(machine.note("attempts"), "1.1\n2.1\n3.1\n", "{}", worker.stderr());
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_clock_that_is_an_hour_ahead_ends_no_lease_and_no_time_runs_backwards() {
    let lab = Lab::new();
    if lab.person.tool("sh", &["-c", "command -v faketime"]).run().code != 0 {
        println!("skipped: no faketime; Debian's package faketime has it");
        return;
    }
    // The program itself would stand between the test and the worker.
    let preloads = lab.person.tool("faketime", &["-f", "+1h", "sh", "-c", "echo $LD_PRELOAD"]);
    let library = preloads.run().with_code(0).stdout.trim().to_owned();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let gate = one.gate("second");
    let ahead = one.command(&["worker"]).env("LD_PRELOAD", &library).env("FAKETIME", "+1h");
    let first = ahead.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1").spawn();
    let waits = r#"if [ $REFRAIN_ITERATION = 2 ] && [ -e $GATES/second ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi"#;
    lab.start("job", &format!("{waits}\n{}", script(4, 0)), &[]);
    one.wait_for_note("held");
    let since = Instant::now();
    within(LONG, "a lease is over", || (since.elapsed() > LEASE).then_some(()));
    first.signal(Signal::TERM);
    within(LONG, "it drains", || first.stderr().contains("drains").then_some(()));
    gate.let_one_pass();
    first.wait().with_code(0);
    let _second = lab.work(&two, &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!(two.note("attempts"), "3.1\n4.1\n", "the lease held, and nothing was refunded");
    let shown = lab.person.refrain(&["show", "job", "--json"]).with_code(0);
    let shown: Value = shown.json();
    let times = shown.as_array().unwrap().iter().filter_map(|record| record["at"].as_str());
    // `.66Z` is before `.661Z`.
    let times = times.map(|time| time.trim_end_matches('Z'));
    let times: Vec<&str> = times.collect();
    assert!(times.len() > 4 && times.is_sorted(), "{times:#?}");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn three_workers_with_two_slots_drive_twenty_loops_and_never_three_at_once() {
    let lab = Lab::new();
    let machines = ["w1", "w2", "w3"].map(|name| lab.machine(name));
    let mut workers: Vec<_> = machines.iter().map(|machine| lab.work(machine, &["--slots", "2"])).collect();
    let counts = r#"mkdir $NOTES/in.$$; ls -d $NOTES/in.* | wc -l >> $NOTES/counts; echo x > line$REFRAIN_ITERATION
rmdir $NOTES/in.$$; echo '<promise>COMPLETE</promise>'"#;
    let names: Vec<String> = (1..=20).map(|number| format!("job{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        lab.start(name, counts, &[]);
        if number == 10 {
            // One begins anew in between.
            workers.remove(0).kill();
            workers.push(lab.work(&machines[0], &["--slots", "2"]));
        }
    }
    for name in &names {
        lab.wait_for_status(name, "completed");
        lab.assert_whole(name, 1);
    }
    for machine in &machines {
        let counts = machine.note("counts");
        assert!(
            !counts.is_empty() && counts.lines().all(|count| count.trim().parse::<u32>().unwrap() <= 2),
            "{counts}"
        );
    }
}
