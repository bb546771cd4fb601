//! How events change a plan. Whatever a journal holds, each prefix of it is a plan that can go on.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;

use super::event::{PlanEnd, PlanEnded, PlanEvent, PlanStarted, Stop, TaskEnd, TaskEnded, TaskStarted};
use super::graph::Graph;
use super::state::{Batch, HandOver, PlanState, Ready, Return, Running, Stage, TaskState, Wave};
use super::task::{Card, Task, TaskId, TaskStatus};
use crate::agent::Usd;
use crate::event::{Ask, FORMAT, Record};
use crate::fold::Fold;
use crate::git::Oid;
use crate::r#loop::Damage;

/// How often a task comes back although its own gates had passed, before a person is needed.
pub const MAX_RETURNS: u32 = 2;

impl Fold for PlanState {
    type Event = PlanEvent;

    fn begin(record: &Record<PlanEvent>) -> Result<Self, Damage> {
        let Record { seq: 1, at, event: PlanEvent::Started(started) } = record else {
            return Err(Damage::NoStart(record.seq));
        };
        let PlanStarted { format, spec, .. } = started.as_ref();
        if *format != FORMAT {
            return Err(Damage::Format { found: *format });
        }
        Ok(Self {
            limits: spec.limits.clone(),
            spec: spec.clone(),
            seq: 1,
            started_at: *at,
            updated_at: *at,
            runner: None,
            base: None,
            tip: None,
            stand: None,
            handed: None,
            line: Vec::new(),
            tasks: Vec::new(),
            graph: Graph::build(Vec::new()).0,
            refused: None,
            waves: Vec::new(),
            batch: None,
            handover: HandOver::default(),
            used: 0,
            reserved: 0,
            spent: None,
            pause: None,
            cancel: None,
            hindered: None,
            ended: None,
            active: Duration::ZERO,
            answered: BTreeSet::new(),
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            proven: BTreeSet::new(),
            taken: false,
        })
    }

    fn apply(&mut self, record: &Record<PlanEvent>) -> Result<(), Damage> {
        let Record { seq, at, event } = record;
        if *seq != self.seq + 1 {
            return Err(Damage::Sequence { expected: self.seq + 1, found: *seq });
        }
        if *at < self.updated_at {
            return Err(Damage::Time(*seq));
        }
        self.change(event, *at).map_err(|what| Damage::Order { seq: *seq, what })?;
        // Between two runners nobody drives it: that time is not its own.
        let is_driven = self.runner.is_some()
            && !matches!(
                event,
                PlanEvent::RunnerStarted { .. } | PlanEvent::Resumed { .. } | PlanEvent::JournalTorn { .. }
            );
        if is_driven {
            self.active = self.active_at(*at);
        }
        (self.seq, self.updated_at) = (*seq, *at);
        Ok(())
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn torn(bytes: u64, kept_as: String) -> PlanEvent {
        PlanEvent::JournalTorn { bytes, kept_as }
    }

    fn restored(bytes: u64) -> PlanEvent {
        PlanEvent::JournalRestored { bytes }
    }
}

impl PlanState {
    fn change(&mut self, event: &PlanEvent, at: Timestamp) -> Result<(), &'static str> {
        match event {
            PlanEvent::Started(_) => return Err("a plan starts once"),
            PlanEvent::RunnerStarted { .. } if self.ended.is_some() => {
                return Err("a plan that has stopped is resumed before it is driven");
            }
            PlanEvent::RunnerStarted { runner } => self.runner = Some(runner.clone()),
            PlanEvent::TasksTaken { tasks } => self.take(tasks),
            PlanEvent::TasksRefused { error } => self.refused = Some(error.clone()),
            PlanEvent::BaseTaken { head, branch } => {
                self.base = Some((head.clone(), branch.clone()));
                self.tip.get_or_insert_with(|| head.clone());
                self.stand.get_or_insert_with(|| head.clone());
                self.handed.get_or_insert_with(|| head.clone());
            }
            PlanEvent::TaskStarted(started) => self.begin_round(started, at)?,
            PlanEvent::TaskEnded(ended) => self.end_round(ended, at)?,
            PlanEvent::TaskTuned { task, words } => {
                let task = self.place(task)?;
                if !matches!(self.tasks[task].stage, Stage::Stopped(_)) {
                    return Err("only a task that has stopped is tuned");
                }
                self.retry(task, Return::Tuned(words.clone()));
                self.arrange();
            }
            PlanEvent::BatchMerged { merged, refused } => {
                if self.batch.is_some() {
                    return Err("one batch lands after the other");
                }
                for one in refused {
                    let task = self.place(&one.task)?;
                    self.proven.remove(&task);
                    match &one.why {
                        Some(reason) => self.stop(task, Stop::Other { reason: reason.clone() }, at),
                        None => self.send_back(task, Return::Conflict(one.paths.clone()), at),
                    }
                }
                let mut good = 0;
                for (number, one) in merged.iter().enumerate() {
                    let task = self.place(&one.task)?;
                    self.proven.remove(&task);
                    // What a task proved already is that very tree.
                    let is_proven = matches!(&self.tasks[task].stage, Stage::Proven { tree: Some(tree) } if *tree == one.tree);
                    if is_proven || !self.spec.verifies() {
                        good = number + 1;
                    }
                }
                self.batch = (!merged.is_empty()).then(|| Batch { merged: merged.clone(), good, bad: None });
            }
            PlanEvent::BatchVerified { upto, failed } => {
                let batch = self.batch.as_mut().ok_or("no batch lands")?;
                if batch.question() != Some(*upto) {
                    return Err("that was not asked");
                }
                match failed {
                    None => batch.good = *upto,
                    Some(failed) => batch.bad = Some((*upto, failed.clone())),
                }
            }
            PlanEvent::BatchLanded { commits, refused, tip } => {
                self.land_batch(commits, refused.as_ref(), tip, at)?
            }
            PlanEvent::WaveCompleted { wave, commit, tasks, rest } => {
                self.complete(*wave, commit.as_ref(), tasks, rest, at)?;
            }
            PlanEvent::HandedOver { head: Some(head), rest, .. } => {
                self.handover = HandOver::default();
                self.handed = Some(head.clone());
                self.stand_on(head, rest)?;
            }
            PlanEvent::HandedOver { head: None, refused, .. } => {
                self.handover.refused.clone_from(refused);
            }
            PlanEvent::Hindered { error } => self.hindered = Some(error.clone()),
            PlanEvent::Asked { request, ask } => {
                self.answered.extend(request.clone());
                match ask {
                    Ask::Pause(urgency) => self.pause = self.pause.max(Some(*urgency)),
                    Ask::Cancel(urgency) => self.cancel = self.cancel.max(Some(*urgency)),
                    Ask::Steer(_) | Ask::Proceed => return Err("a plan is not steered, its tasks are"),
                }
            }
            PlanEvent::Ended(end) => self.ended = Some(PlanEnded { at, end: *end }),
            PlanEvent::Resumed { limits } => {
                self.limits = limits.clone();
                (self.ended, self.pause, self.hindered) = (None, None, None);
                self.handover.refused = None;
                // What a person was asked to tune waits for that.
                let is_tried = |n: &usize| {
                    let task = &self.tasks[*n];
                    matches!(task.stage, Stage::Stopped(_)) && !self.awaits_tune(task)
                };
                let again: Vec<_> = (0..self.tasks.len()).filter(is_tried).collect();
                for task in again {
                    self.tasks[task].returns = 0;
                    self.retry(task, Return::Resumed);
                }
                self.arrange();
            }
            PlanEvent::JournalTorn { .. } | PlanEvent::JournalRestored { .. } => {}
        }
        Ok(())
    }

    /// How long it has been driven by then, where somebody drives it now.
    fn active_at(&self, at: Timestamp) -> Duration {
        self.active + Duration::try_from(at.duration_since(self.updated_at)).unwrap_or_default()
    }

    fn place(&self, task: &TaskId) -> Result<usize, &'static str> {
        self.graph.index(task).ok_or("there is no such task")
    }

    /// The file is as it is now. What this plan made of a task stands, but where a person said otherwise since.
    fn take(&mut self, cards: &[Card]) {
        let old = std::mem::take(&mut self.tasks);
        let written: Vec<_> = old.iter().map(|task| self.status_of(task)).collect();
        let known: HashMap<TaskId, (TaskState, TaskStatus)> =
            old.into_iter().zip(written).map(|(task, word)| (task.card.id.clone(), (task, word))).collect();
        let mut known = known;
        self.tasks = cards
            .iter()
            .map(|card| match known.remove(&card.id) {
                Some((task, written)) => task.told(card, written),
                None => TaskState::new(card),
            })
            .collect();
        // What is gone from the file, but under way or landed, is still the plan's.
        let mut gone: Vec<_> =
            known.into_values().map(|(task, _)| task).filter(TaskState::is_begun).collect();
        gone.sort_by(|a, b| a.card.id.cmp(&b.card.id));
        self.tasks.extend(gone);
        (self.taken, self.refused) = (true, None);
        self.arrange();
    }

    /// Waves, and what each task waits for, as everything stands. Waves that are complete stay as they were; what is left of
    /// them, or new, comes with the first that is not.
    fn arrange(&mut self) {
        // To the graph all that is, or was, this plan's to do counts.
        self.graph = Graph::build(self.tasks.iter().map(TaskState::counted).collect()).0;
        let first_open = self.current_wave();
        self.waves.truncate(first_open);
        let (mut ready, mut running, mut proven) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let order: Vec<usize> = self.graph.waves().iter().flatten().copied().collect();
        let in_batch: BTreeSet<&TaskId> =
            self.batch.iter().flat_map(|batch| &batch.merged).map(|one| &one.task).collect();
        self.waves.iter_mut().for_each(|wave| wave.tasks.clear());
        for task in order {
            let dependencies = self.needs(task);
            let unmet = dependencies.iter().filter(|n| !self.tasks[**n].is_met()).count();
            let behind = dependencies.iter().filter_map(|n| self.tasks[*n].wave).max();
            let is_hopeless = dependencies.iter().any(|n| self.tasks[*n].is_lost());
            let state = &mut self.tasks[task];
            state.is_hopeless = is_hopeless;
            if let Stage::Waiting(waits) = &mut state.stage {
                *waits = unmet;
            }
            let is_over = state.is_settled() && state.wave.is_some_and(|wave| wave < first_open);
            let wave = match state.wave {
                Some(wave) if is_over => wave,
                _ => first_open.max(behind.map_or(0, |wave| wave + 1)),
            };
            state.wave = Some(wave);
            let is_settled = state.is_settled();
            match &state.stage {
                Stage::Waiting(0) if !is_hopeless => {
                    ready.insert(task);
                }
                Stage::Running(_) => {
                    running.insert(task);
                }
                Stage::Proven { .. } if !in_batch.contains(&state.card.id) => {
                    proven.insert(task);
                }
                Stage::Waiting(_)
                | Stage::Proven { .. }
                | Stage::Out
                | Stage::Landed { .. }
                | Stage::Stopped(_) => {}
            }
            if self.waves.len() <= wave {
                self.waves.resize_with(wave + 1, Wave::default);
            }
            self.waves[wave].tasks.push(task);
            self.waves[wave].open += usize::from(!is_settled);
        }
        self.ready = BTreeSet::new();
        ready.into_iter().for_each(|task| self.make_ready(task));
        (self.running, self.proven) = (running, proven);
    }

    /// What has to be done before a task; a part of it that was given up is no reason to wait for the whole.
    fn needs(&self, task: usize) -> Vec<usize> {
        let is_given_up = |n: usize| {
            let card = &self.tasks[n].card;
            card.status == TaskStatus::Cancelled && self.graph.parent(n) == Some(task)
        };
        self.graph.dependencies(task).into_iter().filter(|n| !is_given_up(*n)).collect()
    }

    fn make_ready(&mut self, task: usize) {
        let turn = self.turn(task);
        self.ready.extend(turn);
    }

    /// When a task that is ready comes.
    fn turn(&self, task: usize) -> Option<Ready> {
        let rank = match self.spec.jobs {
            1 => 0,
            _ => i64::try_from(self.graph.rank(task)).unwrap_or(i64::MAX),
        };
        Some((self.tasks[task].wave?, -rank, task))
    }

    fn begin_round(&mut self, started: &TaskStarted, at: Timestamp) -> Result<(), &'static str> {
        let task = self.place(&started.task)?;
        let since = self.active_at(at);
        let state = &mut self.tasks[task];
        if state.stage != Stage::Waiting(0) {
            return Err("the task cannot be started");
        }
        // One that a person tuned begins anew.
        let begins_anew = matches!(state.again, Some(Return::Tuned(_)));
        let last = state.head.take().zip(state.onto.take()).or(state.before.take());
        state.before = last.filter(|_| !begins_anew);
        (state.rounds, state.onto) = (started.round, Some(started.onto.clone()));
        state.stage = Stage::Running(Running {
            id: started.id.clone(),
            round: started.round,
            slot: started.slot,
            onto: started.onto.clone(),
            granted: started.granted,
            money: started.money,
            started_at: at,
            since,
        });
        if let Some(turn) = self.turn(task) {
            self.ready.remove(&turn);
        }
        self.running.insert(task);
        self.reserved += started.granted;
        Ok(())
    }

    fn end_round(&mut self, ended: &TaskEnded, at: Timestamp) -> Result<(), &'static str> {
        let task = self.place(&ended.task)?;
        let (more, active) = (self.slice(), self.active_at(at));
        let Stage::Running(running) = &mut self.tasks[task].stage else {
            return Err("no loop works on the task");
        };
        let (granted, worked) = (running.granted, active.saturating_sub(running.since));
        match &ended.end {
            TaskEnd::Rests => return Ok(()),
            TaskEnd::OutOfMoney => {
                running.money = running.money.zip(more).map(|(Usd(had), Usd(more))| Usd(had + more));
                return Ok(());
            }
            TaskEnd::Hindered { error } => {
                self.hindered = Some(error.clone());
                return Ok(());
            }
            TaskEnd::Proven { .. } | TaskEnd::Stopped(_) => {}
        }
        self.running.remove(&task);
        self.reserved = self.reserved.saturating_sub(granted);
        self.used += ended.iterations;
        let add = |all: &mut Option<Usd>| {
            if let Some(Usd(cost)) = ended.cost {
                *all = Some(Usd(all.unwrap_or_default().0.saturating_add(cost)));
            }
        };
        add(&mut self.spent);
        let state = &mut self.tasks[task];
        add(&mut state.cost);
        state.iterations += ended.iterations;
        state.worked += worked;
        state.head = ended.head.clone().or(state.head.take());
        match &ended.end {
            TaskEnd::Proven { tree } => {
                state.stage = Stage::Proven { tree: tree.clone() };
                self.proven.insert(task);
            }
            TaskEnd::Stopped(stop) => self.stop(task, stop.clone(), at),
            TaskEnd::Rests | TaskEnd::OutOfMoney | TaskEnd::Hindered { .. } => {}
        }
        Ok(())
    }

    fn complete(
        &mut self,
        wave: u32,
        commit: Option<&Oid>,
        tasks: &[TaskId],
        rest: &[Oid],
        at: Timestamp,
    ) -> Result<(), &'static str> {
        if self.current_wave() + 1 != wave as usize {
            return Err("waves are completed one after the other");
        }
        let completed = self.waves.get_mut(wave as usize - 1).ok_or("there is no such wave")?;
        (completed.completed, completed.completed_at) = (Some(commit.cloned()), Some(at));
        let Some(commit) = commit else { return Ok(()) };
        let (its, left) = std::mem::take(&mut self.line).into_iter().partition(|(id, _)| tasks.contains(id));
        self.line = left;
        self.handover.due.push((wave, its));
        self.handover.refused = None;
        self.stand_on(commit, rest)
    }

    /// The next wave stands on this commit, and what has landed of it was made anew on top of that.
    fn stand_on(&mut self, commit: &Oid, rest: &[Oid]) -> Result<(), &'static str> {
        if rest.len() != self.line.len() {
            return Err("what has landed is not all there");
        }
        self.stand = Some(commit.clone());
        self.tip = Some(rest.last().unwrap_or(commit).clone());
        let line = std::mem::take(&mut self.line);
        for ((id, _), anew) in line.into_iter().zip(rest) {
            let task = self.place(&id)?;
            self.tasks[task].stage = Stage::Landed { commit: Some(anew.clone()) };
            self.line.push((id, anew.clone()));
        }
        Ok(())
    }

    fn land_batch(
        &mut self,
        commits: &[Option<Oid>],
        refused: Option<&String>,
        tip: &Oid,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let batch = self.batch.take().ok_or("no batch lands")?;
        let landed = commits.len();
        let is_whole = landed == batch.good || (refused.is_some() && landed < batch.good);
        if batch.question().is_some() || !is_whole {
            return Err("it is not known to be well");
        }
        for (one, commit) in batch.merged.iter().zip(commits) {
            let task = self.place(&one.task)?;
            self.land(task, commit.clone(), at);
        }
        let culprit = batch.merged.get(landed).map(|one| self.place(&one.task)).transpose()?;
        match (culprit, refused, batch.bad) {
            (Some(task), Some(reason), _) => self.stop(task, Stop::Other { reason: reason.clone() }, at),
            (Some(task), None, Some((_, failed))) => self.send_back(task, Return::Failed(failed), at),
            (None, _, _) | (Some(_), None, None) => {}
        }
        for one in batch.merged.iter().skip(landed + 1) {
            let task = self.place(&one.task)?;
            self.proven.insert(task);
        }
        self.tip = Some(tip.clone());
        Ok(())
    }

    fn land(&mut self, task: usize, commit: Option<Oid>, at: Timestamp) {
        let state = &mut self.tasks[task];
        self.line.extend(commit.clone().map(|commit| (state.card.id.clone(), commit)));
        (state.stage, state.again) = (Stage::Landed { commit }, None);
        state.settled_at = Some(at);
        self.settle(task);
        for dependent in self.graph.dependents(task) {
            let state = &mut self.tasks[dependent];
            if let Stage::Waiting(unmet) = &mut state.stage {
                *unmet = unmet.saturating_sub(1);
                if *unmet == 0 && !state.is_hopeless {
                    self.make_ready(dependent);
                }
            }
        }
    }

    fn stop(&mut self, task: usize, stop: Stop, at: Timestamp) {
        let state = &mut self.tasks[task];
        (state.stage, state.settled_at) = (Stage::Stopped(stop), Some(at));
        self.settle(task);
        // Each is reached once, as what is hopeless already is passed over.
        let mut reached = self.graph.dependents(task);
        while let Some(task) = reached.pop() {
            let state = &mut self.tasks[task];
            if !std::mem::replace(&mut state.is_hopeless, true) && matches!(state.stage, Stage::Waiting(_)) {
                self.settle(task);
                reached.extend(self.graph.dependents(task));
            }
        }
    }

    /// A task more of its wave needs nothing any more.
    fn settle(&mut self, task: usize) {
        if let Some(wave) = self.tasks[task].wave.and_then(|wave| self.waves.get_mut(wave)) {
            wave.open = wave.open.saturating_sub(1);
        }
    }

    /// Its own gates had passed, and yet it cannot land.
    fn send_back(&mut self, task: usize, why: Return, at: Timestamp) {
        let state = &mut self.tasks[task];
        (state.returns, state.again) = (state.returns + 1, Some(why));
        if state.returns > MAX_RETURNS {
            return self.stop(task, Stop::Unfit, at);
        }
        state.stage = Stage::Waiting(0);
        self.make_ready(task);
    }

    fn retry(&mut self, task: usize, why: Return) {
        let state = &mut self.tasks[task];
        (state.stage, state.again) = (Stage::Waiting(0), Some(why));
    }

    /// The first wave that is not complete.
    pub(super) fn current_wave(&self) -> usize {
        self.waves.iter().take_while(|wave| wave.completed.is_some()).count()
    }

    /// What the next round may spend: what is left, shared by as many as may run at a time. None where money is not limited.
    pub(super) fn slice(&self) -> Option<Usd> {
        let Usd(all) = self.limits.max_cost?;
        let granted =
            self.running().filter_map(|(_, running)| running.money).map(|Usd(money)| money).sum::<u64>();
        let left = all.saturating_sub(self.spent.unwrap_or_default().0).saturating_sub(granted);
        let others = u64::from(self.spec.jobs).saturating_sub(self.running.len() as u64).max(1);
        Some(Usd(left / others))
    }
}

impl TaskState {
    fn new(card: &Card) -> Self {
        let stage = if card.status.is_to_do() { Stage::Waiting(0) } else { Stage::Out };
        Self {
            card: card.clone(),
            wave: None,
            stage,
            is_hopeless: false,
            rounds: 0,
            iterations: 0,
            returns: 0,
            onto: None,
            before: None,
            head: None,
            cost: None,
            again: None,
            worked: Duration::ZERO,
            settled_at: None,
        }
    }

    /// The same with what the file says now, where the plan had `written` how it stands.
    fn told(self, card: &Card, written: TaskStatus) -> Self {
        let (is_said, is_to_do) = (card.status != written, card.status.is_to_do());
        let stage = match (self.stage, is_to_do) {
            (Stage::Waiting(_) | Stage::Stopped(_), false) if is_said => Stage::Out,
            (Stage::Stopped(_) | Stage::Out, true) if is_said => Stage::Waiting(0),
            (as_it_was, _) => as_it_was,
        };
        Self { card: card.clone(), stage, ..self }
    }

    /// Whether the plan has a loop, or work, of it.
    fn is_begun(&self) -> bool {
        match self.stage {
            Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => true,
            Stage::Out | Stage::Waiting(_) | Stage::Stopped(_) => false,
        }
    }

    /// The task as the graph is to see it.
    fn counted(&self) -> Task {
        let status = match self.stage {
            Stage::Out => self.card.status,
            Stage::Waiting(_)
            | Stage::Running(_)
            | Stage::Proven { .. }
            | Stage::Landed { .. }
            | Stage::Stopped(_) => TaskStatus::Pending,
        };
        let Card { id, title, complexity, priority, dependencies, parent, .. } = self.card.clone();
        Task { status, complexity, priority, dependencies, parent, ..Task::new(id, title) }
    }

    /// Whether what depends on it may begin.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.stage {
            Stage::Landed { .. } => true,
            Stage::Out => self.card.status.is_done() || self.card.status == TaskStatus::Expanded,
            Stage::Waiting(_) | Stage::Running(_) | Stage::Proven { .. } | Stage::Stopped(_) => false,
        }
    }

    /// Whether what depends on it will never begin by itself.
    fn is_lost(&self) -> bool {
        match self.stage {
            Stage::Stopped(_) => true,
            Stage::Out => !self.is_met(),
            Stage::Waiting(_) => self.is_hopeless,
            Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => false,
        }
    }

    /// Whether nothing more is to be done about it by itself.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Out | Stage::Landed { .. } | Stage::Stopped(_) => true,
            Stage::Waiting(_) => self.is_hopeless,
            Stage::Running(_) | Stage::Proven { .. } => false,
        }
    }
}

impl PlanEnd {
    /// The status that it leaves a plan in, as `plan status` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::IterationCap => "iteration-cap",
            Self::BudgetExceeded => "budget-exceeded",
            Self::TimedOut => "timed-out",
            Self::Blocked => "blocked",
            Self::Paused => "paused",
        }
    }
}
