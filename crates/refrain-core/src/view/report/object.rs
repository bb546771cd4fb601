//! The object that `refrain report --json` prints, and that the page is made of.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{ClaimSource, Seal};
use crate::git::{Oid, OmittedPath, RepoPath};
use crate::ids::LoopId;
use crate::protect::{Part, Program};
use crate::spec::{AgentKind, Limits, Millis};
use crate::view::{Approval, Gate, Iteration, SavedWork, StatusWord, Usage};

pub const SCHEMA: u32 = 1;

/// What became of a loop, and what shows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The version of this shape.
    pub schema: u32,
    /// The loop's id.
    pub id: LoopId,
    /// Where it stands.
    pub status: StatusWord,
    /// Whether gates proved the work; null where no gate decides.
    pub verified: Option<bool>,
    /// Whether its end, and every approval, is signed with a key that the user trusts; null if it has not ended, or was made before
    /// signatures.
    pub signed: Option<bool>,
    /// The same in words; empty if there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// Why it stands where it stands, in one line.
    pub reason: String,
    /// What a person has to do or to grant for it to go on; null where nothing.
    pub needs: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When the last event happened.
    pub updated_at: Timestamp,
    /// When it stopped; null while it has not.
    pub ended_at: Option<Timestamp>,
    /// The loop's own duration: less pauses, waits and the time without a runner.
    pub active_ms: Millis,
    /// Which Refrain it was.
    pub refrain: Versions,
    /// What was asked for.
    pub asked: GoalReport,
    /// Who worked on it.
    pub agents: Vec<AgentRow>,
    /// What was in the repository before it; null where it looked at none.
    pub base: Option<BaseReport>,
    /// What its work could not touch; null where that was nothing.
    pub protected: Option<Protection>,
    /// The claim that ended it.
    pub claim: Option<ClaimMade>,
    /// What the gates said last; null where they were never asked.
    pub proof: Option<ProofReport>,
    /// The claims that were refused on the way, oldest first.
    pub refused: Vec<RefusedClaimRow>,
    /// What critics said on the way, oldest first.
    pub critiques: Vec<Critique>,
    /// Its attempts, oldest first.
    pub iterations: Vec<Iteration>,
    /// What it used.
    pub spent: UsageByRole,
    /// The commits made in it, by Refrain or by the agent, oldest first.
    pub commits: Vec<CommitMade>,
    /// What is in the worktree, is the loop's and was not committed, as of the last commit.
    pub left_out: Vec<OmittedPath>,
    /// How much more was left out than is named.
    pub left_out_more: u64,
    /// Which files it changed; null where that is not known.
    pub files: Option<Files>,
    /// Where its work is kept, as it ended without a proof; null where that was not asked for.
    pub saved: Option<SavedWork>,
    /// The journal that all this is from.
    pub journal: JournalMark,
    /// What was kept of it, each file with its hash.
    pub evidence: Vec<SealedFile>,
}

/// Versions of Refrain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Versions {
    /// The one that started the loop.
    pub started: String,
    /// The one that made this report.
    pub reported: String,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GoalReport {
    /// The person's prompt; of a very long one both ends.
    pub prompt: String,
    /// The words that claim the work done; null where none do.
    pub promise: Option<String>,
    /// The limits in force.
    pub limits: Limits,
    /// The project's name: that of its folder.
    pub project: String,
    /// The branch that the loop works on, where it commits or made it; null where the head is detached.
    pub branch: Option<String>,
}

/// An agent that made attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentRow {
    /// Which adapter runs it.
    pub kind: AgentKind,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its model, by its own word, or as it was told; null is not known.
    pub model: Option<String>,
    /// The program's version, by its own word; null is not known.
    pub version: Option<String>,
    /// How many attempts of it were seen to end.
    pub attempts: u32,
}

/// What was in the repository before the loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BaseReport {
    /// The commit; null on a branch without one.
    pub commit: Option<Oid>,
    /// Its tree; null where git does not have it any more.
    pub tree: Option<Oid>,
    /// What was changed, staged or new already: a person's, and no part of what was proven.
    pub dirty: Vec<RepoPath>,
    /// How many more there were than are named.
    pub dirty_more: u64,
}

/// What a loop's work could not touch, as it was at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Protection {
    /// Globs of paths that were to stay as they were.
    pub frozen: Vec<String>,
    /// Globs of paths that could gain files, but not change or lose them.
    pub existing: Vec<String>,
    /// Keys of manifests.
    pub parts: Vec<Part>,
    /// The tree of all that was protected; null where there was nothing, or no repository.
    pub tree: Option<Oid>,
    /// The programs that the gates look up, where they were found, and their hashes.
    pub programs: Vec<Program>,
}

/// The claim that ended a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClaimMade {
    /// Who made it.
    pub source: ClaimSource,
    /// In which iteration.
    pub iteration: u32,
    /// When.
    pub at: Timestamp,
    /// The last line that the agent said.
    pub said: String,
}

/// What the gates said of the last candidate that they were asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProofReport {
    /// The candidate's tree; null where there is no repository.
    pub tree: Option<Oid>,
    /// Behind which iteration it was taken; 0 is before the first.
    pub iteration: u32,
    /// The loop changed something that the tree does not show.
    pub partial: bool,
    /// The gates were asked about a checkout of that tree elsewhere, and not about the worktree.
    pub clean_checkout: bool,
    /// Gates or commit hooks changed the candidate each time.
    pub restless: bool,
    /// Protected paths and parts that were touched: no claim counts while there are any.
    pub touched: Vec<String>,
    /// A person's answer to it, asked for last of all; left out if no person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The last result of each gate.
    pub gates: Vec<GateProof>,
}

/// What one gate said, and where that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GateProof {
    /// The result.
    #[serde(flatten)]
    pub gate: Gate,
    /// Behind which iteration it ran; 0 is before the first.
    pub iteration: u32,
    /// Which of its runs there.
    pub run: u32,
    /// All that it printed.
    pub log: Log,
}

/// A kept log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Log {
    /// Where it lies, from the loop's folder on.
    pub path: String,
    /// Its length and hash when it was whole; null where it was not sealed.
    pub seal: Option<Seal>,
    /// The last lines of it; null where it is not there any more.
    pub end: Option<String>,
}

/// A claim that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedClaimRow {
    /// In which iteration it was made.
    pub iteration: u32,
    /// Who made it.
    pub source: ClaimSource,
    /// When.
    pub at: Timestamp,
    /// Why it did not count.
    pub why: Vec<String>,
}

/// What a critic said of the progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Critique {
    /// Behind which iteration.
    pub iteration: u32,
    /// What it said to the agent; null where it said nothing of use.
    pub feedback: Option<String>,
    /// Why it said nothing of use.
    pub error: Option<String>,
}

/// What was used, and by whom. Unknown is null, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct UsageByRole {
    /// By all together.
    pub total: Usage,
    /// By the agents that did the work.
    pub workers: Usage,
    /// By reviewers that are gates.
    pub reviewers: Usage,
    /// By critics.
    pub critics: Usage,
}

/// A commit that was made in the loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitMade {
    /// The commit.
    pub commit: Oid,
    /// Its tree; null of one that the agent made by itself.
    pub tree: Option<Oid>,
    /// Behind which iteration.
    pub iteration: u32,
    /// Whether the agent made it by itself.
    pub by_agent: bool,
}

/// Which files a loop changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Files {
    /// The tree of what was there before; null is an empty one.
    pub from: Option<Oid>,
    /// The tree that was proven, else the last that the gates saw, else that of the last commit.
    pub to: Oid,
    /// The files, in the order of their paths.
    pub changed: Vec<FileChange>,
    /// How many more changed than are named.
    pub more: u64,
}

impl Files {
    /// How many are named: a page with thousands of rows is not readable.
    pub const NAMED: usize = 1000;
}

/// A file that differs. A rename is a deletion and an addition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileChange {
    /// Which.
    pub path: RepoPath,
    /// What happened to it.
    pub change: Change,
    /// Lines that are new; null of a file that has no lines.
    pub added: Option<u64>,
    /// Lines that are gone; null of a file that has no lines.
    pub removed: Option<u64>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is new.
    Added,
    /// It is another than it was, or has another mode.
    Modified,
    /// It became a link, or no link any more.
    Retyped,
    /// It is gone.
    Deleted,
}

/// The journal as it was when the report was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalMark {
    /// How many records it had.
    pub records: u64,
    /// The hash of the last of them, which is that of all in front of it.
    pub hash: String,
}

/// A file that was kept, as it was when it was whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SealedFile {
    /// Where it lies, from the loop's folder on.
    pub path: String,
    /// Its length and its hash.
    pub seal: Seal,
}
