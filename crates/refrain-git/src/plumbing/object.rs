//! Commits as objects, and the names that git gives to contents.

use std::io::{self, Read};

use refrain_core::git::Oid;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::error::GitError;
use crate::plumbing::git::{Git, oid, said};
use crate::repository::Repository;

/// How much of a file is read at a time, in bytes.
const PART: usize = 64 << 10;

#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) tree: &'a Oid,
    pub(crate) parents: &'a [&'a Oid],
    pub(crate) message: &'a str,
    pub(crate) is_signed: bool,
}

impl Repository {
    /// Adds a commit without a reference; or returns git's message if that fails.
    pub(crate) fn add_commit(
        &self,
        git: Git<'_>,
        object: Object<'_>,
    ) -> Result<Result<Oid, String>, GitError> {
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
        oid("commit-tree", &String::from_utf8_lossy(&done.stdout)).map(Ok)
    }
}

/// Whether the objects of a repository with an object of this name have SHA-1 names, which we can compute.
pub(crate) fn is_sha1(object: &Oid) -> bool {
    object.as_str().len() == 40
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

fn oid_of(sum: impl Digest) -> Option<Oid> {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().parse().ok()
}

pub(crate) fn name_of(object: &[&[u8]]) -> Option<Oid> {
    let mut sum = Sha1::new();
    object.iter().for_each(|part| sum.update(part));
    oid_of(sum)
}

/// Whether an object has this name, by SHA-1 or SHA-256.
pub(crate) fn is_named(name: &Oid, object: &[&[u8]]) -> bool {
    let by_hash = if is_sha1(name) {
        name_of(object)
    } else {
        oid_of(object.iter().fold(Sha256::new(), Digest::chain_update))
    };
    by_hash.as_ref() == Some(name)
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
