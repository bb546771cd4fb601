//! The loop of one task: how long it takes, and how it ends. Its work outlives its runner, as it has a journal.

use super::git::Content;
use crate::agent::Usd;
use crate::event::Urgency;
use crate::plan::{AgentFault, Stop, TaskEnd, TaskId};
use crate::simulation::random::Random;

#[derive(Clone, Copy, Debug)]
pub(super) enum LoopCharacter {
    Able,
    Mixed,
    Hopeless,
}

/// The end of a loop that is left alone for long enough.
#[derive(Clone, Debug, PartialEq)]
enum LoopEnd {
    Proven,
    Stops(Stop),
    Hindered,
    Rests,
}

#[derive(Clone, Debug)]
pub(super) struct TaskLoop {
    pub(super) task: TaskId,
    pub(super) base: Content,
    fate: LoopEnd,
    fate_in: u32,
    /// The failure of its agent, if any.
    fault: Option<&'static str>,
    pace: u64,
    price: u64,
    pub(super) iterations: u32,
    pub(super) cost: u64,
    /// How it stands while it has no runner.
    pub(super) end: Option<TaskEnd>,
    /// The piece of work that it left, and the tree that its gates proved.
    pub(super) work: Option<u64>,
    /// When its runner gets the next news of it; none while it has no runner.
    pub(super) at: Option<u64>,
    wish: Option<(Urgency, bool)>,
}

pub(super) enum News {
    /// An iteration is over, and the next one begins.
    Nothing,
    /// It is done: its work is still to be checked.
    Done,
    Over(TaskEnd),
}

impl TaskLoop {
    pub(super) fn sample(random: &mut Random, temper: LoopCharacter, task: TaskId, base: Content) -> Self {
        let able = match temper {
            LoopCharacter::Able => 40,
            LoopCharacter::Mixed => 4,
            LoopCharacter::Hopeless => 1,
        };
        let fate = if !random.once_in(able) {
            LoopEnd::Proven
        } else {
            match random.below(8) {
                0 => LoopEnd::Stops(Stop::Stuck),
                1 => LoopEnd::Stops(Stop::GaveUp { reason: "it cannot be done".into() }),
                2 => LoopEnd::Stops(Stop::TimedOut),
                3 => LoopEnd::Stops(Stop::Cancelled),
                4 => LoopEnd::Stops(Stop::Other { reason: "something else".into() }),
                5 => LoopEnd::Rests,
                6 => LoopEnd::Hindered,
                _ => LoopEnd::Proven,
            }
        };
        let fate_in = u32::try_from(random.pick(&[1, 1, 1, 2, 2, 3, 5])).expect("a small number");
        Self {
            task,
            base,
            fate,
            fate_in,
            fault: random.pick(&[None, None, Some("boom"), Some("boom"), Some("bang")]),
            pace: random.pick(&[0, 1_000, 10_000, 60_000]),
            price: random.between(0, 400_000_000),
            iterations: 0,
            cost: 0,
            end: None,
            work: None,
            at: None,
            wish: None,
        }
    }

    /// A runner drives it from now on, and it may spend so much.
    pub(super) fn drive(&mut self, random: &mut Random, now: u64, money: Option<Usd>) {
        self.wish = None;
        let is_settled = matches!(self.end, Some(TaskEnd::Proven { .. } | TaskEnd::Stopped(_)));
        if is_settled || self.is_broke(money) {
            self.at = Some(now);
        } else {
            self.end = None;
            self.at = Some(now + random.below(self.pace + 1));
        }
    }

    fn is_broke(&self, money: Option<Usd>) -> bool {
        money.is_some_and(|Usd(money)| self.cost >= money)
    }

    pub(super) fn tell(&mut self, now: u64, urgency: Urgency, for_good: bool) {
        self.wish = Some((urgency, for_good));
        if urgency == Urgency::Now {
            self.at = Some(now);
        }
    }

    pub(super) fn abandon(&mut self) {
        (self.at, self.wish) = (None, None);
    }

    pub(super) fn go_on(&mut self, random: &mut Random, now: u64, granted: u32, money: Option<Usd>) -> News {
        if let Some(end @ (TaskEnd::Proven { .. } | TaskEnd::Stopped(_))) = &self.end {
            return News::Over(end.clone());
        }
        let rests = |for_good| if for_good { TaskEnd::Stopped(Stop::Cancelled) } else { TaskEnd::Rests };
        if let Some((Urgency::Now, for_good)) = self.wish {
            return self.over(rests(for_good));
        }
        if self.is_broke(money) {
            return self.over(TaskEnd::OutOfMoney);
        }
        self.iterations += 1;
        self.cost += random.below(self.price + 1);
        if self.iterations >= self.fate_in {
            match std::mem::replace(&mut self.fate, LoopEnd::Proven) {
                LoopEnd::Proven => return News::Done,
                LoopEnd::Stops(stop) => return self.over(TaskEnd::Stopped(stop)),
                LoopEnd::Rests if self.iterations < granted => return self.over(TaskEnd::Rests),
                LoopEnd::Hindered if self.iterations < granted => {
                    return self.over(TaskEnd::Hindered { error: "not logged in".into() });
                }
                LoopEnd::Rests | LoopEnd::Hindered => {}
            }
        }
        if self.iterations >= granted {
            return self.over(TaskEnd::Stopped(Stop::UsedUp));
        }
        if let Some((_, for_good)) = self.wish {
            return self.over(rests(for_good));
        }
        self.at = Some(now + random.below(self.pace + 1));
        News::Nothing
    }

    pub(super) fn fault(&self, end: &TaskEnd) -> Option<AgentFault> {
        let is_known = self.fault.filter(|_| matches!(end, TaskEnd::Stopped(_)));
        is_known.map(|said| AgentFault { said: said.to_owned(), fingerprint: None })
    }

    pub(super) fn over(&mut self, end: TaskEnd) -> News {
        self.end = Some(end.clone());
        News::Over(end)
    }
}
