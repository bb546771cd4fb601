//! Whole runs of the real core in a world that is made of numbers: a virtual clock, a disk that loses what was not synced,
//! agents and gates that succeed, fail, hang and do not listen, people who change their mind, and runners that die.
//!
//! The [`dispatcher`] does what the engine's does, and no more: it records, folds, asks for the next step and executes it.
//! A [`ledger`] reads every record as it is written, by rules of its own, and says what must hold. Every seed is run
//! twice: once undisturbed, to learn how many events it has, and once with a crash right behind one of them.

mod agent;
mod critic;
mod dispatcher;
mod forge;
mod gate;
mod ledger;
mod person;
pub(crate) mod random;
pub(crate) mod tally;
mod work;
mod world;

use random::Random;
use tally::{COVERED, Tally};
use world::World;

const SEEDS: u64 = 10_000;

/// Says how to run a seed again when it fails.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("repeat with: REFRAIN_SEED={seed} cargo test -p refrain-core one_seed -- --nocapture");
        }
    }
}

fn run(seed: u64, aloud: bool, tally: &mut Tally) {
    let _repeat = Repeat(seed);
    let calm = World::new(seed, None, aloud).run(&mut Tally::default());
    let crash = 1 + Random::new(seed ^ 0x000c_4a54).below(calm);
    if aloud {
        println!("\nand again, with a crash behind event {crash} of {calm}:");
    }
    World::new(seed, Some(crash), aloud).run(tally);
    tally.add("run", "of a seed");
}

#[expect(clippy::disallowed_methods, reason = "how a person tells a test which seed to repeat")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn one_seed() {
    let seed = number("REFRAIN_SEED");
    run(seed.unwrap_or(0), seed.is_some(), &mut Tally::default());
}

#[test]
fn ten_thousand_seeds() {
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
