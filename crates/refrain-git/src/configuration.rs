//! What git is configured to do, as far as it decides how commits are made, and what the configuration's files looked like.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::committer::Last;
use crate::disk::{Seen, seen};

/// What the configuration said, and how its files looked then.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) files: Vec<(Utf8PathBuf, Seen)>,
    /// Neither a signature nor hooks anywhere else than in the hooks' folder.
    pub(crate) is_plain: bool,
    /// No commit is to be signed.
    pub(crate) is_unsigned: bool,
    /// Objects are written as git does where nobody says how.
    pub(crate) is_usual: bool,
    /// It is the same in every worktree of the repository.
    pub(crate) is_common: bool,
    /// Who made the last commit that git made here.
    pub(crate) last: Last,
}

/// The configurations that were read: by the git folder of a worktree, or without one where all have the same.
pub(crate) type Configurations = BTreeMap<Option<Utf8PathBuf>, Configured>;

impl Configured {
    /// Whether its files look as they did.
    pub(crate) fn is_current(&self) -> bool {
        self.files.iter().all(|(file, then)| seen(file) == *then)
    }
}
