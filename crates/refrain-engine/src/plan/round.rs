//! One round of a task: its worktree, its loop, and what came of that.

pub(super) mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_core::agent::Usd;
use refrain_core::event::{Asker, End, Urgency};
use refrain_core::git::{Oid, RepoPath};
use refrain_core::r#loop::Grant;
use refrain_core::plan::{
    AgentFault, Graph, PlanSpec, PlanState, RunningTask, Stop, Task, TaskEnd, TaskEnded, TaskState,
    failed_gate,
};
use refrain_core::view::{self, Alive, trace};
use refrain_core::{LoopId, LoopState, Spec};
use refrain_git::{
    Bounds, GitError, MergeRequest, MergeResult, ReadyRequest, ReadySlot, Repository, SlotState,
};
use refrain_proc::orphans;
use refrain_store::access::trust::Content;
use refrain_store::project::pool::{self, Slot};
use refrain_store::tasks::TaskFile;
use refrain_store::{DiskError, LoopDir, journal};
use tokio::sync::Semaphore;

use super::landing::Landing;
use super::requests::tell;
use super::task_prompt;
use crate::blocking::blocking;
use crate::git_steps::pool::in_sandbox_of_slot;
use crate::git_steps::repository;
use crate::git_steps::worktree_setup::WorktreeSetup;
use crate::observe::telemetry::TaskExport;
use crate::{EngineError, Host, Runner, Service, Signals, chain};
use std::cell::Cell;
use std::rc::Rc;

pub(super) struct Round {
    pub(super) service: Service,
    pub(super) host: Host,
    pub(super) landing: Landing,
    /// The tasks, as their file could be read last.
    pub(super) tasks: Option<Arc<[Task]>>,
    pub(super) spec: PlanSpec,
    pub(super) started_at: Timestamp,
    pub(super) telling: Option<TaskExport>,
    pub(super) plan_dir: LoopDir,
    pub(super) task: TaskState,
    pub(super) running: RunningTask,
}

/// Permits to make a worktree ready: as many at a time as there are processors. With all at once none of their agents
/// would be at work before the last one could be.
pub(super) type Turns = Arc<Semaphore>;

pub(super) fn turns() -> Turns {
    Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)))
}

/// The result of preparing a round, before its loop is driven.
enum PreparedRound {
    /// The loop, and the worktree that it has.
    Drive(Box<Runner>, Slot),
    Over(Box<LoopState>),
}

/// The request that its loops get when they start, if everything is to come to rest.
pub(super) type Quiet = Rc<Cell<Option<(Urgency, bool, Asker)>>>;

pub(super) struct Begin {
    pub(super) at: Oid,
    /// Paths in which git's conflict marks are: those that both its earlier work and what landed since changed, and those
    /// in which that work had left the marks of an earlier round.
    pub(super) conflicts: Vec<RepoPath>,
}

/// Drives the round's loop, and returns its result, with the worktree that the loop had.
pub(super) async fn work(
    round: Round,
    slot: Option<Slot>,
    quiet: Quiet,
    turns: Turns,
) -> (TaskEnded, Option<Slot>) {
    let host = round.host.clone();
    // It is never closed; without it there would only be less order.
    let turn = turns.acquire_owned().await.ok();
    let (round, prepared) = blocking(move || {
        let prepared = round.prepare(slot);
        drop(turn);
        (round, prepared)
    })
    .await;
    let (state, slot) = match prepared {
        Ok(PreparedRound::Over(state)) => (Ok(*state), None),
        Ok(PreparedRound::Drive(runner, slot)) => {
            // The request to all loops was sent before this loop was there to receive it.
            let told = match quiet.get() {
                Some(how) => {
                    let (host, dir) = (host.clone(), round.landing.loop_dir(&round.running.id));
                    blocking(move || tell(&host, &dir, how)).await
                }
                None => Ok(()),
            };
            round.telling.iter().for_each(|telling| telling.of(&runner));
            let driven = match told {
                Ok(()) => Box::pin(runner.drive_unnoted(&host, Signals::None, || {})).await,
                Err(error) => Err(error),
            };
            (driven, Some(slot))
        }
        Err(error) => (Err(error), None),
    };
    blocking(move || (round.conclude(state), slot)).await
}

/// The worktrees of the tasks that are under way, as the journals have them. A resumed plan takes them before any task
/// looks for a free one; another plan may have one meanwhile.
pub(super) fn reserve(
    service: &Service,
    host: &Host,
    state: &PlanState,
) -> Result<BTreeMap<LoopId, Slot>, EngineError> {
    let project = service.project();
    let mut slots = BTreeMap::new();
    if state.spec.fleet.is_some() {
        return Ok(slots);
    }
    for (_, running) in state.running() {
        let dir = project.loop_dir(&running.id);
        let of_loop = match dir.exists() {
            true => slot_of(&journal::read_believed(&dir, &host.signing())?),
            // It was killed while its worktree was made ready.
            false => None,
        };
        let number = of_loop.unwrap_or(running.slot);
        let slot = Slot::take_number(project, &host.state_home, number)?;
        slots.extend(slot.map(|slot| (running.id.clone(), slot)));
    }
    Ok(slots)
}

/// The number of the worktree that a task's loop works in.
fn slot_of(state: &LoopState) -> Option<u32> {
    state.spec.worktree.parent()?.file_name()?.parse().ok()
}

impl Round {
    fn prepare(&self, slot: Option<Slot>) -> Result<PreparedRound, EngineError> {
        let dir = self.landing.loop_dir(&self.running.id);
        if dir.exists() {
            return self.take_up(&dir, slot);
        }
        let mut slot = match slot {
            Some(slot) => slot,
            None => self.take_slot()?,
        };
        // An agent that outlived its runner and its keeper may still write there. It is kept from others while we look
        // on.
        let mut passed_over = Vec::new();
        while slot.folder().exists() && orphans::process_in(slot.folder().as_std_path()).is_some() {
            passed_over.push(slot);
            slot = self.take_slot()?;
        }
        let repository = self.landing.repository(None)?;
        let begin = self.begin(&repository)?;
        let branch = self.spec.branch(&self.task.card.id, self.running.round);
        let mut was = None;
        loop {
            match self.make_ready(&repository, &slot, (&branch, &begin.at), was.as_ref()) {
                // Of a runner that was killed before the loop was there: no agent has worked on it.
                Err(EngineError::Git(GitError::BranchTaken(_))) if was.is_none() => {
                    was = Some(repository.branch_head(&branch)?.unwrap_or_else(|| begin.at.clone()));
                }
                Err(error) => return Err(error),
                Ok(ReadySlot::Ready { .. }) => break,
                Ok(ReadySlot::Held(reasons)) => {
                    slot.hold(&reasons)?;
                    slot = self.take_slot()?;
                }
            }
        }
        let there = repository.there(&slot.folder())?;
        self.prepare_worktree(&slot, &there)?;
        let spec = self.loop_spec(&slot.folder(), &repository, &begin)?;
        if spec.sandbox.is_some() {
            slot.note_sandbox(&spec)?;
        }
        let service = Service::open(&slot.folder(), self.host.clone())?;
        let runner = service.start_in(spec, Some(self.running.id.clone()), Some(&there))?;
        Ok(PreparedRound::Drive(Box::new(runner), slot))
    }

    /// Runs the setup of a worktree that was just made; one that a task used before is prepared.
    fn prepare_worktree(&self, slot: &Slot, there: &Repository) -> Result<(), EngineError> {
        let each = &self.spec.each;
        let Some(command) = &each.git.setup else { return Ok(()) };
        let folder = slot.folder();
        let dir = each.working_dir.strip_prefix(&each.worktree).map_or(folder.clone(), |it| folder.join(it));
        let setup = WorktreeSetup {
            command,
            repository: there,
            dir: &dir,
            env: &self.landing.env,
            sweeper: &repository::sweeper(&self.host, each, &self.plan_dir),
            cancel: None,
            log: &self.plan_dir.0.join(format!("setup-{}.log", slot.number())),
        };
        setup.run().map_err(|why| EngineError::Process("the worktree is not prepared", io::Error::other(why)))
    }

    fn take_slot(&self) -> Result<Slot, DiskError> {
        let is_sandboxed = self.spec.each.sandbox.is_some();
        Slot::take(self.service.project(), &self.host.state_home, is_sandboxed)
    }

    /// Checks out a branch, which was at `was`, in a worktree of the pool. If a task worked there in a sandbox, and this one
    /// has none, git looks at it in that sandbox, and nothing stays that git ignores.
    fn make_ready(
        &self,
        repository: &Repository,
        slot: &Slot,
        (branch, at): (&str, &Oid),
        was: Option<&Oid>,
    ) -> Result<ReadySlot, EngineError> {
        let is_foreign = self.spec.each.sandbox.is_none() && pool::sandboxed_by(&slot.dir())?.is_some();
        let confined = match is_foreign {
            true => Some(in_sandbox_of_slot(&self.host, repository, &slot.dir())?),
            false => None,
        };
        let ready = confined.as_ref().unwrap_or(repository).ready(ReadyRequest {
            folder: &slot.folder(),
            beside: &slot.dir(),
            branch,
            at,
            was,
            bounds: Bounds::of(&self.spec.each.git, None),
        })?;
        if is_foreign && matches!(ready, ReadySlot::Ready { .. }) {
            repository.clear_slot(&slot.folder())?;
            slot.forget_sandbox()?;
        }
        Ok(ready)
    }

    /// Another user of the worktree, while the loop had no runner, has left it on a branch of its own: it is brought
    /// back to the loop's, with all that was committed there, and all that was known of it besides.
    fn bring_back(&self, slot: &Slot, state: &LoopState) -> Result<(), EngineError> {
        let repository = self.landing.repository(None)?;
        let branch = self.spec.branch(&self.task.card.id, self.running.round);
        let standing = repository.standing(&slot.folder(), &slot.dir())?;
        if matches!(&standing, SlotState::On { branch: Some(on), .. } if *on == branch) {
            return Ok(());
        }
        let was = repository.branch_head(&branch)?;
        let at = was.as_ref().unwrap_or(&self.running.onto);
        match self.make_ready(&repository, slot, (&branch, at), was.as_ref())? {
            ReadySlot::Ready { .. } => {}
            ReadySlot::Held(reasons) => {
                return Err(EngineError::SlotHeld(slot.folder(), reasons.join("; ")));
            }
        }
        let proving = state.proving().filter(|proving| proving.of.is_some());
        let candidate = proving.and_then(|proving| proving.candidate.as_ref());
        if proving.is_some() && candidate.is_none_or(|candidate| candidate.partial) {
            // No complete candidate was taken yet: the claim would cover another tree than the one it was made of.
            return Err(EngineError::WorkGone { id: self.running.id.clone(), folder: slot.folder() });
        }
        let last = || state.proof.as_ref().map(|proof| &proof.candidate);
        match candidate.or_else(last).and_then(|candidate| candidate.tree.as_ref()) {
            Some(tree) => Ok(repository.there(&slot.folder())?.lay_out(tree)?),
            None => Ok(()),
        }
    }

    /// Whether a loop that was driven before may be driven on in this round.
    pub(super) fn goes_on(&self, state: &LoopState) -> bool {
        match state.ended.map(|ended| ended.end) {
            None | Some(End::Paused | End::Blocked { .. }) => true,
            // How much a shared cap leaves now is read as it begins.
            Some(End::BudgetExceeded { by: Some(_) }) => true,
            Some(End::BudgetExceeded { by: None }) => self.running.money > state.limits.max_cost,
            Some(End::Completed { .. } | End::Cancelled | End::IterationCap | End::Stuck | End::TimedOut) => {
                false
            }
        }
    }

    /// What a loop that was driven before gets: a larger share of the money. One that was lost with its share ends by that,
    /// and gets another share then.
    pub(super) fn grant(&self, state: &LoopState) -> Grant {
        let more = self.running.money.filter(|money| Some(*money) > state.limits.max_cost);
        Grant { max_cost: more, ..Grant::default() }
    }

    /// The existing loop: it is resumed from where it stopped, or was killed, if it may be.
    fn take_up(&self, dir: &LoopDir, slot: Option<Slot>) -> Result<PreparedRound, EngineError> {
        let state: LoopState = journal::read_believed(dir, &self.host.signing())?;
        let grant = self.grant(&state);
        if !self.goes_on(&state) || state.resume(&grant).is_err() {
            return Ok(PreparedRound::Over(Box::new(state)));
        }
        let slot = match slot {
            Some(slot) => Some(slot),
            None => {
                let number = slot_of(&state).unwrap_or(self.running.slot);
                Slot::take_number(self.service.project(), &self.host.state_home, number)?
            }
        };
        let Some(slot) = slot else {
            // Another task took it while there was no money for this one, which is tried again once that has ended.
            return match state.ended.map(|ended| ended.end) {
                Some(End::BudgetExceeded { by: None }) => Ok(PreparedRound::Over(Box::new(state))),
                _ => Err(EngineError::SlotTaken(state.spec.worktree)),
            };
        };
        self.bring_back(&slot, &state)?;
        if state.spec.sandbox.is_some() {
            slot.note_sandbox(&state.spec)?;
        }
        let runner = self.service.resume(&self.running.id, &grant, false)?;
        Ok(PreparedRound::Drive(Box::new(runner), slot))
    }

    /// The start of a new loop's branch: what has landed, with the task's earlier work merged onto it.
    pub(super) fn begin(&self, repository: &Repository) -> Result<Begin, GitError> {
        let onto = &self.running.onto;
        let Some((work, base)) = &self.task.before else {
            return Ok(Begin { at: onto.clone(), conflicts: Vec::new() });
        };
        let except = self.landing.except(&self.spec.tasks);
        let request = MergeRequest {
            base,
            tip: onto,
            work,
            except: &except,
            index: &self.plan_dir.0.join(format!("index-{}", self.running.id)),
            cancel: None,
        };
        let (tree, conflicts) = match repository.merge(request) {
            Ok(MergeResult::Clean { tree }) => (tree, Vec::new()),
            Ok(MergeResult::Conflict { tree, conflicts }) => (tree, conflicts),
            // No checkout can have it: the task begins anew, and the branch of that round stays.
            Err(error) if error.is_of_objects() => {
                return Ok(Begin { at: onto.clone(), conflicts: Vec::new() });
            }
            Err(error) => return Err(error),
        };
        let marked = repository.with_markers(onto, &tree, None)?;
        let conflicts: BTreeSet<_> = conflicts.into_iter().map(|it| it.path).chain(marked).collect();
        let conflicts: Vec<_> = conflicts.into_iter().collect();
        // Nothing was made before, or all of it has landed: a commit without changes would look like work.
        if conflicts.is_empty() && tree == repository.tree_of(onto)? {
            return Ok(Begin { at: onto.clone(), conflicts });
        }
        let message = format!("What task {} made before, on what landed since", self.task.card.id);
        let at = repository.conflict_commit(onto, &tree, &message, &[], None)?;
        Ok(Begin { at, conflicts })
    }

    pub(super) fn loop_spec(
        &self,
        folder: &Utf8Path,
        repository: &Repository,
        begin: &Begin,
    ) -> Result<Spec, EngineError> {
        let id = &self.task.card.id;
        let tasks = match &self.tasks {
            Some(tasks) => tasks.to_vec(),
            // Since the plan was taken over the file could not be read: why not is the answer.
            None => {
                let (path, tag) = (self.spec.tasks.clone(), self.spec.tag.clone());
                TaskFile::at(self.service.project(), path, tag)?.read()?.tasks.tasks
            }
        };
        let (graph, _) = Graph::build(tasks);
        let prompt = task_prompt::prompt(self, &graph, id, (repository, begin))?;
        let at = graph.index(id).ok_or_else(|| EngineError::TaskGone(id.clone()))?;
        let task = &graph.tasks()[at];
        // The file may name another command than when the plan was started: another agent can have written it.
        if let (Some(known), Some(command)) = (&self.spec.verifications, &task.verification)
            && !known.contains(command)
            && !self.service.trusts(Content::Command(command))
        {
            return Err(EngineError::UntrustedCommand(command.clone()));
        }
        let mut spec = self.spec.loop_spec(task, self.running.round, folder, prompt);
        spec.trace = Some(trace::of_task(&self.spec, self.started_at, id, self.running.round));
        spec.limits.max_iterations = Some(self.running.granted);
        spec.limits.max_cost = self.running.money.or(spec.limits.max_cost);
        Ok(spec)
    }

    /// The result of the loop, or why there is none.
    pub(super) fn conclude(&self, state: Result<LoopState, EngineError>) -> TaskEnded {
        let task = self.task.card.id.clone();
        state.and_then(|state| self.ended(&state)).unwrap_or_else(|error| {
            let error = format!("task {task} could not be worked on: {}", chain(&error));
            let end = TaskEnd::Hindered { error };
            TaskEnded {
                task,
                end,
                head: None,
                iterations: 0,
                cost: None,
                cost_at_least: false,
                assumed_cost: None,
                fault: None,
                failed_gate: None,
            }
        })
    }

    fn ended(&self, state: &LoopState) -> Result<TaskEnded, EngineError> {
        let task = self.task.card.id.clone();
        let branch = self.spec.branch(&task, self.running.round);
        let status = view::status(state, Alive::NO_RUNNER);
        let mut end = TaskEnd::of(state, &status.reason, status.needs.as_deref());
        let repository = self.landing.repository(None)?;
        let found = repository.references(&[format!("refs/heads/{branch}")])?.into_values().next();
        let mut head = found.as_ref().map(|(at, _)| at.clone());
        // Proven work lands, wherever its agent put it.
        if let (TaskEnd::Proven { tree: Some(tree) }, Some((_, stands))) = (&end, &found)
            && stands != tree
        {
            let message = format!("What task {task} made");
            head = Some(repository.conflict_commit(&self.running.onto, tree, &message, &[], None)?);
        }
        // Work that no checkout can have would not merge; without gates nothing looked at it before.
        if let (TaskEnd::Proven { tree: None } | TaskEnd::Hindered { .. }, Some(at)) = (&end, &head)
            && let Err(error) = repository.verify_tree(at, None)
        {
            match error.is_of_objects() {
                true => end = TaskEnd::Stopped(Stop::Other { reason: chain(&error) }),
                false => return Err(error.into()),
            }
        }
        let (iterations, cost, fault) = (state.charged, state.spent.cost, AgentFault::of(state));
        let cost_at_least = state.spent.cost_at_least;
        let assumed_cost = Some(state.assumed).filter(|assumed| *assumed > Usd(0));
        let failed_gate = failed_gate(state);
        Ok(TaskEnded { task, end, head, iterations, cost, cost_at_least, assumed_cost, fault, failed_gate })
    }
}
