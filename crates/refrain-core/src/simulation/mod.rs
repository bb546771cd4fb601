//! The frame of a simulation: seeds, the line that repeats one, people by the clock. What happens in a run is in the
//! world of a loop, and in that of a plan.

pub(crate) mod random;
pub(crate) mod tally;

use random::Random;
use tally::Tally;

pub(crate) struct Crash;

/// Runs a seed undisturbed, and then with a crash at one of its events.
pub(crate) struct Simulation {
    /// The test that runs one seed.
    pub(crate) one: &'static str,
    /// How many are run each time; `REFRAIN_SEEDS` overrides it.
    pub(crate) seeds: u64,
    /// The least number of 10,000 seeds that must show each case.
    pub(crate) covered: &'static [(&'static str, &'static str, u64)],
    /// Runs the seed without a crash; answers how many events it has.
    pub(crate) calm: fn(seed: u64, aloud: bool, tally: &mut Tally) -> u64,
    /// Runs it once more, with a crash that these numbers choose among its events.
    pub(crate) crash: fn(seed: u64, chosen: (&mut Random, u64), aloud: bool, tally: &mut Tally),
}

/// Says how to run a seed again when it fails.
struct Repeat(&'static str, u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(one, seed) = self;
            eprintln!("repeat with: REFRAIN_SEED={seed} cargo test -p refrain-core {one} -- --nocapture");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how a person tells a test which seed to repeat")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

impl Simulation {
    fn run(&self, seed: u64, aloud: bool, tally: &mut Tally) {
        let _repeat = Repeat(self.one, seed);
        let events = (self.calm)(seed, aloud, tally);
        if aloud {
            println!("\nand again, with a crash among its {events} events:");
        }
        (self.crash)(seed, (&mut Random::new(seed ^ 0x000c_4a54), events), aloud, tally);
        tally.add("run", "of a seed");
    }

    /// Runs the seed that `REFRAIN_SEED` says, aloud, or the first.
    pub(crate) fn run_one(&self) {
        let seed = number("REFRAIN_SEED");
        self.run(seed.unwrap_or(0), seed.is_some(), &mut Tally::default());
    }

    /// Runs all of them, and looks whether they came by all that they should: fewer than usual may miss a rare case.
    pub(crate) fn run_all(&self) {
        const THREADS: u64 = 2;
        let seeds = number("REFRAIN_SEEDS").unwrap_or(self.seeds);
        let mut tally = Tally::default();
        std::thread::scope(|scope| {
            let part = |first: u64| {
                move || {
                    let mut tally = Tally::default();
                    (first..seeds)
                        .step_by(THREADS as usize)
                        .for_each(|seed| self.run(seed, false, &mut tally));
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
        if seeds >= self.seeds {
            tally.assert_covers(self.covered, seeds);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Schedule<A>(Vec<(u64, A)>);

impl<A> Schedule<A> {
    pub(crate) fn new(mut acts: Vec<(u64, A)>) -> Self {
        acts.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self(acts)
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.0.last().map(|(at, _)| *at)
    }

    pub(crate) fn act(&mut self) -> A {
        self.0.pop().expect("asked only when its time has come").1
    }
}
