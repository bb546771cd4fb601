//! Many loops, and many accidents.

use std::time::{Duration, Instant};

use testkit::{Session, within};

use crate::lab::{LONG, Lab, script};

/// How long all loops may take, on a machine that other tests need.
const LONGER: Duration = Duration::from_secs(3600);

/// What the server may have in memory, in kB.
const MOST_MEMORY: u64 = 500 * 1024;

/// A small generator with a seed: what fails can be tried again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn two_hundred_loops_on_eight_workers_are_done_once_each() {
    let lab = Lab::new();
    let machines: Vec<_> = (1..=8).map(|number| lab.machine(&format!("w{number}"))).collect();
    let workers: Vec<_> = machines.iter().map(|machine| lab.work(machine, &["--slots", "4"])).collect();
    let names: Vec<String> = (1..=200).map(|number| format!("job{number}x")).collect();
    let begun = Instant::now();
    names.iter().for_each(|name| lab.start(name, &script(1, 0), &[]));
    let submitted = begun.elapsed();
    names.iter().for_each(|name| drop(lab.wait_for_status_within(LONGER, name, "completed")));
    let (took, memory) = (begun.elapsed(), most_memory(lab.server.as_ref().unwrap()));
    println!(
        "200 loops: given away in {submitted:?}, all done after {took:?}; the server had {} MB",
        memory / 1024
    );
    assert!(memory < MOST_MEMORY, "{memory} kB");
    names.iter().for_each(|name| lab.assert_whole(name, 1));
    let busy = machines.iter().filter(|machine| !machine.note("attempts").is_empty()).count();
    assert!(busy >= 6, "{busy} of 8 workers had a loop");
    let attempts: usize = machines.iter().map(|machine| machine.note("attempts").lines().count()).sum();
    assert_eq!(attempts, 200, "none was begun twice");
    drop(workers);
}

/// The most that a process has had in memory, in kB.
fn most_memory(process: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn fifty_loops_of_twenty_iterations_survive_a_killed_worker_every_ten_seconds() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let lab = Lab::new();
    let machines = ["w1", "w2", "w3"].map(|name| lab.machine(name));
    let slots = ["--slots", "3"];
    let mut workers: Vec<_> = machines.iter().map(|machine| lab.work(machine, &slots)).collect();
    let names: Vec<String> = (1..=50).map(|number| format!("job{number}x")).collect();
    let begun = Instant::now();
    let mut unsubmitted = names.iter();
    let (mut killed, mut resumed, mut left) = (0, 0, names.clone());
    while !left.is_empty() {
        assert!(begun.elapsed() < LONGER, "{} loops are left: {left:?}", left.len());
        let unlucky = dice.below(machines.len());
        workers.remove(unlucky).kill();
        workers.insert(unlucky, lab.work(&machines[unlucky], &slots));
        killed += 1;
        let since = Instant::now();
        // A loop whose attempt was lost three times in a row waits for a person.
        within(LONG, "ten seconds are over", || {
            if let Some(name) = unsubmitted.next() {
                lab.start(name, &script(20, 0), &["--max-iterations", "40"]);
            } else if let Some(name) = left.first().cloned() {
                let status = lab.status(&name);
                match status["status"].as_str().unwrap() {
                    "completed" => drop(left.remove(0)),
                    "blocked" => {
                        lab.person.refrain(&["resume", &name]).with_code(0);
                        resumed += 1;
                    }
                    _ => left.rotate_left(1),
                }
            }
            (since.elapsed() > Duration::from_secs(10) || left.is_empty()).then_some(())
        });
    }
    println!(
        "50 loops: {killed} workers killed, {resumed} resumed by hand, done after {:?}",
        begun.elapsed()
    );
    names.iter().for_each(|name| lab.assert_whole(name, 20));
}
