//! Long logs: the git remote has their begin and end, and a folder or a bucket of the fleet has all of them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{Run, Sandbox, Session, write};

use crate::lab::bucket::Bucket;
use crate::lab::{Lab, script, wait_until_ready};

/// Prints more than the git remote gets, and then what [`script`] does.
fn long(last: u32) -> String {
    format!("if [ $REFRAIN_ITERATION = 1 ]; then seq 100000; fi\n{}", script(last, 0))
}

/// From here on this machine looks for long logs there.
fn configure(machine: &Sandbox, place: &str) {
    let path = machine.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    let others = text.lines().filter(|line| !line.starts_with("blobs = ")).collect::<Vec<_>>().join("\n");
    write(&path, others.replacen("[fleet]\n", &format!("[fleet]\nblobs = \"{place}\"\n"), 1));
}

fn count(run: &Run) -> usize {
    run.stdout.lines().filter(|line| line.parse::<u32>().is_ok()).count()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path()).collect()
}

fn log_check(run: &Run) -> Value {
    let verdict = run.json();
    let checks = verdict["checks"].as_array().unwrap();
    let of_log = checks.iter().find(|check| check["which"] == "iterations/0001/output.log");
    of_log.unwrap_or_else(|| panic!("{verdict:#}")).clone()
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_long_log_is_whole_in_the_folder_that_all_machines_reach() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let folder = lab.person.root().join("logs");
    let place = format!("file://{}", folder.display());
    let worker = lab.work(&machine, &[]);
    lab.start("job", &long(2), &[]);
    lab.wait_for_status("job", "completed");
    drop(worker);
    // With nothing configured: both ends, and where the rest is.
    let logs = || lab.person.refrain(&["logs", "job"]).with_code(0);
    let ends = logs();
    assert!(ends.has_line("1") && ends.has_line("100000") && count(&ends) < 100_000);
    assert!(ends.stdout.contains(" bytes are not here: the machine "), "the gap is marked");
    assert!(
        ends.stderr.contains("of 1 log only the begin and the end are here; the machine "),
        "{}",
        ends.stderr
    );
    let verify = || lab.person.refrain(&["verify", "job", "--json"]).with_code(0);
    assert_eq!(log_check(&verify())["outcome"], "unchecked");

    // The worker gives the folder what it has of loops that are over; until the folder is there, it says so.
    configure(&machine, &place);
    configure(&lab.person, &place);
    let worker = lab.work(&machine, &[]);
    testkit::within(crate::lab::LONG, "it says why the log is not there", || {
        worker.stderr().contains("its long logs are only here: file://").then_some(())
    });
    drop(worker);
    assert!(logs().stderr.contains("it does not have them"), "{}", logs().stderr);
    let examined = || {
        let findings = lab.person.refrain(&["doctor", "--fleet", "--json"]).json()["findings"].clone();
        let of_place = findings.as_array().unwrap().iter().find(|finding| finding["about"] == place.as_str());
        of_place.unwrap_or_else(|| panic!("{findings:#}"))["grade"].clone()
    };
    assert_ne!(examined(), "ok");
    fs::create_dir(&folder).unwrap();
    let worker = lab.work(&machine, &[]);
    testkit::within(crate::lab::LONG, "the loop's worktree is removed", || {
        worker.stderr().contains("job: it is over: its worktree here is removed").then_some(())
    });

    // What is under the hash of the log and is something else is not taken.
    let [kept] = &files(&folder)[..] else { panic!("{:?}", files(&folder)) };
    assert_eq!(examined(), "ok");
    let whole = fs::read(kept).unwrap();
    write(kept, "7".repeat(whole.len()));
    let forged = logs();
    assert!(forged.stderr.contains("is something else") && count(&forged) < 100_000, "{}", forged.stderr);
    write(kept, &whole);
    let brought = logs();
    assert!(count(&brought) == 100_000 && !brought.stderr.contains("only the begin"), "{}", brought.stderr);
    assert_eq!(log_check(&verify())["outcome"], "agrees");
}

/// A worker that finds a bucket.
fn work_with(bucket: &Bucket, machine: &Sandbox) -> Session {
    let worker = machine.command(&["worker"]).envs(&bucket.variables()).spawn();
    wait_until_ready(&worker);
    worker
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_long_log_is_whole_in_a_bucket_before_the_loop_is_over() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let bucket = Bucket::new();
    configure(&machine, "s3://logs/of/refrain");
    configure(&lab.person, "s3://logs/of/refrain");
    let _worker = work_with(&bucket, &machine);
    lab.start("job", &long(2), &[]);
    lab.wait_for_status("job", "completed");
    testkit::within(crate::lab::LONG, "the bucket has the log", || {
        (bucket.objects.lock().unwrap().len() == 1).then_some(())
    });
    let name = bucket.objects.lock().unwrap().keys().next().unwrap().clone();
    assert!(name.starts_with("/logs/of/refrain/") && name.len() == "/logs/of/refrain/".len() + 64, "{name}");
    let with_key = |verb: &[&str]| lab.person.command(verb).envs(&bucket.variables()).run().with_code(0);
    let refused = lab.person.command(&["logs", "job"]).envs(&bucket.variables());
    let refused = refused.env("AWS_ACCESS_KEY_ID", "other").run().with_code(0);
    assert!(refused.stderr.contains("privileges") && count(&refused) < 100_000, "{}", refused.stderr);
    assert_eq!(count(&with_key(&["logs", "job"])), 100_000);
    assert_eq!(log_check(&with_key(&["verify", "job", "--json"]))["outcome"], "agrees");
}
