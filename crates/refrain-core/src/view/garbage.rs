//! What loops left that nothing needs any more: the rows that `refrain gc --json` prints. refrain-engine finds them.

use schemars::JsonSchema;
use serde::Serialize;

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GarbageKind {
    /// The worktree of a loop that is over; all its work is on branches.
    Worktree,
    /// A worktree of the pool for tasks that no task uses, with its caches; or the pool of a project that is gone.
    TaskWorktree,
    /// A folder that candidates were checked out to, with its caches; or all those of a project that is gone.
    Checkout,
    /// The recorded output of a loop that is archived for 30 days.
    Output,
    /// A branch of a loop that is over; what is checked out has all its commits.
    Branch,
    /// A reference that keeps what was discarded 30 days ago or earlier.
    Discarded,
    /// The references of a loop at a git remote: it left this machine and is over, and its commits are here; or its branch there has
    /// them, and it ended 30 days ago or its plan is over.
    Remote,
    /// A folder that `refrain demo` made among the temporary files, with its checkouts and worktrees; no loop runs in it.
    Demo,
}

impl GarbageKind {
    pub fn label(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::TaskWorktree => "task worktree",
            Self::Checkout => "clean checkout",
            Self::Output => "recorded output",
            Self::Branch => "merged branch",
            Self::Discarded => "discarded work",
            Self::Remote => "at a git remote",
            Self::Demo => "demo",
        }
    }
}

/// One thing that may be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Garbage {
    pub kind: GarbageKind,
    /// Its path, or the name of the branch or reference; of a loop at a git remote, its references and the address.
    pub name: String,
    /// How much room it takes on disk, in bytes; 0 for a branch or reference, whose commits `git gc` removes later.
    pub bytes: u64,
}

/// A number of bytes, in words.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::size;

    #[rstest]
    #[case(0, "0 B")]
    #[case(1023, "1023 B")]
    #[case(1536, "1.5 KiB")]
    #[case(5 << 20, "5.0 MiB")]
    #[case((1 << 30) + (1 << 29), "1.5 GiB")]
    fn a_size_has_one_digit_after_the_point(#[case] bytes: u64, #[case] text: &str) {
        assert_eq!(size(bytes), text);
    }
}
