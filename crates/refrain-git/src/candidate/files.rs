use std::collections::BTreeSet;

use crate::error::GitError;
use crate::repository::Repository;

impl Repository {
    /// The files that git tracks or would track, relative to the worktree's root; without missing files and names
    /// that are not UTF-8.
    pub fn files(&self) -> Result<BTreeSet<String>, GitError> {
        let printed =
            self.git().output(["ls-files", "--cached", "--others", "--exclude-standard", "-z"], &[])?;
        let names = printed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let is_there = |name: &&[u8]| self.on_disk(name).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        Ok(names.filter(is_there).filter_map(|name| Some(str::from_utf8(name).ok()?.to_owned())).collect())
    }
}
