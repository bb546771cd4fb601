//! The git steps of a plan: its base, merging the work of its tasks, the line of what has landed, waves, and bringing
//! the person's branch along. Each is answered with the event that records it.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::git::{GitPins, Oid, RepoPath};
use refrain_core::plan::{
    MergedTask, PlanEvent, PlanSpec, PlanState, RemadeWave, Stage, TaskCommit, TaskId, TaskState,
    UnmergedTask, WaveNumber,
};
use refrain_core::text::{clip, printable};
use refrain_git::{
    Bounds, Cancel, GitError, HandOverRequest, HandedOver, LandRequest, LandingOutcome, LinearBranch,
    MergeRequest, MergeResult as Merge, RemakeRequest, Repository, Sweeper, Wave, WaveRequest, Work,
    Worktree,
};
use refrain_store::project::pool::Slot;
use refrain_store::{LoopDir, Project, WorktreeLock};

use crate::git_steps::git_words::works_in;
use crate::git_steps::repository;
use crate::{Host, Service, chain};

/// How long to wait before a folder is claimed again that is in use for a while.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest subject of a commit that a title makes, in bytes.
const SUBJECT: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct Landing {
    pub(super) project: Project,
    pub(super) state_home: Utf8PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pins: Option<Box<GitPins>>,
    /// The sandbox of what git runs for a plan that has one.
    sweeper: Option<Sweeper>,
    /// The repository, once it was found: it is asked something again and again, and stays where it is.
    found: Arc<OnceLock<Repository>>,
}

impl Landing {
    pub(super) fn new(
        service: &Service,
        state: &PlanState,
        host: &Host,
        env: Vec<(OsString, OsString)>,
    ) -> Self {
        let dir = service.project().plan_dir(&state.spec.id);
        Self::of(service, (host, &state.spec.each, &dir), env)
    }

    /// Of a repository whose git runs what was pinned, in the sandbox if there is one.
    pub(crate) fn of(
        service: &Service,
        (host, each, dir): (&Host, &Spec, &LoopDir),
        env: Vec<(OsString, OsString)>,
    ) -> Self {
        let (project, state_home) = (service.project().clone(), host.state_home.clone());
        let sweeper = each.sandbox.as_ref().map(|_| repository::sweeper(host, each, dir));
        Self { project, state_home, env, pins: each.git.pins.clone(), sweeper, found: Arc::default() }
    }

    fn open(&self, folder: &Utf8Path) -> Result<Repository, GitError> {
        Ok(Repository::open(folder, &self.env)?.with_pins(self.pins.as_deref()))
    }

    /// The same, if git was asked about the project's repository already.
    pub(super) fn knowing(self, opened: Option<Repository>) -> Self {
        if let Some(opened) = opened {
            self.found.get_or_init(|| opened);
        }
        self
    }

    pub(crate) fn repository(&self, cancel: Option<&Cancel>) -> Result<Repository, GitError> {
        let repository = match self.found.get() {
            Some(found) => found.again(),
            None => {
                let opened = self.open(&self.project.root)?;
                self.found.get_or_init(|| opened).again()
            }
        }
        .with_sweeper(self.sweeper.clone());
        Ok(match cancel {
            Some(cancel) => repository.with_cancel(cancel.clone()),
            None => repository,
        })
    }

    /// What the person has checked out where the plan was started.
    fn worktree(&self, state: &PlanState, cancel: Option<&Cancel>) -> Result<Repository, GitError> {
        let at = &state.spec.each.worktree;
        let repository = self.repository(cancel)?;
        if repository.root() == at {
            return Ok(repository);
        }
        let there = self.open(at)?.with_sweeper(self.sweeper.clone());
        Ok(match cancel {
            Some(cancel) => there.with_cancel(cancel.clone()),
            None => there,
        })
    }

    /// A place for private indexes.
    fn index(&self, state: &PlanState) -> Utf8PathBuf {
        self.project.plan_dir(&state.spec.id).index()
    }

    /// The commit that was checked out when the plan was started; the line of what lands begins there.
    pub(super) fn take_base(&self, state: &PlanState) -> PlanEvent {
        let taken = || -> Result<PlanEvent, GitError> {
            let (head, branch) = self.worktree(state, None)?.begin_of_plan()?;
            let repository = self.repository(None)?;
            repository.put_reference(&state.spec.line(), &head, "begin")?;
            Ok(PlanEvent::BaseTaken { head, branch })
        };
        taken().unwrap_or_else(|error| PlanEvent::Hindered { error: chain(&error) })
    }

    /// The path of the task file in the repository, if it lies there: it is never part of a task's work.
    pub(super) fn except(&self, tasks: &Utf8Path) -> Vec<RepoPath> {
        // A linked worktree may lie inside the main one.
        let inside =
            tasks.strip_prefix(&self.project.worktree).or_else(|_| tasks.strip_prefix(&self.project.root));
        inside.ok().map(|path| RepoPath::from_bytes(path.as_str().as_bytes())).into_iter().collect()
    }

    pub(super) fn merge(
        &self,
        state: &PlanState,
        tasks: &[usize],
        cancel: &Cancel,
    ) -> Result<PlanEvent, GitError> {
        let repository = self.repository(Some(cancel))?;
        let except = self.except(&state.spec.tasks);
        let Some(mut tip) = state.tip.clone() else {
            return Ok(PlanEvent::BatchMerged { merged: Vec::new(), refused: Vec::new() });
        };
        let (mut merged, mut refused) = (Vec::new(), Vec::new());
        // What the last of them came to; a commit only if another is merged onto it.
        let mut top: Option<Oid> = None;
        let tasks = || tasks.iter().filter_map(|task| state.tasks.get(*task));
        let works: Vec<_> = tasks().filter_map(|task| task.head.as_ref().zip(task.onto.as_ref())).collect();
        let touching = repository.touching(&works, &except, Some(cancel))?;
        for task in tasks() {
            let id = task.card.id.clone();
            let (Some(base), Some(work)) = (&task.onto, &task.head) else {
                let tree = top.clone().map_or_else(|| repository.tree_of(&tip), Ok)?;
                merged.push(MergedTask { task: id, tree });
                continue;
            };
            if let Some(tree) = top.take() {
                tip = repository.conflict_commit(&tip, &tree, "Merged, to be verified", &[], Some(cancel))?;
            }
            let request = MergeRequest {
                base: &repository.stands_on(base, work, Some(cancel))?,
                tip: &tip,
                work,
                except: if touching.contains(work) { &except } else { &[] },
                index: &self.index(state),
                cancel: Some(cancel),
            };
            let (tree, paths) = match repository.merge(request)? {
                Merge::Clean { tree } => {
                    // The agent that was to settle a conflict may have left git's marks where they were.
                    let paths = match task.may_hold_marks() {
                        true => repository.with_markers(&tip, &tree, Some(cancel))?,
                        false => Vec::new(),
                    };
                    (tree, paths)
                }
                Merge::Conflict { tree, conflicts } => {
                    (tree, conflicts.into_iter().map(|conflict| conflict.path).collect())
                }
            };
            if paths.is_empty() {
                top = Some(tree.clone());
                merged.push(MergedTask { task: id, tree });
            } else {
                refused.push(UnmergedTask { task: id, paths, why: None });
            }
        }
        Ok(PlanEvent::BatchMerged { merged, refused })
    }

    pub(super) fn land(
        &self,
        state: &PlanState,
        upto: usize,
        cancel: &Cancel,
    ) -> Result<PlanEvent, GitError> {
        let repository = self.repository(Some(cancel))?;
        let (Some(batch), Some(mut tip)) = (&state.batch, state.tip.clone()) else {
            return Ok(PlanEvent::Hindered { error: "there is nothing that could land".to_owned() });
        };
        let spec = &state.spec;
        let mut stands = repository.tree_of(&tip)?;
        // A task without changes needs no commit.
        let mut told = Vec::new();
        for one in batch.merged.iter().take(upto) {
            let Some(task) = state.task(&one.task) else { continue };
            let is_new = std::mem::replace(&mut stands, one.tree.clone()) != one.tree;
            let say = || (one, subject(&task.card.title), spec.loop_of(&one.task, task.rounds));
            told.push(is_new.then(say));
        }
        let trailers = told.iter().flatten().map(|(one, _, of)| {
            let (plan, task) = (("Refrain-Plan", spec.id.as_str()), ("Refrain-Task", one.task.as_str()));
            [plan, task, ("Refrain-Loop", of.as_str())]
        });
        let trailers: Vec<_> = trailers.collect();
        let works = told.iter().flatten().zip(&trailers);
        let works: Vec<_> =
            works.map(|((one, message, _), trailers)| Work { tree: &one.tree, message, trailers }).collect();
        let landed = repository.land(LandRequest {
            reference: &spec.line(),
            tip: &tip,
            works: &works,
            bounds: Bounds::of(&spec.each.git, Some(cancel)),
        })?;
        let (made, refused, line_was) = match landed {
            LandingOutcome::Done { commits, was } => (commits, None, was),
            LandingOutcome::Secrets { commits, exposed } => {
                let all: Vec<_> = exposed.iter().map(ToString::to_string).collect();
                let why = "it would put what looks like a secret into the history";
                (commits, Some(format!("{why}: {}", all.join(", "))), None)
            }
        };
        if let Some(last) = made.last() {
            tip = last.clone();
        }
        let mut made = made.into_iter();
        let commits = told.iter().map_while(|one| match one {
            None => Some(None),
            Some(_) => made.next().map(Some),
        });
        let commits = commits.collect();
        Ok(PlanEvent::BatchLanded { commits, refused, tip, line_was })
    }

    /// The branches of tasks that have landed are of no further use: those of these tasks, with the rounds that they
    /// took. Only tidiness: one that stays does no harm, and is taken away when the plan is over.
    pub(super) fn retire(&self, spec: &PlanSpec, tasks: &[(TaskId, u32)]) {
        let Ok(repository) = self.repository(None) else { return };
        let names = tasks.iter().flat_map(|(id, rounds)| spec.branches(id, *rounds));
        let Ok(branches) = repository.branch_heads(names) else { return };
        let _ = repository.retire_branches(&branches, |worktree| self.take_slot_of(worktree));
    }

    /// The right to a worktree of the pool, so that no other loop begins in it while it is made to leave its branch: it
    /// would leave the other loop's branch. None if it is in use, or is none of the pool.
    fn take_slot_of(&self, worktree: &Worktree) -> Option<Slot> {
        let number = worktree.path.parent()?.file_name()?.parse().ok()?;
        let real = |path: Utf8PathBuf| path.canonicalize_utf8().unwrap_or(path);
        if !worktree.path.starts_with(real(self.project.pool(&self.state_home))) {
            return None;
        }
        let slot = Slot::take_number(&self.project, &self.state_home, number).ok().flatten()?;
        (real(slot.folder()) == worktree.path).then_some(slot)
    }

    pub(super) fn complete_wave(
        &self,
        state: &PlanState,
        wave: WaveNumber,
        cancel: &Cancel,
    ) -> Result<PlanEvent, GitError> {
        let place = wave.place();
        let is_its = |id: &TaskId| state.task(id).is_some_and(|task| task.wave == place);
        let (mut its, mut later): (Vec<_>, Vec<_>) =
            state.line.iter().cloned().partition(|(id, _)| is_its(id));
        let landed = |task: &&TaskState| task.wave == place && matches!(task.stage, Stage::Landed { .. });
        let mut tasks: Vec<TaskId> =
            state.tasks.iter().filter(landed).map(|task| task.card.id.clone()).collect();
        let Some(stand) = state.trunk.as_ref().filter(|_| !its.is_empty()) else {
            return Ok(PlanEvent::WaveCompleted {
                wave,
                commit: None,
                tasks,
                rest: Vec::new(),
                commits: Vec::new(),
            });
        };
        let repository = self.repository(Some(cancel))?;
        let mut made = self.make_wave(&repository, state, (wave, &its), stand, cancel)?;
        if made.is_none() {
            // It needs commits of later waves: they come with it.
            its.clone_from(&state.line);
            tasks.extend(later.drain(..).map(|(id, _)| id));
            made = self.make_wave(&repository, state, (wave, &its), stand, cancel)?;
        }
        let Some(RemadeWave { commit, mut commits, .. }) = made else {
            return Ok(PlanEvent::Hindered { error: format!("wave {wave} cannot be made of its commits") });
        };
        let rest = self.remake(&repository, state, &commit, &later, cancel)?;
        commits.retain(|made| !its.contains(&(made.task.clone(), made.commit.clone())));
        Ok(PlanEvent::WaveCompleted { wave, commit: Some(commit), tasks, rest, commits })
    }

    /// A wave and its commits; none if its commits do not go without others.
    fn make_wave(
        &self,
        repository: &Repository,
        state: &PlanState,
        (wave, its): (WaveNumber, &[(TaskId, Oid)]),
        stand: &Oid,
        cancel: &Cancel,
    ) -> Result<Option<RemadeWave>, GitError> {
        let spec = &state.spec;
        let title = |id: &TaskId| state.task(id).map(|task| subject(&task.card.title)).unwrap_or_default();
        let list: Vec<_> = its.iter().map(|(id, _)| format!("- {id}: {}", title(id))).collect();
        let tag = printable(&spec.tag).replace('\n', " ");
        let subject = state.wave_subject(wave, its.len());
        let mut message = format!("feat({tag}): {subject}\n\n{}", list.join("\n"));
        let left_out: Vec<_> = state.left_out(wave).map(|task| left_out(state, task)).collect();
        if !left_out.is_empty() {
            message = format!("{message}\n\nLeft out:\n{}", left_out.join("\n"));
        }
        let commits: Vec<_> = its.iter().map(|(_, commit)| commit.clone()).collect();
        let request = WaveRequest {
            reference: &spec.last_wave(),
            first_parent: stand,
            commits: &commits,
            message: &message,
            trailers: &[("Refrain-Plan", spec.id.as_str()), ("Refrain-Wave", &wave.to_string())],
            cancel: Some(cancel),
        };
        Ok(match repository.wave_commit(request)? {
            Wave::Made { commit, chain } => Some(remade(wave, its, commit, chain)),
            Wave::Conflict { .. } => None,
        })
    }

    /// What has landed of later waves, on top of this one.
    fn remake(
        &self,
        repository: &Repository,
        state: &PlanState,
        onto: &Oid,
        later: &[(TaskId, Oid)],
        cancel: &Cancel,
    ) -> Result<Vec<Oid>, GitError> {
        let commits: Vec<_> = later.iter().map(|(_, commit)| commit.clone()).collect();
        let line = state.spec.line();
        let request = RemakeRequest { reference: &line, onto, commits: &commits, cancel: Some(cancel) };
        let LinearBranch { picked, conflicts, .. } = repository.remake_line(request)?;
        match conflicts.first() {
            None => Ok(picked.into_iter().map(|(_, made)| made).collect()),
            Some((commit, _)) => Err(GitError::LandedConflict { landed: commit.clone(), onto: onto.clone() }),
        }
    }

    /// Claims the folder of the person, once no merge and no other plan uses it; or says which loop works there.
    fn claim(&self, folder: &Utf8Path, cancel: &Cancel) -> Result<Result<WorktreeLock, String>, GitError> {
        loop {
            match WorktreeLock::claim_alone(&self.project, folder) {
                Ok(Err(by)) if by.is_empty() => {}
                Ok(claimed) => {
                    let why =
                        |by: Vec<String>| format!("{}; wait until it has stopped", works_in(&by, folder));
                    return Ok(claimed.map_err(why));
                }
                Err(error) => return Ok(Err(chain(&error))),
            }
            if cancel.is_cancelled_within(PAUSE) {
                return Err(GitError::Cancelled);
            }
        }
    }

    /// `verified` is a tree on which the verification passed, beside what the plan's own line has.
    pub(super) fn hand_over(
        &self,
        state: &PlanState,
        verified: Option<&Oid>,
        cancel: &Cancel,
    ) -> Result<HandingOver, GitError> {
        let told = |event| Ok(HandingOver::Told(event));
        let (Some((_, branch)), Some(handed), Some(stand)) = (&state.base, &state.handed, &state.trunk)
        else {
            return told(refused(None::<String>));
        };
        let _alone = match self.claim(&state.spec.each.worktree, cancel)? {
            Ok(lock) => lock,
            Err(why) => return told(refused(why)),
        };
        let there = self.worktree(state, Some(cancel))?;
        let index = self.index(state);
        let give = |expected: &Oid, to: &Oid| {
            there.hand_over(HandOverRequest {
                id: &state.spec.id,
                branch: branch.as_deref(),
                expected,
                to,
                why: &format!("refrain plan {}", state.spec.id),
                is_from_sandbox: state.spec.each.sandbox.is_some(),
                index: &index,
                cancel: Some(cancel),
            })
        };
        let keep = |head: &Oid| {
            let rest = state.line.iter().map(|(_, commit)| commit.clone()).collect();
            PlanEvent::HandedOver { head: Some(head.clone()), rest, waves: Vec::new(), refused: None }
        };
        let mut said = give(handed, stand)?;
        if said == HandedOver::Done {
            return told(keep(stand));
        }
        if let HandedOver::Diverged { head } = &said {
            let repository = self.repository(Some(cancel))?;
            let with_rest = |head: &Oid, waves: Vec<RemadeWave>| -> Result<HandingOver, GitError> {
                let rest = self.remake(&repository, state, head, &state.line, cancel)?;
                told(PlanEvent::HandedOver { head: Some(head.clone()), rest, waves, refused: None })
            };
            let is_verified =
                |tree: &Oid| !state.spec.each.has_hard_gates() || verified.is_some_and(|it| it == tree);
            // Done before, by a runner that was killed before it could say so, or by an agent, which can move both.
            if repository.reference(&state.spec.last_wave())?.as_ref() == Some(head) {
                let plan = ("Refrain-Plan", state.spec.id.as_str());
                let mut waves = Vec::new();
                for (wave, its) in &state.handover.due {
                    let number = wave.to_string();
                    let trailers = [plan, ("Refrain-Wave", number.as_str())];
                    let found = repository.wave_on((handed, head), &trailers)?;
                    waves.extend(found.map(|(commit, chain)| remade(*wave, its, commit, chain)));
                }
                let tree = repository.tree_of(head)?;
                if waves.len() == state.handover.due.len() {
                    return if is_verified(&tree) {
                        with_rest(head, waves)
                    } else {
                        Ok(HandingOver::ToVerify(tree))
                    };
                }
            }
            // The person committed meanwhile: the waves are made anew on top of that.
            let head = head.clone();
            let (mut anew, mut waves) = (head.clone(), Vec::new());
            for (wave, its) in &state.handover.due {
                let Some(made) = self.make_wave(&repository, state, (*wave, its), &anew, cancel)? else {
                    return told(refused(format!(
                        "wave {wave} conflicts with what was committed meanwhile; merge it yourself with git merge {}",
                        stand.short()
                    )));
                };
                anew = made.commit.clone();
                waves.push(made);
            }
            // No gate has seen the merge of the two.
            let tree = repository.tree_of(&anew)?;
            if !is_verified(&tree) {
                return Ok(HandingOver::ToVerify(tree));
            }
            said = give(&head, &anew)?;
            if said == HandedOver::Done {
                return with_rest(&anew, waves);
            }
        }
        told(refused(why(&said, branch.as_deref())))
    }

    /// Removes the refs that kept the plan's commits from being swept away, and the branches of what has landed.
    pub(super) fn clear(&self, state: &PlanState) {
        let Ok(repository) = self.repository(None) else { return };
        let landed = state.tasks.iter().filter(|task| matches!(task.stage, Stage::Landed { .. }));
        let landed: Vec<_> = landed.map(|task| (task.card.id.clone(), task.rounds)).collect();
        self.retire(&state.spec, &landed);
        self.retire_saved(&repository, state);
        // Only where a branch has it all.
        if state.handover.due.is_empty() && state.line.is_empty() {
            let kept = repository.references(&[state.spec.line(), state.spec.last_wave()]);
            let at = kept.unwrap_or_default().into_iter().map(|(name, (at, _))| (name, at)).collect();
            let _ = repository.drop_references(&at);
        }
    }

    /// Removes the branches with saved content of worktrees that adds nothing to what has landed.
    fn retire_saved(&self, repository: &Repository, state: &PlanState) {
        let Some(tip) = &state.tip else { return };
        let pattern = format!("wip/slot-{}-*", state.spec.id);
        let adds_nothing = |branch: &String| -> Option<(String, Oid)> {
            let work = repository.branch_head(branch).ok()??;
            let base = repository.reference(&format!("{work}^")).ok()??;
            let index = self.index(state);
            let request =
                MergeRequest { base: &base, tip, work: &work, except: &[], index: &index, cancel: None };
            let Merge::Clean { tree } = repository.merge(request).ok()? else { return None };
            (repository.tree_of(tip).ok()? == tree).then(|| (branch.clone(), work))
        };
        let saved = repository.branches(&[&pattern], tip).unwrap_or_default();
        let branches = saved.iter().filter_map(adds_nothing).collect();
        let _ = repository.retire_branches(&branches, |worktree| self.take_slot_of(worktree));
    }

    pub(super) fn loop_dir(&self, id: &refrain_core::LoopId) -> LoopDir {
        self.project.loop_dir(id)
    }
}

pub(super) enum HandingOver {
    Told(PlanEvent),
    /// The person committed meanwhile: this tree is to be verified first.
    ToVerify(Oid),
}

pub(super) fn refused(why: impl Into<Option<String>>) -> PlanEvent {
    PlanEvent::HandedOver { head: None, rest: Vec::new(), waves: Vec::new(), refused: why.into() }
}

fn remade(wave: WaveNumber, its: &[(TaskId, Oid)], commit: Oid, chain: Vec<Oid>) -> RemadeWave {
    let pairs = its.iter().zip(chain);
    let commits = pairs.map(|((task, _), commit)| TaskCommit { task: task.clone(), commit }).collect();
    RemadeWave { wave, commit, commits }
}

/// Why a branch was not brought forward, and what to do.
pub(crate) fn why(said: &HandedOver, branch: Option<&str>) -> String {
    let branch = branch.unwrap_or("what was checked out");
    match said {
        HandedOver::Done => String::new(),
        HandedOver::Diverged { .. } => format!("{branch} moves all the time; try again"),
        HandedOver::InTheWay { paths } => {
            let first: Vec<_> = paths.iter().take(5).map(ToString::to_string).collect();
            let more = paths.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "your own changes are in the way in {}{more}; commit them, or move them aside with git stash push -u -- {}",
                first.join(", "),
                shlex::try_join(first.iter().map(String::as_str)).unwrap_or_default()
            )
        }
        HandedOver::OtherBranch { now } => {
            let now = now.as_deref().map_or_else(|| "no branch".to_owned(), str::to_owned);
            format!("{now} is checked out by now; git switch {branch}")
        }
        HandedOver::CheckedOut { by } => format!("{branch} is checked out in {by}, too"),
        HandedOver::InProgress(operation) => {
            format!("a {operation} is in progress; finish it, or give it up with git {operation} --abort")
        }
        HandedOver::IndexLocked => {
            "git's index is locked; if no git is running, remove index.lock from the git folder".to_owned()
        }
        HandedOver::BranchHeld { said } => {
            let said = line(said);
            format!("git did not move {branch}: {said}; remove what holds it, then try again")
        }
    }
}

/// A task that is not in its wave, in a line of the commit's message.
fn left_out(state: &PlanState, task: &TaskState) -> String {
    let why = state.blocked_because(task).unwrap_or_else(|| "it waits for what is not done".to_owned());
    format!("- {}: {} ({})", task.card.id, subject(&task.card.title), clip(&line(&why), SUBJECT))
}

/// A title as the first line of a commit's message.
fn subject(title: &str) -> String {
    let title = line(title);
    if title.is_empty() { "A task without a title".to_owned() } else { clip(&title, SUBJECT).into_owned() }
}

fn line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
