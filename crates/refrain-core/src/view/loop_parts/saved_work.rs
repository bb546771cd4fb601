//! The failure branch that keeps the work of a loop that gave up, or why there is none.

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::PushReport;
use crate::git::{Oid, RepoPath};
use crate::r#loop::{LoopState, Saved};

/// The failure branch that keeps the work of a loop that gave up, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SavedWork {
    /// The branch that it is on; null where it is on none.
    pub branch: Option<String>,
    /// That branch's commit.
    pub commit: Option<Oid>,
    /// Where it was pushed to, or why that failed; null where there is no remote.
    pub pushed: Option<PushReport>,
    /// Files that were changed before the loop and by it: they hold the user's changes too.
    pub mixed: Vec<RepoPath>,
    /// Why it is on no branch.
    pub why_not: Option<String>,
}

impl SavedWork {
    pub(crate) fn of(state: &LoopState) -> Option<Self> {
        Some(match state.progress.saved.clone()? {
            Saved::Branch { name, commit, pushed, mixed } => {
                Self { branch: Some(name), commit: Some(commit), pushed, mixed, why_not: None }
            }
            Saved::Not { why } => {
                Self { branch: None, commit: None, pushed: None, mixed: Vec::new(), why_not: Some(why) }
            }
        })
    }
}

/// Says that these files of a branch hold changes of the user's too; empty without any.
pub fn with_yours(mixed: &[RepoPath]) -> String {
    match mixed {
        [] => String::new(),
        [only] => format!(", with your own changes to {only}"),
        [first, _] => format!(", with your own changes to {first} and 1 more file"),
        [first, rest @ ..] => format!(", with your own changes to {first} and {} more files", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_file_is_written_in_the_singular() {
        let said = |names: &[&str]| {
            with_yours(&names.iter().map(|name| RepoPath::from_bytes(name.as_bytes())).collect::<Vec<_>>())
        };
        assert_eq!(said(&[]), "");
        assert_eq!(said(&["a"]), ", with your own changes to a");
        assert_eq!(said(&["a", "b"]), ", with your own changes to a and 1 more file");
        assert_eq!(said(&["a", "b", "c"]), ", with your own changes to a and 2 more files");
    }
}
