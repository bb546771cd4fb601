//! What must hold of a plan's journal, by rules that are simpler than the core's and written from the words of the
//! issue, so that the same mistake would have to be made twice.

use std::collections::{BTreeMap, BTreeSet};

use super::git::{Content, Git};
use crate::agent::Usd;
use crate::event::Ask;
use crate::git::Oid;
use crate::ids::LoopId;
use crate::plan::{
    Card, PlanEnd, PlanEvent, PlanSpec, PlanState, Stage, Stop, TaskEnd, TaskEnded, TaskId, TaskStarted,
    TaskStatus, WaveNumber,
};

/// The phase of a task, as far as its plan is concerned.
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Out,
    Waiting,
    Running { granted: u32, slot: u32 },
    Proven { tree: Option<Oid> },
    Landed,
    Stopped(Stop),
}

#[derive(Clone, Debug)]
struct Fact {
    phase: Phase,
    /// Its status in the file at the last reading.
    word: TaskStatus,
    needs: Vec<usize>,
    rounds: u32,
    returns: u32,
    /// A person took it off the plan while it was under way.
    is_withdrawn: bool,
}

#[derive(Debug)]
struct Batch {
    /// Each task, and the tree with it.
    parts: Vec<(usize, Oid)>,
    /// How many passed together, and failed together, last.
    passed: Option<usize>,
    failed: Option<usize>,
    questions: u32,
}

fn number(id: &TaskId) -> usize {
    id.as_str().parse().expect("its ids are numbers")
}

#[derive(Debug)]
pub(super) struct Ledger {
    spec: PlanSpec,
    total: u32,
    budget: Option<Usd>,
    /// By their ids, which are numbers: a debug build compares those faster.
    tasks: BTreeMap<usize, Fact>,
    /// How many rounds each task had that is gone from the file.
    gone: BTreeMap<usize, u32>,
    loops: BTreeSet<LoopId>,
    used: u32,
    spent: u64,
    batch: Option<Batch>,
    waves: u32,
    /// Those that the person's branch has.
    handed: BTreeSet<usize>,
    in_waves: BTreeSet<usize>,
    is_asked: bool,
    is_cancelled: bool,
    /// The failures of agents that changed nothing, of the last tasks in a row.
    in_vain: Vec<String>,
    hindered: bool,
    ended: Option<PlanEnd>,
}

impl Ledger {
    pub(super) fn new(state: &PlanState) -> Self {
        Self {
            spec: state.spec.clone(),
            total: state.limits.total,
            budget: state.limits.max_cost,
            tasks: BTreeMap::new(),
            gone: BTreeMap::new(),
            loops: BTreeSet::new(),
            used: 0,
            spent: 0,
            batch: None,
            waves: 0,
            handed: BTreeSet::new(),
            in_waves: BTreeSet::new(),
            is_asked: false,
            is_cancelled: false,
            in_vain: Vec::new(),
            hindered: false,
            ended: None,
        }
    }

    fn is_met(&self, id: usize) -> bool {
        self.tasks.get(&id).is_none_or(|fact| match fact.phase {
            Phase::Landed => true,
            Phase::Out => matches!(fact.word, TaskStatus::Done | TaskStatus::Review | TaskStatus::Expanded),
            Phase::Waiting | Phase::Running { .. } | Phase::Proven { .. } | Phase::Stopped(_) => false,
        })
    }

    /// The tasks that will not be done without a person. Ids are numbers, and dependencies smaller ones, so that one
    /// pass is enough.
    fn lost(&self) -> Vec<bool> {
        let mut lost = vec![false; self.tasks.keys().max().map_or(0, |last| last + 1)];
        for (&id, fact) in &self.tasks {
            let is_lost = match fact.phase {
                Phase::Stopped(_) => true,
                Phase::Out => !self.is_met(id),
                Phase::Waiting => fact.needs.iter().any(|need| lost[*need]),
                Phase::Running { .. } | Phase::Proven { .. } | Phase::Landed => false,
            };
            lost[id] = is_lost;
        }
        lost
    }

    /// Those that could begin, but for room, turn and means.
    fn able(&self) -> impl Iterator<Item = usize> {
        let is_able =
            |fact: &Fact| fact.phase == Phase::Waiting && fact.needs.iter().all(|need| self.is_met(*need));
        self.tasks.iter().filter(move |(_, fact)| is_able(fact)).map(|(id, _)| *id)
    }

    fn running(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.tasks.iter().filter_map(|(&id, fact)| match fact.phase {
            Phase::Running { granted, slot } => Some((id, granted, slot)),
            Phase::Out | Phase::Waiting | Phase::Proven { .. } | Phase::Landed | Phase::Stopped(_) => None,
        })
    }

    /// Those that run, and do not rest, by how often they came back.
    fn returns_at_work(&self, state: &PlanState) -> impl Iterator<Item = u32> {
        let at_work = state.running().filter(|(_, it)| it.halt.is_none());
        at_work.map(|(place, _)| self.tasks[&number(&state.tasks[place].card.id)].returns)
    }

    fn lands(&self) -> bool {
        self.tasks.values().any(|fact| matches!(fact.phase, Phase::Proven { .. }))
    }

    /// A task that came back is running, or about to land.
    fn is_one_back(&self, state: &PlanState) -> bool {
        let is_proven = |fact: &Fact| fact.returns > 0 && matches!(fact.phase, Phase::Proven { .. });
        self.returns_at_work(state).any(|returns| returns > 0) || self.tasks.values().any(is_proven)
    }

    /// A task is running that is blocked if it comes back once more.
    fn is_last_chance(&self, state: &PlanState) -> bool {
        self.returns_at_work(state).any(|returns| returns >= 2)
    }

    fn iterations_left(&self) -> u32 {
        let granted: u32 = self.running().map(|(_, granted, _)| granted).sum();
        self.total.saturating_sub(self.used).saturating_sub(granted)
    }

    fn fact(&mut self, id: usize) -> &mut Fact {
        self.tasks.get_mut(&id).expect("a task of the plan")
    }

    fn word(&self, fact: &Fact) -> TaskStatus {
        let is_over = matches!(self.ended, Some(PlanEnd::Cancelled | PlanEnd::Completed));
        match &fact.phase {
            Phase::Out => fact.word,
            Phase::Running { .. } | Phase::Proven { .. } if fact.is_withdrawn => fact.word,
            Phase::Waiting => TaskStatus::Pending,
            Phase::Running { .. } | Phase::Proven { .. } if is_over => TaskStatus::Pending,
            Phase::Running { .. } | Phase::Proven { .. } => TaskStatus::InProgress,
            Phase::Landed => TaskStatus::Done,
            Phase::Stopped(Stop::Cancelled) if self.is_cancelled => TaskStatus::Pending,
            Phase::Stopped(Stop::UsedUp | Stop::Stuck | Stop::Unfit) if self.spec.tune => {
                TaskStatus::AwaitingTune
            }
            Phase::Stopped(_) => TaskStatus::Blocked,
        }
    }

    /// An event that is about to follow on `state`.
    pub(super) fn enter(&mut self, event: &PlanEvent, state: &PlanState, git: &Git) {
        let is_done = matches!(self.ended, Some(PlanEnd::Cancelled | PlanEnd::Completed));
        assert!(!is_done, "{event:?} after the end");
        match event {
            PlanEvent::TasksTaken { tasks } => self.read(tasks),
            PlanEvent::TaskStarted(started) => self.start(started, state, git),
            PlanEvent::TaskEnded(ended) => self.end(ended),
            PlanEvent::TaskTuned { task, .. } => self.again(number(task)),
            PlanEvent::BatchMerged { merged, refused } => {
                assert!(self.batch.is_none(), "two batches at a time");
                assert!(merged.len() + refused.len() <= 16, "a batch of {}", merged.len());
                // A task withdrawn meanwhile is skipped, and one merged on top of it waits.
                let is_proven =
                    |id| self.tasks.get(&id).is_some_and(|it| matches!(it.phase, Phase::Proven { .. }));
                let parts = merged.iter().map(|one| (number(&one.task), one.tree.clone()));
                let parts: Vec<_> = parts.take_while(|(id, _)| is_proven(*id)).collect();
                let back: Vec<_> = refused.iter().filter(|one| is_proven(number(&one.task))).collect();
                for one in back {
                    match &one.why {
                        Some(reason) => self.stop(number(&one.task), Stop::Other { reason: reason.clone() }),
                        None if parts.len() == merged.len() => self.send_back(number(&one.task)),
                        None => {}
                    }
                }
                self.batch =
                    (!parts.is_empty()).then_some(Batch { parts, passed: None, failed: None, questions: 0 });
            }
            PlanEvent::BatchVerified { upto, failed } => {
                assert!(self.spec.verifies(), "nothing verifies");
                let batch = self.batch.as_mut().expect("a batch");
                let most = batch.parts.len().next_power_of_two().ilog2() + 1;
                batch.questions += 1;
                assert!(batch.questions <= most, "{} questions about {batch:?}", batch.questions);
                *(if failed.is_some() { &mut batch.failed } else { &mut batch.passed }) = Some(*upto);
            }
            PlanEvent::BatchLanded { commits, refused, tip, .. } => {
                self.land(commits, refused.as_ref(), tip, git)
            }
            PlanEvent::WaveCompleted { wave, commit, tasks, .. } => {
                self.complete(*wave, commit.as_ref(), tasks, state, git);
            }
            PlanEvent::HandedOver { head: Some(_), .. } => self.handed.extend(&self.in_waves),
            PlanEvent::Hindered { .. } => self.hindered = true,
            PlanEvent::Asked { ask, .. } => {
                self.is_asked |= matches!(ask, Ask::Pause(_));
                self.is_cancelled |= matches!(ask, Ask::Cancel(_));
            }
            PlanEvent::Ended(end) => {
                self.check_end(*end, state, git);
                self.ended = Some(*end);
            }
            PlanEvent::Resumed { limits } => {
                (self.total, self.budget) = (limits.total, limits.max_cost);
                (self.is_asked, self.hindered, self.ended) = (false, false, None);
                self.in_vain.clear();
                let is_blocked = |fact: &Fact| {
                    matches!(fact.phase, Phase::Stopped(_)) && self.word(fact) == TaskStatus::Blocked
                };
                let again: Vec<usize> =
                    self.tasks.iter().filter(|(_, fact)| is_blocked(fact)).map(|(id, _)| *id).collect();
                again.into_iter().for_each(|id| self.again(id));
            }
            PlanEvent::Started(_)
            | PlanEvent::RunnerStarted { .. }
            | PlanEvent::TasksRefused { .. }
            | PlanEvent::BaseTaken { .. }
            | PlanEvent::HandedOver { head: None, .. }
            | PlanEvent::JournalTorn { .. }
            | PlanEvent::JournalRestored { .. } => {}
        }
    }

    fn read(&mut self, cards: &[Card]) {
        let mut old = std::mem::take(&mut self.tasks);
        let in_batch: BTreeSet<_> =
            self.batch.iter().flat_map(|batch| &batch.parts).map(|(id, _)| *id).collect();
        for card in cards {
            let (word, is_to_do) =
                (card.status, matches!(card.status, TaskStatus::Pending | TaskStatus::InProgress));
            let id = number(&card.id);
            let mut fact = old.remove(&id).unwrap_or_else(|| Fact {
                phase: if is_to_do { Phase::Waiting } else { Phase::Out },
                word,
                needs: Vec::new(),
                rounds: self.gone.get(&id).copied().unwrap_or_default(),
                returns: 0,
                is_withdrawn: false,
            });
            if self.word(&fact) != word {
                (fact.phase, fact.returns) = match fact.phase {
                    Phase::Waiting | Phase::Stopped(_) if !is_to_do => (Phase::Out, fact.returns),
                    Phase::Stopped(_) if word == TaskStatus::Pending => (Phase::Waiting, 0),
                    Phase::Out if is_to_do => (Phase::Waiting, 0),
                    other => (other, fact.returns),
                };
                use TaskStatus::{Cancelled, Deferred, Done, Expanded, Review};
                fact.is_withdrawn = [Cancelled, Deferred, Done, Expanded, Review].contains(&word);
            }
            if fact.is_withdrawn && matches!(fact.phase, Phase::Proven { .. }) && !in_batch.contains(&id) {
                fact.phase = Phase::Out;
            }
            (fact.word, fact.needs) = (word, card.dependencies.iter().map(number).collect());
            self.tasks.insert(id, fact);
        }
        for (id, fact) in old {
            match fact.phase {
                Phase::Proven { .. } if !in_batch.contains(&id) => {
                    self.gone.insert(id, fact.rounds);
                }
                Phase::Running { .. } | Phase::Proven { .. } | Phase::Landed => {
                    let gone = Fact { word: TaskStatus::Cancelled, is_withdrawn: true, ..fact };
                    self.tasks.insert(id, gone);
                }
                Phase::Out | Phase::Waiting | Phase::Stopped(_) => {
                    self.gone.insert(id, fact.rounds);
                }
            }
        }
    }

    fn start(&mut self, started: &TaskStarted, state: &PlanState, git: &Git) {
        let TaskStarted { task, round, id, slot, onto, granted, money } = started;
        let task = number(task);
        let fact = &self.tasks[&task];
        assert!(self.able().any(|able| able == task), "{task} begins, and may not: {fact:?}");
        assert!(self.running().count() < self.spec.jobs as usize, "more run than may");
        assert!(!self.is_asked && !self.is_cancelled && !self.hindered && self.ended.is_none());
        assert!((1..=state.limits.per_task.min(self.iterations_left())).contains(granted), "{granted}");
        assert!(self.running().all(|(_, _, other)| other != *slot), "two in slot {slot}");
        assert_eq!(*round, fact.rounds + 1);
        assert!(self.loops.insert(id.clone()), "{id} was there already");
        match (money, self.budget) {
            (Some(Usd(money)), Some(Usd(all))) => {
                let given: u64 = state.running().filter_map(|(_, it)| it.money).map(|Usd(it)| it).sum();
                assert!(*money > 0 && *money <= all.saturating_sub(self.spent).saturating_sub(given));
            }
            (None, None) => {}
            (some, all) => panic!("{some:?} of {all:?}"),
        }
        assert!(fact.returns == 0 || !self.is_one_back(state), "{task} came back, and so did another");
        assert!(fact.returns < 2 || !self.lands(), "{task} has its last chance, and another lands");
        for need in &fact.needs {
            let piece = self.landed_piece(*need, git);
            assert!(piece.is_none_or(|it| git.content(onto).contains(&it)), "{task} begins without {need}");
        }
        let lost = self.lost();
        let wave = state.task(&started.task).and_then(|task| task.wave);
        for other in state.tasks.iter().filter(|other| !self.spec.pipeline && other.wave < wave) {
            let other = number(&other.card.id);
            let phase = &self.tasks[&other].phase;
            let is_open = matches!(phase, Phase::Running { .. } | Phase::Proven { .. })
                || (*phase == Phase::Waiting && !lost[other]);
            assert!(!is_open, "{task} begins before {other} is over");
        }
        let (granted, slot) = (*granted, *slot);
        let fact = self.fact(task);
        (fact.rounds, fact.phase) = (*round, Phase::Running { granted, slot });
    }

    /// The piece of work that a task landed, unless there was nothing to be changed.
    fn landed_piece(&self, id: usize, git: &Git) -> Option<u64> {
        let is_landed = self.tasks.get(&id).is_some_and(|fact| fact.phase == Phase::Landed);
        let last = git.works.iter().rposition(|work| number(&work.task) == id).filter(|_| is_landed)?;
        (!git.works[last].is_empty).then_some(last as u64)
    }

    fn end(&mut self, ended: &TaskEnded) {
        let id = number(&ended.task);
        let is_withdrawn = self.tasks[&id].is_withdrawn;
        let Phase::Running { granted, .. } = self.tasks[&id].phase else {
            panic!("{} does not run", ended.task)
        };
        let phase = match &ended.end {
            TaskEnd::Rests | TaskEnd::OutOfMoney | TaskEnd::CapReached { .. } => return,
            TaskEnd::Hindered { .. } => return self.hindered = true,
            TaskEnd::Proven { .. } | TaskEnd::Stopped(_) if is_withdrawn => Phase::Out,
            TaskEnd::Proven { tree } => Phase::Proven { tree: tree.clone() },
            TaskEnd::Stopped(stop) => Phase::Stopped(stop.clone()),
        };
        assert!(ended.iterations <= granted, "more iterations than granted");
        match &ended.fault {
            Some(fault) => self.in_vain.push(fault.said.clone()),
            None => self.in_vain.clear(),
        }
        let last = self.in_vain.iter().rev();
        self.hindered |= last.take_while(|said| self.in_vain.last() == Some(said)).count() >= 3;
        self.used += ended.iterations;
        self.spent += ended.cost.map_or(0, |Usd(cost)| cost);
        self.fact(id).phase = phase;
    }

    fn stop(&mut self, id: usize, stop: Stop) {
        let fact = self.fact(id);
        fact.phase = if fact.is_withdrawn { Phase::Out } else { Phase::Stopped(stop) };
    }

    fn again(&mut self, id: usize) {
        let fact = self.fact(id);
        (fact.phase, fact.returns) = (Phase::Waiting, 0);
    }

    fn send_back(&mut self, id: usize) {
        let fact = self.fact(id);
        fact.returns += 1;
        fact.phase = match (fact.is_withdrawn, fact.returns) {
            (true, _) => Phase::Out,
            (false, ..=2) => Phase::Waiting,
            (false, _) => Phase::Stopped(Stop::Unfit),
        };
    }

    fn land(&mut self, commits: &[Option<Oid>], refused: Option<&String>, tip: &Oid, git: &Git) {
        let batch = self.batch.take().expect("a batch");
        let good = commits.len();
        let proven_as = |place: usize| {
            let (id, tree) = &batch.parts[place - 1];
            self.tasks[id].phase == Phase::Proven { tree: Some(tree.clone()) }
        };
        // A good task that may not land only shortens the verified batch.
        let is_verified = refused.is_some()
            || good == 0
            || !self.spec.verifies()
            || batch.passed == Some(good)
            || proven_as(good);
        assert!(is_verified, "{good} of {batch:?} land, and were not verified");
        for &(id, _) in &batch.parts[..good] {
            self.fact(id).phase = Phase::Landed;
            let piece = self.landed_piece(id, git);
            assert!(piece.is_none_or(|it| git.content(tip).contains(&it)), "{id} landed, and is not there");
        }
        for (id, _) in batch.parts.iter().skip(good + 1) {
            let fact = self.fact(*id);
            if fact.is_withdrawn {
                fact.phase = Phase::Out;
            }
        }
        let Some(&(culprit, ref tree)) = batch.parts.get(good) else { return };
        if let Some(reason) = refused {
            return self.stop(culprit, Stop::Other { reason: reason.clone() });
        }
        assert_eq!(batch.failed, Some(good + 1), "{culprit} is taken out of {batch:?}");
        let before: Content = match good {
            0 => git.content(tip).clone(),
            good => git.content(&batch.parts[good - 1].1).clone(),
        };
        assert!(git.fails(git.content(tree)) && !git.fails(&before), "{culprit} did nothing");
        self.send_back(culprit);
    }

    fn complete(
        &mut self,
        wave: WaveNumber,
        commit: Option<&Oid>,
        tasks: &[TaskId],
        state: &PlanState,
        git: &Git,
    ) {
        self.waves += 1;
        assert_eq!(wave.0, self.waves, "waves are completed in order");
        let mut content = git.content(state.trunk.as_ref().expect("a base")).clone();
        for id in tasks.iter().map(number) {
            assert_eq!(self.tasks[&id].phase, Phase::Landed, "{id} is in wave {wave}");
            assert!(self.in_waves.insert(id), "{id} is in two waves");
            content.extend(self.landed_piece(id, git));
        }
        if let Some(commit) = commit {
            assert_eq!(git.content(commit), &content, "wave {wave} holds what is its own");
        }
    }

    pub(super) fn assert_agrees(&self, state: &PlanState) {
        assert_eq!(state.tasks.len(), self.tasks.len());
        let lost = self.lost();
        let mut ready = vec![false; state.tasks.len()];
        state.ready.iter().for_each(|it| ready[it.task] = true);
        let mut waves = vec![None; lost.len()];
        state.tasks.iter().for_each(|task| waves[number(&task.card.id)] = task.wave);
        let in_batch = |id: usize| self.batch.iter().flat_map(|batch| &batch.parts).any(|(it, _)| *it == id);
        let mut open = vec![0; state.waves.len()];
        for (place, task) in state.tasks.iter().enumerate() {
            let id = number(&task.card.id);
            let fact = &self.tasks[&id];
            let phase = match &task.stage {
                Stage::Out => Phase::Out,
                Stage::Waiting(_) => Phase::Waiting,
                Stage::Running(it) => Phase::Running { granted: it.granted, slot: it.slot },
                Stage::Proven { tree } => Phase::Proven { tree: tree.clone() },
                Stage::Landed { .. } => Phase::Landed,
                Stage::Stopped(stop) => Phase::Stopped(stop.clone()),
            };
            assert_eq!(phase, fact.phase, "{id}");
            // Work that a cancelled plan did not hand over is still to be done.
            let is_kept = match &task.stage {
                Stage::Landed { commit: Some(_) } if self.ended == Some(PlanEnd::Cancelled) => {
                    self.handed.contains(&id)
                }
                _ => true,
            };
            let word = if is_kept { self.word(fact) } else { TaskStatus::Pending };
            assert_eq!(state.status_of(task), word, "the status of {id}");
            let has_reason = matches!(phase, Phase::Stopped(_)) && word != TaskStatus::Pending;
            assert_eq!(state.blocked_because(task).is_some(), has_reason, "{id}");
            if let Stage::Waiting(unmet) = task.stage {
                let expected = fact.needs.iter().filter(|need| !self.is_met(**need)).count();
                assert_eq!(unmet, expected, "what {id} waits for");
                assert_eq!(task.is_hopeless, lost[id], "whether {id} has hope");
            }
            let is_able = phase == Phase::Waiting && fact.needs.iter().all(|need| self.is_met(*need));
            assert_eq!(ready[place], is_able, "whether {id} is ready");
            assert_eq!(state.running.contains(&place), matches!(phase, Phase::Running { .. }), "{id}");
            let waits_to_land = matches!(phase, Phase::Proven { .. }) && !in_batch(id);
            assert_eq!(state.proven.contains(&place), waits_to_land, "whether {id} waits to land");
            let is_open = matches!(phase, Phase::Running { .. } | Phase::Proven { .. })
                || (phase == Phase::Waiting && !task.is_hopeless);
            match task.wave {
                Some(wave) => {
                    assert!(state.waves[wave].tasks.contains(&place), "{id} is in its wave");
                    open[wave] += usize::from(is_open);
                    let is_complete = state.waves[wave].completed.is_some();
                    assert!(!(is_complete && is_open), "{id} is open, and its wave is complete");
                    if phase == Phase::Landed {
                        assert_eq!(self.in_waves.contains(&id), is_complete, "whether a commit holds {id}");
                    }
                    for need in fact.needs.iter().filter(|_| !is_complete) {
                        let before = waves.get(*need).copied().flatten();
                        assert!(before < Some(wave), "{id} in wave {wave}, {need} in {before:?}");
                    }
                }
                None => assert_eq!(phase, Phase::Out, "{id} has no wave"),
            }
        }
        for (wave, open) in state.waves.iter().zip(open) {
            assert_eq!(wave.open, open, "what is open in {wave:?}");
            assert!(!wave.tasks.is_empty() || wave.completed.is_some(), "an empty wave");
        }
        assert_eq!(state.iterations_left(), self.iterations_left());
        assert!(self.used <= self.total || state.limits.total < self.used, "more iterations than granted");
        assert_eq!(state.used, self.used);
        assert_eq!(state.spent.unwrap_or_default(), Usd(self.spent));
    }

    /// Nothing is merged while a task is running that would not come back from that again.
    pub(super) fn assert_last_chance_is_not_overtaken(&self, state: &PlanState) {
        assert!(!self.is_last_chance(state), "another lands while a task has its last chance");
    }

    /// Every task that can begin, and has room, has begun; what can land is on its way.
    pub(super) fn assert_no_task_starves(&self, state: &PlanState, is_git_at_work: bool) {
        let has_room = self.running().count() < self.spec.jobs as usize;
        let has_means = self.iterations_left() > 0 && state.slice() != Some(Usd(0));
        let waves: BTreeMap<_, _> =
            state.tasks.iter().map(|task| (number(&task.card.id), task.wave)).collect();
        let is_its_turn = |id: usize| {
            let wave = waves[&id];
            self.spec.pipeline || state.waves.iter().position(|wave| wave.open > 0) == wave
        };
        // A task that came back waits for the others that did; for one that has its last chance all wait until nothing
        // lands.
        let is_one_back = self.is_one_back(state);
        let is_settling = !is_one_back && self.lands();
        let is_last = |id| is_its_turn(id) && self.tasks[&id].returns >= 2;
        let all_wait = is_settling && self.able().any(is_last);
        let may_begin = |id: &usize| !all_wait && (self.tasks[id].returns == 0 || !is_one_back);
        let starving = self.able().find(|id| is_its_turn(*id) && may_begin(id));
        // Between two waves their commit is made first.
        let is_between =
            is_git_at_work && state.waves.iter().any(|it| it.open == 0 && it.completed.is_none());
        let is_held = is_git_at_work && self.spec.jobs == 1;
        if has_room && has_means && !is_between && !is_held {
            assert_eq!(starving, None, "it is not started");
        }
        let is_held = self.is_last_chance(state);
        assert!(is_git_at_work || is_held || !self.lands(), "what is proven does not land");
    }

    fn check_end(&self, end: PlanEnd, state: &PlanState, git: &Git) {
        let lost = self.lost();
        let is_quiet = |(id, fact): (&usize, &Fact)| match fact.phase {
            Phase::Out | Phase::Landed | Phase::Stopped(_) => true,
            Phase::Waiting => lost[*id],
            Phase::Running { .. } | Phase::Proven { .. } => false,
        };
        let is_left = |fact: &Fact| match fact.phase {
            Phase::Landed | Phase::Out => false,
            Phase::Waiting | Phase::Running { .. } | Phase::Proven { .. } | Phase::Stopped(_) => true,
        };
        let is_refused = state.refused.is_some();
        match end {
            PlanEnd::Completed => {
                for (&id, fact) in &self.tasks {
                    assert!(!is_left(fact), "{id} is left");
                    let piece = self.landed_piece(id, git);
                    assert!(
                        piece.is_none_or(|it| git.content(&git.branch).contains(&it)),
                        "{id} was not handed over"
                    );
                    assert_eq!(fact.phase == Phase::Landed, self.in_waves.contains(&id), "{id} is in a wave");
                }
                assert!(!is_refused, "the person edited the file, and it was refused");
            }
            PlanEnd::Cancelled => assert!(self.is_cancelled),
            PlanEnd::Paused => {
                let rests = state.running().any(|(_, it)| it.halt == Some(crate::plan::Halt::Rests));
                assert!(self.is_asked || rests, "it was not paused");
            }
            PlanEnd::IterationCap => {
                assert!(
                    self.iterations_left() == 0
                        && self.able().next().is_some()
                        && self.running().count() == 0
                );
            }
            PlanEnd::BudgetExceeded => assert_eq!(state.slice(), Some(Usd(0))),
            PlanEnd::TimedOut => assert!(state.limits.max_duration.is_some()),
            PlanEnd::Blocked => {
                let is_all_quiet = self.tasks.iter().all(is_quiet);
                assert!(self.hindered || is_all_quiet || (is_refused && !state.taken), "there is more to do");
                let is_stuck = !state.handover.due.is_empty() || self.tasks.values().any(is_left);
                assert!(self.hindered || is_refused || is_stuck, "it is done");
            }
        }
    }
}
