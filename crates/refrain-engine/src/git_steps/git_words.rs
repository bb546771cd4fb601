//! Limits and texts for git: timeout, error text, time stamp in names of branches.

use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use refrain_core::spec::Millis;
use refrain_git::GitError;

use crate::chain;

/// How long git and its hooks may take for one step: a hook that hangs must not hold a night up.
pub(crate) const LONGEST: Duration = Duration::from_mins(10);

/// What went wrong. A cancelled step says that its time was up: when a step is abandoned, its message is not read.
pub(crate) fn say(error: &GitError, longest: Duration) -> String {
    if matches!(error, GitError::Cancelled) {
        format!("git, or a hook, took longer than {} and was ended", Millis::from(longest))
    } else {
        chain(error)
    }
}

/// A time in a form that can be part of a branch name.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y%m%d-%H%M%S").to_string()
}

/// Which loops work in a folder that commits are to be handed over to.
#[must_use]
pub fn works_in(by: &[String], folder: &Utf8Path) -> String {
    let who = match by {
        [] => "another loop works".to_owned(),
        [one] => format!("{one} works"),
        several => format!("{} work", several.join(", ")),
    };
    format!("{who} in {folder}, and would take the merged commits for part of its work")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_timeout_message_states_the_limit() {
        assert_eq!(Millis::from(LONGEST).to_string(), "10m 0s");
        let said = say(&GitError::Cancelled, Duration::from_secs(90));
        assert_eq!(said, "git, or a hook, took longer than 1m 30s and was ended");
    }
}
