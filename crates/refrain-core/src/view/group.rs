//! The groups that surfaces list loops and plans in: first those that need you.

use super::{StatusWord, Verification};

/// A group of a list, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Group {
    NeedsYou,
    Running,
    Verified,
    Unverified,
    /// It stopped without a result.
    Stopped,
}

impl Group {
    pub const ALL: [Self; 5] =
        [Self::NeedsYou, Self::Running, Self::Verified, Self::Unverified, Self::Stopped];

    /// The group of a loop or plan; `is_asking` if its agent waits for an answer while it runs.
    pub fn of(status: StatusWord, verified: Option<bool>, is_asking: bool) -> Self {
        match status {
            StatusWord::Blocked | StatusWord::Crashed => Self::NeedsYou,
            StatusWord::Running | StatusWord::Waiting if is_asking => Self::NeedsYou,
            StatusWord::Running | StatusWord::Waiting => Self::Running,
            StatusWord::Completed if Verification::of(status, verified) == Verification::Verified => {
                Self::Verified
            }
            StatusWord::Completed => Self::Unverified,
            StatusWord::Paused
            | StatusWord::Moved
            | StatusWord::Cancelled
            | StatusWord::IterationCap
            | StatusWord::BudgetExceeded
            | StatusWord::TimedOut
            | StatusWord::Stuck
            | StatusWord::Failed => Self::Stopped,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_needs_you_if_it_cannot_continue_without_you() {
        for (status, verified, is_asking, group) in [
            (StatusWord::Blocked, Some(true), false, Group::NeedsYou),
            (StatusWord::Crashed, None, false, Group::NeedsYou),
            (StatusWord::Running, None, true, Group::NeedsYou),
            (StatusWord::Waiting, None, false, Group::Running),
            (StatusWord::Completed, Some(true), false, Group::Verified),
            (StatusWord::Completed, None, false, Group::Unverified),
            (StatusWord::Paused, None, false, Group::Stopped),
            (StatusWord::Stuck, Some(false), false, Group::Stopped),
        ] {
            assert_eq!(Group::of(status, verified, is_asking), group, "{status:?}");
        }
    }
}
