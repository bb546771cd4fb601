//! How events change a plan. Whatever a journal holds, each prefix of it is a plan that can go on.

mod landing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;

use super::event::{
    AgentFault, PlanEnd, PlanEnded, PlanEvent, PlanStarted, Stop, TaskEnd, TaskEnded, TaskStarted,
};
use super::graph::Graph;
use super::spec::PlanLimits;
use super::state::{Halt, HandOver, PlanState, Return, Running, Stage, TaskState, Wave};
use super::task::{Card, Task, TaskId, TaskStatus};
use crate::agent::Usd;
use crate::event::{Ask, FORMAT, Record};
use crate::fold::Fold;
use crate::r#loop::Damage;

/// How often a task comes back although its own gates had passed, before a person is needed.
pub const MAX_RETURNS: u32 = 2;

/// So many tasks in a row whose agents fail in one way, before any work, are enough: whoever else is started would meet the
/// same.
const MAX_IN_VAIN: u32 = 3;

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
            trunk: None,
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
            in_vain: None,
            hindered: None,
            ended: None,
            active: Duration::ZERO,
            answered: BTreeSet::new(),
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            proven: BTreeSet::new(),
            gone: HashMap::new(),
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
        let was_ended = self.ended.is_some();
        self.change(event, *at).map_err(|what| Damage::Order { seq: *seq, what })?;
        // Between two runners nobody drives it, and nobody does once it has stopped: that time is not its own.
        let is_driven = self.runner.is_some()
            && !was_ended
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
        self.may_follow(event)?;
        match event {
            PlanEvent::Started(_) => return Err("a plan starts once"),
            PlanEvent::RunnerStarted { runner } => {
                self.runner = Some(runner.clone());
                self.wake();
            }
            PlanEvent::TasksTaken { tasks } => self.take(tasks),
            PlanEvent::TasksRefused { error } => self.refused = Some(error.clone()),
            PlanEvent::BaseTaken { head, branch } => {
                self.base = Some((head.clone(), branch.clone()));
                self.tip.get_or_insert_with(|| head.clone());
                self.trunk.get_or_insert_with(|| head.clone());
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
            PlanEvent::BatchMerged { merged, refused } => self.merge_batch(merged, refused, at)?,
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
                self.complete_wave(*wave, commit.as_ref(), (tasks, rest), at)?;
            }
            PlanEvent::HandedOver { head: None, refused: None, .. } => {
                return Err("nobody says why nothing was handed over");
            }
            PlanEvent::HandedOver { head: Some(head), rest, .. } => {
                self.follow(head, rest)?;
                self.handover = HandOver::default();
                self.handed = Some(head.clone());
            }
            PlanEvent::HandedOver { head: None, refused, .. } => {
                self.handover.refused.clone_from(refused);
            }
            PlanEvent::Hindered { error } => self.hindered = Some(error.clone()),
            PlanEvent::Asked { request, ask } => {
                match ask {
                    Ask::Pause(urgency) => self.pause = self.pause.max(Some(*urgency)),
                    Ask::Cancel(urgency) => self.cancel = self.cancel.max(Some(*urgency)),
                    Ask::Steer(_) | Ask::Proceed => return Err("a plan is not steered, its tasks are"),
                }
                self.answered.extend(request.clone());
            }
            PlanEvent::Ended(end) => self.ended = Some(PlanEnded { at, end: *end }),
            PlanEvent::Resumed { limits } => self.go_on(limits),
            PlanEvent::JournalTorn { .. } | PlanEvent::JournalRestored { .. } => {}
        }
        Ok(())
    }

    /// How long it has been driven by then, where somebody drives it now.
    fn active_at(&self, at: Timestamp) -> Duration {
        self.active + Duration::try_from(at.duration_since(self.updated_at)).unwrap_or_default()
    }

    /// What has stopped is let go on before anything more is done, and what is over stays over.
    fn may_follow(&self, event: &PlanEvent) -> Result<(), &'static str> {
        let Some(_) = self.ended else { return Ok(()) };
        match event {
            PlanEvent::Resumed { .. } | PlanEvent::Ended(_) | PlanEvent::TaskTuned { .. }
                if self.is_final() =>
            {
                Err("a plan that is over does not go on")
            }
            PlanEvent::RunnerStarted { .. }
            | PlanEvent::TaskStarted(_)
            | PlanEvent::TaskEnded(_)
            | PlanEvent::BatchMerged { .. }
            | PlanEvent::BatchVerified { .. }
            | PlanEvent::BatchLanded { .. }
            | PlanEvent::WaveCompleted { .. }
            | PlanEvent::HandedOver { .. }
            | PlanEvent::Hindered { .. } => Err("a plan that has stopped is resumed before it is driven"),
            PlanEvent::Started(_)
            | PlanEvent::TasksTaken { .. }
            | PlanEvent::TasksRefused { .. }
            | PlanEvent::BaseTaken { .. }
            | PlanEvent::TaskTuned { .. }
            | PlanEvent::Asked { .. }
            | PlanEvent::Ended(_)
            | PlanEvent::Resumed { .. }
            | PlanEvent::JournalTorn { .. }
            | PlanEvent::JournalRestored { .. } => Ok(()),
        }
    }

    fn go_on(&mut self, limits: &PlanLimits) {
        self.limits = limits.clone();
        (self.ended, self.pause, self.hindered, self.in_vain) = (None, None, None, None);
        self.handover.refused = None;
        if !self.taken {
            self.refused = None;
        }
        self.wake();
        // What a person was asked to tune waits for that.
        let is_tried = |n: &usize| {
            let task = &self.tasks[*n];
            matches!(task.stage, Stage::Stopped(_)) && !self.awaits_tune(task)
        };
        let again: Vec<_> = (0..self.tasks.len()).filter(is_tried).collect();
        again.into_iter().for_each(|task| self.retry(task, Return::Resumed));
        self.arrange();
    }

    /// What rests goes on with whoever drives the plan from here on.
    fn wake(&mut self) {
        for task in &self.running {
            if let Stage::Running(running) = &mut self.tasks[*task].stage {
                running.halt = running.halt.filter(|halt| *halt != Halt::Rests);
            }
        }
    }

    fn place(&self, task: &TaskId) -> Result<usize, &'static str> {
        self.graph.index(task).ok_or("there is no such task")
    }

    /// The file is as it is now. What this plan made of a task stands, but where a person said otherwise since.
    fn take(&mut self, cards: &[Card]) {
        let old = std::mem::take(&mut self.tasks);
        let written: Vec<_> = old.iter().map(|task| self.status_of(task)).collect();
        let mut known: HashMap<TaskId, (TaskState, TaskStatus)> =
            old.into_iter().zip(written).map(|(task, word)| (task.card.id.clone(), (task, word))).collect();
        let batch = self.batch.as_ref();
        let lands = |id: &TaskId| batch.is_some_and(|it| it.merged.iter().any(|one| one.task == *id));
        // Journals of before may name one twice: the first is meant by whatever names it.
        let mut named = HashSet::new();
        self.tasks = cards
            .iter()
            .filter(|card| named.insert(&card.id))
            .map(|card| match known.remove(&card.id) {
                Some((task, written)) => task.told(card, written, lands(&card.id)),
                // Each of its loops has a name of its own, also where it was gone from the file for a while.
                None => TaskState {
                    rounds: self.gone.remove(&card.id).unwrap_or_default(),
                    ..TaskState::new(card)
                },
            })
            .collect();
        // What is gone from the file, but under way or landed, is still the plan's.
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            known.into_iter().map(|(id, (task, _))| task.deleted(lands(&id))).partition(TaskState::is_begun);
        self.gone.extend(gone.into_iter().map(|task| (task.card.id, task.rounds)));
        kept.sort_by(|a, b| a.card.id.cmp(&b.card.id));
        self.tasks.extend(kept);
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
        let mut order: Vec<usize> = self.graph.waves().iter().flatten().copied().collect();
        // What is under way, or landed, stays in the plan, although a cycle, or what became of that which it is a part of,
        // keeps it out of the graph's waves.
        let is_kept = |task: &usize| self.tasks[*task].is_begun() && self.graph.wave_of(*task).is_none();
        order.extend((0..self.tasks.len()).filter(is_kept));
        let in_batch: BTreeSet<&TaskId> =
            self.batch.iter().flat_map(|batch| &batch.merged).map(|one| &one.task).collect();
        for wave in &mut self.waves {
            (wave.tasks, wave.open) = (Vec::new(), 0);
        }
        let placed: Vec<_> = self.tasks.iter_mut().map(|task| task.wave.take()).collect();
        for task in order {
            let dependencies = self.graph.dependencies(task);
            let unmet = dependencies.iter().filter(|n| !self.tasks[**n].is_met()).count();
            let behind = dependencies.iter().filter_map(|n| self.tasks[*n].wave).max();
            let is_hopeless = dependencies.iter().any(|n| self.tasks[*n].is_lost());
            let state = &mut self.tasks[task];
            state.is_hopeless = is_hopeless;
            if let Stage::Waiting(waits) = &mut state.stage {
                *waits = unmet;
            }
            let is_over = state.is_settled() && placed[task].is_some_and(|wave| wave < first_open);
            let wave = match placed[task] {
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

    fn make_ready(&mut self, task: usize) {
        let turn = self.turn(task);
        self.ready.extend(turn);
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
            halt: None,
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
        let active = self.active_at(at);
        let Stage::Running(running) = &mut self.tasks[task].stage else {
            return Err("no loop works on the task");
        };
        let (granted, worked) = (running.granted, active.saturating_sub(running.since));
        let is_empty = ended.head.as_ref().is_none_or(|head| *head == running.onto);
        match &ended.end {
            TaskEnd::Rests => {
                running.halt = Some(Halt::Rests);
                return Ok(());
            }
            TaskEnd::OutOfMoney => {
                self.grant_money(task, ended.cost);
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
        (state.of_round, state.fault) = (ended.iterations, ended.fault.clone());
        state.worked += worked;
        state.head = ended.head.clone().or(state.head.take());
        let is_in_vain = is_empty && matches!(ended.end, TaskEnd::Stopped(_));
        self.count_in_vain(ended.fault.as_ref().filter(|_| is_in_vain));
        let state = &mut self.tasks[task];
        match &ended.end {
            TaskEnd::Proven { .. } if state.is_withdrawn => self.withdraw(task),
            TaskEnd::Proven { tree } => {
                state.stage = Stage::Proven { tree: tree.clone() };
                self.proven.insert(task);
            }
            TaskEnd::Stopped(stop) => self.stop(task, stop.clone(), at),
            TaskEnd::Rests | TaskEnd::OutOfMoney | TaskEnd::Hindered { .. } => {}
        }
        Ok(())
    }

    /// Another task ended; in vain, where there is a `fault`.
    fn count_in_vain(&mut self, fault: Option<&AgentFault>) {
        let before = self.in_vain.take();
        let Some(fault) = fault else { return };
        let same = before.filter(|(_, known)| known.is_same(fault)).map_or(0, |(count, _)| count);
        self.in_vain = Some((same + 1, fault.clone()));
        if same + 1 >= MAX_IN_VAIN {
            let count = same + 1;
            let error = format!("of {count} tasks in a row the agent {}; nothing was changed", fault.said);
            self.hindered.get_or_insert(error);
        }
    }

    /// A loop that has spent all that it was given gets another share of what is left, as far as there is something.
    fn grant_money(&mut self, task: usize, cost: Option<Usd>) {
        let spent = |running: &mut Running| running.money = running.money.max(running.money.and(cost));
        self.running_of(task).map(spent);
        let more = self.slice();
        if let Some(running) = self.running_of(task) {
            running.money =
                running.money.zip(more).map(|(Usd(had), Usd(more))| Usd(had.saturating_add(more)));
            running.halt = (more == Some(Usd(0))).then_some(Halt::OutOfMoney);
        }
    }

    fn running_of(&mut self, task: usize) -> Option<&mut Running> {
        match &mut self.tasks[task].stage {
            Stage::Running(running) => Some(running),
            Stage::Out
            | Stage::Waiting(_)
            | Stage::Proven { .. }
            | Stage::Landed { .. }
            | Stage::Stopped(_) => None,
        }
    }

    fn stop(&mut self, task: usize, stop: Stop, at: Timestamp) {
        if self.tasks[task].is_withdrawn {
            return self.withdraw(task);
        }
        let state = &mut self.tasks[task];
        (state.stage, state.settled_at) = (Stage::Stopped(stop), Some(at));
        self.lose(task);
    }

    /// It will not be done by itself, nor will what waits for it.
    fn lose(&mut self, task: usize) {
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

    /// A person took it off the plan while it was under way.
    fn withdraw(&mut self, task: usize) {
        self.tasks[task].stage = Stage::Out;
        self.arrange();
    }

    fn retry(&mut self, task: usize, why: Return) {
        self.tasks[task].retry(why);
    }

    /// The first wave that is not complete.
    pub(super) fn current_wave(&self) -> usize {
        self.waves.partition_point(|wave| wave.completed.is_some())
    }

    /// What a loop may spend next: what is left, shared by as many as may run at a time, and never so little that it is not
    /// worth a start. None where money is not limited.
    pub(super) fn slice(&self) -> Option<Usd> {
        const LEAST: u64 = 100;
        let Usd(all) = self.limits.max_cost?;
        let granted =
            self.running().filter_map(|(_, running)| running.money).map(|Usd(money)| money).sum::<u64>();
        let left = all.saturating_sub(self.spent.unwrap_or_default().0).saturating_sub(granted);
        let others = u64::from(self.spec.jobs).saturating_sub(self.running.len() as u64).max(1);
        Some(Usd(left.min((left / others).max(all / LEAST))))
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
            is_withdrawn: false,
            rounds: 0,
            iterations: 0,
            of_round: 0,
            fault: None,
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

    /// The same with what the file says now, where the plan had `written` how it stands. What `lands` already is not stopped by
    /// that.
    fn told(mut self, card: &Card, written: TaskStatus, lands: bool) -> Self {
        let is_said = card.status != written;
        // A plan writes that itself, before it writes how it ended: nobody says by it that it is to be tried again.
        let is_again = card.status == TaskStatus::Pending;
        if is_said {
            self.is_withdrawn = card.status.is_off();
        }
        match self.stage {
            Stage::Waiting(_) | Stage::Stopped(_) if is_said && !card.status.is_to_do() => {
                self.stage = Stage::Out;
            }
            Stage::Proven { .. } if self.is_withdrawn && !lands => self.stage = Stage::Out,
            Stage::Stopped(_) if is_said && is_again => self.retry(Return::Resumed),
            Stage::Out if is_said && card.status.is_to_do() => {
                (self.stage, self.returns) = (Stage::Waiting(0), 0);
            }
            Stage::Out
            | Stage::Waiting(_)
            | Stage::Running(_)
            | Stage::Proven { .. }
            | Stage::Landed { .. }
            | Stage::Stopped(_) => {}
        }
        Self { card: card.clone(), ..self }
    }

    /// It is to be done, as if it had never come back.
    fn retry(&mut self, why: Return) {
        (self.stage, self.again, self.returns) = (Stage::Waiting(0), Some(why), 0);
    }

    /// The same where its file does not name it any more.
    fn deleted(mut self, lands: bool) -> Self {
        (self.card.status, self.is_withdrawn) = (TaskStatus::Cancelled, true);
        if matches!(self.stage, Stage::Proven { .. }) && !lands {
            self.stage = Stage::Out;
        }
        self
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
        Task { status, ..self.card.task() }
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
