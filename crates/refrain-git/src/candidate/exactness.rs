//! Whether the files on disk are what a checkout of their tree writes. Git converts files when it stores them (line endings,
//! `ident`, `working-tree-encoding`), and takes those that become the stored object for unchanged, though a checkout may
//! write others.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use refrain_core::git::{Dirty, Oid, OmittedPath, RepoPath};

use crate::Cancel;
use crate::candidate::integrity::{Entry, checked_out, differing, entries, list};
use crate::candidate::links::NewEntries;
use crate::commit::choice::{filtered, with_attribute};
use crate::error::{GitError, OnPath};
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::disk::{LARGEST, ScratchFolder};
use crate::plumbing::object::{blob, blob_of};
use crate::plumbing::overrides::OWN_ATTRIBUTES;
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

/// The attribute that names another encoding than UTF-8 for files on disk.
const ENCODING: &str = "working-tree-encoding";

/// How many files are named: one is enough.
const MOST: usize = 20;

/// A file that was written this shortly before a time may have an older stamp: the clock of files ticks.
const TICK: Duration = Duration::from_millis(100);

/// The files to compare with a checkout of their tree.
#[derive(Clone, Copy, Debug)]
pub struct ExactnessRequest<'a> {
    pub entries: &'a NewEntries,
    /// And all of that tree that were written since this time, after 1970.
    pub since: Option<Duration>,
    /// But not these, which are not in the tree as they are,
    pub omitted: &'a [OmittedPath],
    /// nor these, which the user had changed before.
    pub dirty: &'a [Dirty],
    pub cancel: Option<&'a Cancel>,
}

impl Repository {
    /// The files that a checkout of the tree would write with another content, though git takes them for the tree's. CR
    /// before LF is no difference, nor is the object that `ident` names; and a filter of the user may store less than a file has.
    /// Errors: [`GitError::OtherAttributes`] if they were changed outside of the work; [`GitError`] if git fails.
    pub fn unlike_checkout(&self, request: ExactnessRequest<'_>) -> Result<Vec<RepoPath>, GitError> {
        let (git, tree) = (self.git().until(request.cancel), &request.entries.tree);
        let printed = git.output(list(tree), &[])?;
        let omitted = request.omitted.iter().map(|omitted| &omitted.path);
        let others = omitted.chain(request.dirty.iter().map(|dirty| &dirty.path));
        let others: BTreeSet<_> = others.map(RepoPath::to_bytes).collect();
        let mut files = entries(&printed, "ls-tree")?;
        files.retain(|entry| entry.mode.starts_with(b"100") && !others.contains(entry.path));
        let mut converted = self.converted(&files, request)?;
        let has_attributes = request.entries.has_attributes()?;
        if converted.is_empty() && !has_attributes {
            return Ok(Vec::new());
        }
        if self.changed_pins()?.iter().any(|name| name == OWN_ATTRIBUTES) {
            return Err(GitError::OtherAttributes(self.common_dir().join(OWN_ATTRIBUTES)));
        }
        // The worktree may convert in another way than a checkout, which has no ignored `.gitattributes`.
        let attributes = AttributesFolder::of(git, tree)?;
        let there = attributes.apply(git, self.git_dir());
        if has_attributes {
            // A file that was not written may be converted in another way, too.
            let paths = files.iter().map(|entry| entry.path);
            let encoded = with_attribute(there, ENCODING, paths, |name| name != b"unspecified")?;
            let known: BTreeSet<_> = converted.iter().map(|entry| entry.path).collect();
            let is_there = |path: &[u8]| self.on_disk(path).symlink_metadata().is_ok_and(|it| it.is_file());
            let is_other = |entry: &&Entry<'_>| {
                encoded.contains(entry.path) && !known.contains(entry.path) && is_there(entry.path)
            };
            converted.extend(files.iter().filter(is_other));
        }
        let by_filter = filtered(self, there, converted.iter().map(|entry| entry.path))?;
        converted.retain(|entry| !by_filter.contains(entry.path));
        if converted.is_empty() {
            return Ok(Vec::new());
        }
        let scratch = ScratchFolder::new()?;
        let lines: Vec<_> = converted.iter().flat_map(Entry::line).collect();
        // They have changed, and git did not see it: it compares times by the second, of which an agent sets one.
        let others = differing(git, &scratch.path().join("index"), &lines)?;
        converted.retain(|entry| !others.contains(entry.path));
        let mut unlike: Vec<_> = others.iter().take(MOST).map(|path| RepoPath::from_bytes(path)).collect();
        if converted.is_empty() || unlike.len() == MOST {
            return Ok(unlike);
        }
        let names = converted.iter().map(|entry| (entry.object.to_owned(), entry.name())).collect();
        let objects = VerifiedObjects::named(self, git, &names)?;
        for entry in converted {
            let written = checked_out(objects.apply(there), &entry)?;
            let found = refrain_files::read_regular(&self.on_disk(entry.path), LARGEST);
            if !is_as_written(&found.on("read", self.root())?, &written) {
                unlike.push(RepoPath::from_bytes(entry.path));
            }
            if unlike.len() == MOST {
                break;
            }
        }
        Ok(unlike)
    }

    /// The files whose content is not that of their objects.
    fn converted<'a>(
        &self,
        files: &[Entry<'a>],
        request: ExactnessRequest<'_>,
    ) -> Result<Vec<Entry<'a>>, GitError> {
        let ExactnessRequest { entries, since, cancel, .. } = request;
        let changed: BTreeSet<_> = entries.all()?.into_iter().map(|it| it.path).collect();
        let is_written = |time: Duration| since.is_some_and(|since| time + TICK >= since);
        let mut converted = Vec::new();
        for entry in files.iter() {
            let path = self.on_disk(entry.path);
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            let time = Duration::new(
                meta.ctime().try_into().unwrap_or_default(),
                meta.ctime_nsec().try_into().unwrap_or_default(),
            );
            if !meta.is_file() || !(changed.contains(entry.path) || is_written(time)) {
                continue;
            }
            if cancel.is_some_and(Cancel::is_cancelled) {
                return Err(GitError::Cancelled);
            }
            let content = refrain_files::open_regular(&path).and_then(|file| blob_of(file, meta.len()));
            let is_its = |name: Option<Oid>| name.is_some_and(|name| name.as_str() == entry.object);
            if is_its(content.on("read", self.root())?) {
                continue;
            }
            let content = refrain_files::read_regular(&path, LARGEST).on("read", self.root())?;
            if !is_its(blob(&stored(&content))) {
                converted.push(*entry);
            }
        }
        Ok(converted)
    }
}

/// Whether a file is as a checkout writes it, but for CR before LF, and for the name that `ident` wrote.
fn is_as_written(found: &[u8], written: &[u8]) -> bool {
    found == written || stored(found) == stored(written)
}

/// A content without what git's usual conversions write: CR before LF, and the name of the object behind `$Id`.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(content.len());
    let mut rest = content;
    while let [byte, more @ ..] = rest {
        let ident = rest.strip_prefix(b"$Id: ").and_then(|text| {
            let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            text[digits..].strip_prefix(b" $").filter(|_| digits == 40 || digits == 64)
        });
        match ident {
            Some(behind) => {
                stored.extend(b"$Id$");
                rest = behind;
            }
            None => {
                if *byte != b'\r' || more.first() != Some(&b'\n') {
                    stored.push(*byte);
                }
                rest = more;
            }
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a\nb\n", "a\nb\n", true)]
    #[case("a\nb\n", "a\r\nb\r\n", true)]
    #[case("a\r\nb\r\n", "a\nb\n", true)]
    #[case("a\nb", "a\rb", false)]
    #[case("a", "a\r\n", false)]
    #[case("", "", true)]
    #[case(
        "$Id: e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 $",
        "$Id: 12799ccbe7ce445b11b7bd4833bcc2c2ce1b48b7 $",
        true
    )]
    #[case("$Id: good $", "$Id: 12799ccbe7ce445b11b7bd4833bcc2c2ce1b48b7 $", false)]
    fn line_ends_and_names_of_objects_are_no_difference(
        #[case] found: &str,
        #[case] written: &str,
        #[case] is_same: bool,
    ) {
        assert_eq!(is_as_written(found.as_bytes(), written.as_bytes()), is_same);
    }
}
