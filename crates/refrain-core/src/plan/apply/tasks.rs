//! How the content of a task file changes a plan: its tasks, its graph, its waves.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use crate::plan::event::Stop;
use crate::plan::graph::Graph;
use crate::plan::state::{PlanState, Return, Stage, TaskState, Wave};
use crate::plan::task::{Card, Task, TaskId, TaskStatus};

impl PlanState {
    /// Takes the file as it is now. What this plan made of a task stays, unless a person changed it since.
    pub(super) fn take(&mut self, cards: &[Card]) {
        let old = std::mem::take(&mut self.tasks);
        let written: Vec<_> = old.iter().map(|task| self.status_of(task)).collect();
        let mut known: HashMap<TaskId, (TaskState, TaskStatus)> =
            old.into_iter().zip(written).map(|(task, word)| (task.card.id.clone(), (task, word))).collect();
        let batch = self.batch.as_ref();
        let lands = |id: &TaskId| batch.is_some_and(|it| it.merged.iter().any(|one| one.task == *id));
        // Old journals may name one twice: references mean the first.
        let mut named = HashSet::new();
        self.tasks = cards
            .iter()
            .filter(|card| named.insert(&card.id))
            .map(|card| match known.remove(&card.id) {
                Some((task, written)) => task.told(card, written, lands(&card.id)),
                // Each of its loops has a name of its own, even if it was gone from the file for a while.
                None => TaskState {
                    rounds: self.gone.remove(&card.id).unwrap_or_default(),
                    ..TaskState::new(card)
                },
            })
            .collect();
        // A task that is gone from the file, but under way or landed, is still the plan's.
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            known.into_iter().map(|(id, (task, _))| task.deleted(lands(&id))).partition(TaskState::is_begun);
        self.gone.extend(gone.into_iter().map(|task| (task.card.id, task.rounds)));
        kept.sort_by(|a, b| a.card.id.cmp(&b.card.id));
        self.tasks.extend(kept);
        (self.taken, self.refused) = (true, None);
        self.arrange();
    }

    /// Waves, and what each task waits for, as of now. Waves that are complete stay as they were; what is left of them,
    /// or new, comes with the first that is not.
    pub(super) fn arrange(&mut self) {
        // To the graph all that is, or was, this plan's to do counts.
        self.graph = Graph::build(self.tasks.iter().map(TaskState::counted).collect()).0;
        let first_open = self.current_wave();
        self.waves.truncate(first_open);
        let (mut ready, mut running, mut proven) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut order: Vec<usize> = self.graph.waves().iter().flatten().copied().collect();
        // A task that is under way, or landed, stays in the plan, even if a cycle, or the state of its parent, keeps it
        // out of the graph's waves.
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
            // A task that its file took off the plan keeps those that wait for it behind it.
            let place = |n: &usize| match &self.tasks[*n] {
                task if task.stage == Stage::Out && !task.is_met() => self.graph.level_of(*n),
                task => task.wave,
            };
            let behind = dependencies.iter().filter_map(place).max();
            let is_hopeless = dependencies.iter().any(|n| self.tasks[*n].is_lost());
            let state = &mut self.tasks[task];
            state.is_hopeless = is_hopeless;
            if let Stage::Waiting(waits) = &mut state.stage {
                *waits = unmet;
            }
            let is_over = state.is_settled() && placed[task].is_some_and(|wave| wave < first_open);
            let wave = match placed[task] {
                Some(wave) if is_over => wave,
                // No wave is empty: one without a task to do is none of the plan.
                _ => first_open.max(behind.map_or(0, |wave| wave + 1)).min(self.waves.len()),
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
}

impl TaskState {
    pub(super) fn new(card: &Card) -> Self {
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
            failed_gate: None,
            returns: 0,
            onto: None,
            before: None,
            head: None,
            cost: None,
            cost_at_least: false,
            again: None,
            worked: Duration::ZERO,
            settled_at: None,
        }
    }

    /// The same with what the file says now; the plan had `written` its own status. A task that `lands` already is not
    /// stopped by that.
    pub(super) fn told(mut self, card: &Card, written: TaskStatus, lands: bool) -> Self {
        let is_said = card.status != written;
        // Only `pending` asks for another try: the plan itself writes `in-progress` before it writes how a task ended.
        let is_again = card.status == TaskStatus::Pending;
        if is_said {
            self.is_withdrawn = card.status.is_off();
        }
        match self.stage {
            Stage::Waiting(_) | Stage::Stopped(_) if is_said && !card.status.is_to_do() => {
                self.stage = Stage::Out;
            }
            Stage::Proven { .. } if self.is_withdrawn && !lands => self.stage = Stage::Out,
            Stage::Stopped(_) if is_said && is_again => self.retry_with_reason(),
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

    /// It is tried again, and the prompt says why it had stopped.
    pub(super) fn retry_with_reason(&mut self) {
        let is_unfit = self.stage == Stage::Stopped(Stop::Unfit);
        let why = match &self.again {
            // It passed by itself, and failed with what had landed.
            Some(why @ Return::Failed(_)) if is_unfit => why.clone(),
            _ => Return::Resumed(self.stopped_because().unwrap_or_default()),
        };
        self.retry(why);
    }

    /// It is to be done, as if it had never come back.
    pub(super) fn retry(&mut self, why: Return) {
        (self.stage, self.again, self.returns) = (Stage::Waiting(0), Some(why), 0);
    }

    /// The same if its file does not name it any more.
    pub(super) fn deleted(mut self, lands: bool) -> Self {
        (self.card.status, self.is_withdrawn) = (TaskStatus::Cancelled, true);
        if matches!(self.stage, Stage::Proven { .. }) && !lands {
            self.stage = Stage::Out;
        }
        self
    }

    /// Whether the plan has a loop, or work, of it.
    pub(super) fn is_begun(&self) -> bool {
        match self.stage {
            Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => true,
            Stage::Out | Stage::Waiting(_) | Stage::Stopped(_) => false,
        }
    }

    /// The task as the graph is to see it.
    pub(super) fn counted(&self) -> Task {
        let status = if self.stage == Stage::Out { self.card.status } else { TaskStatus::Pending };
        Task { status, ..self.card.task() }
    }

    /// Whether its file took it off the plan although it is not done.
    pub fn is_not_tried(&self) -> bool {
        let status = self.card.status;
        self.stage == Stage::Out
            && matches!(status, TaskStatus::Blocked | TaskStatus::Failed | TaskStatus::AwaitingTune)
    }

    pub fn is_met(&self) -> bool {
        match self.stage {
            Stage::Landed { .. } => true,
            Stage::Out => self.card.status.is_done() || self.card.status == TaskStatus::Expanded,
            Stage::Waiting(_) | Stage::Running(_) | Stage::Proven { .. } | Stage::Stopped(_) => false,
        }
    }

    /// Whether its dependents will never begin without a person.
    pub(super) fn is_lost(&self) -> bool {
        match self.stage {
            Stage::Stopped(_) => true,
            Stage::Out => !self.is_met(),
            Stage::Waiting(_) => self.is_hopeless,
            Stage::Running(_) | Stage::Proven { .. } | Stage::Landed { .. } => false,
        }
    }

    /// Whether the plan has nothing more to do about it.
    pub fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Out | Stage::Landed { .. } | Stage::Stopped(_) => true,
            Stage::Waiting(_) => self.is_hopeless,
            Stage::Running(_) | Stage::Proven { .. } => false,
        }
    }
}
