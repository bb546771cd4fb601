//! What a person does with a fleet as a whole: prepare machines, look at workers, send one away.

use serde_json::Value;
use testkit::{Sandbox, Signal, within, write};

use crate::hostile::{give, order};
use crate::lab::{HELD_IN_SECOND, LONG, Lab, contains, script};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_drained_worker_gives_its_loop_back_after_the_iteration_and_ends() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let gate = one.gate("second");
    let first = lab.work(&one, &[]);
    lab.start("job", &format!("{HELD_IN_SECOND}\n{}", script(4, 0)), &[]);
    one.wait_for_note("held");
    let listed: Value = lab.person.refrain(&["worker", "list", "--json"]).with_code(0).json();
    assert_eq!(
        (listed[0]["name"].as_str(), &listed[0]["loops"][0]),
        (Some("w1"), &"job".into()),
        "{listed:#}"
    );
    let drained = lab.person.refrain(&["worker", "drain", "w1"]).with_code(0);
    assert_eq!(drained.stdout, "w1 takes no more loops, and ends; given back after their iteration: job\n");
    within(LONG, "it drains", || first.stderr().contains("drains").then_some(()));
    let _second = lab.work(&two, &[]);
    gate.let_one_pass();
    first.wait().with_code(0);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    assert_eq!(two.note("attempts"), "3.1\n4.1\n", "nothing was refunded");
    let worktrees = || {
        let clones = std::fs::read_dir(one.root().join("home/data/refrain/fleet/clones")).unwrap();
        let clone = clones.map(|entry| entry.unwrap().path()).next().unwrap();
        one.git(&["-C", &clone.to_string_lossy(), "worktree", "list"]).lines().count() - 1
    };
    assert_eq!(worktrees(), 1, "it may continue the loop");
    let again = lab.work(&one, &[]);
    within(LONG, "what it has of the loop is removed", || {
        again.stderr().contains("job: it is over").then_some(())
    });
    assert_eq!(worktrees(), 0, "{}", again.stderr());
    drop(again);
    let unknown = lab.person.refrain(&["worker", "drain", "w9"]).with_code(3);
    assert!(unknown.stderr.contains("worker w9 does not answer"), "{}", unknown.stderr);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_worker_that_drains_does_not_wait_for_an_order_that_never_comes() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let worker = lab.work(&machine, &["--slots", "1"]);
    let claimed = give(&lab, "refrain.pool.default.generic", "Host::claim", &order(&lab, "job", 2));
    assert!(claimed.stdout.contains("w1"), "it keeps its only room for this loop: {claimed:?}");
    worker.signal(Signal::TERM);
    worker.wait_at_most(LONG).with_code(0);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_goes_to_a_worker_that_has_the_variable_it_names() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let first = lab.work(&one, &[]);
    let uses = "test \"$TOKEN_OF_THE_WORKER\" = planted-value && echo used > $NOTES/used";
    lab.start(
        "job",
        &format!("{uses}\n{}", script(2, 0)),
        &["--env", "TOKEN_OF_THE_WORKER", "--env", "NOTES", "--clean-env"],
    );
    within(LONG, "the first refuses it", || {
        first.stderr().contains("TOKEN_OF_THE_WORKER is not set here").then_some(())
    });
    let _second = two.command(&["worker"]).env("TOKEN_OF_THE_WORKER", "planted-value").spawn();
    lab.wait_for_status("job", "completed");
    assert_eq!((one.note("attempts").as_str(), two.note("used").as_str()), ("", "used\n"));
    for file in [lab.database(), lab.database().with_extension("db-wal")] {
        assert!(!contains(&file, "planted-value"), "{}", file.display());
    }
}

/// A machine of another user, with nothing configured.
fn stranger(lab: &Lab) -> Sandbox {
    let machine = lab.machine("unused");
    write(&machine.root().join("home/config/refrain/config.toml"), "");
    std::fs::remove_dir_all(machine.root().join("home/state")).unwrap();
    machine
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn machines_are_prepared_and_learn_each_others_keys() {
    let lab = Lab::new();
    let (one, two) = (stranger(&lab), stranger(&lab));
    let nothing = one.refrain(&["fleet", "init", "--address", &lab.address()]).with_code(2);
    assert!(nothing.stderr.contains("URL: it is missing"), "{}", nothing.stderr);
    let init = ["fleet", "init", &lab.state, "--address", &lab.address()];
    let first = one.refrain(&init).with_code(0).stdout;
    assert!(first.contains("loops can be kept there") && first.contains("namespace default"), "{first}");
    let configured = one.refrain(&["config", "get", "fleet.state"]).with_code(0).stdout;
    assert!(configured.contains(&lab.state), "{configured}");
    let second = two.refrain(&init).with_code(0).stdout;
    let accept = second.lines().find(|line| line.contains("left the key")).expect(&second);
    let key = accept.rsplit(' ').next().unwrap();
    two.refrain(&["fleet", "init", "--signer", key]).with_code(0);
    let trusted = two.refrain(&["config", "get", "trust.signers"]).with_code(0).stdout;
    assert!(trusted.contains(key), "{trusted}");
    let heads =
        lab.person.git(&["-C", &lab.state, "for-each-ref", "--format=%(refname)", "refs/refrain/@try"]);
    assert_eq!(heads, "", "what was tried is removed");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_doctor_names_what_keeps_the_fleet_from_working() {
    let mut lab = Lab::new();
    let machine = lab.machine("w1");
    let look =
        |code| -> Value { lab.person.refrain(&["doctor", "--fleet", "--json"]).with_code(code).json() };
    let of = |seen: &Value, subject: &str| -> Value {
        let found = seen["findings"].as_array().unwrap().iter().find(|finding| finding["subject"] == subject);
        found.cloned().unwrap_or_else(|| panic!("nothing about {subject}: {seen:#}"))
    };
    let alone = look(1);
    assert_eq!((&of(&alone, "state")["grade"], &of(&alone, "server")["grade"]), (&"ok".into(), &"ok".into()));
    assert_eq!(of(&alone, "worker")["advice"], "refrain worker, on a machine with agents");
    let worker = lab.work(&machine, &[]);
    assert_eq!(of(&look(0), "worker")["about"], "w1");
    let text = lab.person.refrain(&["doctor", "--fleet"]).with_code(0).stdout;
    assert!(text.contains("drives 0 of 2, agents generic"), "{text}");
    drop(worker);
    let elsewhere = [("TEMPORAL_NAMESPACE", "nowhere")];
    let run = lab.person.command(&["doctor", "--fleet", "--json"]).env(elsewhere[0].0, elsewhere[0].1).run();
    let namespace = of(&run.with_code(1).json(), "server");
    assert!(
        namespace["advice"].as_str().unwrap().contains("namespace create --namespace nowhere"),
        "{namespace:#}"
    );
    let hook = std::path::Path::new(&lab.state).join("hooks/update");
    write(&hook, "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused: Value = lab.person.refrain(&["doctor", "--fleet", "--json"]).with_code(1).json();
    assert!(
        of(&refused, "state")["found"].as_str().unwrap().contains("nothing can be pushed"),
        "{refused:#}"
    );
    lab.kill_server();
    let gone: Value = lab.person.refrain(&["doctor", "--fleet", "--json"]).with_code(1).json();
    assert!(of(&gone, "server")["found"].as_str().unwrap().contains("cannot be reached"), "{gone:#}");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_that_is_over_loses_its_references_once_its_result_was_fetched() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let gate = machine.gate("second");
    let worker = lab.work(&machine, &[]);
    lab.start("job", &format!("{HELD_IN_SECOND}\n{}", script(3, 0)), &[]);
    machine.wait_for_note("held");
    lab.start("capped", &script(9, 0), &["--max-iterations", "1"]);
    lab.wait_for_status("capped", "iteration-cap");
    let git = |words: &[&str]| lab.person.git(&[&["-C", &lab.state][..], words].concat());
    let references = || git(&["for-each-ref", "--format=%(refname)", "refs/refrain"]);
    let garbage = || {
        let rows: Value = lab.person.refrain(&["gc", "--json"]).with_code(0).json();
        let there = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "remote");
        there.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(garbage(), Vec::<String>::new(), "it is driven");
    gate.let_one_pass();
    within(LONG, "it ends", || worker.stderr().contains("job: ended: completed").then_some(()));
    assert_eq!(garbage(), Vec::<String>::new(), "its commits are only there");
    let branch = git(&["branch", "--list", "*job*", "--format=%(refname)"]);
    lab.person.git(&["fetch", "--quiet", &lab.state, &format!("{}:refs/heads/result", branch.trim())]);
    assert_eq!(garbage(), [format!("refs/refrain/job at {}", lab.state)]);
    assert_eq!(references(), "refs/refrain/capped/journal\nrefs/refrain/job/journal\n");
    // A text that is of no use any more.
    git(&["update-ref", "refs/refrain/job/requests/1", branch.trim()]);
    lab.person.refrain(&["gc", "--yes"]).with_code(0);
    assert_eq!(references(), "refs/refrain/capped/journal\n", "this one may continue");
    // The copy here has all of it, and the remote is not asked.
    let status = lab.person.refrain(&["status", "job"]).with_code(0);
    assert!(status.stdout.contains("completed"), "{status:?}");
    assert!(!status.stderr.contains("does not have it"), "{}", status.stderr);
    lab.assert_whole("job", 3);
    let again = lab.person.refrain(&["cancel", "job"]).with_code(0);
    assert!(again.stdout.contains("already completed"), "{again:?}");
    assert_eq!(garbage(), Vec::<String>::new());
    // The worker removes what it has of the loop.
    worker.signal(Signal::TERM);
    worker.wait().with_code(0);
    let worker = lab.work(&machine, &[]);
    within(LONG, "its worktree is removed", || worker.stderr().contains("job: it is over").then_some(()));
    assert!(!worker.stderr().contains("capped"), "{}", worker.stderr());
}

/// The loops at the git remote that `refrain gc` lists, at a time so many days from now.
fn garbage_in(lab: &Lab, days: u32) -> Vec<String> {
    let mut gc = lab.person.command(&["gc", "--json"]);
    if days > 0 {
        let preloads = lab.person.tool("faketime", &["-f", "+1d", "sh", "-c", "echo $LD_PRELOAD"]);
        let library = preloads.run().with_code(0).stdout.trim().to_owned();
        gc = gc.env("LD_PRELOAD", &library).env("FAKETIME", &format!("+{days}d"));
        gc = gc.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    }
    let rows = gc.run().with_code(0).json();
    let there = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "remote");
    there.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Fetches the loop's branch.
fn fetch(lab: &Lab) {
    let branch = lab.person.git(&["-C", &lab.state, "branch", "--list", "*job*", "--format=%(refname)"]);
    lab.person.git(&["fetch", "--quiet", &lab.state, &format!("{}:refs/heads/result", branch.trim())]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn what_a_key_ended_that_is_not_trusted_keeps_its_references() {
    let lab = Lab::new();
    lab.start("job", &script(2, 0), &[]);
    // A worker with a key of its own. It trusts the person, and the person does not trust it.
    let trust = |machine: &Sandbox, key: &str| {
        let path = machine.root().join("home/config/refrain/config.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        write(&path, format!("{text}\n[trust]\nsigners = [\"{key}\"]\n"));
    };
    let signed = |journal: Vec<Value>| {
        let mut keys =
            journal.into_iter().rev().filter_map(|line| line["signature"]["key"].as_str().map(str::to_owned));
        keys.next().expect("something is signed")
    };
    let machine = lab.machine("w1");
    std::fs::remove_dir_all(machine.root().join("home/state")).unwrap();
    trust(&machine, &signed(lab.person.journal("job")));
    let _worker = lab.work(&machine, &[]);
    lab.wait_for_status("job", "completed");
    fetch(&lab);
    assert_eq!(garbage_in(&lab, 0), Vec::<String>::new(), "its end may be forged");
    lab.person.refrain(&["gc", "--yes"]).with_code(0);
    let references = lab.person.git(&["-C", &lab.state, "for-each-ref", "refs/refrain/job"]);
    assert_eq!(references.lines().count(), 1, "{references}");
    let copy = lab.person.project().join(".git/refrain/mirrors/loops/job/journal.jsonl");
    let lines = std::fs::read_to_string(copy).unwrap();
    trust(&lab.person, &signed(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()));
    assert_eq!(garbage_in(&lab, 0), [format!("refs/refrain/job at {}", lab.state)]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_result_that_was_not_fetched_keeps_its_references_for_thirty_days() {
    let lab = Lab::new();
    if lab.person.tool("sh", &["-c", "command -v faketime"]).run().code != 0 {
        println!("skipped: no faketime; Debian's package faketime has it");
        return;
    }
    let machine = lab.machine("w1");
    let _worker = lab.work(&machine, &[]);
    lab.start("job", &script(2, 0), &[]);
    lab.wait_for_status("job", "completed");
    assert_eq!(garbage_in(&lab, 29), Vec::<String>::new());
    let over = [format!("refs/refrain/job at {}", lab.state)];
    assert_eq!(garbage_in(&lab, 31), over, "its branch at the git remote has the work");
    let branch =
        lab.person.git(&["-C", &lab.state, "branch", "--list", "*job*", "--format=%(refname:short)"]);
    lab.person.git(&["-C", &lab.state, "branch", "-D", branch.trim()]);
    assert_eq!(garbage_in(&lab, 31), Vec::<String>::new(), "now only the references have it");
    // Here it would be safe, whatever the day.
    lab.person.git(&["fetch", "--quiet", &lab.state, "refs/refrain/job/journal"]);
    lab.person.git(&["branch", "result", "FETCH_HEAD"]);
    assert_eq!(garbage_in(&lab, 0), over);
}
