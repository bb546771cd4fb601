//! What the core knows of a loop's repository: what was there before the loop (its [`Base`]), what each iteration added,
//! and what was left out of a commit and why. How git is asked lives in `refrain-git`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::LoopId;

/// What a loop does with git (contract.md, `--git-workflow`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workflow {
    /// Nothing.
    #[default]
    None,
    /// A commit of the loop's own changes behind each iteration that is charged.
    Commit,
}

/// Where a loop works in its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checkout {
    /// In the worktree that it was started in, on whatever is checked out there.
    #[default]
    AsIs,
    /// In that worktree, on a new branch from what is checked out there (`--create-branch`).
    Branch(String),
    /// In a worktree of its own, on a new branch (`--worktree`).
    Worktree {
        /// The new branch.
        branch: String,
        /// What it begins at, as the person gave it: a branch, a tag, a commit; `HEAD` of the worktree started in.
        from: String,
    },
}

/// A loop's use of git, as pinned at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitSpec {
    /// What is done behind each iteration.
    pub workflow: Workflow,
    /// Where the loop works.
    #[serde(default)]
    pub checkout: Checkout,
    /// Other loops may work in the same worktree at the same time, whatever that does to its commits (`--share-worktree`).
    #[serde(default)]
    pub shared: bool,
    /// The message of its commits.
    #[serde(default)]
    pub commit_template: Template,
    /// The largest file that is committed, in bytes.
    #[serde(default = "largest_file")]
    pub largest_file: u64,
}

/// The largest file that is committed unless configured: 10 MiB. What is larger was built or downloaded.
#[must_use]
pub fn largest_file() -> u64 {
    10 << 20
}

impl GitSpec {
    /// Whether the loop needs its worktree for itself.
    #[must_use]
    pub fn needs_worktree_alone(&self) -> bool {
        self.workflow != Workflow::None && !self.shared
    }

    /// Whether the loop needs to know what was there before it.
    #[must_use]
    pub fn needs_base(&self) -> bool {
        self.workflow != Workflow::None || self.checkout != Checkout::AsIs
    }

    /// The branch that the loop makes for itself.
    #[must_use]
    pub fn new_branch(&self) -> Option<&str> {
        match &self.checkout {
            Checkout::AsIs => None,
            Checkout::Branch(branch) | Checkout::Worktree { branch, .. } => Some(branch),
        }
    }
}

/// A text with names in braces that stand for something (seed 001, `commit_template`, `branch_template`). Names that it does
/// not know are refused when it is read, not when it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Template(String);

/// Why a text is no [`Template`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing to say.
    #[error("a template cannot be empty")]
    Empty,
    /// A name that stands for nothing.
    #[error("{{{0}}} stands for nothing; accepted are {{loop}}, {{iteration}}, {{max}} and {{timestamp}}")]
    Unknown(String),
    /// A brace that is not closed.
    #[error("a {{ is not closed in {0:?}")]
    Open(String),
}

/// What the names in a [`Template`] stand for.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    /// `{loop}`: the loop's id.
    pub id: &'a LoopId,
    /// `{iteration}`; nothing before there is one.
    pub iteration: u32,
    /// `{max}`: the cap.
    pub max: Option<u32>,
    /// `{timestamp}`: now, as it can stand in the name of a branch, `20261121-173000`.
    pub timestamp: &'a str,
}

impl Template {
    /// The default of `--commit-template`.
    pub const COMMIT: &'static str = "loop: iteration {iteration}";
    /// The default of `--branch-template`.
    pub const BRANCH: &'static str = "loop/{timestamp}";

    /// The text with everything filled in.
    #[must_use]
    pub fn fill(&self, with: Fill<'_>) -> String {
        let mut text = String::new();
        for piece in pieces(&self.0) {
            match piece {
                Ok(Piece::Text(words)) => text.push_str(words),
                Ok(Piece::Name(Name::Loop)) => text.push_str(with.id.as_str()),
                Ok(Piece::Name(Name::Iteration)) => text.push_str(&with.iteration.to_string()),
                Ok(Piece::Name(Name::Max)) => {
                    text.push_str(&with.max.map_or_else(|| "∞".to_owned(), |max| max.to_string()));
                }
                Ok(Piece::Name(Name::Timestamp)) => text.push_str(with.timestamp),
                // It was read once.
                Err(_) => {}
            }
        }
        text
    }
}

impl Default for Template {
    fn default() -> Self {
        Self(Self::COMMIT.to_owned())
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        pieces(text).find_map(Result::err).map_or_else(|| Ok(Self(text.to_owned())), Err)
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.0
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

enum Piece<'a> {
    Text(&'a str),
    Name(Name),
}

enum Name {
    Loop,
    Iteration,
    Max,
    Timestamp,
}

/// What a template is made of. There is no escape: nobody needs a brace in a subject line or a branch.
fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, TemplateError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let Some(open) = rest.find('{') else {
            return (!rest.is_empty()).then(|| Ok(Piece::Text(std::mem::take(&mut rest))));
        };
        if open > 0 {
            let (words, after) = rest.split_at(open);
            rest = after;
            return Some(Ok(Piece::Text(words)));
        }
        let Some((name, after)) = rest[1..].split_once('}') else {
            rest = "";
            return Some(Err(TemplateError::Open(text.to_owned())));
        };
        rest = after;
        Some(Ok(Piece::Name(match name {
            "loop" | "id" => Name::Loop,
            "iteration" => Name::Iteration,
            "max" => Name::Max,
            "timestamp" => Name::Timestamp,
            unknown => return Some(Err(TemplateError::Unknown(unknown.to_owned()))),
        })))
    })
}

/// The name of an object: 40 or 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Oid(String);

/// A text that is no [`Oid`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of an object")]
pub struct OidError(String);

impl Oid {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As people say it.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match text.len() {
            40 | 64 if is_hex => Ok(Self(text.to_owned())),
            _ => Err(OidError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Oid {
    type Error = OidError;

    fn try_from(text: String) -> Result<Self, OidError> {
        text.parse()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path below the worktree's root, as git knows it: any bytes. As text, those that are not UTF-8, and `%`, are written
/// `%XX`, so that it can stand in a journal and be read back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RepoPath(String);

impl RepoPath {
    /// The path of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '%' => text.push_str("%25"),
                    c => text.push(c),
                }
            }
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        Self(text)
    }

    /// The bytes of the path.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            let escaped = (first == b'%').then(|| after.get(..2)).flatten();
            let escaped =
                escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
            bytes.push(escaped.unwrap_or(first));
            rest = if escaped.is_some() { &after[2..] } else { after };
        }
        bytes
    }

    /// As text, with the escapes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::printable(&self.0))
    }
}

/// What was there before the loop: everything that it adds to this is its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// What was checked out; none on a branch without a commit.
    pub head: Option<Oid>,
    /// The branch that was checked out, without `refs/heads/`; none where the head was detached.
    pub branch: Option<String>,
    /// What was changed, staged or new already. It is the person's and never becomes part of a candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirty: Vec<Dirty>,
}

/// A path that was not as the last commit had it, before the loop began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dirty {
    /// Which.
    pub path: RepoPath,
    /// What it looked like (size, time, mode): another stamp is another content. None where there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<u64>,
}

/// Something of the loop's that is not committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Which file.
    pub path: RepoPath,
    /// Why.
    pub why: Why,
}

/// Why a path is left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It was dirty before the start, and the agent changed it: nobody can tell the person's part from the agent's.
    DirtyBefore,
    /// It looks like a secret.
    Secret {
        /// Which rule says so, in words: `a GitHub token`.
        what: String,
        /// The line, from 1; none where the file's name says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
    },
    /// It is larger than what is committed.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// A repository in the repository.
    Repository,
    /// Neither a file nor a link, or one that cannot be read.
    Unreadable,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirtyBefore => f.write_str("it was changed before the loop began"),
            Self::Secret { what, line: Some(line) } => write!(f, "line {line} looks like {what}"),
            Self::Secret { what, line: None } => write!(f, "it looks like {what}"),
            Self::TooLarge { bytes } => write!(f, "it is {} MiB large", bytes.div_ceil(1 << 20)),
            Self::Repository => f.write_str("it is a repository of its own"),
            Self::Unreadable => f.write_str("it is no file that can be read"),
        }
    }
}

/// What git is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `git merge`, or conflicts that are left from one.
    Merge,
    /// `git rebase`, `git am`.
    Rebase,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        })
    }
}

/// Why an iteration is not committed. It never ends a loop; what was to be committed stays in the worktree, and the next
/// commit has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// It changed nothing that could be committed.
    Nothing,
    /// Another git holds the index lock, or died holding it.
    IndexLocked,
    /// Git is in the middle of something.
    InProgress(Operation),
    /// Another branch is checked out than the loop began on: what would end up there nobody asked for.
    OtherBranch {
        /// What is checked out now; none where the head is detached.
        now: Option<String>,
    },
    /// A hook said no.
    Hook {
        /// What it said, the end of it.
        said: String,
    },
    /// Git does not know in whose name.
    NoIdentity,
    /// Git could not do it for another reason.
    Failed {
        /// What it said, the end of it.
        said: String,
    },
}

/// What came of the attempt to commit an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitReport {
    /// The iteration.
    pub iteration: u32,
    /// The commit, or why there is none.
    pub result: CommitResult,
    /// Where the head is now; none on a branch without a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Oid>,
    /// Commits that the agent made by itself since the last report, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_agent: Vec<Oid>,
    /// Whether commits that were there at the last report are not in the history any more: a reset or a rebase.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
    /// What is in the worktree, is the loop's and is not committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A commit, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitResult {
    /// It is in the history.
    Made {
        /// The commit.
        commit: Oid,
        /// Its tree.
        tree: Oid,
    },
    /// Not this time.
    Skipped(Skipped),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(template: &str) -> String {
        let id = "mend".parse().unwrap();
        let with = Fill { id: &id, iteration: 3, max: None, timestamp: "20261121-173000" };
        template.parse::<Template>().unwrap().fill(with)
    }

    #[test]
    fn templates_say_what_their_names_stand_for() {
        for (template, text) in [
            (Template::COMMIT, "loop: iteration 3"),
            (Template::BRANCH, "loop/20261121-173000"),
            ("feat({loop}): {iteration}/{max}", "feat(mend): 3/∞"),
            ("no names }", "no names }"),
        ] {
            assert_eq!(fill(template), text);
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused_when_it_is_read() {
        for (template, complaint) in [
            (" ", "a template cannot be empty"),
            (
                "{iteratoin}",
                "{iteratoin} stands for nothing; accepted are {loop}, {iteration}, {max} and {timestamp}",
            ),
            ("a {loop", "a { is not closed in \"a {loop\""),
        ] {
            assert_eq!(template.parse::<Template>().unwrap_err().to_string(), complaint);
        }
    }

    #[test]
    fn object_names_are_hexadecimal() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(sha1.parse::<Oid>().unwrap().short(), "0123456789");
        for bad in ["", "HEAD", &sha1[1..], &sha1.to_uppercase(), &sha1.replace('0', "-")] {
            assert!(bad.parse::<Oid>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_path_of_any_bytes_comes_back(bytes: Vec<u8>) {
            let path = RepoPath::from_bytes(&bytes);
            prop_assert_eq!(path.to_bytes(), bytes);
        }
    }
}
