//! People: what they ask while the loop runs, and what they do with one that has stopped.

use crate::event::{Ask, Urgency};
use crate::r#loop::LoopState;
use crate::r#loop::tests::journal::grant;
use crate::machine::Refusal;
use crate::simulation::Schedule;
use crate::simulation::random::Random;
use crate::spec::{Limits, Millis};

/// The acts of a person while the loop runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// A request with an id, through the inbox.
    Request(Ask),
    /// Takes back the last request.
    Withdraw,
    /// Ctrl-C. The first lets the iteration finish.
    Interrupt,
}

pub(super) enum Leave {
    It,
    Resume { iterations: Option<u32>, duration: Option<Millis> },
    Approve,
    Ask(Ask),
}

#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) acts: Schedule<Act>,
    /// How often they come back to a stopped loop.
    patience: u64,
}

impl Person {
    pub(super) fn sample(random: &mut Random, now: u64) -> Self {
        let mut plan = Vec::new();
        for _ in 0..random.pick(&[0, 0, 1, 1, 2, 3]) {
            let at = now + random.below(240_000);
            let act = match random.below(12) {
                0 | 1 => Act::Request(Ask::Pause(Urgency::AfterIteration)),
                2 => Act::Request(Ask::Pause(Urgency::Now)),
                3 => Act::Request(Ask::Cancel(Urgency::AfterIteration)),
                4 => Act::Request(Ask::Cancel(Urgency::Now)),
                5 | 6 => Act::Request(Ask::Steer(format!("at {at}"))),
                7 => Act::Request(Ask::Proceed),
                8 | 9 => Act::Withdraw,
                _ => Act::Interrupt,
            };
            if act == Act::Interrupt && random.once_in(2) {
                plan.push((at + random.below(20_000), Act::Interrupt));
            }
            plan.push((at, act));
        }
        Self { acts: Schedule::new(plan), patience: random.below(4) }
    }

    pub(super) fn finds(&mut self, random: &mut Random, state: &LoopState) -> Leave {
        if self.patience == 0 {
            return Leave::It;
        }
        self.patience -= 1;
        match random.below(8) {
            0 => Leave::Ask(Ask::Cancel(random.pick(&[Urgency::AfterIteration, Urgency::Now]))),
            1 => Leave::Ask(Ask::Steer("while it stood still".into())),
            2 => Leave::Ask(Ask::Pause(Urgency::Now)),
            3..6 if state.awaits_approval().is_some() => Leave::Approve,
            _ => {
                let more = u32::try_from(random.between(1, 5)).expect("a small number");
                let longer = random.between(10_000, 300_000);
                Self::grant(state, more, longer)
            }
        }
    }

    /// At first as it is; if that is refused, more of what the refusal names.
    fn grant(state: &LoopState, more: u32, longer: u64) -> Leave {
        let most = state.charged + Limits::MAX_GRANT;
        assert!(
            matches!(
                state.resume(&grant(Some(most + 1), None)),
                Err(Refusal::TooMany { .. } | Refusal::Final(_))
            ),
            "more than {most} iterations were granted"
        );
        let (mut iterations, mut duration) = (None, None);
        for _ in 0..3 {
            match state.resume(&grant(iterations, duration)) {
                Err(Refusal::NothingGranted { flag, .. }) if flag.starts_with("--max-iterations") => {
                    iterations = Some(state.charged + more)
                }
                Err(Refusal::NothingGranted { .. }) => {
                    duration = Some(Millis(Millis::from(state.active(state.updated_at)).0 + longer));
                }
                Ok(_) | Err(_) => break,
            }
        }
        Leave::Resume { iterations, duration }
    }
}
