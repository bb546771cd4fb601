//! What a loop's work may not touch: the tests and the machinery that prove it (design.md, "Claim and proof"). Which
//! changes of a candidate break which rule is said here; how changes are found lives with git, what a repository could
//! protect in [`detect`](crate::detect).
//!
//! A rule is a glob (globset: `*` and `?` stay within a folder's name, `**` does not, `{a,b}`, `[abc]`), seen from the top
//! of the worktree. As in `.gitignore`, one without a slash in its middle holds at any depth (`/conftest.py` does not), and
//! one without wildcards covers what lies below it: `--protect ci` protects `ci/run`, `tools/ci/run` and a file `ci`.
//!
//! A manifest holds both what gates run by and what honest work adds to, dependencies say: of that a [`Part`] is frozen.

mod parts;
mod paths;
mod programs;

pub use parts::{Part, PartViolation};
pub use paths::{Change, GlobError, Kind, Protected, Rule, Violation};
pub use programs::{OtherProgram, Program, programs};
