//! Compares the history with a loop's last look: its own commit if that was not recorded, the agent's commits, and
//! whether commits were removed.

use refrain_core::LoopId;
use refrain_core::git::Oid;

use crate::error::GitError;
use crate::plumbing::git::Git;

pub(crate) const LOOP: &str = "Refrain-Loop";
pub(crate) const ITERATION: &str = "Refrain-Iteration";

/// A mark, the commit, its tree, its parents, and its loop and iteration, with a NUL at the end.
const FORMAT: &str = "--format=%m%n%H%n%T%n%P%n%(trailers:key=Refrain-Loop,valueonly,separator=%x2C)%n\
                      %(trailers:key=Refrain-Iteration,valueonly,separator=%x2C)%x00";

/// How far back the history is read. An agent that adds more in one iteration has imported a history.
const MOST: &str = "--max-count=1000";

/// The differences between two states of the history.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Since {
    pub(crate) ours: Option<CommitAndTree>,
    /// Commits made by the agent itself, which belong to no loop, oldest first.
    pub(crate) by_agent: Vec<Oid>,
    /// The former head, if it is missing now.
    pub(crate) lost: Option<Oid>,
}

/// The loop and iteration whose commits are searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitOwner<'a> {
    pub(crate) id: &'a LoopId,
    pub(crate) iteration: u32,
    /// The intended parent of this iteration's commit, if recorded. A commit with its trailers on another parent is
    /// the agent's: an agent that reads the log can copy the trailers.
    pub(crate) intended: Option<&'a Intent>,
}

/// The intended parent of a commit; none for the first commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) parent: Option<Oid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitAndTree {
    pub(crate) commit: Oid,
    pub(crate) tree: Oid,
}

/// Reads the commits between `last` and `head`.
pub(crate) fn since(
    git: Git<'_>,
    last: Option<&Oid>,
    head: Option<&Oid>,
    whose: CommitOwner<'_>,
) -> Result<Since, GitError> {
    let Some(head) = head.filter(|head| last != Some(head)) else {
        return Ok(Since { lost: last.filter(|_| head.is_none()).cloned(), ..Since::default() });
    };
    let range = last.map_or_else(|| head.to_string(), |last| format!("{last}...{head}"));
    let list = ["rev-list", "--no-commit-header", "--left-right", "--reverse", "--topo-order", MOST, FORMAT];
    let done = git.run(list.into_iter().chain([range.as_str(), "--"]), &[])?;
    if !done.status.success() {
        // The commit of the last look no longer exists.
        return Ok(Since { lost: last.cloned(), ..Since::default() });
    }
    let mut since = Since::default();
    for record in done.stdout.split(|byte| *byte == 0) {
        let record = String::from_utf8_lossy(record);
        let mut lines = record.trim_start_matches('\n').split('\n');
        let (Some(mark), Some(commit), Some(tree), Some(parents)) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            continue;
        };
        let (Ok(commit), Ok(tree)) = (commit.parse(), tree.parse()) else { continue };
        let is_intended =
            |intent: &Intent| parents == intent.parent.as_ref().map(Oid::as_str).unwrap_or_default();
        if mark == "<" {
            since.lost = last.cloned();
        } else if lines.next() != Some(whose.id.as_str()) {
            since.by_agent.push(commit);
        } else if lines.next() == Some(whose.iteration.to_string().as_str()) {
            if whose.intended.is_some_and(is_intended) {
                since.ours = Some(CommitAndTree { commit, tree });
            } else {
                since.by_agent.push(commit);
            }
        }
    }
    Ok(since)
}
