//! What holds for every journal. What users are promised holds for the obedient ones; what must never panic holds for
//! the loose ones too.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::journal::{Journal, asked, event_of, grant, id, kind, pace, request, stop, time, unlimited};
use super::journals::{any_event, any_time, loose, obedient};
use crate::event::{Ask, BlockReason, End, Event, Record, StopReason, Urgency, Wait};
use crate::r#loop::{ChildId, Live, LoopState, MAX_REFUNDS, Outcome, Step, next_step};
use crate::machine::MachineEnd;
use crate::spec::{Limits, Millis};

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
            // A runner that awaits a time in the past would spin.
            if let Step::Await { until: Some(until) } = step {
                prop_assert!(until > now || now == Timestamp::MAX, "{} at {}", until, now);
            }
            let _ = journal.state.active(now);
        }
    }

    #[test]
    fn every_decision_can_be_recorded(journal in obedient(), later in 0..100_000i64) {
        let journal = journal.after_ms(later);
        if let Some(event) = event_of(&journal.state, journal.next()) {
            journal.then(event);
        }
    }

    #[test]
    fn the_cap_is_never_exceeded(journal in obedient()) {
        let mut granted = journal.state.spec.limits.max_iterations;
        for record in &journal.records {
            if let Event::LoopResumed { limits, .. } = &record.event {
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
                Step::Finish(End::Blocked { .. } | End::Cancelled) | Step::ReleaseWorktree => {}
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
        // The next runner after a crash finishes the cancel; nothing else is ever granted.
        let granted = journal.state.resume(&grant(Some(resumed.0), Some(Millis(resumed.1))));
        prop_assert!(matches!(granted, Ok(None) | Err(_)), "{granted:?} after a cancel");
        if !journal.state.is_busy() && journal.state.ended.is_none() {
            // The changes of the last iteration are proven and committed first, once no process is left that may write.
            let fits = matches!(
                journal.next(),
                Step::Finish(End::Cancelled)
                    | Step::ReleaseWorktree
                    | Step::TakeCandidate
                    | Step::Start(ChildId::Gate { .. })
                    | Step::Commit { .. }
                    | Step::Await { until: None }
            );
            prop_assert!(fits, "{:?}", journal.next());
        }
    }

    #[test]
    fn an_end_fits_what_was_heard_and_a_stopped_loop_is_left_alone(journal in prop_oneof![obedient(), loose()]) {
        let mut state = LoopState::begin(&journal.records[0]).unwrap();
        let (mut cancelled, mut names) = (false, BTreeSet::new());
        for record in &journal.records[1..] {
            match &record.event {
                Event::Asked { request, ask, .. } => {
                    cancelled |= matches!(ask, Ask::Cancel(_));
                    prop_assert!(request.as_ref().is_none_or(|name| names.insert(name)), "{:?} again", request);
                }
                Event::LoopEnded(End::Completed { claim }) => {
                    prop_assert!(!cancelled);
                    prop_assert_eq!(state.attempts.last().unwrap().claim, Some(*claim));
                }
                Event::LoopEnded(end) => prop_assert_eq!(*end == End::Cancelled, cancelled),
                Event::RunnerStarted { .. } => prop_assert_eq!(state.ended, None),
                Event::WaitStarted(wait) => {
                    prop_assert!(state.runner.is_some() && state.ended.is_none());
                    let begins_again =
                        |last: Wait| state.wait_span.0.is_some() && wait.until < last.until;
                    prop_assert!(state.wait.is_none_or(|it| it.until <= record.at || begins_again(it)));
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

/// A property that is never tried proves nothing: returns the events in the journals of 256 cases.
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
        "base.taken",
        "commit.settled",
        "candidate.taken",
        "gate.started",
        "gate.stop-requested",
        "gate.finished",
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
        "base.taken",
        "commit.settled",
        "candidate.taken",
        "gate.started",
        "gate.finished",
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
        (
            Event::IterationBegun { iteration: 3, work: None },
            r#"{"type":"iteration.begun","data":{"iteration":3}}"#,
        ),
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
        (
            asked(Ask::AllowHost("packages.example".parse().unwrap())),
            r#"{"type":"asked","data":{"ask":{"allow-host":"packages.example:443"}}}"#,
        ),
        (asked(Ask::Withdraw(request("a-1"))), r#"{"type":"asked","data":{"ask":{"withdraw":"a-1"}}}"#),
        (wait, r#"{"type":"wait.started","data":{"kind":"pace","until":"2027-01-15T08:00:00Z"}}"#),
        (
            Event::LoopEnded(End::Blocked { why: BlockReason::AgentMissing }),
            r#"{"type":"loop.ended","data":{"status":"blocked","why":"agent-missing"}}"#,
        ),
        (Event::LoopEnded(End::Paused), r#"{"type":"loop.ended","data":{"status":"paused"}}"#),
        (
            Event::LoopResumed {
                limits: Limits { timeout: Some(Millis(5)), ..unlimited() },
                approved: None,
                no_sandbox: false,
            },
            r#"{"type":"loop.resumed","data":{"limits":{"max_iterations":null,"max_duration_ms":null,"timeout_ms":5,"idle_timeout_ms":null,"pause_ms":null,"max_cost_usd":null,"max_tokens":null,"retry_for_ms":null,"timeout_grace_ms":null}}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
    assert_eq!(time(0) + SignedDuration::ZERO, "2027-01-15T08:00:00Z".parse().unwrap());
}
