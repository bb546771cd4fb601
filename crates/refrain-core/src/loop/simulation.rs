//! Whole runs of the real core in a world that is made of numbers: a virtual clock, a disk that loses what was not
//! synced, agents and gates that succeed, fail, hang and ignore signals, people who change their mind, and runners that
//! die.
//!
//! The [`dispatcher`] does what the engine's does, and no more: it records, folds, asks for the next step and executes
//! it. A [`ledger`] reads every record as it is written, by rules of its own, and says what must hold. Every seed is
//! run twice: once undisturbed, to learn how many events it has, and once with a crash right after one of them.

mod agent;
mod critic;
mod dispatcher;
mod fleet;
mod forge;
mod gate;
mod ledger;
mod person;
mod tally;
mod work;
mod world;

use crate::simulation::Simulation;
use crate::simulation::tally::Tally;
use world::World;

const LOOPS: Simulation = Simulation {
    one: "one_seed",
    seeds: 10_000,
    covered: tally::COVERED,
    calm: |seed, aloud, _| World::new(seed, None, aloud).run(&mut Tally::default()),
    crash: |seed, (random, events), aloud, tally| {
        World::new(seed, Some(1 + random.below(events)), aloud).run(tally);
    },
};

#[test]
fn one_seed() {
    LOOPS.run_one();
}

#[test]
fn ten_thousand_seeds() {
    LOOPS.run_all();
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for seed in 0..20 {
        let runs = [(); 2].map(|()| {
            let mut world = World::new(seed, Some(5), false);
            world.play(&mut Tally::default());
            world.into_records()
        });
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}
