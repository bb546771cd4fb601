//! The gate of an account that loops on many machines use. While it is closed they wait; when the time has come, one of them
//! tries first.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::event::Wait;

/// For how long one loop alone may try.
const ALONE: SignedDuration = SignedDuration::from_secs(120);
/// How long after the announced end a gate is forgotten that no loop opened.
const FORGET: SignedDuration = SignedDuration::from_hours(1);

/// What happens to the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateChange {
    Close(Wait),
    Open,
    /// This loop wants to try first.
    Try(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedGateState {
    wait: Option<Wait>,
    /// Who tries, and until when no other loop does.
    tries: Option<(String, Timestamp)>,
}

impl SharedGateState {
    /// What the account waits for; none if the gate is open.
    pub fn wait(&self) -> Option<Wait> {
        self.wait
    }

    /// From then on it counts as open, even if no loop opened it.
    pub fn forgotten_at(&self) -> Option<Timestamp> {
        self.wait.map(|wait| wait.until.saturating_add(FORGET).unwrap_or(Timestamp::MAX))
    }

    /// Changes it. Whether the loop may try first, if it asked for that.
    pub fn change(&mut self, change: GateChange, now: Timestamp) -> bool {
        match change {
            GateChange::Close(wait) => *self = Self { wait: Some(wait), tries: None },
            GateChange::Open => *self = Self::default(),
            GateChange::Try(who) => {
                let is_others = |(other, until): &(String, Timestamp)| *other != who && *until > now;
                if self.tries.as_ref().is_some_and(is_others) {
                    return false;
                }
                let until = now.saturating_add(ALONE).unwrap_or(Timestamp::MAX);
                self.tries = self.wait.map(|_| (who, until));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::WaitKind;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn limit(until: i64) -> Wait {
        Wait { kind: WaitKind::Limit, until: at(until) }
    }

    fn tries(who: &str) -> GateChange {
        GateChange::Try(who.to_owned())
    }

    /// The changes, each with its second and with what it is answered.
    #[test]
    fn one_loop_at_a_time_tries_first() {
        let close = || GateChange::Close(limit(0));
        for (case, steps) in [
            (
                "the first may, and no other",
                vec![(0, close(), true), (0, tries("a"), true), (1, tries("b"), false)],
            ),
            ("it may ask twice", vec![(0, close(), true), (0, tries("a"), true), (1, tries("a"), true)]),
            (
                "it asks again, and has longer",
                vec![
                    (0, close(), true),
                    (0, tries("a"), true),
                    (60, tries("a"), true),
                    (121, tries("b"), false),
                ],
            ),
            (
                "the first was lost",
                vec![
                    (0, close(), true),
                    (0, tries("a"), true),
                    (120, tries("b"), true),
                    (121, tries("a"), false),
                ],
            ),
            (
                "the first met the limit again",
                vec![(0, close(), true), (0, tries("a"), true), (1, close(), true), (2, tries("b"), true)],
            ),
            (
                "an open gate lets all try",
                vec![
                    (0, close(), true),
                    (0, tries("a"), true),
                    (1, GateChange::Open, true),
                    (2, tries("b"), true),
                    (2, tries("c"), true),
                ],
            ),
        ] {
            let mut gate = SharedGateState::default();
            for (second, change, answer) in steps {
                assert_eq!(gate.change(change.clone(), at(second)), answer, "{case}: {change:?} at {second}");
            }
        }
    }

    #[test]
    fn the_last_change_says_whether_it_is_closed() {
        for (changes, wait) in [
            (vec![], None),
            (vec![GateChange::Close(limit(5))], Some(limit(5))),
            (vec![GateChange::Close(limit(5)), GateChange::Close(limit(9))], Some(limit(9))),
            (vec![GateChange::Close(limit(5)), tries("a")], Some(limit(5))),
            (vec![GateChange::Close(limit(5)), GateChange::Open], None),
            (vec![GateChange::Open, GateChange::Close(limit(5))], Some(limit(5))),
            (vec![tries("a")], None),
        ] {
            let mut gate = SharedGateState::default();
            for change in changes {
                gate.change(change, at(0));
            }
            assert_eq!(gate.wait(), wait);
            assert_eq!(gate.forgotten_at(), wait.map(|wait| wait.until + FORGET));
        }
    }
}
