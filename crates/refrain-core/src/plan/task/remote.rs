//! A plan whose loops are at a git remote: how often that is looked at, and what a look that failed means for a task.

use std::time::Duration;

/// The first span between two looks, and the longest while nothing changes there.
const SOON: Duration = Duration::from_secs(2);
const LATE: Duration = Duration::from_secs(15);

/// Why a look at a loop that is at a git remote failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteFault {
    /// The remote, or the way to it.
    NoAnswer,
    /// It changed during the look.
    Raced,
    /// The repository here, or its disk.
    Here,
    /// A key that the user does not trust signed the loop.
    Signer,
    /// It is not the loop that left.
    OtherLoop,
    /// Its journal cannot be read.
    Damaged,
}

impl RemoteFault {
    /// Whether the next look may succeed without a person.
    pub fn is_passing(self) -> bool {
        match self {
            Self::NoAnswer | Self::Raced | Self::Here => true,
            Self::Signer | Self::OtherLoop | Self::Damaged => false,
        }
    }
}

/// How long to wait until the remote is looked at again, if it was `last` before this look. A change there is followed by
/// others.
pub fn look_again(last: Duration, has_changed: bool) -> Duration {
    if has_changed { SOON } else { (last * 3 / 2).clamp(SOON, LATE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_time_or_a_better_line_mends_is_waited_for() {
        for (fault, is_passing) in [
            (RemoteFault::NoAnswer, true),
            (RemoteFault::Raced, true),
            (RemoteFault::Here, true),
            (RemoteFault::Signer, false),
            (RemoteFault::OtherLoop, false),
            (RemoteFault::Damaged, false),
        ] {
            assert_eq!(fault.is_passing(), is_passing, "{fault:?}");
        }
    }

    #[test]
    fn a_remote_where_nothing_happens_is_looked_at_less_and_less_often() {
        let mut wait = Duration::ZERO;
        let waits = [2_000, 3_000, 4_500, 6_750, 10_125, 15_000, 15_000].map(Duration::from_millis);
        for expected in waits {
            wait = look_again(wait, false);
            assert_eq!(wait, expected);
        }
        assert_eq!(look_again(wait, true), SOON);
    }
}
