//! How events change a plan. Each prefix of any journal is a plan that can continue.

mod landing;
mod rounds;
mod tasks;

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::time::Duration;

use jiff::Timestamp;

use super::event::{PlanEnd, PlanEvent, PlanStarted, RemadeWave};
use super::graph::Graph;
use super::spec::PlanLimits;
use super::state::{Halt, HandOver, PlanState, Return, Stage};
use super::task::TaskId;
use crate::agent::Usd;
use crate::event::{Ask, Record};
use crate::ids::LoopId;
use crate::machine::{Damage, Ended, Lifecycle, Machine, Refusal, SharedEvent};
use crate::signature::{Signatures, SignedKind, SignedRecord};

/// How often a task comes back although its own gates had passed, before a person is needed.
pub const MAX_RETURNS: u32 = 2;

/// After this many tasks in a row whose agents fail in one way, before any work, the plan stops: the next task would
/// meet the same.
const MAX_IN_VAIN: u32 = 3;

impl Machine for PlanState {
    type Event = PlanEvent;
    type End = PlanEnd;

    fn begin(record: &Record<PlanEvent>) -> Result<Self, Damage> {
        let Record { seq: 1, at, event: PlanEvent::Started(started) } = record else {
            return Err(Damage::NoStart(record.seq));
        };
        let PlanStarted { format, spec, .. } = started.as_ref();
        Ok(Self {
            lifecycle: Lifecycle::begin(*at, *format)?,
            limits: spec.limits.clone(),
            spec: spec.clone(),
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
            landed_unverified: false,
            handover: HandOver::default(),
            used: 0,
            reserved: 0,
            spent: None,
            spent_at_least: false,
            assumed: Usd::default(),
            in_vain: None,
            hindered: None,
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            proven: BTreeSet::new(),
            gone: HashMap::new(),
            taken: false,
        })
    }

    fn apply(&mut self, record: &Record<PlanEvent>) -> Result<(), Damage> {
        let Record { seq, at, event } = record;
        self.check_order(*seq, *at)?;
        let was_ended = self.ended.is_some();
        self.change(event, *at).map_err(|what| Damage::Order { seq: *seq, what })?;
        // The time between two runners, and after it has stopped, does not count.
        let is_driven = self.runner.is_some()
            && !was_ended
            && !matches!(
                event,
                PlanEvent::RunnerStarted { .. } | PlanEvent::Resumed { .. } | PlanEvent::JournalTorn { .. }
            );
        let own = if is_driven { self.stretch(*at) } else { Duration::ZERO };
        self.lifecycle.advance(*seq, *at, own);
        Ok(())
    }

    fn id(&self) -> &LoopId {
        &self.spec.id
    }

    fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.admits(ask)
    }

    /// A plan's own journal is not signed: what its tasks came to is in the journals of their loops.
    fn signed(_: &PlanEvent) -> Option<SignedKind> {
        None
    }

    fn is_result(_: &PlanEvent) -> bool {
        false
    }

    fn judge(&self, _: &[SignedRecord]) -> Signatures {
        Signatures::Unchecked
    }

    fn event(shared: SharedEvent) -> PlanEvent {
        match shared {
            SharedEvent::Asked(request, ask, by) => PlanEvent::Asked { request, ask, by },
            SharedEvent::JournalTorn(bytes, kept_as) => PlanEvent::JournalTorn { bytes, kept_as },
            SharedEvent::JournalRestored(bytes, kept_as) => PlanEvent::JournalRestored { bytes, kept_as },
        }
    }
}

impl Deref for PlanState {
    type Target = Lifecycle<PlanEnd>;

    fn deref(&self) -> &Self::Target {
        &self.lifecycle
    }
}

impl PlanState {
    fn change(&mut self, event: &PlanEvent, at: Timestamp) -> Result<(), &'static str> {
        self.may_follow(event)?;
        match event {
            PlanEvent::Started(_) => return Err("a plan starts once"),
            PlanEvent::RunnerStarted { runner } => {
                self.lifecycle.runner = Some(runner.clone());
                self.wake(continues_with_runner);
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
                if !self.tasks[task].may_be_tuned() {
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
            PlanEvent::BatchLanded { commits, refused, tip, .. } => {
                self.land_batch(commits, refused.as_ref(), tip, at)?
            }
            PlanEvent::WaveCompleted { wave, commit, tasks, rest, commits } => {
                self.complete_wave(*wave, commit.as_ref(), (tasks, rest), at)?;
                self.replace_commits(commits)?;
            }
            PlanEvent::HandedOver { head: None, refused: None, .. } => {
                return Err("no reason is recorded for what was not handed over");
            }
            PlanEvent::HandedOver { head: Some(head), rest, waves, .. } => {
                self.follow(head, self.line.clone(), rest)?;
                for RemadeWave { wave, commit, commits } in waves {
                    let wave = wave.place().and_then(|place| self.waves.get_mut(place));
                    let wave = wave.ok_or("there is no such wave")?;
                    wave.completed = Some(Some(commit.clone()));
                    self.replace_commits(commits)?;
                }
                self.handover = HandOver::default();
                self.handed = Some(head.clone());
            }
            PlanEvent::HandedOver { head: None, refused, .. } => {
                self.handover.refused.clone_from(refused);
            }
            PlanEvent::Hindered { error } => self.hindered = Some(error.clone()),
            PlanEvent::Asked { request, ask, by } => {
                if let Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_) = ask {
                    return Err("a plan is not steered, its tasks are");
                }
                self.lifecycle.ask(request.as_ref(), ask, *by)?;
            }
            PlanEvent::Ended(end) => self.lifecycle.ended = Some(Ended { at, end: *end }),
            PlanEvent::Resumed { limits } => self.go_on(limits),
            PlanEvent::JournalTorn { .. } | PlanEvent::JournalRestored { .. } => {}
        }
        Ok(())
    }

    /// A stopped plan must be resumed before anything more is done, and one that is over stays over.
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
        self.lifecycle.resume();
        (self.hindered, self.in_vain) = (None, None);
        self.handover.refused = None;
        if !self.taken {
            self.refused = None;
        }
        self.wake(continues_with_runner);
        // A task that a person was asked to tune waits for that.
        let is_tried = |n: &usize| {
            let task = &self.tasks[*n];
            matches!(task.stage, Stage::Stopped(_)) && !self.awaits_tune(task)
        };
        let again: Vec<_> = (0..self.tasks.len()).filter(is_tried).collect();
        again.into_iter().for_each(|task| self.tasks[task].retry_with_reason());
        self.arrange();
    }

    /// The loops that halted for such a reason are driven again.
    fn wake(&mut self, is_over: impl Fn(&Halt) -> bool) {
        for task in &self.running {
            if let Stage::Running(running) = &mut self.tasks[*task].stage {
                running.halt = running.halt.filter(|halt| !is_over(halt));
            }
        }
    }

    fn place(&self, task: &TaskId) -> Result<usize, &'static str> {
        self.graph.index(task).ok_or("there is no such task")
    }

    fn make_ready(&mut self, task: usize) {
        let turn = self.turn(task);
        self.ready.extend(turn);
    }

    /// The first wave that is not complete.
    pub(super) fn current_wave(&self) -> usize {
        self.waves.partition_point(|wave| wave.completed.is_some())
    }

    /// The money that counts against its cap.
    pub(crate) fn counted(&self) -> Usd {
        self.spent.unwrap_or_default().plus(self.assumed)
    }

    /// What a loop may spend next: what is left, shared by as many as may run at a time, and never so little that it is
    /// not worth a start. None if money is not limited.
    pub(super) fn slice(&self) -> Option<Usd> {
        const LEAST: u64 = 100;
        let Usd(all) = self.limits.max_cost?;
        let granted =
            self.running().filter_map(|(_, running)| running.money).map(|Usd(money)| money).sum::<u64>();
        let left = all.saturating_sub(self.counted().0).saturating_sub(granted);
        let others = u64::from(self.spec.jobs).saturating_sub(self.running.len() as u64).max(1);
        Some(Usd(left.min((left / others).max(all / LEAST))))
    }
}

/// Whether a loop that halted so is driven by the plan's next runner.
fn continues_with_runner(halt: &Halt) -> bool {
    match halt {
        Halt::Rests | Halt::CapReached(_) => true,
        Halt::OutOfMoney => false,
    }
}
