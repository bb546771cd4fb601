//! Journals for properties: *obedient* ones, in which a runner does what [`next_step`](super::super::next_step) says
//! while the world continues, and *loose* ones, made of any events that the fold accepts.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use super::journal::{
    Journal, base_taken, candidate_taken, commit_settled, criticised, event_of, finished, gate_finished,
    gate_name, gates, grant, id, oid, other_agent, published, request, runner, spawn_failed, spawned, spec,
    started, stop, time, well, work_saved,
};
use crate::event::{
    ApprovedTree, Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency,
    Wait, WaitKind,
};
use crate::git::{Checkout, Workflow};
use crate::r#loop::{LoopState, Phase};
use crate::prompt::state_file::WorkStatus;
use crate::spec::{CritiqueSpec, Limits, Millis, OnStuck, Secret, Spec};

pub(super) fn ms() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![
        2 => Just(None),
        5 => (0..30_000u64).prop_map(|ms| Some(Millis(ms))),
        1 => any::<u64>().prop_map(|ms| Some(Millis(ms)))
    ]
}

pub(super) fn limits() -> impl Strategy<Value = Limits> {
    (proptest::option::of(0..5u32), ms(), ms(), ms(), ms()).prop_map(
        |(max_iterations, max_duration, timeout, idle_timeout, pause)| Limits {
            max_cost: None,
            max_tokens: None,
            retry_for: None,
            timeout_grace: None,
            max_iterations,
            max_duration,
            timeout,
            idle_timeout,
            pause,
        },
    )
}

pub(super) fn any_spec() -> impl Strategy<Value = Spec> {
    let rarely = || proptest::bool::weighted(0.3);
    (limits(), any::<bool>(), any::<String>(), any::<u64>(), (rarely(), rarely(), rarely(), rarely()))
        .prop_map(|(limits, promise, text, output_cap, (commits, apart, gated, both))| {
            let mut spec = Spec { limits, output_cap, prompt: text.clone(), ..spec() };
            spec.promise = spec.promise.filter(|_| promise);
            spec.agent.env.insert(text.clone(), Secret::new(text.clone()));
            spec.agent.args.push(text);
            if commits {
                let workflows = [Workflow::Commit, Workflow::Push, Workflow::Pr, Workflow::PrMerge];
                spec.git.workflow = workflows[(output_cap % 4) as usize];
            }
            if gated {
                spec.gates = if both { gates([true, false]) } else { gates([true]) };
            }
            if both {
                spec.critique =
                    Some(CritiqueSpec { every: 1, critic: spec.agent.clone(), timeout: Millis(9_000) });
                spec.stuck.answer = OnStuck::Change(Box::new(other_agent()));
            }
            if apart {
                spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
            }
            spec.approval = output_cap % 8 == 1;
            spec
        })
}

pub(super) fn ask() -> impl Strategy<Value = Ask> {
    let urgency = || prop_oneof![Just(Urgency::AfterIteration), Just(Urgency::Now)];
    prop_oneof![
        urgency().prop_map(Ask::Pause),
        urgency().prop_map(Ask::Cancel),
        any::<String>().prop_map(Ask::Steer),
        Just(Ask::Proceed)
    ]
}

pub(super) fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        3 => Just(Exit::Code(0)),
        3 => any::<i32>().prop_map(Exit::Code),
        1 => any::<i32>().prop_map(Exit::Signal),
        2 => Just(Exit::Lost)
    ]
}

pub(super) fn end_of_attempt() -> impl Strategy<Value = AttemptFinished> {
    let rarely = || proptest::bool::weighted(0.2);
    (exit(), rarely(), rarely(), any::<(u64, u64, String)>()).prop_map(
        |(exit, promised, state_done, (stdout_bytes, stderr_bytes, preview))| AttemptFinished {
            promised,
            gave_up: stdout_bytes.is_multiple_of(16).then(|| preview.clone()),
            state: state_done.then_some(WorkStatus::Done),
            stdout_bytes,
            stderr_bytes,
            summary: stdout_bytes.is_multiple_of(3).then(|| preview.clone()),
            preview,
            ..finished(exit)
        },
    )
}

pub(super) fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![
        // Thrice, as a claim is rare.
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::StateFile },
        End::Completed { claim: ClaimSource::StateFile },
        End::Completed { claim: ClaimSource::ExitCode },
        End::Completed { claim: ClaimSource::Gates },
        End::Cancelled,
        End::IterationCap,
        End::Stuck,
        End::Completed { claim: ClaimSource::Result },
        End::Blocked { why: BlockReason::Stuck },
        End::Blocked { why: BlockReason::GaveUp },
        End::TimedOut,
        End::Blocked { why: BlockReason::Refunds },
        End::Blocked { why: BlockReason::Churn },
        End::Blocked { why: BlockReason::AgentMissing },
        End::Blocked { why: BlockReason::OutputLost },
        End::Blocked { why: BlockReason::Login },
        End::Blocked { why: BlockReason::Limit },
        End::Blocked { why: BlockReason::Repository },
        End::Blocked { why: BlockReason::Approval },
        End::BudgetExceeded { by: None },
        End::Paused,
        End::Paused,
    ])
}

pub(super) fn any_time() -> impl Strategy<Value = Timestamp> {
    let (min, max) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    prop_oneof![
        6 => (-60_000..600_000i64).prop_map(time),
        2 => (min..=max).prop_map(|ns| Timestamp::from_nanosecond(ns).unwrap()),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX)
    ]
}

pub(super) fn stop_reason() -> impl Strategy<Value = StopReason> {
    prop::sample::select(vec![
        StopReason::Cancel,
        StopReason::Interrupt,
        StopReason::TimeLimit,
        StopReason::Silence,
        StopReason::LoopDuration,
        StopReason::OutputLost,
        StopReason::Budget,
    ])
}

fn approved() -> impl Strategy<Value = ApprovedTree> {
    let tree = proptest::option::of((0..3u32).prop_map(oid));
    ((1..4u32, 1..4u32), tree).prop_map(|((n, k), tree)| ApprovedTree { attempt: id(n, k), tree })
}

/// Any event; numbers are small, so that some of them fit.
pub(super) fn any_event() -> impl Strategy<Value = Event> {
    let attempt = || (1..4u32, 1..4u32).prop_map(|(n, k)| id(n, k));
    // Few names, so that some are said again.
    let name = proptest::option::of(prop_oneof!["[ab]", "[a-zA-Z0-9-]{1,64}"].prop_map(request));
    prop_oneof![
        1 => any_spec().prop_map(started),
        2 => (any::<i32>(), proptest::option::of(attempt()))
            .prop_map(|(pid, interrupted)| Event::RunnerStarted { runner: runner(pid), interrupted, adopted: None, judged: None, fence: None }),
        8 => (1..4u32).prop_map(|iteration| Event::IterationBegun { iteration, work: None }),
        8 => attempt().prop_map(Event::AttemptStarted),
        6 => Just(spawned()),
        6 => Just(spawn_failed()),
        5 => stop_reason().prop_map(stop),
        8 => end_of_attempt().prop_map(|it| Event::AttemptFinished(Box::new(it))),
        1 => any::<u32>().prop_map(|killed| Event::AttemptSwept { killed, survivors: vec![], names: vec![] }),
        2 => (name, ask()).prop_map(|(request, ask)| Event::Asked { request, ask, by: Default::default() }),
        1 => any_time().prop_map(|until| Event::WaitStarted(Wait { kind: WaitKind::Pace, until })),
        3 => end().prop_map(Event::LoopEnded),
        1 => (limits(), proptest::option::of(approved()))
            .prop_map(|(limits, approved)| Event::LoopResumed { no_sandbox: limits.timeout.is_some(), limits, approved }),
        1 => Just(base_taken()),
        1 => Just(Event::BaseRefused { error: "fatal".into() }),
        2 => (0..4u32).prop_map(commit_settled),
        2 => proptest::option::of(0..3u32).prop_map(candidate_taken),
        1 => any::<bool>().prop_map(|bad_work| Event::CandidateRefused { error: "fatal".into(), bad_work }),
        1 => (0..2usize, 1..3u32).prop_map(|(place, run)| Event::GateStarted { gate: gate_name(place), run }),
        1 => Just(Event::GateSpawnFailed { error: "no sh".into() }),
        1 => stop_reason().prop_map(|because| Event::GateStopRequested { because }),
        2 => (0..2usize, exit()).prop_map(|(place, exit)| {
            Event::GateFinished(Box::new(gate_finished(place, exit)))
        }),
        1 => Just(Event::WorktreeReleased { kept: None, branch_removed: false }),
        2 => (0..3u32).prop_map(|iteration| Event::CritiqueStarted { iteration }),
        1 => Just(Event::CritiqueFailed { error: "no such file".into() }),
        1 => stop_reason().prop_map(|because| Event::CritiqueStopRequested { because }),
        1 => exit().prop_map(|exit| Event::CritiqueFinished(Box::new(criticised(exit)))),
        1 => Just(Event::AgentChanged(Box::new(other_agent()))),
        1 => Just(work_saved()),
        1 => Just(Event::WorkUnsaved { why: "no repository".into() }),
        1 => any::<(u64, String)>().prop_map(|(bytes, kept_as)| Event::JournalTorn { bytes, kept_as }),
        1 => any::<(u64, Option<String>)>().prop_map(|(bytes, kept_as)| Event::JournalRestored { bytes, kept_as }),
    ]
}

/// The event, or one in its place that fits now: by chance few do, and nothing would ever get far.
pub(super) fn aimed(event: Event, state: &LoopState) -> Event {
    match (event, &state.phase) {
        (
            Event::IterationBegun { .. }
            | Event::AttemptStarted(_)
            | Event::CandidateTaken { .. }
            | Event::GateStarted { .. }
            | Event::GateFinished(_),
            phase,
        ) => match phase {
            Phase::Idle { uncommitted: true, .. } => commit_settled(state.iteration),
            Phase::Idle { .. } if state.git.base.is_none() && state.spec.git.needs_base() => base_taken(),
            Phase::Idle { .. } if state.baseline.is_none() && !state.spec.gates.is_empty() => {
                candidate_taken(None)
            }
            Phase::Idle { claim: Some(claim), .. } => Event::LoopEnded(End::Completed { claim: *claim }),
            Phase::Idle { claim: None, .. } => {
                Event::IterationBegun { iteration: state.iteration + 1, work: None }
            }
            Phase::Begun { next, .. } => Event::AttemptStarted(*next),
            Phase::Proving(proving) => match (&proving.running, proving.next_gate()) {
                (Some(running), _) => {
                    Event::GateFinished(Box::new(gate_finished(running.gate, Exit::Code(0))))
                }
                (None, Some((place, run))) if proving.candidate.is_some() && !proving.to_check => {
                    Event::GateStarted { gate: gate_name(place), run }
                }
                (None, _) => candidate_taken(None),
            },
            Phase::Critiquing(_) => Event::CritiqueFinished(Box::new(criticised(Exit::Code(0)))),
            Phase::Publishing(publishing) => match (state.next_effect(), publishing.running) {
                (Some(effect), None) if effect.leaves_something() => Event::PublishStarted { effect },
                (Some(effect), _) => published(effect, well(effect)),
                (None, _) => Event::AttemptSwept { killed: 0, survivors: Vec::new(), names: vec![] },
            },
            Phase::InFlight(flight) if flight.spawned.is_none() => spawned(),
            Phase::InFlight(_) => Event::AttemptFinished(Box::new(finished(Exit::Code(0)))),
        },
        (Event::LoopResumed { limits, approved: Some(_), no_sandbox }, _) => {
            Event::LoopResumed { limits, approved: state.awaits_approval(), no_sandbox }
        }
        (Event::RunnerStarted { runner, .. }, _) => state.recover(runner),
        (Event::LoopEnded(_), _) if state.cancel.is_some() => Event::LoopEnded(End::Cancelled),
        (Event::LoopEnded(_), Phase::Idle { claim: Some(claim), uncommitted: false }) => {
            Event::LoopEnded(End::Completed { claim: *claim })
        }
        (event, _) => event,
    }
}

/// The events of these that the fold accepts.
pub(super) fn loose() -> impl Strategy<Value = Journal> {
    let aims = proptest::bool::weighted(0.6);
    (any_spec(), vec((any_event(), aims, 0..20_000i64), 0..220)).prop_map(|(spec, events)| {
        let mut journal = Journal::of(spec);
        for (event, aims, ms) in events {
            let event = if aims { aimed(event, &journal.state) } else { event };
            let record = journal.record(event);
            if journal.state.apply(&record).is_ok() {
                journal.records.push(record);
            }
            journal.now += ms;
        }
        journal
    })
}

/// An event from outside while the runner obeys.
#[derive(Clone, Debug)]
pub(super) enum ExternalEvent {
    Nothing,
    Ends(Box<AttemptFinished>),
    CannotStart,
    GateEnds(Exit),
    Asked(Ask),
    Crash,
    Resumed(u32, u64),
}

pub(super) fn happening() -> impl Strategy<Value = ExternalEvent> {
    prop_oneof![
        6 => Just(ExternalEvent::Nothing),
        6 => end_of_attempt().prop_map(|end| ExternalEvent::Ends(Box::new(end))),
        1 => Just(ExternalEvent::CannotStart),
        3 => exit().prop_map(ExternalEvent::GateEnds),
        2 => ask().prop_map(ExternalEvent::Asked),
        2 => Just(ExternalEvent::Crash),
        2 => (0..5u32, 0..60_000u64).prop_map(|(more, ms)| ExternalEvent::Resumed(more, ms)),
    ]
}

pub(super) fn happens(journal: Journal, happening: ExternalEvent) -> Journal {
    let spawning = journal.state.in_flight().map(|flight| flight.spawned.is_none());
    match (happening, spawning) {
        (ExternalEvent::Ends(end), Some(false)) => journal.ends(*end),
        (ExternalEvent::CannotStart, Some(true)) => journal.then(spawn_failed()),
        (ExternalEvent::Nothing, Some(true)) => journal.then(spawned()),
        (ExternalEvent::GateEnds(exit), _) if journal.state.running_gate().is_some() => {
            journal.answers(|finished| finished.exit = exit)
        }
        (ExternalEvent::GateEnds(exit), _) if journal.state.critiquing().is_some() => {
            journal.then(Event::CritiqueFinished(Box::new(criticised(exit))))
        }
        (ExternalEvent::Asked(ask), _) if journal.state.admits(&ask).is_ok() => journal.asks(ask),
        (ExternalEvent::Crash, _) if journal.state.ended.is_none() => journal.taken_over(),
        (ExternalEvent::Resumed(more, ms), None) if !journal.state.is_busy() => {
            let duration = journal
                .state
                .limits
                .max_duration
                .map(|_| Millis(journal.state.active.as_secs() * 1_000 + ms));
            let granted = grant(Some(journal.state.charged + more), duration);
            let resumed = match journal.state.awaits_approval() {
                Some(_) if more % 2 == 0 => journal.state.approve(&granted, None),
                Some(_) | None => journal.state.resume(&granted),
            };
            match resumed {
                Ok(Some(event)) if journal.state.ended.is_some() => journal.then(event).taken_over(),
                // A crash, and a person who grants more.
                Ok(Some(event)) => journal.taken_over().then(event).taken_over(),
                Ok(None) | Err(_) => journal,
            }
        }
        _ => journal,
    }
}

/// A runner, and others after it, obey; events happen between any two of their steps.
pub(super) fn obedient() -> impl Strategy<Value = Journal> {
    (any_spec(), vec((happening(), 0..20_000i64), 0..80)).prop_map(|(spec, happenings)| {
        happenings.into_iter().fold(Journal::of(spec).taken_over(), |journal, (happening, ms)| {
            let journal = happens(journal, happening).after_ms(ms);
            match event_of(&journal.state, journal.next()) {
                Some(event) => journal.then(event),
                None => journal,
            }
        })
    })
}
