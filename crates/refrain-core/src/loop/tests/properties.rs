//! What holds for every journal.
//!
//! Two kinds of journals: *obedient* ones, in which somebody does what [`next_step`] says while the world goes on, and
//! *loose* ones, made of whatever the fold accepts. What is promised to people holds for the first; what must never
//! panic holds for the second too.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::journal::{
    Journal, asked, event_of, finished, grant, id, kind, pace, request, runner, spawn_failed, spawned, spec,
    started, stop, time, unlimited,
};
use crate::event::{
    Ask, AttemptFinished, Blocked, ClaimSource, End, Event, Exit, Record, StopReason, Urgency, Wait, WaitKind,
};
use crate::r#loop::{Live, LoopState, MAX_REFUNDS, Outcome, Phase, Step, next_step};
use crate::spec::{Limits, Millis, Secret, Spec};

fn ms() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![
        2 => Just(None),
        5 => (0..30_000u64).prop_map(|ms| Some(Millis(ms))),
        1 => any::<u64>().prop_map(|ms| Some(Millis(ms)))
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (proptest::option::of(0..5u32), ms(), ms(), ms(), ms()).prop_map(
        |(max_iterations, max_duration, timeout, idle_timeout, pause)| Limits {
            max_cost: None,
            max_tokens: None,
            retry_for: None,
            max_iterations,
            max_duration,
            timeout,
            idle_timeout,
            pause,
        },
    )
}

fn any_spec() -> impl Strategy<Value = Spec> {
    (limits(), any::<bool>(), any::<String>(), any::<u64>()).prop_map(
        |(limits, promise, text, output_cap)| {
            let mut spec = Spec { limits, output_cap, prompt: text.clone(), ..spec() };
            spec.promise = spec.promise.filter(|_| promise);
            spec.agent.env.insert(text.clone(), Secret::new(text.clone()));
            spec.agent.args.push(text);
            spec
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let urgency = || prop_oneof![Just(Urgency::AfterIteration), Just(Urgency::Now)];
    prop_oneof![
        urgency().prop_map(Ask::Pause),
        urgency().prop_map(Ask::Cancel),
        any::<String>().prop_map(Ask::Steer),
        Just(Ask::Proceed)
    ]
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        3 => Just(Exit::Code(0)),
        3 => any::<i32>().prop_map(Exit::Code),
        1 => any::<i32>().prop_map(Exit::Signal),
        2 => Just(Exit::Lost)
    ]
}

fn end_of_attempt() -> impl Strategy<Value = AttemptFinished> {
    let rarely = || proptest::bool::weighted(0.1);
    (exit(), rarely(), rarely(), any::<(u64, u64, String)>()).prop_map(
        |(exit, promised, state_done, (stdout_bytes, stderr_bytes, preview))| AttemptFinished {
            promised,
            state_done,
            stdout_bytes,
            stderr_bytes,
            preview,
            ..finished(exit)
        },
    )
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![
        // Twice, as a claim is rare.
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::StateFile },
        End::Completed { claim: ClaimSource::StateFile },
        End::Completed { claim: ClaimSource::ExitCode },
        End::Cancelled,
        End::IterationCap,
        End::TimedOut,
        End::Blocked { why: Blocked::Refunds },
        End::Blocked { why: Blocked::Churn },
        End::Blocked { why: Blocked::AgentMissing },
        End::Blocked { why: Blocked::OutputLost },
        End::Blocked { why: Blocked::Login },
        End::Blocked { why: Blocked::Limit },
        End::BudgetExceeded,
        End::Paused,
    ])
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    let (min, max) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    prop_oneof![
        6 => (-60_000..600_000i64).prop_map(time),
        2 => (min..=max).prop_map(|ns| Timestamp::from_nanosecond(ns).unwrap()),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX)
    ]
}

fn stop_reason() -> impl Strategy<Value = StopReason> {
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

/// Any event; numbers are small, so that some of them fit where they are tried.
fn any_event() -> impl Strategy<Value = Event> {
    let attempt = || (1..4u32, 1..4u32).prop_map(|(n, k)| id(n, k));
    // Few names, so that some are said again.
    let name = proptest::option::of(prop_oneof!["[ab]", "[a-zA-Z0-9-]{1,64}"].prop_map(request));
    prop_oneof![
        1 => any_spec().prop_map(started),
        2 => (any::<i32>(), proptest::option::of(attempt()))
            .prop_map(|(pid, interrupted)| Event::RunnerStarted { runner: runner(pid), interrupted, adopted: None }),
        8 => (1..4u32).prop_map(|iteration| Event::IterationBegun { iteration }),
        8 => attempt().prop_map(Event::AttemptStarted),
        6 => Just(spawned()),
        2 => Just(spawn_failed()),
        4 => stop_reason().prop_map(stop),
        8 => end_of_attempt().prop_map(|it| Event::AttemptFinished(Box::new(it))),
        1 => any::<u32>().prop_map(|killed| Event::AttemptSwept { killed, survivors: vec![] }),
        2 => (name, ask()).prop_map(|(request, ask)| Event::Asked { request, ask }),
        1 => any_time().prop_map(|until| Event::WaitStarted(Wait { kind: WaitKind::Pace, until })),
        2 => end().prop_map(Event::LoopEnded),
        1 => limits().prop_map(|limits| Event::LoopResumed { limits }),
        1 => any::<(u64, String)>().prop_map(|(bytes, kept_as)| Event::JournalTorn { bytes, kept_as }),
        1 => any::<u64>().prop_map(|bytes| Event::JournalRestored { bytes }),
    ]
}

/// The event, or one in its place that fits now: by chance few do, and nothing would ever get far.
fn aimed(event: Event, state: &LoopState) -> Event {
    match (event, &state.phase) {
        (Event::IterationBegun { .. } | Event::AttemptStarted(_), phase) => match phase {
            Phase::Idle { claim: Some(claim) } => Event::LoopEnded(End::Completed { claim: *claim }),
            Phase::Idle { claim: None } => Event::IterationBegun { iteration: state.iteration + 1 },
            Phase::Begun { next, .. } => Event::AttemptStarted(*next),
            Phase::InFlight(flight) if flight.spawned.is_none() => spawned(),
            Phase::InFlight(_) => Event::AttemptFinished(Box::new(finished(Exit::Code(0)))),
        },
        (Event::RunnerStarted { runner, .. }, _) => state.recover(runner),
        (Event::LoopEnded(_), _) if state.cancel.is_some() => Event::LoopEnded(End::Cancelled),
        (event, _) => event,
    }
}

/// What the fold accepts of these events.
fn loose() -> impl Strategy<Value = Journal> {
    let aims = proptest::bool::weighted(0.5);
    (any_spec(), vec((any_event(), aims, 0..20_000i64), 0..80)).prop_map(|(spec, events)| {
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

/// Something that happens to a loop while its runner does what it is told.
#[derive(Clone, Debug)]
enum Happening {
    Nothing,
    Ends(AttemptFinished),
    CannotStart,
    Asked(Ask),
    Crash,
    Resumed(u32, u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => Just(Happening::Nothing),
        6 => end_of_attempt().prop_map(Happening::Ends),
        1 => Just(Happening::CannotStart),
        2 => ask().prop_map(Happening::Asked),
        2 => Just(Happening::Crash),
        2 => (0..5u32, 0..60_000u64).prop_map(|(more, ms)| Happening::Resumed(more, ms)),
    ]
}

fn happens(journal: Journal, happening: Happening) -> Journal {
    let spawning = journal.state.in_flight().map(|flight| flight.spawned.is_none());
    match (happening, spawning) {
        (Happening::Ends(end), Some(false)) => journal.ends(end),
        (Happening::CannotStart, Some(true)) => journal.then(spawn_failed()),
        (Happening::Nothing, Some(true)) => journal.then(spawned()),
        (Happening::Asked(ask), _) if journal.state.admits(&ask).is_ok() => journal.asks(ask),
        (Happening::Crash, _) if journal.state.ended.is_none() => journal.taken_over(),
        (Happening::Resumed(more, ms), None) => {
            let duration = journal
                .state
                .limits
                .max_duration
                .map(|_| Millis(journal.state.active.as_secs() * 1_000 + ms));
            match journal.state.resume(&grant(Some(journal.state.charged + more), duration)) {
                Ok(Some(event)) if journal.state.ended.is_some() => journal.then(event).taken_over(),
                // A crash, and a person who grants more.
                Ok(Some(event)) => journal.taken_over().then(event).taken_over(),
                Ok(None) | Err(_) => journal,
            }
        }
        _ => journal,
    }
}

/// A runner, and others after it, obey; the world goes on between any two of their steps.
fn obedient() -> impl Strategy<Value = Journal> {
    (any_spec(), vec((happening(), 0..20_000i64), 0..80)).prop_map(|(spec, happenings)| {
        happenings.into_iter().fold(Journal::of(spec).taken_over(), |journal, (happening, ms)| {
            let journal = happens(journal, happening).after_ms(ms);
            match event_of(journal.next()) {
                Some(event) => journal.then(event),
                None => journal,
            }
        })
    })
}

proptest! {
    #[test]
    fn every_prefix_of_a_journal_folds(journal in prop_oneof![obedient(), loose()]) {
        for end in 1..=journal.records.len() {
            let folded = LoopState::fold(&journal.records[..end]).unwrap();
            prop_assert_eq!(folded.seq, u64::try_from(end).unwrap());
        }
        prop_assert_eq!(LoopState::fold(&journal.records).unwrap(), journal.state);
    }

    #[test]
    fn the_next_step_is_total_and_deterministic(
        journal in prop_oneof![obedient(), loose()],
        now in any_time(),
        last_output in proptest::option::of(any_time()),
        output_lost: bool,
    ) {
        let live = Live { last_output, output_lost, ..Live::default() };
        for now in [now, Timestamp::MIN, Timestamp::MAX, journal.state.updated_at] {
            let step = next_step(&journal.state, &live, now);
            prop_assert_eq!(step, next_step(&journal.state, &live, now));
            // Whoever awaits a time that has passed would spin.
            if let Step::Await { until: Some(until) } = step {
                prop_assert!(until > now || now == Timestamp::MAX, "{} at {}", until, now);
            }
            let _ = journal.state.active(now);
        }
    }

    #[test]
    fn what_is_decided_can_be_recorded(journal in obedient(), later in 0..100_000i64) {
        let journal = journal.after_ms(later);
        if let Some(event) = event_of(journal.next()) {
            journal.then(event);
        }
    }

    #[test]
    fn the_cap_is_never_exceeded(journal in obedient()) {
        let mut granted = journal.state.spec.limits.max_iterations;
        for record in &journal.records {
            if let Event::LoopResumed { limits } = &record.event {
                granted = granted.max(limits.max_iterations);
            }
        }
        let charged = journal.state.attempts.iter().filter(|attempt| attempt.charged).count();
        prop_assert_eq!(u32::try_from(charged).unwrap(), journal.state.charged);
        // Without a cap at the start the first `resume` that named one may have come late.
        if let (Some(granted), Some(_)) = (granted, journal.state.spec.limits.max_iterations) {
            prop_assert!(journal.state.charged <= granted);
        }
    }

    #[test]
    fn three_refunds_in_a_row_end_blocked(journal in obedient()) {
        let refunded = |state: &LoopState| {
            let last = state.attempts.iter().rev().take_while(|attempt| !attempt.charged);
            last.filter(|attempt| attempt.outcome != Outcome::Interrupted).count()
        };
        for end in 1..=journal.records.len() {
            let state = LoopState::fold(&journal.records[..end]).unwrap();
            let resumed = journal.records[..end].iter().any(|it| matches!(it.event, Event::LoopResumed { .. }));
            if resumed || refunded(&state) < MAX_REFUNDS as usize {
                continue;
            }
            prop_assert!(state.in_flight().is_none(), "a fourth attempt was started");
            match next_step(&state, &Live::default(), state.updated_at) {
                Step::Finish(End::Blocked { .. } | End::Cancelled) => {}
                Step::Rest => {
                    let blocked = matches!(state.ended.unwrap().end, End::Blocked { .. } | End::Cancelled);
                    prop_assert!(blocked);
                }
                step => prop_assert!(false, "{:?}", step),
            }
        }
    }

    #[test]
    fn a_cancel_is_never_undone(journal in obedient(), resumed in (0..9u32, 0..9_000u64)) {
        let asked = |record: &Record| matches!(record.event, Event::Asked { ask: Ask::Cancel(_), .. });
        let Some(at) = journal.records.iter().position(asked) else { return Ok(()) };
        for record in &journal.records[at..] {
            match &record.event {
                Event::LoopEnded(end) => prop_assert_eq!(*end, End::Cancelled),
                Event::LoopResumed { .. } | Event::IterationBegun { .. } | Event::AttemptStarted(_) => {
                    prop_assert!(false, "{:?} after a cancel", record);
                }
                _ => {}
            }
        }
        prop_assert!(journal.state.cancel.is_some());
        // Whoever takes over after a crash finishes the cancel; nothing else is ever granted.
        let granted = journal.state.resume(&grant(Some(resumed.0), Some(Millis(resumed.1))));
        prop_assert!(matches!(granted, Ok(None) | Err(_)), "{granted:?} after a cancel");
        if journal.state.in_flight().is_none() && journal.state.ended.is_none() {
            prop_assert_eq!(journal.next(), Step::Finish(End::Cancelled));
        }
    }

    #[test]
    fn an_end_fits_what_was_heard_and_a_stopped_loop_is_left_alone(journal in prop_oneof![obedient(), loose()]) {
        let mut state = LoopState::begin(&journal.records[0]).unwrap();
        let (mut cancelled, mut names) = (false, BTreeSet::new());
        for record in &journal.records[1..] {
            match &record.event {
                Event::Asked { request, ask } => {
                    cancelled |= matches!(ask, Ask::Cancel(_));
                    prop_assert!(request.as_ref().is_none_or(|name| names.insert(name)), "{:?} again", request);
                }
                Event::LoopEnded(End::Completed { claim }) => {
                    prop_assert!(!cancelled);
                    prop_assert_eq!(state.attempts.last().unwrap().claim, Some(*claim));
                }
                Event::LoopEnded(end) => prop_assert_eq!(*end == End::Cancelled, cancelled),
                Event::RunnerStarted { .. } => prop_assert_eq!(state.ended, None),
                Event::WaitStarted(_) => {
                    prop_assert!(state.runner.is_some() && state.ended.is_none());
                    prop_assert!(state.wait.is_none_or(|wait| wait.until <= record.at));
                    prop_assert!(state.in_flight().is_none());
                }
                Event::AttemptStopRequested { .. } => {
                    prop_assert!(state.in_flight().is_some_and(|flight| flight.spawned.is_some()));
                }
                _ => {}
            }
            let before = state.active;
            state.apply(record).unwrap();
            match &record.event {
                Event::JournalTorn { .. } => prop_assert_eq!(state.active, before),
                Event::LoopResumed { .. } => prop_assert_eq!((state.wait, state.pause), (None, None)),
                _ => {}
            }
        }
    }

    #[test]
    fn a_refused_record_changes_nothing(journal in prop_oneof![obedient(), loose()], event in any_event()) {
        let mut state = journal.state.clone();
        if state.apply(&journal.record(event)).is_err() {
            prop_assert_eq!(state, journal.state);
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written(
        event in any_event(),
        seq in any::<u64>(),
        at in any_time(),
    ) {
        let record = Record { seq, at, event };
        let text = serde_json::to_string(&record).unwrap();
        prop_assert!(!text.contains('\n'), "a record is one line");
        prop_assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }

    #[test]
    fn a_name_that_is_not_known_is_an_error(name in "x[a-z]{0,8}[.-][a-z]{1,9}") {
        let text = format!(r#"{{"seq":1,"at":"2027-01-15T08:00:00Z","event":{{"type":"{name}","data":{{}}}}}}"#);
        let error = serde_json::from_str::<Record>(&text).unwrap_err().to_string();
        prop_assert!(error.contains(&name), "{}", error);
    }
}

/// A property that is never tried proves nothing: this is what the journals of 256 cases hold.
fn seen(journals: &impl Strategy<Value = Journal>) -> BTreeMap<&'static str, u32> {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::new();
    for _ in 0..256 {
        let journal = journals.new_tree(&mut runner).unwrap().current();
        for record in &journal.records {
            *seen.entry(kind(&record.event)).or_default() += 1;
            if let Event::LoopEnded(end) = &record.event {
                *seen.entry(end.name()).or_default() += 1;
            }
        }
    }
    seen
}

#[test]
fn journals_of_the_obedient_reach_every_end() {
    let seen = seen(&obedient());
    for what in [
        "runner.started",
        "iteration.begun",
        "attempt.started",
        "attempt.spawned",
        "attempt.spawn-failed",
        "attempt.stop-requested",
        "attempt.finished",
        "asked",
        "wait.started",
        "loop.resumed",
        "completed",
        "cancelled",
        "iteration-cap",
        "timed-out",
        "paused",
        "blocked",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= 10), "too little of {what}: {seen:#?}");
    }
}

#[test]
fn loose_journals_hold_events_of_every_kind() {
    let seen = seen(&loose());
    for what in [
        "runner.started",
        "iteration.begun",
        "attempt.started",
        "attempt.spawned",
        "attempt.spawn-failed",
        "attempt.stop-requested",
        "attempt.finished",
        "attempt.swept",
        "asked",
        "wait.started",
        "loop.ended",
        "loop.resumed",
        "journal.torn",
        "journal.restored",
        "completed",
        "cancelled",
        "paused",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= 10), "too little of {what}: {seen:#?}");
    }
}

#[test]
fn names_in_the_journal_are_dotted_and_stable() {
    let wait = Event::WaitStarted(pace(0));
    for (event, text) in [
        (Event::IterationBegun { iteration: 3 }, r#"{"type":"iteration.begun","data":{"iteration":3}}"#),
        (Event::AttemptStarted(id(3, 2)), r#"{"type":"attempt.started","data":{"iteration":3,"attempt":2}}"#),
        (
            stop(StopReason::LoopDuration),
            r#"{"type":"attempt.stop-requested","data":{"because":"loop-duration"}}"#,
        ),
        (
            asked(Ask::Pause(Urgency::AfterIteration)),
            r#"{"type":"asked","data":{"ask":{"pause":"after-iteration"}}}"#,
        ),
        (asked(Ask::Proceed), r#"{"type":"asked","data":{"ask":"proceed"}}"#),
        (wait, r#"{"type":"wait.started","data":{"kind":"pace","until":"2027-01-15T08:00:00Z"}}"#),
        (
            Event::LoopEnded(End::Blocked { why: Blocked::AgentMissing }),
            r#"{"type":"loop.ended","data":{"status":"blocked","why":"agent-missing"}}"#,
        ),
        (Event::LoopEnded(End::Paused), r#"{"type":"loop.ended","data":{"status":"paused"}}"#),
        (
            Event::LoopResumed { limits: Limits { timeout: Some(Millis(5)), ..unlimited() } },
            r#"{"type":"loop.resumed","data":{"limits":{"max_iterations":null,"max_duration_ms":null,"timeout_ms":5,"idle_timeout_ms":null,"pause_ms":null,"max_cost_usd":null,"max_tokens":null,"retry_for_ms":null}}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
    assert_eq!(time(0) + SignedDuration::ZERO, "2027-01-15T08:00:00Z".parse().unwrap());
}
