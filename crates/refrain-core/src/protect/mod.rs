//! What a loop's work may not touch: the tests and the machinery that prove it (design.md, "Claim and proof"). Which
//! changes of a candidate break which rule is decided here; refrain-git finds the changes, and
//! refrain-formats finds what a repository could protect.
//!
//! A rule is a [`glob`](crate::glob).
//!
//! A manifest holds both settings that gates run by and lists that honest work extends, such as dependencies: only a
//! [`Part`] of it is frozen.

mod links;
mod modules;
mod parts;
mod paths;
mod programs;
mod submodules;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::RepoPath;

pub use links::{OutsideLink, leads_out};
pub use modules::is_compiled_python;
pub use parts::{Part, PartViolation};
pub use paths::{Change, Kind, ProtectedPaths, Rule, Violation};
pub use programs::{OtherProgram, Program, Simple, first_program, programs, simple_commands};
pub use submodules::LocalCommit;

/// Something that was touched and decides what a proof is worth: no claim over it is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionBreach {
    /// A path.
    Path(Violation),
    /// A part of a manifest.
    Part(PartViolation),
    /// What a gate starts is another program than at the start.
    Program(OtherProgram),
    /// A link that is new or changed leads out of the worktree.
    Link(OutsideLink),
    /// A path whose changes git was told to pass over since the start (`git update-index --skip-worktree` or
    /// `--assume-unchanged`): the tree may hold something else than the worktree.
    Hidden(RepoPath),
    /// A file whose content a checkout of the tree would not give it: git converts it when it stores it, or does not see that it changed.
    Unlike(RepoPath),
    /// A new or other commit of a repository in the repository, which may be nowhere else.
    Submodule(LocalCommit),
}

impl fmt::Display for ProtectionBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(violation) => violation.fmt(f),
            Self::Part(violation) => violation.fmt(f),
            Self::Program(program) => program.fmt(f),
            Self::Link(link) => link.fmt(f),
            Self::Submodule(commit) => commit.fmt(f),
            Self::Unlike(path) => write!(
                f,
                "a checkout of {path} would not have its content: git converts it (.gitattributes, core.autocrlf), or does not see \
                 that it changed; write it again as git \
                 checks it out, or change the attribute"
            ),
            Self::Hidden(path) => write!(
                f,
                "git is configured to pass over changes of {path}; git update-index --no-skip-worktree and --no-assume-unchanged undo it"
            ),
        }
    }
}
