//! Whole plans of the real core in a world that is made of numbers: a virtual clock, a task file that people edit, a
//! git whose commits are sets of pieces of work, tasks whose loops take their time and end as they like, and runners
//! that die.
//!
//! The [`runner`] does what the engine's does, and no more: it records, folds, asks for the next step and executes it.
//! A [`ledger`] reads every event as it is written, by rules of its own, and says what must hold. Every seed is run
//! twice: once undisturbed, to learn how many events it has, and once with a crash right before or right after one of
//! them.

mod file;
mod git;
mod ledger;
mod person;
mod runner;
mod task_loop;
mod world;

use crate::simulation::Simulation;
use world::{Crashes, World};

/// The least number of 10,000 seeds that must show each case.
const COVERED: &[(&str, &str, u64)] = &[
    ("batch", "cannot be merged", 100),
    ("batch", "conflict", 3_000),
    ("batch", "failed", 2_000),
    ("batch", "found on the line", 300),
    ("batch", "landed", 20_000),
    ("batch", "passed", 5_000),
    ("crash", "before an event", 4_000),
    ("crash", "after an event", 4_000),
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

const PLANS: Simulation = Simulation {
    one: "one_plan",
    // In some seconds; the nightly runs 10,000.
    seeds: 2_000,
    covered: COVERED,
    calm: |seed, aloud, tally| World::new(seed, Crashes::default(), aloud).run(tally),
    crash: |seed, (random, events), aloud, tally| {
        let at = Some(2 + random.below(events.max(2) - 1));
        World::new(seed, Crashes { at, before: random.once_in(2), more: 3 }, aloud).run(tally);
    },
};

#[test]
fn one_plan() {
    PLANS.run_one();
}

#[test]
fn plans_of_many_seeds() {
    PLANS.run_all();
}
