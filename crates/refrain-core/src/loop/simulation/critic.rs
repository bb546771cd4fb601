//! Critics that follow a script: most say something, some nothing, some never end. No result of the loop may depend on
//! them.

use super::world::World;
use crate::agent::{AgentReport, Scope};
use crate::event::{CritiqueFinished, Event, Exit, StopReason};
use crate::r#loop::Live;
use crate::r#loop::tests::journal::tokens;
use crate::simulation::Crash;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;
use crate::spec::{CritiqueSpec, Millis, OnStuck, Spec};

/// The script of one critic. Times are milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Critic {
    ends_at: Option<u64>,
    finished: CritiqueFinished,
    leaves: Option<u64>,
    stubborn: u64,
}

/// Critics for some loops, and answers for those that are stuck.
pub(super) fn sample_critic(random: &mut Random, spec: &mut Spec) {
    if random.once_in(4) {
        let every = u32::try_from(random.between(1, 2)).expect("a small number");
        let timeout = Millis(random.between(1_000, 60_000));
        spec.critique = Some(CritiqueSpec { every, critic: spec.agent.clone(), timeout });
    }
    spec.stuck.threshold = u32::try_from(random.between(1, 3)).expect("a small number");
    spec.keep_failed = random.once_in(4);
    spec.stuck.by_failure = spec.keep_failed;
    let mut other = spec.agent.clone();
    other.model = Some("another".to_owned());
    spec.stuck.answer = match random.below(4) {
        0 => OnStuck::Ask,
        1 => OnStuck::Change(Box::new(other)),
        _ => OnStuck::Stop,
    };
}

/// What an agent that judges reported as used, if anything.
pub(super) fn judged(random: &mut Random) -> Option<Box<AgentReport>> {
    let used = random.maybe(2, 1, 200)?;
    Some(Box::new(AgentReport {
        tokens: Some((Scope::Attempt, tokens(used, used))),
        is_final: random.once_in(2),
        ..AgentReport::default()
    }))
}

impl Critic {
    fn sample(random: &mut Random, now: u64) -> Self {
        let leaves = random.maybe(6, 20, 12_000);
        let exit = random.pick(&[Exit::Code(0), Exit::Code(0), Exit::Code(1), Exit::Lost]);
        let feedback = (!random.once_in(4)).then(|| "Look at the other file.".to_owned());
        let error = feedback.is_none().then(|| "it said nothing".to_owned());
        Self {
            ends_at: (!random.once_in(6)).then(|| now + random.between(10, 40_000)),
            finished: CritiqueFinished {
                exit,
                feedback,
                error,
                left: leaves.is_some(),
                report: judged(random),
            },
            leaves,
            stubborn: random.maybe(2, 100, 12_000).unwrap_or(20),
        }
    }

    /// When it ends, if it ever does.
    pub(super) fn next(&self) -> Option<u64> {
        self.ends_at
    }
}

impl World {
    pub(super) fn start_critic(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        assert!(self.agent.is_none() && self.gate.is_none(), "a critic beside another child");
        self.live = Live::default();
        tally.add("critic", "started");
        if self.random.once_in(15) {
            tally.add("critic", "could not start");
            return self.append(Event::CritiqueFailed { error: "no such file".into() });
        }
        self.critic = Some(Critic::sample(&mut self.random, self.real));
        Ok(())
    }

    pub(super) fn stop_critic(&mut self, because: StopReason, tally: &mut Tally) {
        let critic = self.critic.as_mut().expect("what is stopped is there");
        let forced = self.real + critic.stubborn;
        if critic.ends_at.is_none_or(|own| own > forced) {
            critic.ends_at = Some(forced);
            critic.finished.exit = Exit::Signal(2);
        }
        let is_own = because == StopReason::TimeLimit;
        tally.add("critic", if is_own { "stopped: time limit" } else { "stopped for another's sake" });
    }

    pub(super) fn hear_critic(&mut self) -> Result<(), Crash> {
        let critic = self.critic.take().expect("it ended");
        self.swept_at = critic.leaves.map(|ms| self.real + ms);
        self.append(Event::CritiqueFinished(Box::new(critic.finished)))
    }
}
