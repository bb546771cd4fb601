//! The changes of a loop so far: the differences between its start and its work. Secrets are taken out, as in a report:
//! what is shown may leave the machine.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_core::event::{BlockReason, End, Event};
use refrain_core::git::{Base, CommitResult, LeftOutReason, Oid, OmittedPath, RepoPath, path_names};
use refrain_core::review::Changes;
use refrain_core::text::printable;
use refrain_core::view::report::{self, FileChange, Trail};
use refrain_core::{LoopId, LoopState, Record, Spec};
use refrain_git::{Bounds, GitError, Repository, TreeRequest};
use refrain_store::journal;

use crate::git_steps::repository::{marked, sweeper};
use crate::service::redact::Redactor;
use crate::{ByKind, EngineError, LoopLocation, Service};

/// How long git may take for each answer: a user waits for it.
const LONGEST: Duration = Duration::from_secs(60);
const MOST_NAMED: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// What is shown, and against what; if nothing can be shown, why.
    pub note: String,
    /// Whether anything can be shown: what follows may be empty all the same, if nothing is different.
    pub is_shown: bool,
    /// The files, with how many lines.
    pub stat: String,
    /// The differences, cut in the middle if they are long; of binary files only the names.
    pub diff: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeSize {
    pub files: u32,
    pub added: u64,
    pub removed: u64,
    /// How many more had changes before the loop and changed since: whose lines are whose is not known.
    pub mixed: u32,
}

impl ChangeSize {
    fn of(files: &[FileChange], mixed: usize) -> Self {
        Self {
            files: u32::try_from(files.len()).unwrap_or(u32::MAX),
            added: files.iter().filter_map(|file| file.added).sum(),
            removed: files.iter().filter_map(|file| file.removed).sum(),
            mixed: u32::try_from(mixed).unwrap_or(u32::MAX),
        }
    }
}

/// The changes as git's patch, whole, byte for byte but for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPatch {
    pub note: String,
    pub bytes: Vec<u8>,
    /// Whether nothing of it looked like a secret.
    pub is_whole: bool,
}

/// Two trees to compare, and the loop, or each loop of the plan, whose secrets are hidden.
pub(crate) struct TreePair {
    pub(crate) repository: Repository,
    pub(crate) spec: Spec,
    /// A commit or a tree; none before the first commit.
    pub(crate) from: Option<Oid>,
    pub(crate) tree: Oid,
    pub(crate) note: String,
}

/// Two states of the work of a loop.
struct Comparison {
    repository: Repository,
    state: LoopState,
    /// A commit or a tree; none before the first commit.
    from: Option<Oid>,
    /// Whether the first state is on record.
    is_known: bool,
    tree: Oid,
    note: String,
}

impl Service {
    /// What the loop has changed, or the plan has landed, so far: of a loop as its folder is now while that is its own, else as its
    /// last candidate or its branch shows it. Or what one iteration changed, as far as trees are on record.
    pub fn differences_of(&self, id: &LoopId, iteration: Option<u32>) -> Result<Differences, EngineError> {
        let TreePair { repository, spec, from, tree, note } = match self.trees_of(id, iteration)? {
            Ok(trees) => trees,
            Err(note) => return Ok(Differences { note, ..Differences::default() }),
        };
        let Changes { stat, diff, .. } = repository.changes(from.as_ref(), &tree)?;
        let redactor = Redactor::new(&spec, []);
        Ok(Differences {
            note: redactor.clean(&note),
            is_shown: true,
            stat: redactor.clean(&stat),
            diff: redactor.clean(&diff),
        })
    }

    /// The same as a patch for `git apply`; or why there is none.
    pub fn patch_of(
        &self,
        id: &LoopId,
        iteration: Option<u32>,
    ) -> Result<Result<LoopPatch, String>, EngineError> {
        let TreePair { repository, spec, from, tree, note } = match self.trees_of(id, iteration)? {
            Ok(trees) => trees,
            Err(note) => return Ok(Err(note)),
        };
        let redactor = Redactor::new(&spec, []);
        let patch = repository.patch(from.as_ref(), &tree)?;
        let (bytes, is_whole) = redactor.clean_patch(&patch, |blob| repository.content(blob))?;
        Ok(Ok(LoopPatch { note: redactor.clean(&note), bytes, is_whole }))
    }

    fn trees_of(&self, id: &LoopId, iteration: Option<u32>) -> Result<Result<TreePair, String>, EngineError> {
        if let ByKind::Plan(_) = self.find(id)? {
            let Some(iteration) = iteration else { return self.plan_trees(id) };
            return Ok(Err(format!(
                "Iteration {iteration}: a plan has none; its tasks are loops, which refrain list --plan {id} shows."
            )));
        }
        Ok(self.compare(id, iteration)?.map(|Comparison { repository, state, from, tree, note, .. }| {
            TreePair { repository, spec: state.spec, from, tree, note }
        }))
    }

    /// How much the loop has changed; none if that is not on record.
    pub fn change_size(&self, id: &LoopId) -> Result<Option<ChangeSize>, EngineError> {
        Ok(self.shown_changes(id)?.and_then(|(size, is_known)| is_known.then_some(size)))
    }

    /// How much `diff` shows, and whether all of that is the loop's: what was changed before it began may not be on record.
    pub fn shown_changes(&self, id: &LoopId) -> Result<Option<(ChangeSize, bool)>, EngineError> {
        let Ok(Comparison { repository, state, from, is_known, tree, .. }) = self.compare(id, None)? else {
            return Ok(None);
        };
        let base = state.git.base.as_ref().filter(|_| repository.root() == state.spec.worktree);
        let mixed = base.map_or(0, |base| repository.mixed(base).len());
        Ok(Some((ChangeSize::of(&repository.changed_files(from.as_ref(), &tree)?, mixed), is_known)))
    }

    /// How much the loop has changed up to its last candidate or commit: its folder is not read. None if that is not on record.
    pub fn recorded_change_size(&self, id: &LoopId) -> Result<Option<ChangeSize>, EngineError> {
        let whole = journal::whole(&self.locate(id)?.dir, &self.host().signing())?;
        let (state, trail) = (whole.state, Trail::of(&whole.records));
        let (Some(_), Some(tree)) = (&state.git.base, report::tree(&state, &trail)) else { return Ok(None) };
        let env = marked(&self.host.env, &state.spec);
        let repository = match Repository::open_within(&self.project.root, &env, LONGEST) {
            Err(GitError::NotARepository(_)) => return Ok(None),
            repository => repository?,
        };
        let repository = if self.copy.is_some() { repository } else { self.pinned(repository, &state.spec) };
        Ok(Some(ChangeSize::of(&repository.changed_files(state.git.began.as_ref(), tree)?, 0)))
    }

    /// The two states that are compared, or why there is nothing to compare.
    fn compare(
        &self,
        id: &LoopId,
        iteration: Option<u32>,
    ) -> Result<Result<Comparison, String>, EngineError> {
        let LoopLocation { dir, archived } = self.locate(id)?;
        let whole = journal::whole(&dir, &self.host().signing())?;
        let trail = Trail::of(&whole.records);
        let (state, records) = (whole.state, whole.records);
        let env = marked(&self.host.env, &state.spec);
        let nothing = |note: &str| Ok(Err(note.to_owned()));
        let left = self.copy.is_some().then_some(state.tenure.departure.as_deref()).flatten();
        let left = left.map(|left| left.work.as_ref().unwrap_or(&left.head));
        let mut work = left.map_or_else(|| report::work(&state, &trail), report::Work::Tree);
        if work == report::Work::Folder && self.copy.is_some() {
            // That folder is one of another machine.
            let Some(tree) = report::tree(&state, &trail) else {
                return nothing("No candidate and no commit of it is on record yet.");
            };
            work = report::Work::Tree(tree);
        } else if work == report::Work::Folder && state.git.released && !state.spec.worktree.is_dir() {
            work = report::tree(&state, &trail).map_or(report::Work::Gone, report::Work::Tree);
        }
        let place = match work {
            report::Work::Folder if iteration.is_none() && !state.spec.worktree.is_dir() => {
                return nothing(match state.lacks_worktree() {
                    true => "Its worktree is not made yet, so nothing was changed.",
                    false => "The folder that it works in is not there.",
                });
            }
            report::Work::Folder if iteration.is_none() => &state.spec.worktree,
            report::Work::Folder | report::Work::Tree(_) | report::Work::Gone => &self.project.root,
        };
        let repository = match Repository::open_within(place, &env, LONGEST) {
            Ok(repository) if self.copy.is_some() => repository,
            Ok(repository) => {
                let spec = &state.spec;
                let sweeper = spec.sandbox.as_ref().map(|_| sweeper(&self.host, spec, &dir));
                let repository = self.pinned(repository, spec).with_sweeper(sweeper);
                match work {
                    report::Work::Folder if iteration.is_none() => repository.with_private_objects(&dir.0)?,
                    report::Work::Folder | report::Work::Tree(_) | report::Work::Gone => repository,
                }
            }
            Err(GitError::NotARepository(_)) => {
                return nothing(
                    "It works in a folder without git, which does not know what was changed there.",
                );
            }
            Err(error) => return Err(error.into()),
        };
        let (began, is_known) = began(&state, &repository)?;
        if let Some(iteration) = iteration {
            let trees = trees(&records, &repository)?;
            let Some((_, tree)) = trees.iter().rfind(|(of, _)| *of == iteration) else {
                let note = "Iteration {}: what it changed is not on record, as nothing was committed or verified after it.";
                return nothing(&note.replace("{}", &iteration.to_string()));
            };
            let before = trees.iter().rfind(|(of, _)| *of < iteration).map(|(_, tree)| tree.clone());
            let (from, tree) = (before.or(began), tree.clone());
            let note = format!("Iteration {iteration}.");
            return Ok(Ok(Comparison { repository, state, from, is_known, tree, note }));
        }
        // An archived loop's branch may be another's by now.
        let moved = match self.copy.is_some() || archived {
            true => None,
            false => moved_branch(&state, &repository)?,
        };
        let (tree, left_out, what) = match work {
            report::Work::Tree(tree) if moved.as_ref().is_some_and(|moved| moved != tree) => (
                moved.unwrap_or_else(|| tree.clone()),
                None,
                "Its branch, which was changed after its last commit",
            ),
            report::Work::Tree(tree) => {
                let checked = state.proof.as_ref().and_then(|proof| proof.candidate.tree.as_ref());
                let what = match checked == Some(tree) {
                    true => "Its work as its gates checked it last",
                    false if left == Some(tree) => "Its work when it left that machine",
                    false => "Its last commit",
                };
                (tree.clone(), None, what)
            }
            report::Work::Gone => {
                let branch = state.spec.git.new_branch().map(|branch| format!("refs/heads/{branch}"));
                let (mut head, mut what) = (None, "Its branch");
                if let Some(branch) = &branch {
                    head = repository.reference(branch)?;
                }
                if let (None, Some(discarded)) = (&head, self.discarded(id)) {
                    (head, what) = (repository.reference(&discarded)?, "Its discarded work");
                }
                let Some(head) = head else {
                    return nothing("Its folder was given back, and no candidate was taken of it.");
                };
                (repository.tree_of(&head)?, None, what)
            }
            report::Work::Folder => {
                let index = Index::beside(&dir.index());
                let found = repository.tree_and_rest(TreeRequest {
                    base: state.git.base.as_ref().unwrap_or(&Base::default()),
                    index: &index.0,
                    bounds: Bounds::of(&state.spec.git, None),
                })?;
                let what = match report::is_open(&state) {
                    true => "Its folder as it is now, with what was changed after its end",
                    false => "Its folder as it is now",
                };
                (found.0, Some(found.1), what)
            }
        };
        let mut note = note(what, began.as_ref(), is_known, left_out.as_deref());
        let base = state.git.base.as_ref().filter(|_| repository.root() == state.spec.worktree);
        let mixed = base.map_or_else(Vec::new, |base| repository.mixed(base));
        note.push_str(&of_mixed(&mixed, began.is_some()));
        Ok(Ok(Comparison { repository, state, from: began, is_known, tree, note }))
    }
}

/// The tree of an ended loop's own branch, if that is not where the loop left it: this is what would be merged. What waits for
/// an approval is not on the branch yet.
fn moved_branch(state: &LoopState, repository: &Repository) -> Result<Option<Oid>, GitError> {
    let waits = End::Blocked { why: BlockReason::Approval };
    let (Some(branch), Some(ended)) = (state.spec.git.new_branch(), state.ended) else { return Ok(None) };
    match repository.branch_head(branch)? {
        Some(head) if ended.end != waits && state.git.head.as_ref().is_some_and(|left| *left != head) => {
            repository.tree_of(&head).map(Some)
        }
        Some(_) | None => Ok(None),
    }
}

/// The trees on record, each with the iteration that left it, in their order.
fn trees(records: &[Record], repository: &Repository) -> Result<Vec<(u32, Oid)>, GitError> {
    let (mut trees, mut iteration) = (Vec::new(), 0);
    for record in records {
        if let Event::AttemptStarted(attempt) = &record.event {
            iteration = attempt.iteration;
        } else if let Event::CandidateTaken { tree: Some(tree), .. } = &record.event {
            trees.push((iteration, tree.clone()));
        } else if let Event::CommitSettled(report) = &record.event {
            match (&report.result, report.by_agent.last()) {
                (CommitResult::Made { tree, .. }, _) => trees.push((report.iteration, tree.clone())),
                (CommitResult::Skipped(_), Some(commit)) => {
                    trees.push((report.iteration, repository.tree_of(commit)?));
                }
                (CommitResult::Skipped(_), None) => {}
            }
        }
    }
    Ok(trees)
}

/// The commit that it began at, and whether what was changed then is on record. If nothing was to be committed or proven, the
/// runner did not take the base: the start says what the head was, or of a loop of an earlier version the head's own log.
fn began(state: &LoopState, repository: &Repository) -> Result<(Option<Oid>, bool), GitError> {
    Ok(match (&state.git.base, &state.spec.git.before) {
        (Some(_), _) => (state.git.began.clone(), true),
        (None, Some(before)) => (before.head.clone(), false),
        (None, None) => (repository.head_at(state.started_at.as_second())?, false),
    })
}

fn note(what: &str, began: Option<&Oid>, known: bool, left_out: Option<&[OmittedPath]>) -> String {
    let from = began.map_or("an empty folder, as it began without a commit".to_owned(), |head| {
        format!("commit {}", &head.as_str()[..head.as_str().len().min(12)])
    });
    let mut note = format!("{what}, against {from}.");
    if !known {
        note.push_str(" What was changed there before it began is shown too: without gates and commits that state was not recorded.");
    }
    let is_other = |it: &&OmittedPath| it.why != LeftOutReason::DirtyBefore;
    let left_out: Vec<_> = left_out.unwrap_or_default().iter().filter(is_other).cloned().collect();
    if !left_out.is_empty() {
        note.push_str(&format!(" Not shown: {}.", named(&left_out)));
    }
    note
}

/// Why files that had changes before the loop are not shown, and what shows them.
fn of_mixed(mixed: &[RepoPath], has_commit: bool) -> String {
    if mixed.is_empty() {
        return String::new();
    }
    let (words, tracked) = match mixed {
        [_] => (
            "which had changes that were in no commit when it began, and has changed since: how it was then is not on record",
            "if git tracks it",
        ),
        _ => (
            "which had changes that were in no commit when it began, and have changed since: how they were then is not on record",
            "of those that git tracks",
        ),
    };
    let quoted: Vec<_> = mixed.iter().take(MOST_NAMED).map(RepoPath::to_string).collect();
    let shows = shlex::try_join(quoted.iter().map(String::as_str)).unwrap_or_else(|_| ".".to_owned());
    let shown = match has_commit {
        true => format!(" git diff HEAD -- {shows} shows your changes and the loop's together, {tracked}."),
        false => String::new(),
    };
    format!(" Not shown: {}, {words}.{shown}", path_names(mixed, MOST_NAMED))
}

/// The first of these paths, each with the reason.
pub(super) fn named(left_out: &[OmittedPath]) -> String {
    let named: Vec<_> =
        left_out.iter().take(MOST_NAMED).map(|it| format!("{} ({})", it.path, it.why)).collect();
    let more = left_out.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", printable(&named.join(", ")))
}

/// A private index, for as long as it is looked at.
pub(crate) struct Index(pub(crate) Utf8PathBuf);

impl Index {
    /// One that no other loop has.
    pub(crate) fn beside(path: &Utf8PathBuf) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Utf8PathBuf::from(format!("{path}.seen-{}-{number}", std::process::id())))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(format!("{}.lock", self.0));
    }
}
