//! Positions of references, read from git's files (gitrepository-layout(5)). Other storage formats and symbolic
//! references are left to git.

use refrain_core::git::Oid;

use crate::plumbing::disk::{read, text};
use crate::repository::Repository;

/// The position of a reference, as far as the files show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefPosition {
    At(Oid),
    Nowhere,
    Unclear,
}

impl Repository {
    /// The position of a branch, of another reference that all worktrees share, or of the head.
    pub(crate) fn place_of(&self, name: &str) -> RefPosition {
        let Ok(head) = text(&self.git_dir().join("HEAD")) else { return RefPosition::Unclear };
        let on = head.strip_prefix("ref: ").map(str::trim_end);
        // If references are not stored in files (reftable), there is an impossible branch.
        if on == Some("refs/heads/.invalid") {
            return RefPosition::Unclear;
        }
        match (name, on) {
            // On an unborn branch it points to nothing, which git shows in more than one way.
            ("HEAD", Some(on)) => match self.shared(on) {
                RefPosition::Nowhere => RefPosition::Unclear,
                place => place,
            },
            ("HEAD", None) => head.trim_end().parse().map_or(RefPosition::Unclear, RefPosition::At),
            _ => self.shared(name),
        }
    }

    fn shared(&self, name: &str) -> RefPosition {
        if !is_plain(name) {
            return RefPosition::Unclear;
        }
        match text(&self.common_dir().join(name)) {
            // A symbolic reference is left to git.
            Ok(text) => text.trim_end().parse().map_or(RefPosition::Unclear, RefPosition::At),
            // It may be among the packed references: git writes those before it deletes the file.
            Err(_) => self.packed(name),
        }
    }

    fn packed(&self, name: &str) -> RefPosition {
        match read(&self.common_dir().join("packed-refs")) {
            Ok(all) if memchr::memmem::find(&all, format!(" {name}\n").as_bytes()).is_some() => {
                RefPosition::Unclear
            }
            Ok(_) => RefPosition::Nowhere,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => RefPosition::Nowhere,
            Err(_) => RefPosition::Unclear,
        }
    }
}

/// Whether a name is the full name of a branch, a tag or a reference of ours, with only letters, digits and dashes:
/// no part of it has a special meaning to the file system or to git.
fn is_plain(name: &str) -> bool {
    let is_ours = ["refs/heads/", "refs/tags/", "refs/refrain/"].iter().any(|place| name.starts_with(place));
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    is_ours && name.split('/').all(|part| !part.is_empty() && part.bytes().all(is_fine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_can_be_a_file_are_looked_for() {
        for (name, is) in [
            ("refs/heads/main", true),
            ("refs/refrain/plans/a-1/line", true),
            ("refs/heads/../../config", false),
            ("refs/heads/a.lock", false),
            ("refs/heads/", false),
            ("refs/heads/a^", false),
            ("refs/worktree/x", false),
            ("main", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(is_plain(name), is, "{name}");
        }
    }
}
