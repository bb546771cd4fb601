//! A person's view of a running plan: its events, and the current iteration and the result of each task's loop. The
//! output of agents stays in their logs: mixed output of several would be unreadable.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::Duration;

use refrain_core::event::{Event, Record};
use refrain_core::plan::{PlanEvent, PlanState, TaskId};
use refrain_core::{LoopId, LoopState};
use refrain_engine::{EngineError, FollowEvent, Follower, PlanFollower, Service, chain};

use super::narrator::PlanNarrator;
use crate::out::{self, Target};
use crate::render::event_text::{self, EndFacts};
use crate::render::phrase;

/// How long to wait for the last lines of a task's loop after the plan reports its end.
const LAST_LINES: Duration = Duration::from_secs(1);
/// How often to check whether the loop of a task exists: the plan's event comes a moment before.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct PlanScreen {
    progress: Option<Target>,
    events: bool,
    /// Events up to this one are not shown: they were shown before.
    past: u64,
    /// The followers of the tasks' loops; each is gone once it has shown all. They stop when `listens` is dropped.
    tasks: HashMap<TaskId, Receiver<()>>,
    listens: Arc<()>,
}

impl PlanScreen {
    /// Shows progress on `progress`, and prints events as JSON lines on standard output if asked. Events up to `past`
    /// were shown before.
    pub(crate) fn new(progress: Option<Target>, events: bool, past: u64) -> Self {
        Self { progress, events, past, tasks: HashMap::new(), listens: Arc::default() }
    }

    /// Shows all events, until the plan's runner ends or the reader is gone.
    pub(crate) fn run(mut self, service: &Service, mut follower: PlanFollower) {
        let mut telling = PlanNarrator::default();
        loop {
            match follower.next_event() {
                Ok(Some(record)) if self.show(service, &mut telling, &record) => {}
                Ok(_) => break,
                Err(error) => return out::tell_line("", &format!("refrain: {}", chain(&error))),
            }
        }
    }

    /// Shows one event; false once the reader is gone.
    fn show(&mut self, service: &Service, telling: &mut PlanNarrator, record: &Record<PlanEvent>) -> bool {
        if let PlanEvent::TaskEnded(ended) = &record.event
            && let Some(follower) = self.tasks.remove(&ended.task)
        {
            // It ends silently; a follower with nothing to show is not waited for any longer.
            let _ = follower.recv_timeout(LAST_LINES);
        }
        let text = telling.lines(record, self.progress.and_then(Target::width));
        let is_read = !self.events || print(record);
        let Some(target) = self.progress.filter(|_| record.seq > self.past) else { return is_read };
        let is_read = is_read && (text.is_empty() || target.write(&text));
        if let PlanEvent::TaskStarted(started) = &record.event {
            self.follow(service, &started.task, &started.id, false);
        }
        is_read
    }

    /// Follows the tasks that are already running.
    pub(crate) fn join(&mut self, service: &Service, state: &PlanState) {
        for (task, running) in state.running() {
            self.follow(service, &state.tasks[task].card.id, &running.id, true);
        }
    }

    fn follow(&mut self, service: &Service, task: &TaskId, id: &LoopId, joins: bool) {
        let Some(target) = self.progress else { return };
        let (ended, follower) = mpsc::channel::<()>();
        self.tasks.insert(task.clone(), follower);
        let (service, id, listens) = (service.clone(), id.clone(), Arc::downgrade(&self.listens));
        std::thread::spawn(move || {
            let _ended = ended;
            follow_task(&service, (&id, joins), target, &listens);
        });
    }
}

fn print(record: &Record<PlanEvent>) -> bool {
    let redacted = Record { event: record.event.clone().redacted(), ..record.clone() };
    serde_json::to_vec(&redacted).is_ok_and(|mut line| {
        line.push(b'\n');
        out::print_raw(&line)
    })
}

/// Shows the iterations of a task's loop and their results, until it has stopped.
fn follow_task(service: &Service, (id, joins): (&LoopId, bool), target: Target, listens: &Weak<()>) {
    let Some(mut follower) = follower_of(service, (id, joins), listens) else { return };
    let mut state: Option<LoopState> = None;
    while let Ok(Some(sight)) = follower.look() {
        let (record, is_past) = match sight {
            FollowEvent::Event(record) => (record, false),
            FollowEvent::Past(record) => (record, true),
            FollowEvent::Said(_) | FollowEvent::Output { .. } | FollowEvent::Joined | FollowEvent::Quiet => {
                continue;
            }
        };
        let attempts = |state: &Option<LoopState>| state.as_ref().map_or(0, |state| state.attempts.len());
        let before = attempts(&state);
        match &mut state {
            None => state = LoopState::begin(&record).ok(),
            Some(state) => drop(state.apply(&record)),
        }
        let Some(state) = &state else { return };
        let settled = state.attempts.last().filter(|_| state.attempts.len() > before);
        let is_told = match record.event {
            Event::IterationBegun { .. } | Event::WaitStarted(_) | Event::AgentChanged(_) => true,
            // A failure before the first iteration is expected.
            Event::GateFinished(_) => state.iteration > 0,
            _ => settled.is_some(),
        };
        if is_told && !is_past {
            let text = event_text::lines(state, &record, settled, "", &EndFacts::default(), None);
            let text: String = text.lines().map(|line| tagged(id, line, target.width())).collect();
            if !text.is_empty() && !target.write(&text) {
                return;
            }
        }
    }
}

/// Adds the loop's id to a line: several loops print at a time.
fn tagged(id: &LoopId, line: &str, width: Option<usize>) -> String {
    match line.contains("[loop ") {
        true => format!("{line}\n"),
        false => phrase::broken("", 2, &format!("{line} ({id})"), width) + "\n",
    }
}

/// The loop is created or resumed a moment after the plan's event, or never.
fn follower_of(service: &Service, (id, joins): (&LoopId, bool), listens: &Weak<()>) -> Option<Follower> {
    while listens.strong_count() > 0 {
        let is_there = !joins || service.status(id).is_ok_and(|status| !status.has_stopped());
        match service.follow(id, false) {
            Ok(follower) if is_there => return Some(if joins { follower.joining() } else { follower }),
            Ok(_) | Err(EngineError::NoLoop { .. }) => std::thread::park_timeout(LOOK),
            Err(_) => return None,
        }
    }
    None
}
