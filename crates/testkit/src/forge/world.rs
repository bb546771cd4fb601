//! The state and the rules of a forge. A test sets them up, and may have them change at a certain request.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::repository::Repository;

type Change = Box<dyn FnOnce(&mut World) + Send>;

/// When the server dies, relative to the effect of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Before,
    /// It is done, and its answer is cut off.
    During,
    /// It is done, and there is no answer.
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// That of an hour: until this time, in seconds since 1970.
    Primary(u64),
    /// Too much at once: for so many seconds.
    Secondary(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) branch: String,
    pub(super) base: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) draft: bool,
    pub(super) state: &'static str,
    pub(super) head: String,
    pub(super) merged_as: Option<String>,
}

pub struct World {
    pub(super) repository: Repository,
    /// The checks of each commit, in the order in which commits are first asked about; the last entry holds for all
    /// that follow. For each commit the results of the first look, the second, and so on: names, and states in
    /// GitHub's words. A name that begins with `status/` is a commit status.
    pub checks: Vec<Vec<Vec<(String, &'static str)>>>,
    pub workflows: Vec<String>,
    pub required: Vec<String>,
    /// GitHub's `reviewDecision`: `REVIEW_REQUIRED`, `CHANGES_REQUESTED`, `APPROVED`.
    pub review: Option<&'static str>,
    /// A pull request must be based on its base's last commit.
    pub must_be_up_to_date: bool,
    pub has_drafts: bool,
    /// The error of the next merge, although nothing blocks it.
    pub refuses_merge: Option<&'static str>,
    pub log: String,
    /// The login may not do more than look.
    pub may_only_look: bool,
    pub is_offline: bool,
    /// Requests without this token are refused; if there is none, all are served.
    pub token: Option<String>,
    pub(super) pipeline: String,
    pub(super) pulls: Vec<Pull>,
    /// The commits that were asked about, and how often.
    looks: Vec<(String, usize)>,
    counts: BTreeMap<String, usize>,
    pub(super) done: BTreeMap<String, usize>,
    changes: Vec<(String, usize, Change)>,
    pub(super) faults: Vec<(String, Fault)>,
    pub(super) limits: VecDeque<Limit>,
}

impl World {
    pub(super) fn new(repository: Repository) -> Self {
        Self {
            repository,
            checks: Vec::new(),
            workflows: Vec::new(),
            required: Vec::new(),
            review: None,
            must_be_up_to_date: false,
            has_drafts: true,
            refuses_merge: None,
            log: String::new(),
            may_only_look: false,
            is_offline: false,
            token: None,
            pipeline: String::new(),
            pulls: Vec::new(),
            looks: Vec::new(),
            counts: BTreeMap::new(),
            done: BTreeMap::new(),
            changes: Vec::new(),
            faults: Vec::new(),
            limits: VecDeque::new(),
        }
    }

    /// Sets the check results of the next commits: see [`Self::checks`].
    pub fn add_checks(&mut self, looks: &[&[(&str, &'static str)]]) {
        let mut plan = Vec::new();
        for look in looks {
            plan.push(look.iter().map(|(name, state)| ((*name).to_owned(), *state)).collect());
        }
        self.checks.push(plan);
    }

    /// A commit of another user on a branch of the forge.
    pub fn commit(&mut self, branch: &str, path: &str, text: &str) -> String {
        self.repository.commit(branch, path, text)
    }

    pub fn delete(&mut self, branch: &str) {
        self.repository.delete(branch);
    }

    pub(super) fn at_question(&mut self, name: &str, nth: usize, change: Change) {
        self.changes.push((name.to_owned(), nth, change));
    }

    /// Counts a request, and applies the change planned for it.
    pub(super) fn count(&mut self, name: &str) {
        let count = self.counts.entry(name.to_owned()).or_default();
        *count += 1;
        let now = *count;
        while let Some(at) = self.changes.iter().position(|(asked, nth, _)| asked == name && *nth == now) {
            let (_, _, change) = self.changes.remove(at);
            change(self);
        }
    }

    pub(super) fn counted(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// The current check results of a commit; counts as a look if `counts` is set.
    pub(super) fn look(&mut self, head: &str, counts: bool) -> Vec<(String, &'static str)> {
        let known = self.looks.iter().position(|(commit, _)| commit == head);
        let at = known.unwrap_or_else(|| {
            self.looks.push((head.to_owned(), 0));
            self.looks.len() - 1
        });
        self.looks[at].1 += usize::from(counts);
        let looks = self.looks[at].1.max(1) - 1;
        let Some(plan) = self.checks.get(at).or(self.checks.last()) else { return Vec::new() };
        plan.get(looks).or(plan.last()).cloned().unwrap_or_default()
    }

    /// A pull request as it is now: it follows its branch, and is closed when that is gone.
    pub(super) fn pull(&mut self, number: u64) -> Option<Pull> {
        let at = self.pulls.iter().position(|pull| pull.number == number)?;
        let pull = &mut self.pulls[at];
        if pull.state == "open" {
            match self.repository.head(&pull.branch) {
                Some(head) => pull.head = head,
                None => pull.state = "closed",
            }
        }
        Some(pull.clone())
    }

    pub(super) fn change_pull(&mut self, number: u64, change: impl FnOnce(&mut Pull)) {
        if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.number == number) {
            change(pull);
        }
    }

    /// Opens a pull request; none if the branch is missing or has no commit of its own. `Err` if one is open.
    pub(super) fn open(&mut self, pull: Pull) -> Option<Result<Pull, ()>> {
        let (head, base) = (self.repository.head(&pull.branch)?, self.repository.head(&pull.base)?);
        if head == base {
            return None;
        }
        if self.of_branch(&pull.branch).iter().any(|pull| pull.state == "open") {
            return Some(Err(()));
        }
        let number = self.pulls.len() as u64 + 1;
        self.pulls.push(Pull { number, head, ..pull });
        Some(Ok(self.pull(number)?))
    }

    /// Those of a branch, the newest first.
    pub(super) fn of_branch(&mut self, branch: &str) -> Vec<Pull> {
        let numbers: Vec<u64> = self.pulls.iter().rev().map(|pull| pull.number).collect();
        let pulls = numbers.into_iter().filter_map(|number| self.pull(number));
        pulls.filter(|pull| pull.branch == branch).collect()
    }

    /// What blocks a merge, as GitHub's state and as a text.
    pub(super) fn hindrance(&mut self, pull: &Pull) -> Option<(&'static str, String)> {
        let base = self.repository.head(&pull.base)?;
        let checks = self.look(&pull.head, false);
        let passed = |name: &String| checks.iter().any(|(found, state)| found == name && *state == "success");
        let missing = self.required.iter().find(|name| !passed(name));
        let no = |state, said: &str| Some((state, said.to_owned()));
        match () {
            () if pull.draft => no("DRAFT", "Pull Request is still a draft"),
            () if self.repository.merged(&base, &pull.head).is_none() => {
                no("DIRTY", "Pull Request is not mergeable")
            }
            () if self.must_be_up_to_date && !self.repository.contains(&pull.head, &base) => {
                no("BEHIND", "Head branch is out of date")
            }
            () if matches!(self.review, Some("REVIEW_REQUIRED" | "CHANGES_REQUESTED")) => {
                no("BLOCKED", "At least 1 approving review is required by reviewers with write access.")
            }
            () => missing.map(|name| ("BLOCKED", format!("Required status check \"{name}\" is expected."))),
        }
    }

    /// Merges a pull request that nothing blocks; returns the commit.
    pub(super) fn merge(&mut self, pull: &Pull, squash: bool) -> Option<String> {
        let commit = self.repository.merge(&pull.base, &pull.head, squash, &pull.title)?;
        self.change_pull(pull.number, |pull| {
            pull.state = "merged";
            pull.merged_as = Some(commit.clone());
        });
        Some(commit)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("pulls", &self.pulls)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
