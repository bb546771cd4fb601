//! A commit in parts: its tree, its parents, and the rest as it was written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use refrain_core::git::Oid;

use crate::error::GitError;
use crate::plumbing::git::{Author, Git};

pub(crate) struct Parts {
    pub(crate) parent: Option<Oid>,
    /// All that follows the parents: author, committer, and the message.
    pub(crate) rest: Vec<u8>,
}

impl Parts {
    /// Reads `tree …`, the first `parent …`, and the rest without a signature, which would belong to the original
    /// commit.
    pub(crate) fn of(git: Git<'_>, commit: &Oid) -> Result<Self, GitError> {
        let bytes = git.output(["cat-file", "commit", commit.as_str()], &[])?;
        Self::parse(&bytes).ok_or_else(|| GitError::Answer {
            command: "cat-file commit",
            answer: String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned(),
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut is_commit, mut parent, mut rest, mut signature) = (false, None, Vec::new(), false);
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for line in lines.by_ref() {
            let name = |line: &[u8]| str::from_utf8(line).ok()?.trim_end().parse().ok();
            signature = line.starts_with(b"gpgsig") || (signature && line.starts_with(b" "));
            if line.starts_with(b"tree ") {
                is_commit = true;
            } else if let Some(line) = line.strip_prefix(b"parent ") {
                parent = parent.or(Some(name(line)?));
            } else if !signature {
                rest.extend_from_slice(line);
            }
            if line == b"\n" {
                break;
            }
        }
        rest.extend(lines.flatten());
        is_commit.then_some(Self { parent, rest })
    }

    pub(crate) fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let mut head = self.rest.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        head.find_map(|line| line.strip_prefix(name))
    }

    /// The author: `Name <address> seconds zone`.
    pub(crate) fn author(&self) -> Option<Author> {
        let line = self.header(b"author ")?;
        let (start, end) = (memchr::memrchr(b'<', line)?, memchr::memrchr(b'>', line)?);
        let (name, address) = (line[..start].trim_ascii(), line.get(start + 1..end)?);
        let when = [b"@", line[end + 1..].trim_ascii()].concat();
        Some(Author([name, address, &when].map(|part| OsStr::from_bytes(part).to_owned())))
    }

    /// The text after the first empty line.
    pub(crate) fn message(&self) -> &[u8] {
        let end = self.rest.windows(2).position(|pair| pair == b"\n\n");
        end.map_or(&[], |end| &self.rest[end + 2..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_taken_apart_and_loses_its_signature() {
        let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let who = "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n";
        let signed = "gpgsig -----BEGIN\n \n line\n -----END\nencoding UTF-8\n";
        let text =
            format!("tree {a}\nparent {b}\nparent {c}\n{who}{signed}\nSubject\n\ntree {c}\ngpgsig no\n");
        let parts = Parts::parse(text.as_bytes()).unwrap();
        assert_eq!(parts.parent.as_ref().unwrap().as_str(), b);
        assert_eq!(
            String::from_utf8_lossy(&parts.rest),
            format!("{who}encoding UTF-8\n\nSubject\n\ntree {c}\ngpgsig no\n")
        );
        assert_eq!(parts.message(), format!("Subject\n\ntree {c}\ngpgsig no\n").as_bytes());
        assert!(Parts::parse(b"what").is_none());
    }
}
