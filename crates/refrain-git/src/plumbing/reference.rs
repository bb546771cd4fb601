//! Where references are, read from the files that git keeps them in (gitrepository-layout(5)). What is kept in another way,
//! or names something else than a plain reference, is git's to answer.

use refrain_core::git::Oid;

use crate::plumbing::disk::{read, text};
use crate::repository::Repository;

/// Where a reference is, as far as the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    At(Oid),
    /// There is none of that name.
    Nowhere,
    /// Git has to be asked.
    Unclear,
}

impl Repository {
    /// Where a branch is, or another reference that all worktrees share, or the head.
    pub(crate) fn place_of(&self, name: &str) -> Place {
        let Ok(head) = text(&self.git_dir().join("HEAD")) else { return Place::Unclear };
        let on = head.strip_prefix("ref: ").map(str::trim_end);
        // If references are not stored in files (reftable), there is an impossible branch.
        if on == Some("refs/heads/.invalid") {
            return Place::Unclear;
        }
        match (name, on) {
            // On a branch that is not born it names nothing, which git says in more than one way.
            ("HEAD", Some(on)) => match self.shared(on) {
                Place::Nowhere => Place::Unclear,
                place => place,
            },
            ("HEAD", None) => head.trim_end().parse().map_or(Place::Unclear, Place::At),
            _ => self.shared(name),
        }
    }

    fn shared(&self, name: &str) -> Place {
        if !is_plain(name) {
            return Place::Unclear;
        }
        match text(&self.common_dir().join(name)) {
            // One that names another is no plain one.
            Ok(text) => text.trim_end().parse().map_or(Place::Unclear, Place::At),
            // It may be with the packed ones, to which git moves it before its own file goes.
            Err(_) => self.packed(name),
        }
    }

    fn packed(&self, name: &str) -> Place {
        match read(&self.common_dir().join("packed-refs")) {
            Ok(all) if memchr::memmem::find(&all, format!(" {name}\n").as_bytes()).is_some() => {
                Place::Unclear
            }
            Ok(_) => Place::Nowhere,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Place::Nowhere,
            Err(_) => Place::Unclear,
        }
    }
}

/// Whether a name is that of a branch, a tag or one of ours, in full and of nothing but letters, digits and lines: nothing in it
/// leads elsewhere, nor asks git for more than the name.
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
