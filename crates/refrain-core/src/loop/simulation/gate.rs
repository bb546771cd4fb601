//! Gates that follow a script, and what they are asked about: a tree that is a number.

use super::critic::judged;
use super::world::World;
use crate::event::{Event, Exit, GateFinished, ReviewResult, StopReason};
use crate::gate::{Check, GateSpec, GateWhen, ReviewSpec, Verdict};
use crate::git::{CommitReport, CommitResult, SkipReason};
use crate::r#loop::GateFailure;
use crate::r#loop::Live;
use crate::r#loop::tests::journal::{gate_finished, gates, oid};
use crate::protect::{OtherProgram, ProtectionBreach};
use crate::simulation::Crash;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;
use crate::spec::{Millis, Spec};

/// The script of one run of a gate. Times are milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    ends_at: Option<u64>,
    finished: GateFinished,
    starts: bool,
    /// How long it takes to end the processes that it leaves, if it leaves any.
    leaves: Option<u64>,
    /// It changes the tree that it is asked about.
    writes: bool,
    stubborn: u64,
}

/// Gates for some loops, and something that is protected.
pub(super) fn sample_gates(random: &mut Random, spec: &mut Spec) {
    if random.once_in(4) {
        spec.protect.frozen.push("ci/**".to_owned());
    }
    if random.once_in(2) {
        return;
    }
    let hard = [!random.once_in(5), random.once_in(2)];
    spec.gates = if random.once_in(2) { gates([hard[0]]) } else { gates(hard) };
    if let Some(last) = spec.gates.get_mut(1).filter(|_| random.once_in(2)) {
        let review = ReviewSpec { agent: spec.agent.clone(), spec: "It counts.".into() };
        last.check = Check::Review(Box::new(review));
    }
    for gate in &mut spec.gates {
        let GateSpec { timeout, retries, when, .. } = gate;
        *timeout = Millis(random.between(5_000, 90_000));
        *retries = u32::try_from(random.pick(&[0, 0, 0, 1, 2])).expect("a small number");
        *when = random.pick(&[GateWhen::Iteration, GateWhen::Iteration, GateWhen::Claim]);
    }
    spec.git.candidates = !random.once_in(3);
}

/// A command that completes some loops by itself; and whether gates that cannot run block them. Drawn from separate
/// numbers, so that all other draws stay the same.
pub(super) fn sample_success(seed: u64, spec: &mut Spec) {
    let mut random = Random::new(seed ^ 0x7375_6363);
    spec.gates_must_run = random.once_in(2);
    // A plan's tasks have none.
    let has_success = random.once_in(4) && spec.task.is_none();
    if let Some(gate) = spec.gates.iter_mut().rfind(|gate| has_success && !gate.is_review()) {
        (gate.completes, gate.hard, gate.when) = (true, true, GateWhen::Iteration);
    }
}

impl Gate {
    fn sample(random: &mut Random, place: usize, now: u64, (good, restless): (bool, bool)) -> Self {
        let exit = match random.below(20) {
            0 => Exit::Lost,
            1 => Exit::Signal(11),
            _ if good => Exit::Code(0),
            _ => random.pick(&[Exit::Code(0), Exit::Code(1), Exit::Code(127)]),
        };
        let mut finished = gate_finished(place, exit);
        finished.no_test = random.once_in(15).then(|| "0 tests".to_owned());
        let leaves = random.maybe(6, 20, 12_000);
        finished.left = leaves.is_some();
        Self {
            ends_at: (!random.once_in(12)).then(|| now + random.between(10, 40_000)),
            finished,
            starts: !random.once_in(25),
            leaves,
            writes: random.once_in(12) || (restless && !random.once_in(6)),
            stubborn: random.maybe(2, 100, 12_000).unwrap_or(20),
        }
    }

    /// When it ends, if it ever does.
    pub(super) fn next(&self) -> Option<u64> {
        self.ends_at
    }

    pub(super) fn stop(&mut self, now: u64) {
        let forced = now + self.stubborn;
        if self.ends_at.is_none_or(|own| own > forced) {
            self.ends_at = Some(forced);
            self.finished.exit = Exit::Signal(2);
        }
    }
}

impl World {
    pub(super) fn candidate(&mut self) -> Event {
        let tree = self.state.spec.git.candidates.then(|| oid(self.tree));
        let partial = self.random.once_in(10);
        let is_touched = !self.state.spec.protect.is_empty() && self.random.once_in(4);
        let program = || OtherProgram { name: "cargo".into(), before: None, now: Some("/ci/cargo".into()) };
        let touched = is_touched.then(|| ProtectionBreach::Program(program()));
        Event::CandidateTaken { tree, partial, touched: touched.into_iter().collect(), changed: Vec::new() }
    }

    pub(super) fn commit(&mut self, iteration: u32, tally: &mut Tally) -> Event {
        // A hook has its own mind.
        if self.random.once_in(8) {
            tally.add("git", "a hook changed what is committed");
            self.tree += 1;
        }
        let (commit, tree) = (oid(1_000_000 + iteration), oid(self.tree));
        let result = match self.random.once_in(5) {
            true => CommitResult::Skipped(SkipReason::Nothing),
            false => CommitResult::Made { commit: commit.clone(), tree },
        };
        let skipped = CommitReport::skipped(iteration, SkipReason::Nothing, Some(commit));
        Event::CommitSettled(Box::new(CommitReport { result, ..skipped }))
    }

    pub(super) fn start_gate(&mut self, place: usize, tally: &mut Tally) -> Result<(), Crash> {
        assert!(self.agent.is_none() && self.gate.is_none(), "a gate beside another child");
        let good = u64::from(self.state.iteration) >= self.able_from;
        let hopeless = self.boasts || self.able_from == u64::MAX;
        let mut gate = Gate::sample(&mut self.random, place, self.real, (good, self.restless));
        if hopeless && gate.finished.exit != Exit::Lost {
            (gate.finished.exit, gate.finished.no_test) = (Exit::Code(1), None);
        }
        if self.state.runs().is_some() {
            let good = gate.finished.exit == Exit::Code(0);
            gate.finished.review = Some(Box::new(self.review(good)));
            gate.finished.no_test = None;
            tally.add("gate", "a reviewer");
        }
        self.live = Live::default();
        tally.add("gate", "started");
        if !gate.starts {
            tally.add("gate", "could not start");
            return self.append(Event::GateSpawnFailed { error: "no such folder".into() });
        }
        self.gate = Some(gate);
        Ok(())
    }

    fn review(&mut self, good: bool) -> ReviewResult {
        let verdict = match self.random.below(4) {
            _ if good => Verdict::Pass,
            0 => Verdict::Missing { why: "it said nothing".into() },
            _ => Verdict::Fail { findings: "It counts nothing.".into() },
        };
        ReviewResult { verdict, report: judged(&mut self.random) }
    }

    pub(super) fn stop_gate(&mut self, because: StopReason, tally: &mut Tally) {
        self.gate.as_mut().expect("what is stopped is there").stop(self.real);
        tally.add(
            "gate",
            match because {
                StopReason::TimeLimit => "stopped: time limit",
                StopReason::LoopDuration => "stopped: loop duration",
                StopReason::Cancel => "stopped: cancel",
                StopReason::Interrupt => "stopped: interrupt",
                StopReason::Silence
                | StopReason::OutputLost
                | StopReason::Budget
                | StopReason::ProviderWait => "stopped: else",
            },
        );
    }

    pub(super) fn hear_gate(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        let gate = self.gate.take().expect("it ended");
        if gate.writes {
            self.work.changes();
            self.tree += 1;
        }
        self.swept_at = gate.leaves.map(|ms| self.real + ms);
        self.append(Event::GateFinished(Box::new(gate.finished)))?;
        for _ in self.state.gate_results().filter(|result| result.flaky) {
            tally.add("gate", "flaky");
        }
        if let Some(last) = &self.state.proof {
            for result in &last.results {
                let what = match &result.failure {
                    None => "passed",
                    Some(GateFailure::TimeLimit) => "failed: time limit",
                    Some(GateFailure::NoTest(_)) => "failed: no test",
                    Some(GateFailure::Exit(_) | GateFailure::NotStarted(_)) => "failed",
                    Some(GateFailure::Review(_)) => "failed: reviewer",
                    Some(GateFailure::NoVerdict(_)) => "failed: no verdict",
                };
                tally.add("gate", what);
            }
            if !last.candidate.touched.is_empty() {
                tally.add("gate", "passed over what was touched");
            }
            if last.restless {
                tally.add("gate", "never came to rest");
            }
        }
        Ok(())
    }
}
