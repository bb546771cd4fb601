//! What a loop does in its repository: its steps that ask git, each done on a thread that may block and answered with
//! the event that records it. What is committed and what is omitted is decided in `refrain-git`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::iter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::event::Event;
use refrain_core::git::{
    Base, Checkout, CommitReport, Effect, GitPins, Oid, PublishReport, PublishResult, Refusal, SkipReason,
    TemplateValues,
};
use refrain_core::r#loop::{CHANGED, Candidate, Proving};
use refrain_core::review::Changes;
use refrain_core::{ChildId, LoopState, Spec, Step};
use refrain_git::{Bounds, Cancel, CommitRequest, GitError, Removal, Repository, Sweeper, TreeRequest};
use refrain_store::{DiskError, LoopDir, Project};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::child::checkout_dir;
use crate::child::checkout_dir::{CheckoutDir, Ready};
use crate::driver::locks::Locks;
use crate::git_steps::failure_branch;
use crate::git_steps::git_words::{say, stamp};
use crate::git_steps::publish::{self, Publisher};
use crate::git_steps::worktree_setup::{self, WorktreeSetup};
use crate::{EngineError, Host, chain, now, sandbox};

/// The loop's worktree, once git has been asked about it: it remembers what need not be asked in each iteration.
pub(crate) type Opened = Arc<Mutex<Option<Repository>>>;

/// A git step of a loop, in progress.
pub(crate) struct Work {
    pub(crate) step: Step,
    until: Instant,
    cancel: Cancel,
    handle: JoinHandle<Result<GitStepResult, DiskError>>,
}

pub(crate) enum GitStepResult {
    Recorded(Event),
    /// The step's folder is ready, or why it is not: only now the step is recorded and done.
    Ready(Step, Ready),
}

pub(crate) struct Tools<'a> {
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) opened: &'a Opened,
    /// The folder of gates that do not run in the worktree.
    pub(crate) ground: &'a CheckoutDir,
    pub(crate) host: &'a Host,
    pub(crate) longest: Duration,
    pub(crate) locks: &'a Locks,
    pub(crate) follows: Option<Step>,
}

impl Work {
    /// Begins the step; none if it is no work for git.
    pub(crate) fn begin(
        step: Step,
        state: &LoopState,
        dir: &LoopDir,
        tools: &Tools<'_>,
    ) -> Result<Option<Self>, EngineError> {
        let run: Box<dyn FnOnce(&Job) -> GitStepResult + Send> = match step {
            Step::TakeBase => Box::new(|job| GitStepResult::Recorded(job.take_base())),
            Step::TakeCandidate => Box::new(|job| GitStepResult::Recorded(job.take_candidate())),
            Step::Commit { .. } => Box::new(|job| GitStepResult::Recorded(job.commit())),
            Step::ReleaseWorktree => Box::new(|job| GitStepResult::Recorded(job.release())),
            Step::SaveWork => Box::new(|job| GitStepResult::Recorded(job.save())),
            Step::Publish(effect) => Box::new(move |job| GitStepResult::Recorded(job.publish(effect))),
            Step::Start(ChildId::Gate { .. }) => {
                Box::new(|job| GitStepResult::Ready(job.step, checkout_dir::prepare(job)))
            }
            Step::BeginIteration { .. }
            | Step::Start(_)
            | Step::Stop(_)
            | Step::ChangeAgent
            | Step::Intend(_)
            | Step::Wait(_)
            | Step::Await { .. }
            | Step::Finish(_)
            | Step::Rest => return Ok(None),
        };
        let cancel =
            Cancel::new().map_err(|error| EngineError::Process("git cannot be supervised", error))?;
        let job = Job {
            state: state.clone(),
            step,
            dir: dir.clone(),
            env: marked(tools.env, &state.spec),
            cancel: cancel.clone(),
            opened: Arc::clone(tools.opened),
            ground: Arc::clone(tools.ground),
            state_home: tools.host.state_home.clone(),
            sweeper: sweeper(tools.host, &state.spec, dir),
            longest: tools.longest,
            follows: tools.follows,
        };
        let locks = Arc::clone(tools.locks);
        let handle = tokio::task::spawn_blocking(move || {
            // Git writes the loop's index, and would follow a link there.
            let done = job.dir.remove_links(job.state.proving().map(Proving::folder)).map(|()| run(&job));
            drop(locks);
            done
        });
        let prepares = step == Step::TakeBase && state.spec.git.setup.is_some();
        let longest = tools.longest + if prepares { worktree_setup::LONGEST } else { Duration::ZERO };
        Ok(Some(Self { step, until: Instant::now() + longest, cancel, handle }))
    }

    /// The result, once it is done.
    pub(crate) async fn done(&mut self) -> Result<GitStepResult, EngineError> {
        let done = match timeout_at(self.until, &mut self.handle).await {
            Ok(done) => done,
            Err(_) => {
                self.cancel.cancel();
                (&mut self.handle).await
            }
        };
        Ok(done.map_err(|error| EngineError::Process("git's thread", error.into()))??)
    }

    /// Ends it before its time, with every process that git started.
    pub(crate) fn abandon(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.handle.is_finished() {
            self.abandon();
        }
    }
}

/// The environment with the loop's mark: a runner that takes the loop over ends git and its hooks with the rest.
pub(crate) fn marked(env: &[(OsString, OsString)], spec: &Spec) -> Vec<(OsString, OsString)> {
    let mark = environment::mark(spec);
    let mark = mark.split_once('=').map(|(name, value)| (name.into(), value.into()));
    env.iter().cloned().chain(mark).collect()
}

pub(crate) struct Job {
    pub(crate) state: LoopState,
    step: Step,
    pub(crate) dir: LoopDir,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cancel: Cancel,
    opened: Opened,
    pub(crate) ground: CheckoutDir,
    pub(crate) state_home: Utf8PathBuf,
    sweeper: Sweeper,
    longest: Duration,
    /// The step right before this one: after a look at the worktree nothing was run since.
    follows: Option<Step>,
}

impl Job {
    fn repository(&self, folder: &Utf8Path) -> Result<Repository, GitError> {
        sandbox::restore_left(&self.dir.0)?;
        let repository = open(folder, &self.env, &self.state.spec)?.with_cancel(self.cancel.clone());
        Ok(repository.with_sweeper(Some(self.sweeper.clone())))
    }

    /// Asks the loop's worktree. Where that fails it is found anew the next time: an agent may have done anything to
    /// it.
    fn ask<T>(&self, ask: impl FnOnce(&Repository) -> Result<T, GitError>) -> Result<T, GitError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let repository = match opened.take() {
            // The cancellation of the last step does not stop this one.
            Some(repository) => {
                sandbox::restore_left(&self.dir.0)?;
                repository.with_cancel(self.cancel.clone()).with_sweeper(Some(self.sweeper.clone()))
            }
            None => self.repository(&self.state.spec.worktree)?,
        };
        let answer = ask(&repository)?;
        *opened = Some(repository);
        Ok(answer)
    }

    fn take_base(&self) -> Event {
        let spec = &self.state.spec;
        let taken = || {
            match &spec.git.checkout {
                // It is only looked at again.
                _ if self.state.git.base.is_some() => {}
                Checkout::AsIs => {}
                Checkout::Branch(branch) => self.repository(&spec.worktree)?.create_branch(branch)?,
                Checkout::Worktree { branch, from } => {
                    let repository = self.repository(&spec.project)?;
                    repository.add_worktree(&spec.worktree, branch, &repository.resolve(from)?)?;
                }
            }
            Ok(())
        };
        let survey = || self.ask(|repository| self.with_protection(repository, repository.survey()?));
        let prepared = taken().map_err(|error| self.say(&error)).and_then(|()| self.prepare_worktree());
        match prepared.and_then(|()| survey().map_err(|error| self.say(&error))) {
            Ok(base) => Event::BaseTaken(Box::new(base)),
            Err(error) => Event::BaseRefused { error },
        }
    }

    /// Runs the setup of a worktree that was just made.
    fn prepare_worktree(&self) -> Result<(), String> {
        let Spec { git, worktree, working_dir, .. } = &self.state.spec;
        let (Some(command), Checkout::Worktree { .. }) = (&git.setup, &git.checkout) else { return Ok(()) };
        let repository = self.repository(worktree).map_err(|error| self.say(&error))?;
        let setup = WorktreeSetup {
            command,
            repository: &repository,
            dir: working_dir,
            env: &self.env,
            sweeper: &self.sweeper,
            cancel: Some(&self.cancel),
            log: &self.dir.setup_log(),
        };
        setup.run()
    }

    fn take_candidate(&self) -> Event {
        let LoopState { spec, git, .. } = &self.state;
        let nothing = Base::default();
        let taken = self.ask(|known| {
            // The place where git looks is checked each time: an agent may have made it look elsewhere.
            let found = match known.root() == spec.worktree && known.is_where_it_was() {
                true => None,
                false => Some(self.repository(&spec.worktree)?),
            };
            let is_other =
                |found: &&Repository| found.root() != known.root() || found.git_dir() != known.git_dir();
            let repository = found.as_ref().filter(is_other).unwrap_or(known);
            if self.follows == Some(Step::TakeBase) {
                repository.is_still();
            }
            let request = TreeRequest {
                base: git.base.as_ref().unwrap_or(&nothing),
                index: &self.dir.index(),
                bounds: Bounds::of(&spec.git, Some(&self.cancel)),
            };
            let (tree, omitted) = repository.tree_and_rest(request)?;
            // An object that an agent forged would be committed in place of the file that the gates look at.
            repository.verify_tree(&tree, Some(&self.cancel))?;
            let before = self.state.proving().and_then(|proving| proving.candidate.as_ref()?.tree.as_ref());
            let changed = match before {
                Some(before) if *before != tree => repository.differing_paths(before, &tree, CHANGED)?,
                Some(_) | None => Vec::new(),
            };
            let touched = self.touched(repository, (&tree, &omitted))?;
            Ok(Event::CandidateTaken { tree: Some(tree), partial: !omitted.is_empty(), touched, changed })
        });
        taken.unwrap_or_else(|error| Event::CandidateRefused {
            error: self.say(&error),
            bad_work: error.is_of_objects(),
        })
    }

    fn commit(&self) -> Event {
        let LoopState { spec, git, iteration, limits, .. } = &self.state;
        let summary = self.state.commit_subject();
        let fill = TemplateValues {
            id: &spec.id,
            iteration: *iteration,
            max: limits.max_iterations,
            summary: &summary,
            timestamp: &stamp(now()),
        };
        let report = self.ask(|repository| {
            if self.follows == Some(Step::TakeCandidate) {
                repository.is_still();
            }
            repository.commit(CommitRequest {
                base: git.base.as_ref().unwrap_or(&Base::default()),
                last_head: git.head.as_ref(),
                id: &spec.id,
                iteration: *iteration,
                message: &spec.git.commit_template.fill(fill),
                index: &self.dir.index(),
                bounds: Bounds::of(&spec.git, Some(&self.cancel)),
            })
        });
        let report = report.unwrap_or_else(|error| {
            CommitReport::skipped(*iteration, SkipReason::Failed { said: self.say(&error) }, git.head.clone())
        });
        Event::CommitSettled(Box::new(report))
    }

    fn save(&self) -> Event {
        let open = || self.repository(&self.state.spec.worktree);
        failure_branch::save(&self.state, &self.dir, &self.env, open, &self.cancel)
    }

    /// Git is asked anew: an agent may have made it look elsewhere.
    fn publish(&self, effect: Effect) -> Event {
        let result = self.repository(&self.state.spec.worktree).and_then(|repository| {
            let Self { state, dir, env, cancel, .. } = self;
            Publisher { state, dir, env, cancel, repository: &repository }.publish(effect)
        });
        let result = result
            .unwrap_or_else(|error| PublishResult::Refused { why: Refusal::Other, said: self.say(&error) });
        Event::PublishSettled(Box::new(PublishReport { effect, result }))
    }

    pub(crate) fn worktree(&self) -> Result<Repository, GitError> {
        self.repository(&self.state.spec.worktree)
    }

    fn release(&self) -> Event {
        let open = |folder: &Utf8Path| self.repository(folder);
        release(&self.state, &self.dir, open, |error| self.say(error))
    }

    /// What went wrong. A cancelled step says that its time was up: when a step is abandoned, its message is not read.
    fn say(&self, error: &GitError) -> String {
        say(error, self.longest)
    }
}

/// Opens a worktree for a loop: its git runs what was pinned when the loop started, and nothing else.
pub(crate) fn open(
    folder: &Utf8Path,
    env: &[(OsString, OsString)],
    spec: &Spec,
) -> Result<Repository, GitError> {
    check_link(folder, spec)?;
    Ok(pinned(Repository::open(folder, env)?, spec))
}

/// Refuses the loop's own worktree if it no longer leads to its repository.
pub(crate) fn check_link(folder: &Utf8Path, spec: &Spec) -> Result<(), GitError> {
    match spec.git.checkout.is_own_worktree() && *folder == spec.worktree {
        true => {
            let project = Project::find(&spec.project).ok().filter(Project::is_repository);
            let common_dir = project.as_ref().and_then(|project| project.data.parent());
            refrain_git::check_link(folder, &spec.project, common_dir)
        }
        false => Ok(()),
    }
}

/// The repository, whose git runs what was pinned for the loop. If there was no repository at the start, an agent made
/// it, and nothing of it is run.
pub(crate) fn pinned(repository: Repository, spec: &Spec) -> Repository {
    let nothing = GitPins::default();
    let is_new = !spec.git.needs_base() && spec.git.before.is_none();
    repository.with_pins(spec.git.pins.as_deref().or_else(|| is_new.then_some(&nothing)))
}

/// The same beside no runner: filters run in the sandbox of the loop, which may have changed what they run.
pub(crate) fn open_in_sandbox(
    folder: &Utf8Path,
    env: &[(OsString, OsString)],
    (host, spec, dir): (&Host, &Spec, &LoopDir),
) -> Result<Repository, GitError> {
    sandbox::restore_left(&dir.0)?;
    let sweeper = spec.sandbox.as_ref().map(|_| sweeper(host, spec, dir));
    Ok(open(folder, env, spec)?.with_sweeper(sweeper))
}

/// The process that runs a git of the loop that runs programs of the user: hooks, filters, signing.
pub(crate) fn sweeper(host: &Host, spec: &Spec, dir: &LoopDir) -> Sweeper {
    let scratch = dir.index().with_extension("tools");
    let (program, loop_dir) = (host.program.clone(), dir.0.clone());
    let confinement = sandbox::of_git(spec, host, &dir.0);
    Sweeper { program, mark: environment::mark(spec), loop_dir, scratch, confinement }
}

/// Pins what git runs for a loop or plan that is about to start, and where it pushes. A task has its plan's pins.
pub(crate) fn pin(spec: &mut Spec, repository: &Repository) -> Result<(), GitError> {
    if spec.git.pins.is_none() {
        let own = spec.git.new_branch().map(str::to_owned);
        let own = own.map_or_else(|| repository.branch(), |own| Ok(Some(own)))?;
        spec.git.pins = Some(Box::new(repository.take_pins(&own.unwrap_or_default())?));
    }
    Ok(())
}

/// What of a loop's changes a tree shows, for a judge of them; none if there is no repository.
pub(crate) fn changes(
    spec: &Spec,
    began: Option<&Oid>,
    candidate: Option<&Candidate>,
    env: &[(OsString, OsString)],
) -> Result<Option<Changes>, EngineError> {
    let Some((tree, candidate)) = candidate.and_then(|it| Some((it.tree.as_ref()?, it))) else {
        return Ok(None);
    };
    let cancel = Cancel::new().map_err(|error| EngineError::Process("git cannot be supervised", error))?;
    let repository = open(&spec.worktree, &marked(env, spec), spec)?.with_cancel(cancel);
    let changes = repository.changes(began, tree)?;
    Ok(Some(Changes { partial: candidate.partial, ..changes }))
}

/// Removes a loop's own worktree, and the branch that was made with it, if nothing is lost by that; the event says why it is
/// kept.
pub(crate) fn release(
    state: &LoopState,
    dir: &LoopDir,
    open: impl Fn(&Utf8Path) -> Result<Repository, GitError>,
    say: impl FnOnce(&GitError) -> String,
) -> Event {
    let spec = &state.spec;
    let released = |kept, branch_removed| Event::WorktreeReleased { kept, branch_removed };
    // The agent's notes are in no commit.
    let kept = refrain_store::project::worktree::notes(spec);
    if let Some(Err(error)) =
        kept.map(|notes| refrain_store::write_nofollow(&dir.state_file(), notes.as_bytes()))
    {
        return released(Some(chain(&error)), false);
    }
    // A worktree begins at a commit.
    let (Some(began), Some(branch)) = (&state.git.began, spec.git.new_branch()) else {
        return released(None, false);
    };
    // An error is that of the removal, too.
    if let Ok(Some(other)) = open(&spec.worktree).and_then(|there| switched_to(&there, spec, began)) {
        let why = format!(
            "the work is {other}, to which the agent switched; git merge {} merges it",
            other.revision()
        );
        return released(Some(why), false);
    }
    let removed = open(&spec.project).and_then(|repository| {
        repository.remove_worktree(&spec.worktree, branch, began, &state.git.prepared)
    });
    match removed {
        Ok(Removal::Removed) => released(None, true),
        Ok(Removal::BranchKept) => released(None, false),
        Ok(Removal::Kept(why)) => released(Some(why), false),
        Err(error) => released(Some(say(&error)), false),
    }
}

/// Where a loop's worktree is whose agent left the loop's branch.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherHead {
    /// None if the head is detached.
    branch: Option<String>,
    commit: Oid,
}

impl OtherHead {
    /// What `git merge` takes, as a word of a shell.
    pub fn revision(&self) -> String {
        let branch = self.branch.as_deref().map(|branch| shlex::try_quote(branch).unwrap_or_default());
        branch.map_or_else(|| self.commit.short().to_owned(), Cow::into_owned)
    }
}

impl fmt::Display for OtherHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.branch.is_some() { "on branch" } else { "in commit" };
        write!(f, "{kind} {}", self.revision())
    }
}

/// Where a loop's worktree is if its agent committed there, and not on the loop's own branch.
pub(crate) fn switched_to(
    there: &Repository,
    spec: &Spec,
    began: &Oid,
) -> Result<Option<OtherHead>, GitError> {
    let own = spec.git.new_branch().unwrap_or_default();
    let (branch, commit) = (there.branch()?, there.resolve("HEAD")?);
    let is_own = branch.as_deref() == Some(own) || commit == *began;
    if is_own || there.stands_on(began, &commit, None).is_ok_and(|base| base != *began) {
        return Ok(None);
    }
    let has_work_there = match there.branch_head(own)? {
        Some(head) => head == *began,
        // The agent renamed it; after a merge of its pull request it is gone, and the head is detached.
        None => branch.is_some(),
    };
    Ok(has_work_there.then_some(OtherHead { branch, commit }))
}

/// Makes the worktree of a loop that is to be resumed anew, from its branch, if the folder is gone; says whether it
/// was. What was not committed in it is lost: the user who deleted it wanted that, or it cannot be helped.
pub(crate) fn restore(
    state: &LoopState,
    env: &[(OsString, OsString)],
    sweeper: Sweeper,
) -> Result<bool, EngineError> {
    let worktree = &state.spec.worktree;
    let Checkout::Worktree { branch, .. } = &state.spec.git.checkout else {
        // A plan makes the folder of a task itself.
        return match state.spec.task.is_some() || worktree.exists() {
            true => Ok(false),
            false => Err(GitError::FolderGone(worktree.clone()).into()),
        };
    };
    // A crash while it was made anew left it half made.
    if !state.holds_worktree() || (worktree.exists() && !refrain_git::is_half_made(worktree)) {
        check_link(worktree, &state.spec)?;
        return Ok(false);
    }
    let repository = open(&state.spec.project, env, &state.spec)?.with_sweeper(Some(sweeper));
    repository.restore_worktree(worktree, branch, state.git.head.as_ref())?;
    Ok(true)
}

/// Checks before anything is begun that the loop will find the repository that it needs, which `open` finds in the
/// project, and fills in what its branch and worktree are called. The agent's program is the one that is found from
/// where the loop was started. Returns the worktree that it works in, if git was asked about that.
pub(crate) fn settle(
    spec: &mut Spec,
    project: &Project,
    state_home: &Utf8Path,
    env: &[(OsString, OsString)],
    open: impl FnOnce() -> Result<Repository, GitError>,
) -> Result<Option<Repository>, EngineError> {
    // An agent would work among the repository's own files.
    if spec.working_dir.strip_prefix(&project.worktree).is_ok_and(|below| below.starts_with(".git")) {
        return Err(GitError::Bare(spec.working_dir.clone()).into());
    }
    let opened = match open() {
        Err(GitError::Missing(_)) if project.is_repository() => return Err(GitError::MissingHere.into()),
        Err(error @ GitError::Bare(_)) => return Err(error.into()),
        opened => opened,
    };
    if !spec.git.needs_base() && !spec.proves() {
        // The error does not matter: such a loop has no other need of git.
        let Ok(repository) = opened else { return Ok(None) };
        spec.git.before = repository.survey().ok().map(Box::new);
        let _ = pin(spec, &repository);
        return Ok(own_worktree(spec, repository));
    }
    let repository = match opened {
        // Gates can prove a plain folder too; then nothing names what they proved.
        Err(error @ (GitError::NotARepository(_) | GitError::Missing(_))) if !spec.protect.is_empty() => {
            return Err(EngineError::Unprotected(error));
        }
        Err(GitError::NotARepository(_) | GitError::Missing(_))
            if !spec.git.needs_base() && !spec.clean_checkout =>
        {
            return Ok(None);
        }
        repository => repository?,
    };
    repository.check_version()?;
    spec.git.candidates = spec.proves();
    let (id, timestamp) = (spec.id.clone(), stamp(now()));
    let name = |template: &str| -> Result<String, EngineError> {
        let fill = TemplateValues { id: &id, iteration: 0, max: None, summary: "", timestamp: &timestamp };
        let template = template.parse::<refrain_core::git::Template>();
        let name = template?.fill(fill);
        repository.check_branch_free(&name)?;
        Ok(name)
    };
    match &mut spec.git.checkout {
        Checkout::AsIs => {}
        Checkout::Branch(branch) => *branch = name(branch)?,
        Checkout::Worktree { branch, from } => {
            *branch = name(branch)?;
            *from = repository.resolve(from)?.to_string();
            let own = free_folder(project.own_worktree(state_home, &spec.id));
            let inside = spec.working_dir.strip_prefix(&project.worktree).unwrap_or(Utf8Path::new(""));
            // Joined to nothing, a path would end in a slash.
            spec.working_dir = match inside.as_str() {
                "" => own.clone(),
                _ => {
                    repository.check_folder(from, inside)?;
                    own.join(inside)
                }
            };
            spec.worktree = own;
        }
    }
    publish::settle(&mut spec.git, &repository, env)?;
    pin(spec, &repository)?;
    Ok(own_worktree(spec, repository))
}

/// The folder, or one beside it if it is there: an archived loop of the same name may have its worktree still.
pub(crate) fn free_folder(folder: Utf8PathBuf) -> Utf8PathBuf {
    let is_free = |folder: &Utf8PathBuf| folder.symlink_metadata().is_err();
    let others = (2..1000).map(|number| Utf8PathBuf::from(format!("{folder}-{number}")));
    iter::once(folder.clone()).chain(others).find(is_free).unwrap_or(folder)
}

/// The repository with the loop's pins, if the loop works in this worktree.
fn own_worktree(spec: &Spec, repository: Repository) -> Option<Repository> {
    let is_own = repository.root() == spec.worktree;
    is_own.then(|| repository.with_pins(spec.git.pins.as_deref()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use refrain_proc::tool::Tool;

    use super::*;

    #[tokio::test]
    async fn git_that_takes_too_long_is_ended() {
        let cancel = Cancel::new().unwrap();
        let seen = cancel.clone();
        let handle = tokio::task::spawn_blocking(move || {
            let hook = Tool::new("sh", Path::new("/")).args(["-c", "cat /dev/zero >/dev/null"]);
            let ended = hook.cancel(Some(&seen)).run().map(|done| done.status);
            Ok(GitStepResult::Recorded(Event::BaseRefused { error: format!("{ended:?}") }))
        });
        let until = Instant::now() + Duration::from_millis(20);
        let mut work = Work { step: Step::TakeBase, until, cancel, handle };
        let GitStepResult::Recorded(Event::BaseRefused { error }) = work.done().await.unwrap() else {
            panic!("another event")
        };
        assert!(error.contains("Cancelled"), "{error}");
    }
}
