//! Merging without a checkout: the tree of three commits, or in a conflict, the conflicting paths and a tree with
//! git's markers. Only objects are written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use camino::Utf8Path;
use refrain_core::git::{Conflict, ConflictKind, Oid, RepoPath};
use refrain_core::text::cut_middle;

use crate::Cancel;
use crate::candidate::stage;
use crate::commit::message::OWN_IDENTITY;
use crate::error::GitError;
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::git::{Git, oid, said};
use crate::plumbing::index::unlock_private;
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

/// The style of conflict markers: with the common base, which shows what each side changed.
const SETTINGS: &[&str] = &["-c", "merge.conflictStyle=diff3"];

/// Lines of what [`Repository::merge`] wrote in a conflict, as a pattern of `git diff-tree`.
const MARKED: &str = "-G^(<{7,}|[|]{7,}|>{7,}) [0-9a-f]{7,}";

#[derive(Clone, Copy, Debug)]
pub struct MergeRequest<'a> {
    /// The commit that the work began at. It is given and not searched in the history: commits below the work may
    /// have been removed from the line since, and would come back with it.
    pub base: &'a Oid,
    pub tip: &'a Oid,
    pub work: &'a Oid,
    /// Paths that are never part of the work: they stay as the tip has them.
    pub except: &'a [RepoPath],
    pub index: &'a Utf8Path,
    pub cancel: Option<&'a Cancel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    /// The merge has no conflict.
    Clean { tree: Oid },
    Conflict {
        /// The tree with git's conflict markers.
        tree: Oid,
        conflicts: Vec<Conflict>,
    },
}

impl Repository {
    /// Merges the changes of a work since its base onto a tip. It may be repeated with the same result.
    pub fn merge(&self, request: MergeRequest<'_>) -> Result<MergeResult, GitError> {
        let git = self.git().until(request.cancel);
        let MergeRequest { base, tip, work, except, .. } = request;
        if except.is_empty() {
            return self.merge_trees(git, base, (tip, work));
        }
        let objects = VerifiedObjects::of(self, git, &[base, tip, work])?;
        let here = objects.apply(git).without_fetching();
        let without = self.without(here, request)?;
        self.merge_verified(&objects, here, base, (tip, without.as_ref().unwrap_or(work)))
    }

    /// Merges the changes between `base` and `work` onto `tip`, with the tip's attributes.
    pub(crate) fn merge_trees(
        &self,
        git: Git<'_>,
        base: &Oid,
        (tip, work): (&Oid, &Oid),
    ) -> Result<MergeResult, GitError> {
        if base == tip {
            self.verify_tree(work, None)?;
            return Ok(MergeResult::Clean { tree: self.tree_by(git, work)? });
        }
        let objects = VerifiedObjects::of(self, git, &[base, tip, work])?;
        self.merge_verified(&objects, objects.apply(git).without_fetching(), base, (tip, work))
    }

    /// The same with objects that were verified, in `git`: a file that is merged of others gets a name of its own, whatever
    /// the others contain.
    fn merge_verified(
        &self,
        objects: &VerifiedObjects,
        git: Git<'_>,
        base: &Oid,
        (tip, work): (&Oid, &Oid),
    ) -> Result<MergeResult, GitError> {
        let attributes = AttributesFolder::of(git, tip)?;
        let (tip, work) = (on_base(git, base, tip)?, on_base(git, base, work)?);
        let words = ["merge-tree", "--write-tree", "-z", "--messages", tip.as_str(), work.as_str()];
        let done = attributes.apply(git, self.git_dir()).run(SETTINGS.iter().copied().chain(words), &[])?;
        let answer = || GitError::Answer {
            command: "merge-tree",
            answer: String::from_utf8_lossy(&done.stdout[..done.stdout.len().min(200)]).into_owned(),
        };
        let (tree, conflicts) = match done.status.code() {
            Some(0 | 1) => parse(&done.stdout).ok_or_else(answer)?,
            _ => return Err(GitError::Failed { command: "git merge-tree".to_owned(), said: said(&done) }),
        };
        objects.give(self, git)?;
        match done.status.success() {
            true => Ok(MergeResult::Clean { tree }),
            false => Ok(MergeResult::Conflict { tree, conflicts }),
        }
    }

    /// The work as a commit that leaves the excepted paths unchanged; none if it does so already.
    fn without(&self, git: Git<'_>, request: MergeRequest<'_>) -> Result<Option<Oid>, GitError> {
        let MergeRequest { base, work, except, index, .. } = request;
        if except.is_empty() {
            return Ok(None);
        }
        let words = ["--literal-pathspecs", "diff-tree", "-r", "-z", "--no-renames", "--raw"];
        // From the work back to its base.
        let args = words.into_iter().chain([work.as_str(), base.as_str(), "--"]).map(OsString::from);
        let printed = git.output(args.chain(paths(except)), &[])?;
        let changes = stage::Change::all(&printed);
        if changes.is_empty() {
            return Ok(None);
        }
        unlock_private(index)?;
        let git = git.with_index(index);
        git.output(["read-tree", work.as_str()], &[])?;
        let lines: Vec<u8> = changes.iter().flat_map(stage::Change::line).collect();
        stage::put(git, &lines)?;
        let tree = oid("write-tree", &git.text(["write-tree", "--missing-ok"], &[])?)?;
        let args = OWN_IDENTITY.iter().copied().chain(["commit-tree", tree.as_str(), "-p", base.as_str()]);
        oid("commit-tree", &git.text(args, b"Work without what is no part of it\n")?).map(Some)
    }

    /// The commit on which `work` is based: `began`, unless the branch was reset to an earlier commit. Compared with
    /// `began`, the work would then revert the commits in between.
    /// Errors: [`GitError::Unrelated`] if the two have no common ancestor; [`GitError`] if git cannot be run, and
    /// [`GitError::Cancelled`].
    pub fn stands_on(&self, began: &Oid, work: &Oid, cancel: Option<&Cancel>) -> Result<Oid, GitError> {
        if began == work {
            return Ok(began.clone());
        }
        let base = self.merge_base(self.git().until(cancel), began, work)?;
        base.ok_or_else(|| GitError::Unrelated { began: began.clone(), work: work.clone() })
    }

    /// The best common ancestor of two commits, as the commits between say, each of which is what its name says; none if there
    /// is no common ancestor.
    /// Errors: [`GitError::ForgedObject`] if one is not; [`GitError`] if git fails, or is cancelled.
    pub(crate) fn merge_base(&self, git: Git<'_>, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let ask = |git: Git<'_>| {
            let done = git.run(["merge-base", "--all", one.as_str(), other.as_str()], &[])?;
            match done.status.code() {
                Some(0 | 1) => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
                _ => Err(GitError::Failed { command: "git merge-base".to_owned(), said: said(&done) }),
            }
        };
        let Some(base) = ask(git)?.lines().next().map(|base| oid("merge-base", base)).transpose()? else {
            return Ok(None);
        };
        let objects = VerifiedObjects::histories(self, git, (one, other), &base)?;
        match ask(objects.apply(git).without_fetching())?.lines().any(|line| line == base.as_str()) {
            true => Ok(Some(base)),
            false => Err(GitError::ForgedObject(base.to_string())),
        }
    }

    /// The works, each given with its start, that changed one of these paths.
    pub fn touching(
        &self,
        works: &[(&Oid, &Oid)],
        paths_of: &[RepoPath],
        cancel: Option<&Cancel>,
    ) -> Result<Vec<Oid>, GitError> {
        if works.is_empty() || paths_of.is_empty() {
            return Ok(Vec::new());
        }
        // The first is compared with the second, as if the second were its parent.
        let input: String = works.iter().map(|(work, base)| format!("{work} {base}\n")).collect();
        let words =
            ["--literal-pathspecs", "diff-tree", "--stdin", "-r", "-z", "--no-renames", "--name-only", "--"];
        let args = words.into_iter().map(OsString::from).chain(paths(paths_of));
        let printed = Git::output(self.git().until(cancel), args, input.as_bytes())?;
        let names =
            printed.split(|byte| *byte == 0).filter_map(|name| str::from_utf8(name).ok()?.parse().ok());
        // A path may look like the name of a commit.
        Ok(names.filter(|name| works.iter().any(|(work, _)| *work == name)).collect())
    }

    /// The changes of both sides to these paths since `base`, as two diffs, each cut in its middle if it is longer
    /// than half of `most` bytes.
    pub fn both_sides(
        &self,
        base: &Oid,
        (ours, theirs): (&Oid, &Oid),
        paths_of: &[RepoPath],
        most: usize,
    ) -> Result<(String, String), GitError> {
        let side = |of: &Oid| -> Result<String, GitError> {
            let words = ["--literal-pathspecs", "diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv"];
            let words = words.into_iter().chain(["--find-renames", base.as_str(), of.as_str(), "--"]);
            let printed = self.git().output(words.map(OsString::from).chain(paths(paths_of)), &[])?;
            let text = String::from_utf8_lossy(&printed);
            Ok(cut_middle(text.trim_end_matches('\n'), most / 2).into_owned())
        };
        Ok((side(ours)?, side(theirs)?))
    }

    /// The paths in which a tree has conflict markers of [`Repository::merge`] that `tip` does not have, be it a single
    /// one: those whose label names a commit of this repository. What a person or an agent writes about merges is none of
    /// them, nor is a line of `=`, which has no label.
    pub fn with_markers(
        &self,
        tip: &Oid,
        tree: &Oid,
        cancel: Option<&Cancel>,
    ) -> Result<Vec<RepoPath>, GitError> {
        let git = self.git().until(cancel);
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=d", "--text"];
        let words = words.into_iter().chain(["--no-ext-diff", "--no-textconv", MARKED, tip.as_str()]);
        let printed = git.output(words.chain([tree.as_str()]), &[])?;
        let is_commit = |label: &str| -> Result<bool, GitError> {
            let name = format!("{label}^{{commit}}");
            Ok(git.run(["cat-file", "-e", name.as_str()], &[])?.status.success())
        };
        let mut found = Vec::new();
        for path in printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let name = [tree.as_str().as_bytes(), b":", path].concat();
            let done = git.run(["cat-file".into(), "blob".into(), OsString::from_vec(name)], &[])?;
            if !done.status.success() {
                continue;
            }
            for label in labels(&done.stdout) {
                if is_commit(label)? {
                    found.push(RepoPath::from_bytes(path));
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// The commit as one whose only parent is `base`: git then merges from there (its `--merge-base` is newer than 2.38). No
/// reference points to it.
fn on_base(git: Git<'_>, base: &Oid, commit: &Oid) -> Result<Oid, GitError> {
    let asked = git.text(["rev-parse", &format!("{commit}^{{tree}}"), &format!("{commit}^@")], &[])?;
    let (tree, parents) = asked.split_once('\n').unwrap_or((&asked, ""));
    if commit == base || parents == base.as_str() {
        return Ok(commit.clone());
    }
    let who = "Refrain <refrain@localhost> 0 +0000";
    let object = format!(
        "tree {tree}\nparent {base}\nauthor {who}\ncommitter {who}\n\nThe files of {commit}, for a merge\n"
    );
    oid("hash-object", &git.text(["hash-object", "-t", "commit", "-w", "--stdin"], object.as_bytes())?)
}

fn paths(paths: &[RepoPath]) -> impl Iterator<Item = OsString> {
    paths.iter().map(|path| OsString::from_vec(path.to_bytes()))
}

/// Reads `tree NUL (mode object stage TAB path NUL)* NUL (count NUL (path NUL){count} kind NUL text NUL)*`; a clean
/// merge may end after the tree.
fn parse(printed: &[u8]) -> Option<(Oid, Vec<Conflict>)> {
    let mut fields = printed.split(|byte| *byte == 0);
    let tree = str::from_utf8(fields.next()?).ok()?.trim_end().parse().ok()?;
    let mut kinds = BTreeMap::new();
    for field in fields.by_ref().take_while(|field| !field.is_empty()) {
        let path = field.splitn(2, |byte| *byte == b'\t').nth(1)?;
        kinds.insert(RepoPath::from_bytes(path), None);
    }
    while let Some(count) = fields.next().filter(|count| !count.is_empty()) {
        let number = str::from_utf8(count).ok().and_then(|count| count.parse().ok());
        let Some(count) = number else {
            // An older git ends with advice about submodules, and no NUL.
            return fields.next().is_none().then(|| (tree, listed(kinds)));
        };
        let about: Vec<RepoPath> = fields.by_ref().take(count).map(RepoPath::from_bytes).collect();
        let (kind, text) = (str::from_utf8(fields.next()?).ok()?, fields.next()?);
        let Some(kind) = kind_of(kind, text) else { continue };
        // A conflict without a path of its own in the list is reported under the first path that git names.
        let known: Vec<_> = about.iter().filter(|path| kinds.contains_key(*path)).collect();
        let of = if known.is_empty() { about.first().into_iter().collect() } else { known };
        for path in of.into_iter().cloned().collect::<Vec<_>>() {
            kinds.entry(path).or_insert(None).get_or_insert(kind);
        }
    }
    Some((tree, listed(kinds)))
}

fn listed(kinds: BTreeMap<RepoPath, Option<ConflictKind>>) -> Vec<Conflict> {
    let conflict =
        |(path, kind): (RepoPath, Option<_>)| Conflict { path, kind: kind.unwrap_or(ConflictKind::Other) };
    kinds.into_iter().map(conflict).collect()
}

/// The kind of conflict in a message of git; none if it reports no conflict. Its kinds are stable
/// (git-merge-tree(1)).
fn kind_of(kind: &str, text: &[u8]) -> Option<ConflictKind> {
    let about = kind.strip_prefix("CONFLICT (")?.trim_end_matches(')');
    Some(match about {
        "contents" if text.starts_with(b"warning: Cannot merge binary") => ConflictKind::Binary,
        "contents" => ConflictKind::Content,
        "binary" => ConflictKind::Binary,
        "modify/delete" => ConflictKind::Deleted,
        "file/directory" => ConflictKind::Folder,
        "distinct types" | "distinct modes" => ConflictKind::Type,
        about if about.contains("rename") => ConflictKind::Renamed,
        about if about.contains("submodule") => ConflictKind::Submodule,
        _ => ConflictKind::Other,
    })
}

/// The commits in the labels of the markers that [`Repository::merge`] wrote into a text: it gives git the full names of
/// both sides, and git shortens that of the base. A path may follow the name.
fn labels(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let sign = *line.first().filter(|sign| b"<|>".contains(sign))?;
        let length = line.iter().take_while(|byte| **byte == sign).count();
        let label = line[length..].strip_suffix(b"\r").unwrap_or(&line[length..]).strip_prefix(b" ")?;
        let name = str::from_utf8(label.split(|byte| *byte == b':').next()?).ok()?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_hexdigit()) && (7..=64).contains(&name.len());
        (length >= 7 && is_name && (sign == b'|' || name.parse::<Oid>().is_ok())).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_marker_has_the_name_of_a_commit_as_label() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let marked = format!("a\n<<<<<<< {one}\nx\n||||||| d1c3216\n=======\ny\n>>>>>>> {two}\nb\n");
        let all = [&*one, "d1c3216", &*two];
        for (text, expected) in [
            (marked.clone(), &all[..]),
            (marked.replace('\n', "\r\n"), &all),
            (marked.replace("<<<<<<<", "<<<<<<<<<").replace("|||||||", "|||||||||"), &all),
            (format!("<<<<<<< {one}:a b\n=======\n>>>>>>> {two}:c\n"), &[&one, &two]),
            (format!("<<<<<<< {one}\nx\n"), &all[..1]),
            ("base\ntwo\n||||||| d1c3216\none\n".to_owned(), &all[1..2]),
            (format!("x\n>>>>>>> {two}"), &all[2..]),
            ("Title\n=======\n".to_owned(), &[]),
            ("<<<<<<< HEAD\na\n||||||| base\n=======\nb\n>>>>>>> topic\n".to_owned(), &[]),
            ("<<<<<<< d1c3216\n>>>>>>> d1c3216\n".to_owned(), &[]),
            (format!("<<<<<< {one}\n<<<<<<<{one}\n||||||| 0\n"), &[]),
            (marked.replace('\n', "\n "), &[]),
            (String::new(), &[]),
        ] {
            assert_eq!(labels(text.as_bytes()).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn the_output_of_a_merge_is_parsed() {
        let tree = "a".repeat(40);
        let clean = format!("{tree}\0");
        assert_eq!(parse(clean.as_bytes()).unwrap().1, []);
        let entry = |stage, path| format!("100644 {tree} {stage}\t{path}\0");
        let said = [
            format!("{tree}\0"),
            entry(1, "f"),
            entry(2, "f"),
            entry(1, "a b\nc"),
            "\0".to_owned(),
            "1\0f\0Auto-merging\0Auto-merging f\n\0".to_owned(),
            "1\0f\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in f\n\0".to_owned(),
            "2\0a b\nc\0old\0CONFLICT (rename/delete)\0CONFLICT …\n\0".to_owned(),
            "2\0split\0other\0CONFLICT (directory rename unclear split)\0CONFLICT …\n\0".to_owned(),
        ];
        let (_, conflicts) = parse(said.concat().as_bytes()).unwrap();
        let found: Vec<_> = conflicts.iter().map(|it| (it.path.as_str(), it.kind)).collect();
        let expected = [
            ("a b\nc", ConflictKind::Renamed),
            ("f", ConflictKind::Content),
            ("split", ConflictKind::Renamed),
        ];
        assert_eq!(found, expected);
        let advised = format!("{}Please merge by hand.\n", said.concat());
        assert_eq!(parse(advised.as_bytes()).unwrap().1.len(), 3);
        for bad in ["", "tree\0", &format!("{tree}\0no tab\0\0"), &format!("{tree}\0\0no count\0f\0")] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
