//! Whole plans of the real core in a world that is made of numbers: a virtual clock, a task file that people edit, a git whose
//! commits are sets of pieces of work, tasks whose loops take their time and end as they like, and runners that die.
//!
//! The [`runner`] does what the engine's does, and no more: it records, folds, asks for the next step and executes it. A
//! [`ledger`] reads every event as it is written, by rules of its own, and says what must hold. Every seed is run twice: once
//! undisturbed, to learn how many events it has, and once with a crash right before or right behind one of them.

mod file;
mod git;
mod ledger;
mod person;
mod runner;
mod task_loop;
mod world;

use crate::r#loop::simulation::random::Random;
use crate::r#loop::simulation::tally::Tally;
use world::{Crashes, World};

/// So many are run each time, in some seconds; `REFRAIN_SEEDS=10000` runs as many as the issue asks for.
const SEEDS: u64 = 2_000;

/// Of 10,000 seeds at least so many must show this.
const COVERED: &[(&str, &str, u64)] = &[
    ("batch", "cannot be merged", 100),
    ("batch", "conflict", 3_000),
    ("batch", "failed", 2_000),
    ("batch", "found on the line", 300),
    ("batch", "landed", 20_000),
    ("batch", "passed", 5_000),
    ("crash", "before an event", 4_000),
    ("crash", "behind an event", 4_000),
    ("crash", "while git works", 1_000),
    ("end", "blocked", 5_000),
    ("end", "budget-exceeded", 200),
    ("end", "cancelled", 1_000),
    ("end", "cancelled while it stood still", 500),
    ("end", "completed", 2_500),
    ("end", "iteration-cap", 500),
    ("end", "paused", 1_500),
    ("end", "timed-out", 300),
    ("file", "a status set", 2_500),
    ("file", "a task added", 2_500),
    ("file", "a task moved", 1_000),
    ("file", "a task removed", 1_000),
    ("file", "broken", 1_000),
    ("file", "dependencies changed", 2_500),
    ("file", "refused", 1_500),
    ("git", "abandoned", 500),
    ("git", "hinders", 500),
    ("handover", "done", 10_000),
    ("handover", "refused", 1_000),
    ("plan", "resumed", 10_000),
    ("task", "driven again", 5_000),
    ("task", "hindered", 800),
    ("task", "out of money", 500),
    ("task", "proven", 30_000),
    ("task", "rests", 2_000),
    ("task", "stopped", 20_000),
    ("task", "tuned", 1_000),
    ("wave", "completed", 10_000),
    ("wave", "completed, and nothing in it", 300),
];

/// Says how to run a seed again when it fails.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("repeat with: REFRAIN_SEED={seed} cargo test -p refrain-core one_plan -- --nocapture");
        }
    }
}

fn run(seed: u64, aloud: bool, tally: &mut Tally) {
    let _repeat = Repeat(seed);
    let calm = World::new(seed, Crashes::default(), aloud).run(tally);
    let mut random = Random::new(seed ^ 0x000c_4a54);
    let crashes = Crashes { at: Some(2 + random.below(calm.max(2) - 1)), before: random.once_in(2), more: 3 };
    if aloud {
        println!("\nand again, with a crash at event {crashes:?} of {calm}:");
    }
    World::new(seed, crashes, aloud).run(tally);
    tally.add("run", "of a seed");
}

#[expect(clippy::disallowed_methods, reason = "how a person tells a test which seed to repeat")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn one_plan() {
    let seed = number("REFRAIN_SEED");
    run(seed.unwrap_or(0), seed.is_some(), &mut Tally::default());
}

#[test]
fn plans_of_many_seeds() {
    const THREADS: u64 = 2;
    let seeds = number("REFRAIN_SEEDS").unwrap_or(SEEDS);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let part = |first: u64| {
            move || {
                let mut tally = Tally::default();
                (first..seeds).step_by(THREADS as usize).for_each(|seed| run(seed, false, &mut tally));
                tally
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(part(first))).collect();
        for thread in threads {
            tally.merge(thread.join().expect("a seed failed: see above how to repeat it"));
        }
    });
    println!("{tally}");
    assert_eq!(tally.count("run", "of a seed"), seeds);
    tally.assert_covers(COVERED, seeds);
}
