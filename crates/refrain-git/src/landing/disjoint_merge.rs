//! Merges works that do not overlap, all at once: each only changes or adds files, and no two works share a file.
//! Merging them one by one with git would give the same files; this takes two git calls instead of one merge per
//! work. Everything else is left to git: a deletion (which may be a rename), the same path, a file in place of a
//! folder.

use std::collections::{BTreeMap, BTreeSet};

use refrain_core::git::{Oid, RepoPath};

use crate::Cancel;
use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::Git;
use crate::plumbing::index::is_summed_by_us;
use crate::repository::Repository;

/// The modes that files have: plain, executable, links.
const FILES: [&[u8]; 3] = [b"100644", b"100755", b"120000"];

/// The mode of a folder in a tree.
const FOLDER: &[u8] = b"40000";

/// A work's change of a path: its mode and content now.
type Changed = (Vec<u8>, Vec<u8>, Oid);

/// The entries of a folder by their names: mode and object.
type Entries = BTreeMap<Vec<u8>, (Vec<u8>, Oid)>;

impl Repository {
    /// The trees that result from merging works, each onto the one before it and the first onto `tip`; none if git
    /// has to merge them. All start at `base`, an ancestor of `tip`. None of them may have changed one of the
    /// `except` paths.
    pub fn merge_apart(
        &self,
        (base, tip): (&Oid, &Oid),
        works: &[&Oid],
        except: &[RepoPath],
        cancel: Option<&Cancel>,
    ) -> Result<Option<Vec<Oid>>, GitError> {
        let git = self.git().until(cancel);
        if works.len() < 2 || !is_summed_by_us(tip) || !configured(self, git, |it| it.is_usual)? {
            return Ok(None);
        }
        let Some(all) = changes(git, base, works.iter().copied().chain([tip]))? else { return Ok(None) };
        let except: Vec<Vec<u8>> = except.iter().map(RepoPath::to_bytes).collect();
        let is_excepted = |(path, ..): &Changed| except.contains(path);
        let of_works = &all[..works.len()];
        if !are_apart(&all) || of_works.iter().flatten().any(is_excepted) {
            return Ok(None);
        }
        let paths = of_works.iter().flatten().map(|(path, ..)| path.as_slice());
        let Some(mut folders) = Folders::of(git, &self.tree_by(git, tip)?, paths)? else { return Ok(None) };
        let mut trees = Vec::with_capacity(works.len());
        for work in of_works {
            work.iter().for_each(|changed| folders.put(changed));
            let Some(tree) = folders.write(self, work) else { return Ok(None) };
            trees.push(tree);
        }
        Ok(Some(trees))
    }
}

/// The changes of each commit since the base; none if one did more than change and add files.
fn changes<'a>(
    git: Git<'_>,
    base: &Oid,
    commits: impl Iterator<Item = &'a Oid>,
) -> Result<Option<Vec<Vec<Changed>>>, GitError> {
    let input: String = commits.map(|commit| format!("{commit} {base}\n")).collect();
    let words = ["diff-tree", "--stdin", "--always", "-r", "-z", "--no-renames", "--raw"];
    let printed = git.output(words, input.as_bytes())?;
    let mut all: Vec<Vec<Changed>> = Vec::new();
    let mut fields = printed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        // `:mode mode object object A`, then the path; or the commit.
        let Some(record) = field.strip_prefix(b":") else {
            all.push(Vec::new());
            continue;
        };
        let words: Vec<&[u8]> = record.split(|byte| *byte == b' ').collect();
        let ([_, mode, _, object, b"A" | b"M"], Some(path), Some(last)) =
            (&words[..], fields.next(), all.last_mut())
        else {
            return Ok(None);
        };
        let object = str::from_utf8(object).ok().and_then(|name| name.parse().ok());
        let Some(object) = object.filter(|_| FILES.contains(mode) && !path.contains(&b'\n')) else {
            return Ok(None);
        };
        last.push((path.to_vec(), mode.to_vec(), object));
    }
    Ok(Some(all).filter(|all| all.len() == input.lines().count()))
}

/// Whether no path is changed twice, and none is a folder above another.
fn are_apart(all: &[Vec<Changed>]) -> bool {
    let mut paths = BTreeSet::new();
    all.iter().flatten().all(|(path, ..)| paths.insert(path.as_slice()))
        && paths.iter().all(|path| above(path).all(|folder| !paths.contains(folder)))
}

/// The folders above a path, the innermost first; not the root.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    ends.map(|(end, _)| &path[..end])
}

/// The folder that a path is in, empty for the root, and its name there.
fn placed(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(end) => (&path[..end], &path[end + 1..]),
        None => (&[], path),
    }
}

/// The folders that changed paths are in, and those above them.
struct Folders(BTreeMap<Vec<u8>, Entries>);

impl Folders {
    /// The folders of a tree, missing ones empty; none if something else is in the place of one.
    fn of<'p>(
        git: Git<'_>,
        tree: &Oid,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Option<Self>, GitError> {
        let mut wanted: BTreeSet<&[u8]> = BTreeSet::from([&[][..]]);
        wanted.extend(paths.flat_map(above));
        let name = |folder: &&[u8]| [tree.as_str().as_bytes(), b":", folder, b"\n"].concat();
        let input: Vec<u8> = wanted.iter().flat_map(name).collect();
        let printed = git.output(["cat-file", "--buffer", "--batch=%(objecttype) %(objectsize)"], &input)?;
        let (mut rest, mut folders) = (printed.as_slice(), BTreeMap::new());
        for folder in wanted {
            let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
            let (head, behind) = (&rest[..end], &rest[end + 1..]);
            if head.ends_with(b" missing") {
                rest = behind;
                folders.insert(folder.to_vec(), Entries::new());
                continue;
            }
            let size = head.strip_prefix(b"tree ").and_then(|size| str::from_utf8(size).ok()?.parse().ok());
            let content = size.and_then(|size: usize| Some((behind.get(..size)?, behind.get(size + 1..)?)));
            let Some((entries, behind)) = content.and_then(|(content, rest)| Some((read(content)?, rest)))
            else {
                return Ok(None);
            };
            rest = behind;
            folders.insert(folder.to_vec(), entries);
        }
        Ok(Some(Self(folders)))
    }

    fn put(&mut self, (path, mode, object): &Changed) {
        let (folder, name) = placed(path);
        self.0.entry(folder.to_vec()).or_default().insert(name.to_vec(), (mode.clone(), object.clone()));
    }

    /// Writes the folders above a work's changes, the innermost first, and finally the root.
    fn write(&mut self, repository: &Repository, work: &[Changed]) -> Option<Oid> {
        let mut changed: BTreeSet<&[u8]> = work.iter().flat_map(|(path, ..)| above(path)).collect();
        changed.insert(&[]);
        let mut root = None;
        // The content of a folder follows it in this order.
        for folder in changed.into_iter().rev() {
            let tree = repository.keep("tree", &written(self.0.get(folder)?)).ok()?;
            if folder.is_empty() {
                root = Some(tree);
            } else {
                let (above, name) = placed(folder);
                self.0.get_mut(above)?.insert(name.to_vec(), (FOLDER.to_vec(), tree));
            }
        }
        root
    }
}

/// Reads the entries of a tree: `mode name NUL object`.
fn read(mut content: &[u8]) -> Option<Entries> {
    let mut entries = Entries::new();
    while !content.is_empty() {
        let (head, rest) = content.split_at(memchr::memchr(0, content)?);
        let (mode, name) = head.split_at(memchr::memchr(b' ', head)?);
        let (object, rest) = rest.get(1..)?.split_at_checked(20)?;
        // Written by old tools with a leading zero: writing it again would change the name of the tree.
        if mode.starts_with(b"0") {
            return None;
        }
        let object: String = object.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.insert(name[1..].to_vec(), (mode.to_vec(), object.parse().ok()?));
        content = rest;
    }
    Some(entries)
}

/// A tree of these entries, in git's order: a folder sorts as if its name ended with a slash.
fn written(entries: &Entries) -> Vec<u8> {
    let place = |name: &[u8], mode: &[u8]| if mode == FOLDER { [name, b"/"].concat() } else { name.to_vec() };
    let mut all: Vec<_> =
        entries.iter().map(|(name, (mode, object))| (place(name, mode), name, mode, object)).collect();
    all.sort_by(|one, two| one.0.cmp(&two.0));
    let mut content = Vec::new();
    for (_, name, mode, object) in all {
        content.extend([mode.as_slice(), b" ", name, b"\0"].concat());
        let digits = object.as_str().as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap_or_default(), 16);
        content.extend(digits.filter_map(|pair| byte(pair).ok()));
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_apart_that_change_different_files() {
        let work = |paths: &[&str]| {
            let object: Oid = "a".repeat(40).parse().unwrap();
            let change = |path: &&str| (path.as_bytes().to_vec(), FILES[0].to_vec(), object.clone());
            paths.iter().map(change).collect::<Vec<_>>()
        };
        for (one, two, are) in [
            (&["src/a", "b"][..], &["src/b"][..], true),
            (&["src/a"], &["src/a"], false),
            (&["src"], &["src/a"], false),
            (&["src/a/b"], &["src/a"], false),
            (&["src/a"], &["src/a.rs", "src-a"], true),
            (&[], &["a"], true),
        ] {
            assert_eq!(are_apart(&[work(one), work(two)]), are, "{one:?} {two:?}");
            assert_eq!(are_apart(&[work(two), work(one)]), are, "{two:?} {one:?}");
        }
    }

    #[test]
    fn a_tree_is_read_and_written_in_gits_order() {
        let object: Oid = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
        let mut entries = Entries::new();
        for (name, mode) in [("a", FOLDER), ("a.b", FILES[0]), ("a0", FILES[1])] {
            entries.insert(name.into(), (mode.to_vec(), object.clone()));
        }
        let content = written(&entries);
        let at = |name: &[u8]| memchr::memmem::find(&content, name).unwrap();
        assert!(at(b" a.b\0") < at(b" a\0") && at(b" a\0") < at(b" a0\0"));
        assert_eq!(read(&content), Some(entries));
        assert_eq!(read(&content[..content.len() - 1]), None);
    }
}
