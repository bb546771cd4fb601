//! Commits written without git: an object is a file named after its content (gitformat-loose(5)), so there is nothing
//! to decide about it. Only git knows the committer and their zone: they are read from the last commit that git made
//! here. Git is asked if there is none yet, the configuration has changed, or the clocks may have been set.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use miniz_oxide::deflate::compress_to_vec_zlib;
use refrain_core::git::Oid;
use sha1::{Digest, Sha1};

use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::committer::{Last, Signature};
use crate::plumbing::git::{Git, oid, said};
use crate::plumbing::index::is_summed_by_us;
use crate::plumbing::object_cache::Head;
use crate::plumbing::parts::Parts;
use crate::repository::Repository;

/// How much of a file is read at a time, in bytes.
const PART: usize = 64 << 10;

/// How long a zone is valid, in seconds: every change of a zone happens at a quarter of an hour.
const QUARTER: u64 = 15 * 60;

/// The compression level of objects: git's default.
const LEVEL: u8 = 6;

/// The variables that set the time of a commit.
const WHEN: [&str; 2] = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"];

#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) tree: &'a Oid,
    pub(crate) parents: &'a [&'a Oid],
    pub(crate) message: &'a str,
    pub(crate) is_signed: bool,
}

impl Repository {
    /// Asks git for the committer ahead of time, so that several simultaneous commits need not ask.
    pub fn prepare_commits(&self) -> Result<(), GitError> {
        let (git, quarter) = (self.git(), now() / QUARTER);
        let is_asked = configured(self, git, |it| {
            let is_known = matches!(it.last, Last::Says(_, then) if then == quarter);
            it.is_usual && it.is_unsigned() && !is_known
        })?;
        if is_asked {
            let ident = |name| git.text(["var", name], &[]);
            let (author, committer) = (ident("GIT_AUTHOR_IDENT")?, ident("GIT_COMMITTER_IDENT")?);
            if let Some(who) = Signature::of(format!("author {author}\ncommitter {committer}\n\n").as_bytes())
            {
                configured(self, git, |configured| configured.last = Last::Says(who, quarter))?;
            }
        }
        Ok(())
    }

    /// Adds a commit without a reference; or returns git's message if that fails.
    pub(crate) fn add_commit(
        &self,
        git: Git<'_>,
        object: Object<'_>,
    ) -> Result<Result<Oid, String>, GitError> {
        let commit = match self.own_commit(git, object)? {
            Some(commit) => commit,
            None => match self.commit_tree(git, object)? {
                Ok(commit) => commit,
                Err(said) => return Ok(Err(said)),
            },
        };
        let parents = object.parents.iter().copied().cloned().collect();
        self.known().learn(&commit, Head { tree: object.tree.clone(), parents });
        Ok(Ok(commit))
    }

    fn commit_tree(&self, git: Git<'_>, object: Object<'_>) -> Result<Result<Oid, String>, GitError> {
        let Object { tree, parents, message, is_signed } = object;
        let mut args = vec!["commit-tree", tree.as_str()];
        args.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
        if is_signed {
            args.push("-S");
        }
        args.extend(["-F", "-"]);
        let done = Git::run(git, args, message.as_bytes())?;
        if !done.status.success() {
            return Ok(Err(said(&done)));
        }
        let commit = oid("commit-tree", &String::from_utf8_lossy(&done.stdout))?;
        if !is_signed {
            let last = Last::Made(commit.clone(), now() / QUARTER);
            configured(self, git, |configured| configured.last = last)?;
        }
        Ok(Ok(commit))
    }

    /// Adds it without git, if git's result is known in advance.
    fn own_commit(&self, git: Git<'_>, object: Object<'_>) -> Result<Option<Oid>, GitError> {
        if object.is_signed
            || !is_summed_by_us(object.tree)
            || object.message.contains('\0')
            || self.env().iter().any(|(name, _)| name.to_str().is_some_and(|name| WHEN.contains(&name)))
        {
            return Ok(None);
        }
        let now = now();
        let last = configured(self, git, |it| it.is_usual.then(|| it.last.clone()))?;
        let who = match last {
            Some(Last::Says(who, quarter)) if quarter == now / QUARTER => who,
            Some(Last::Made(commit, quarter)) if quarter == now / QUARTER => {
                let Some(who) = Signature::of(&Parts::of(git, &commit)?.rest) else { return Ok(None) };
                let last = Last::Says(who.clone(), quarter);
                configured(self, git, |configured| configured.last = last)?;
                who
            }
            Some(Last::Says(..) | Last::Made(..) | Last::Unknown) | None => return Ok(None),
        };
        let parents: String = object.parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let Signature { author, committer, zone } = who;
        let who = format!("{author} {now} {zone}\n{committer} {now} {zone}\n");
        let content = format!("tree {}\n{parents}{who}\n{}", object.tree, object.message);
        // Any error is ignored here: git runs into it again and reports it better.
        Ok(self.keep("commit", content.as_bytes()).ok())
    }

    /// Writes an object if none has its name. It need not survive a power loss: git's own files do not either.
    pub(crate) fn keep(&self, kind: &str, content: &[u8]) -> io::Result<Oid> {
        let object = [format!("{kind} {}\0", content.len()).as_bytes(), content].concat();
        let oid = name_of(&[&object]).ok_or(ErrorKind::InvalidData)?;
        let name = oid.as_str();
        let folder = self.common_dir().join("objects").join(&name[..2]);
        let place = folder.join(&name[2..]);
        if place.exists() {
            return Ok(oid);
        }
        DirBuilder::new().recursive(true).create(&folder)?;
        // Git removes leftover files with such a name.
        let beside = folder.join(format!("tmp_obj_{}", &name[2..]));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&beside)?;
        file.write_all(&compress_to_vec_zlib(&object, LEVEL))?;
        fs::rename(&beside, &place)?;
        Ok(oid)
    }
}

/// The object name of a content in a repository with SHA-1 names; in others no object matches.
pub(crate) fn blob(content: &[u8]) -> Option<Oid> {
    name_of(&[format!("blob {}\0", content.len()).as_bytes(), content])
}

/// The same for a file of `bytes` bytes, which is not read into memory as a whole.
pub(crate) fn blob_of(mut file: impl Read, bytes: u64) -> io::Result<Option<Oid>> {
    let mut sum = Sha1::new();
    sum.update(format!("blob {bytes}\0"));
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(oid_of(sum)),
            read => sum.update(&part[..read]),
        }
    }
}

fn oid_of(sum: Sha1) -> Option<Oid> {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().parse().ok()
}

pub(crate) fn name_of(object: &[&[u8]]) -> Option<Oid> {
    let mut sum = Sha1::new();
    object.iter().for_each(|part| sum.update(part));
    oid_of(sum)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a commit says when it was made, as git has it say")]
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_has_the_name_that_git_gives_it() {
        let name = |content| blob(content).unwrap().to_string();
        assert_eq!(name(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(name(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }
}
