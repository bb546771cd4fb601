//! What the plan's runner does, in numbers: record, fold, ask for the next step, execute it; and what people do with a
//! plan that has stopped.

use super::git::Work;
use super::person::Act;
use super::task_loop::{News, TaskLoop};
use super::world::World;
use crate::agent::Usd;
use crate::event::{Ask, Urgency};
use crate::gate::GateName;
use crate::git::{Oid, RepoPath};
use crate::ids::LoopId;
use crate::r#loop::tests::journal::runner;
use crate::machine::MachineEnd;
use crate::plan::{
    FailedGate, MergedTask, PlanEnd, PlanEvent, PlanStep, RunningTask, Stage, TaskEnd, TaskEnded, TaskId,
    TaskStarted, UnmergedTask, WaveNumber, next_step,
};
use crate::simulation::Crash;
use crate::simulation::tally::Tally;
use crate::spec::Millis;

/// A plan that takes more steps than this while no time passes spins.
const MANY_STEPS: u32 = 1_500;
/// After so many events a person loses patience, and cancels.
const MANY_EVENTS: u64 = 2_500;

/// The running work of git, or of the verification.
#[derive(Clone, Debug)]
pub(super) struct Job {
    until: u64,
    step: PlanStep,
    /// Those that it is about, and their work: the file may put them elsewhere meanwhile, or take them off.
    tasks: Vec<(TaskId, u64)>,
}

impl World {
    /// One runner's life, or what a person does with a stopped plan; returns whether it may continue.
    pub(super) fn live(&mut self, tally: &mut Tally) -> Result<bool, Crash> {
        self.rest();
        self.bring_file_up_to_date();
        if self.state.is_final() {
            return Ok(false);
        }
        if self.state.ended.is_some() && !self.stands_still(tally)? {
            return Ok(false);
        }
        self.append(PlanEvent::RunnerStarted { runner: runner(1) })?;
        self.live.tasks_changed = true;
        // Before any task looks for a free one.
        let reserved = self.state.running().map(|(_, running)| (running.slot, running.id.clone()));
        self.pool = reserved.collect();
        self.drive(tally)?;
        Ok(true)
    }

    /// What a person does with a stopped plan; returns whether it continues.
    fn stands_still(&mut self, tally: &mut Tally) -> Result<bool, Crash> {
        let random = &mut self.random;
        if self.person.patience == 0 {
            return Ok(false);
        }
        self.person.patience -= 1;
        self.clock += random.below(1_000_000);
        if random.once_in(3) {
            self.edit(tally);
        }
        // The file is read before blocked tasks are resumed.
        while self.state.tasks.iter().any(|task| self.state.awaits_tune(task)) && self.random.once_in(2) {
            self.tune(tally)?;
        }
        // A requested cancel is finished first: its runner died after the request.
        let is_cancelled = self.state.cancel.is_some();
        if is_cancelled || self.random.once_in(12) {
            if !is_cancelled {
                self.append(PlanEvent::Asked {
                    request: None,
                    ask: Ask::Cancel(Urgency::Now),
                    by: Default::default(),
                })?;
            }
            let step = next_step(&self.state, &self.live, self.now());
            assert_eq!(step, PlanStep::Finish(PlanEnd::Cancelled), "what stands still is cancelled at once");
            self.append(PlanEvent::Ended(PlanEnd::Cancelled))?;
            tally.add("end", "cancelled while it stood still");
            return Ok(false);
        }
        let mut limits = self.state.limits.clone();
        let more = |random: &mut crate::simulation::random::Random| random.between(1, 40);
        match self.state.ended.map(|ended| ended.end) {
            Some(PlanEnd::IterationCap) => {
                limits.total =
                    self.state.used + u32::try_from(more(&mut self.random)).expect("a small number");
            }
            Some(PlanEnd::BudgetExceeded) => {
                let Usd(all) = limits.max_cost.expect("a budget");
                limits.max_cost = Some(Usd(all + more(&mut self.random) * 100_000_000));
            }
            Some(PlanEnd::TimedOut) => {
                let Millis(all) = limits.max_duration.expect("a limit");
                limits.max_duration = Some(Millis(all + more(&mut self.random) * 10_000));
            }
            Some(PlanEnd::Completed | PlanEnd::Cancelled | PlanEnd::Blocked | PlanEnd::Paused) | None => {}
        }
        self.append(PlanEvent::Resumed { limits })?;
        tally.add("plan", "resumed");
        Ok(true)
    }

    fn drive(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        loop {
            self.idle_steps += 1;
            assert!(self.idle_steps < MANY_STEPS, "it spins");
            if self.state.seq > MANY_EVENTS && self.state.cancel.is_none() {
                tally.add("plan", "lost patience with");
                self.append(PlanEvent::Asked {
                    request: None,
                    ask: Ask::Cancel(Urgency::Now),
                    by: Default::default(),
                })?;
            }
            let step = next_step(&self.state, &self.live, self.now());
            if self.aloud {
                println!("{:>8} {step:?}", self.clock);
            }
            match step {
                PlanStep::TakeBase => {
                    let head = self.git.branch.clone();
                    self.append(PlanEvent::BaseTaken { head, branch: Some("main".into()) })?;
                }
                PlanStep::TakeTasks => self.take_tasks(tally)?,
                PlanStep::Start { task, granted, money } => self.start(task, granted, money)?,
                PlanStep::Drive { task } => {
                    tally.add("task", "driven again");
                    self.drive_loop(task);
                }
                PlanStep::Quiet { urgency, for_good } => {
                    self.live.told = Some(urgency);
                    for id in &self.live.driven {
                        let now = self.clock;
                        self.loops.get_mut(id).expect("a loop").tell(now, urgency, for_good);
                    }
                }
                step @ (PlanStep::Merge { .. }
                | PlanStep::Verify { .. }
                | PlanStep::Land { .. }
                | PlanStep::CompleteWave { .. }
                | PlanStep::HandOver) => {
                    assert!(self.job.is_none(), "git does two things at a time");
                    if let PlanStep::Merge { .. } = &step {
                        self.ledger.assert_last_chance_is_not_overtaken(&self.state);
                    }
                    let takes = self.random.pick(&[0, 100, 5_000, 60_000]);
                    let until = self.clock + self.random.below(takes + 1);
                    let places = if let PlanStep::Merge { tasks } = &step { tasks.as_slice() } else { &[] };
                    let names = places.iter().map(|task| self.state.tasks[*task].card.id.clone());
                    let tasks = names.map(|id| (id.clone(), self.piece(&id))).collect();
                    self.job = Some(Job { until, step, tasks });
                    self.live.working = true;
                }
                PlanStep::Abandon => {
                    tally.add("git", "abandoned");
                    self.job = None;
                    self.live.working = false;
                }
                PlanStep::Await { until } => {
                    if self.live.told.is_none() && !self.is_winding_down() {
                        self.ledger.assert_no_task_starves(&self.state, self.job.is_some());
                    }
                    self.wait(until, tally)?;
                }
                PlanStep::Finish(end) => {
                    assert!(
                        self.live.driven.is_empty() && self.job.is_none(),
                        "it ends in the middle of something"
                    );
                    self.assert_file_says_so();
                    tally.add("end", end.name());
                    self.append(PlanEvent::Ended(end))?;
                }
                PlanStep::Rest => return Ok(()),
            }
        }
    }

    fn is_winding_down(&self) -> bool {
        self.state.pause.is_some() || self.state.cancel.is_some() || self.state.hindered.is_some()
    }

    fn take_tasks(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        // The plan's statuses are in it before it is read.
        self.bring_file_up_to_date();
        let event = match self.file.read() {
            Some(tasks) => PlanEvent::TasksTaken { tasks },
            None => {
                tally.add("file", "refused");
                PlanEvent::TasksRefused { error: "a cycle".into() }
            }
        };
        self.live.tasks_changed = false;
        self.append(event)?;
        // A rejected edit of a person does not stay.
        self.bring_file_up_to_date();
        Ok(())
    }

    fn start(&mut self, task: usize, granted: u32, money: Option<Usd>) -> Result<(), Crash> {
        let state = &self.state.tasks[task];
        let round = state.rounds + 1;
        let id = self.state.spec.loop_of(&state.card.id, round);
        let is_free = |slot: &u32| !self.pool.contains_key(slot);
        let started = TaskStarted {
            task: state.card.id.clone(),
            round,
            id,
            slot: (0..).find(is_free).expect("a slot"),
            onto: self.state.tip.clone().expect("something to begin at"),
            granted,
            money,
        };
        self.append(PlanEvent::TaskStarted(Box::new(started)))?;
        self.drive_loop(task);
        Ok(())
    }

    fn drive_loop(&mut self, task: usize) {
        let id = self.state.tasks[task].card.id.clone();
        let (_, running) = self.state.running().find(|(place, _)| *place == task).expect("it runs");
        let RunningTask { id: name, onto, money, slot, .. } = running.clone();
        let other = self.pool.insert(slot, name.clone());
        assert!(other.is_none_or(|other| other == name), "two loops in worktree {slot}");
        if !self.loops.contains_key(&name) {
            let base = self.git.content(&onto).clone();
            let fresh = TaskLoop::sample(&mut self.random, self.temper, id, base);
            self.loops.insert(name.clone(), fresh);
        }
        let it = self.loops.get_mut(&name).expect("it is there");
        it.drive(&mut self.random, self.clock, money);
        assert!(self.live.driven.insert(name), "no loop is driven twice");
        assert!(self.live.driven.len() <= self.state.spec.jobs as usize, "more run than may");
    }

    fn wait(&mut self, until: Option<jiff::Timestamp>, tally: &mut Tally) -> Result<(), Crash> {
        let until = until.map(|until| {
            let start = crate::r#loop::tests::journal::time(0);
            u64::try_from(until.duration_since(start).as_millis()).expect("later")
        });
        let of_loops = self.live.driven.iter().filter_map(|id| self.loops[id].at).min();
        let of_job = self.job.as_ref().map(|job| job.until);
        let next = [of_loops, of_job, self.person.acts.next(), until].into_iter().flatten().min();
        let next = next.expect("it waits for nothing");
        if next > self.clock {
            (self.clock, self.idle_steps) = (next, 0);
        }
        if self.person.acts.next().is_some_and(|at| at <= self.clock) {
            return self.apply_person_act(tally);
        }
        if of_job.is_some_and(|at| at <= self.clock) {
            let job = self.job.take().expect("there is one");
            self.live.working = false;
            return self.finish(&job, tally);
        }
        let id = self.live.driven.iter().find(|id| self.loops[*id].at.is_some_and(|at| at <= self.clock));
        match id.cloned() {
            Some(id) => self.hear_of(&id, tally),
            None => Ok(()),
        }
    }

    fn apply_person_act(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        match self.person.acts.act() {
            Act::Ask(ask) => self.append(PlanEvent::Asked { request: None, ask, by: Default::default() }),
            Act::Edit => {
                self.edit(tally);
                self.live.tasks_changed = true;
                Ok(())
            }
            Act::Tune => self.tune(tally),
            Act::Commit => {
                self.git.meddle();
                Ok(())
            }
        }
    }

    fn edit(&mut self, tally: &mut Tally) {
        let what = self.file.edit(&mut self.random);
        if self.aloud {
            println!("{:>8} the person edits: {what}", self.clock);
        }
        tally.add("file", what);
    }

    fn tune(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        let waiting = self.state.tasks.iter().find(|task| self.state.awaits_tune(task));
        let Some(task) = waiting.map(|task| task.card.id.clone()) else { return Ok(()) };
        tally.add("task", "tuned");
        self.append(PlanEvent::TaskTuned { task, words: "otherwise".into() })
    }

    fn hear_of(&mut self, id: &LoopId, tally: &mut Tally) -> Result<(), Crash> {
        let running = self.state.running().find(|(_, running)| running.id == *id);
        let (task, RunningTask { granted, money, slot, .. }) =
            running.map(|(task, running)| (task, running.clone())).expect("it runs");
        let it = self.loops.get_mut(id).expect("it is there");
        let end = match it.go_on(&mut self.random, self.clock, granted, money) {
            News::Nothing => return Ok(()),
            News::Over(end) => end,
            News::Done => {
                let is_empty = self.random.once_in(12);
                let work = Work { task: it.task.clone(), base: it.base.clone(), is_empty };
                let (number, tree) = self.git.work(work);
                let tree = self.state.spec.verifies().then_some(tree);
                it.work = Some(number);
                it.over(TaskEnd::Proven { tree: tree.clone() });
                TaskEnd::Proven { tree }
            }
        };
        tally.add("task", name_of(&end));
        let fault = it.fault(&end);
        if matches!(end, TaskEnd::Proven { .. } | TaskEnd::Stopped(_)) {
            self.pool.remove(&slot);
        }
        let ended = TaskEnded {
            task: self.state.tasks[task].card.id.clone(),
            end,
            head: None,
            iterations: it.iterations,
            cost: Some(Usd(it.cost)),
            cost_at_least: false,
            assumed_cost: None,
            fault,
            failed_gate: None,
        };
        it.at = None;
        self.append(PlanEvent::TaskEnded(Box::new(ended)))?;
        self.live.driven.remove(id);
        Ok(())
    }

    /// The piece of work that waits to land.
    fn piece(&self, task: &TaskId) -> u64 {
        let task = self.state.task(task).expect("a task");
        let id = self.state.spec.loop_of(&task.card.id, task.rounds);
        self.loops[&id].work.expect("what is proven left something")
    }

    fn finish(&mut self, job: &Job, tally: &mut Tally) -> Result<(), Crash> {
        if self.hinders > 0 && self.random.once_in(self.hinders) {
            tally.add("git", "hinders");
            return self.append(PlanEvent::Hindered { error: "no space left".into() });
        }
        let tip = self.state.tip.clone().expect("something to begin at");
        let event = match &job.step {
            PlanStep::Merge { .. } => self.merge(&tip, &job.tasks, tally),
            PlanStep::Verify { upto } => {
                let batch = self.state.batch.as_ref().expect("a batch");
                let is_bad = self.git.fails(self.git.content(&batch.merged[*upto - 1].tree));
                tally.add("batch", if is_bad { "failed" } else { "passed" });
                let gate = "test".parse::<GateName>().expect("a name");
                PlanEvent::BatchVerified {
                    upto: *upto,
                    failed: is_bad.then(|| FailedGate { gate, log: "log".into() }),
                }
            }
            PlanStep::Land { upto } => {
                let merged = self.state.batch.as_ref().expect("a batch").merged.clone();
                let works: Vec<_> = merged.iter().map(|one| self.piece(&one.task)).collect();
                let (landed, is_again) = self.git.land(&tip, &merged, *upto, &works);
                tally.add("batch", if is_again { "found on the line" } else { "landed" });
                let (commits, refused, tip) = (landed.commits, landed.refused, landed.tip);
                PlanEvent::BatchLanded { commits, refused, tip, line_was: None }
            }
            PlanStep::CompleteWave { wave } => self.complete(*wave, tally),
            PlanStep::HandOver => {
                if self.person.is_in_the_way(self.clock) {
                    tally.add("handover", "refused");
                    PlanEvent::HandedOver {
                        head: None,
                        rest: Vec::new(),
                        waves: Vec::new(),
                        refused: Some("a file would be overwritten".into()),
                    }
                } else {
                    tally.add("handover", "done");
                    let trunk = self.state.trunk.clone().expect("something is complete");
                    let head = self.git.hand_over(&trunk);
                    let rest = self.anew(&head, &[]);
                    PlanEvent::HandedOver { head: Some(head), rest, waves: Vec::new(), refused: None }
                }
            }
            other => panic!("{other:?} is no work of git's"),
        };
        self.append(event)
    }

    fn merge(&mut self, tip: &Oid, tasks: &[(TaskId, u64)], tally: &mut Tally) -> PlanEvent {
        let (mut merged, mut refused) = (Vec::new(), Vec::new());
        let mut content = self.git.content(tip).clone();
        for (task, piece) in tasks.iter().cloned() {
            if self.git.cannot_merge(piece) {
                tally.add("batch", "cannot be merged");
                refused.push(UnmergedTask {
                    task,
                    paths: Vec::new(),
                    why: Some("another repository".into()),
                });
            } else if self.git.conflicts(piece, &content) {
                tally.add("batch", "conflict");
                let paths = vec![RepoPath::from_bytes(b"src/lib.rs")];
                refused.push(UnmergedTask { task, paths, why: None });
            } else {
                let is_empty = self.git.works[usize::try_from(piece).expect("a work")].is_empty;
                content.extend((!is_empty).then_some(piece));
                merged.push(MergedTask { task, tree: self.git.tree(content.clone()) });
            }
        }
        PlanEvent::BatchMerged { merged, refused }
    }

    fn complete(&mut self, wave: WaveNumber, tally: &mut Tally) -> PlanEvent {
        let places = &self.state.waves[wave.place().expect("a number from 1")].tasks;
        let landed: Vec<_> = places
            .iter()
            .copied()
            .filter(|task| matches!(self.state.tasks[*task].stage, Stage::Landed { .. }))
            .collect();
        let trunk = self.state.trunk.clone().expect("something to begin at");
        let mut content = self.git.content(&trunk).clone();
        let is_changed =
            |task: &&usize| matches!(self.state.tasks[**task].stage, Stage::Landed { commit: Some(_) });
        let pieces: Vec<_> = landed
            .iter()
            .filter(is_changed)
            .map(|task| self.piece(&self.state.tasks[*task].card.id))
            .collect();
        content.extend(&pieces);
        let commit = (!pieces.is_empty()).then(|| self.git.commit(content));
        tally.add("wave", if commit.is_some() { "completed" } else { "completed, and nothing in it" });
        let tasks = landed.into_iter().map(|task| self.state.tasks[task].card.id.clone()).collect();
        let tasks: Vec<TaskId> = tasks;
        let rest = commit.as_ref().map(|commit| self.anew(commit, &tasks)).unwrap_or_default();
        PlanEvent::WaveCompleted { wave, commit, tasks, rest, commits: Vec::new() }
    }

    /// The landed work of later waves, anew on top of a commit.
    fn anew(&mut self, onto: &Oid, complete: &[TaskId]) -> Vec<Oid> {
        let later = self.state.line.iter().filter(|(id, _)| !complete.contains(id));
        let pieces: Vec<_> = later.map(|(id, _)| self.piece(id)).collect();
        let mut content = self.git.content(onto).clone();
        let mut made = Vec::new();
        for piece in pieces {
            content.insert(piece);
            made.push(self.git.commit(content.clone()));
        }
        made
    }
}

fn name_of(end: &TaskEnd) -> &'static str {
    match end {
        TaskEnd::Proven { .. } => "proven",
        TaskEnd::Stopped(_) => "stopped",
        TaskEnd::OutOfMoney => "out of money",
        TaskEnd::CapReached { .. } => "cap reached",
        TaskEnd::Rests => "rests",
        TaskEnd::Hindered { .. } => "hindered",
    }
}
