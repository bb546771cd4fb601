//! Loops that machines take over from each other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use testkit::{Signal, eventually, within};

use crate::lab::{LEASE, LONG, Lab, bound, contains, hold, script, variable};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn smoke_a_worker_drives_a_loop_to_its_end() {
    let lab = Lab::new();
    lab.start("job", &script(3, 0), &[]);
    let machine = lab.machine("w1");
    let worker = lab.work(&machine, &[]);
    let status = lab.wait_for_status("job", "completed");
    assert_eq!(status["iteration"], 3, "{status:#}");
    lab.assert_whole("job", 3);
    assert_eq!(machine.note("attempts"), "1.1\n2.1\n3.1\n");
    assert!(lab.person.note("attempts").is_empty(), "nothing ran where it was started");
    worker.signal(Signal::TERM);
    worker.wait().with_code(0);
    machine.no_process_is_left();
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn smoke_a_killed_worker_loses_its_loop_to_another() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    hold(&one);
    let first = lab.work(&one, &[]);
    let begins = lab.start_and_time("job", &script(4, 2), &one);
    one.wait_for_note("held");
    let second = lab.work(&two, &[]);
    first.kill();
    let killed = Instant::now();
    eventually("the agent of the killed worker is gone", || {
        one.processes_named("sleep").is_empty().then_some(())
    });
    let ended = killed.elapsed();
    assert!(ended < LEASE, "its agent was gone after {ended:?}");
    two.wait_for_note("attempts");
    let taken = killed.elapsed();
    let most = LEASE + bound(Duration::from_secs(3), begins);
    println!("killed: taken over after {taken:?} of at most {most:?}, where a loop begins in {begins:?}");
    assert!(taken <= most, "{taken:?}\n{}", lab.events("job"));
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!((one.note("attempts"), two.note("attempts")), ("1.1\n2.1\n".into(), "2.2\n3.1\n4.1\n".into()));
    one.no_process_is_left();
    drop(second);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_frozen_worker_spends_nothing_and_makes_nothing_known() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    hold(&one);
    let first = lab.work(&one, &[]);
    let begins = lab.start_and_time("job", &script(4, 2), &one);
    one.wait_for_note("held");
    let _second = lab.work(&two, &[]);
    // Only the worker: the supervisor of its loop ends the agent when the lease is over.
    first.signal(Signal::STOP);
    let frozen = Instant::now();
    eventually("the agent of the frozen worker is gone", || {
        one.processes_named("sleep").is_empty().then_some(())
    });
    two.wait_for_note("attempts");
    let taken = frozen.elapsed();
    // The server gave up to two orders to the worker that is frozen.
    let most = LEASE + Duration::from_secs(5) + bound(Duration::from_secs(3), begins);
    println!("frozen: taken over after {taken:?} of at most {most:?}, where a loop begins in {begins:?}");
    assert!(taken <= most, "{taken:?}\n{}", lab.events("job"));
    lab.wait_for_status("job", "completed");
    first.signal(Signal::CONT);
    within(LONG, "the thawed worker lets go", || {
        let said = first.stderr();
        (said.contains("another worker has it") || said.contains("not renewed in time")).then_some(())
    });
    lab.assert_whole("job", 4);
    assert_eq!(one.note("attempts"), "1.1\n2.1\n", "nothing was begun after that");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_goes_on_when_the_server_comes_back() {
    let mut lab = Lab::new();
    let machine = lab.machine("w1");
    let gate = machine.gate("second");
    let _worker = lab.work(&machine, &[]);
    let waits =
        r#"if [ $REFRAIN_ITERATION = 2 ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi"#;
    lab.start("job", &format!("{waits}\n{}", script(4, 0)), &[]);
    machine.wait_for_note("held");
    lab.kill_server();
    gate.let_one_pass();
    // Without the server, until the lease is over.
    within(LONG, "the next iteration is begun", || machine.note("attempts").contains("3.1").then_some(()));
    lab.start_server();
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn smoke_a_worker_whose_disk_is_full_loses_its_loop_and_takes_no_other() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    hold(&one);
    let first = lab.work_on_small_disk(&one);
    let fills = r#"if [ $REFRAIN_ITERATION = 2 ] && [ -e $NOTES/hold ]; then cat /dev/zero > $XDG_DATA_HOME/filler; fi"#;
    lab.start("job", &format!("{}\n{fills}", script(4, 0)), &[]);
    within(LONG, "the disk is full", || one.note("attempts").contains("2.1").then_some(()));
    let full = Instant::now();
    let _second = lab.work(&two, &[]);
    two.wait_for_note("attempts");
    println!("disk full: elsewhere after {:?}, the start of that worker included", full.elapsed());
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert!(first.stderr().contains("cannot be continued here"), "{}", first.stderr());
    lab.start("other", &script(1, 0), &[]);
    lab.wait_for_status("other", "completed");
    assert_eq!(one.note("attempts"), "1.1\n2.1\n", "the full worker took nothing more");
    first.signal(Signal::TERM);
    first.wait().with_code(0);
    one.no_process_is_left();
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn smoke_a_machine_has_other_paths_and_the_agent_elsewhere() {
    let lab = Lab::new();
    lab.start("job", &script(2, 0), &[]);
    let machine = lab.machine("w1");
    let agent = lab.person.root().join("agents/job");
    let bin = machine.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::rename(&agent, bin.join("job")).unwrap();
    fs::set_permissions(bin.join("job"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), variable("PATH").unwrap());
    let _worker = machine.command(&["worker"]).env("PATH", &path).spawn();
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 2);
    let moved = lab.person.refrain(&["show", "job"]).with_code(0).stdout;
    assert!(moved.contains(&*machine.root().to_string_lossy()), "{moved}");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn smoke_the_server_and_the_state_repository_get_no_secret() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let _worker =
        machine.command(&["worker"]).env("TOKEN_OF_THE_WORKER", "planted-in-the-environment").spawn();
    let uses = "test \"$TOKEN_OF_THE_WORKER\" = planted-in-the-environment && echo used > $NOTES/used";
    let agent = lab.person.agent("job", &format!("{uses}\n{}", script(2, 0)));
    let words = ["start", "--on", "fleet", "--name", "job", "--command", &agent, "planted-in-the-prompt"];
    lab.person.refrain(&words).with_code(0);
    lab.person.refrain(&["steer", "job", "planted-in-a-text"]);
    lab.wait_for_status("job", "completed");
    assert_eq!(machine.note("used"), "used\n");
    let data = lab.database();
    for file in [data.clone(), data.with_extension("db-wal")] {
        for word in ["planted-in-the-environment", "planted-in-the-prompt", "planted-in-a-text", "line1"] {
            assert!(!contains(&file, word), "{word} in {}", file.display());
        }
    }
    assert!(
        contains(&data, "refrain/") || contains(&data.with_extension("db-wal"), "refrain/"),
        "it is the server's file"
    );
    let objects = lab.person.git(&["-C", &lab.state, "cat-file", "--batch", "--batch-all-objects"]);
    assert!(!objects.contains("planted-in-the-environment"));
}
