//! Which event can follow which. Whatever else a journal holds is damage, and changes nothing.

use rstest::rstest;

use super::journal::{
    Journal, asked, finished, id, kind, pace, request, runner, spawn_failed, spawned, spec, started, stop,
    time, unlimited,
};
use crate::event::{
    Ask, Blocked, ClaimSource, End, Event, Exit, FORMAT, LoopStarted, Record, StopReason, Urgency,
};
use crate::r#loop::{Damage, LoopState};
use crate::spec::Millis;

/// An event of every kind, in all the shapes in which it may or may not fit a journal of at most three iterations.
fn every_event() -> Vec<Event> {
    let ids = || (1..=4).flat_map(|n| (1..=4).map(move |k| id(n, k)));
    let mut events = vec![
        started(spec()),
        Event::RunnerStarted { runner: runner(2), interrupted: None },
        spawned(),
        spawn_failed(),
        stop(StopReason::Silence),
        Event::AttemptFinished(Box::new(finished(Exit::Code(0)))),
        Event::AttemptFinished(Box::new(finished(Exit::Lost))),
        Event::AttemptSwept { killed: 2 },
        Event::Asked { request: Some(request("new")), ask: Ask::Steer("left".into()) },
        asked(Ask::Pause(Urgency::Now)),
        asked(Ask::Cancel(Urgency::AfterIteration)),
        asked(Ask::Proceed),
        Event::WaitStarted(pace(1)),
        Event::LoopEnded(End::Paused),
        Event::LoopEnded(End::Cancelled),
        Event::LoopEnded(End::Completed { claim: ClaimSource::Promise }),
        Event::LoopEnded(End::Blocked { why: Blocked::Churn }),
        Event::LoopResumed { limits: unlimited() },
        Event::JournalTorn { bytes: 3, kept_as: "torn".into() },
        Event::JournalRestored { bytes: 3 },
    ];
    events.extend((0..=4).map(|iteration| Event::IterationBegun { iteration }));
    events.extend(ids().map(Event::AttemptStarted));
    events.extend(ids().map(|id| Event::RunnerStarted { runner: runner(2), interrupted: Some(id) }));
    events
}

/// A journal that passes through every phase.
fn sample() -> Journal {
    Journal::limited(|limits| {
        (limits.max_iterations, limits.timeout) = (Some(3), Some(Millis(9_000)));
        limits.pause = Some(Millis(1_000));
    })
    .runs(5_000, Exit::Code(1))
    .obey()
    .after_ms(1_000)
    .crashes()
    .asks(Ask::Steer("left".into()))
    .spawns()
    .after_ms(9_000)
    .obey()
    .exits(Exit::Signal(2))
    .asks(Ask::Pause(Urgency::AfterIteration))
    .obey()
    .resumes()
    .starts()
    .then(spawn_failed())
    .obey()
    .resumes()
    .runs(5_000, Exit::Code(0))
    .obey()
    .asks(Ask::Cancel(Urgency::AfterIteration))
    .obey()
}

#[test]
fn after_every_event_each_other_event_either_fits_or_changes_nothing() {
    let journal = sample();
    let (mut fits, mut refused) = (0, 0);
    for end in 1..=journal.records.len() {
        let state = LoopState::fold(&journal.records[..end]).unwrap();
        for event in every_event() {
            let mut after = state.clone();
            let record = Record { seq: state.seq + 1, at: state.updated_at, event };
            match after.apply(&record) {
                Ok(()) => {
                    assert_eq!((after.seq, after.updated_at), (record.seq, record.at));
                    fits += 1;
                }
                Err(damage) => {
                    assert_eq!(damage, Damage::Order { seq: record.seq, what: kind(&record.event) });
                    assert_eq!(after, state, "changed by an event that it refused: {:?}", record.event);
                    refused += 1;
                }
            }
        }
    }
    assert!(fits > 200 && refused > 1_000, "{fits} fit, {refused} do not");
}

fn ended(end: End) -> Journal {
    Journal::running().then(Event::LoopEnded(end))
}

/// What moves a loop on: exactly these of the events of [`every_event`] that [`kind`] says are no mere notes.
#[rstest]
#[case::nobody_drives_it(Journal::of(spec()), &["runner.started", "loop.resumed"])]
#[case::idle(Journal::running(), &["runner.started", "loop.resumed", "iteration.begun 1"])]
#[case::begun(Journal::running().obey(), &["runner.started", "loop.resumed", "attempt.started 1"])]
#[case::started(
    Journal::running().starts(),
    &["runner.started 1", "attempt.spawned", "attempt.spawn-failed", "attempt.finished lost"]
)]
#[case::spawned(
    Journal::running().spawns(),
    &["runner.started 1", "attempt.stop-requested", "attempt.finished", "attempt.finished lost"]
)]
#[case::stopping(
    Journal::running().spawns().then(stop(StopReason::Silence)),
    &["runner.started 1", "attempt.finished", "attempt.finished lost"]
)]
#[case::charged(Journal::running().runs(1, Exit::Code(0)), &["runner.started", "loop.resumed", "iteration.begun 2"])]
#[case::claimed(
    Journal::running().spawns().ends(crate::event::AttemptFinished { promised: true, ..finished(Exit::Code(0)) }),
    &["runner.started", "loop.resumed"]
)]
#[case::refunded(Journal::running().crashes(), &["runner.started", "loop.resumed", "attempt.started 1.2"])]
#[case::not_started(
    Journal::running().starts().then(spawn_failed()),
    &["runner.started", "loop.resumed", "attempt.started 1.2"]
)]
#[case::waiting(
    Journal::running().runs(1, Exit::Code(0)).then(Event::WaitStarted(pace(9))),
    &["runner.started", "loop.resumed", "iteration.begun 2"]
)]
#[case::paused(ended(End::Paused), &["loop.resumed"])]
#[case::blocked(ended(End::Blocked { why: Blocked::Refunds }), &["loop.resumed"])]
#[case::completed(ended(End::Completed { claim: ClaimSource::Promise }), &[])]
#[case::cancelled(ended(End::Cancelled), &[])]
fn a_loop_moves_on_by(#[case] journal: Journal, #[case] moves: &[&str]) {
    let name = |event: &Event| match event {
        Event::IterationBegun { iteration } => format!("{} {iteration}", kind(event)),
        Event::AttemptStarted(id) | Event::RunnerStarted { interrupted: Some(id), .. } => {
            format!("{} {id}", kind(event))
        }
        Event::AttemptFinished(finished) if finished.exit == Exit::Lost => format!("{} lost", kind(event)),
        event => kind(event).to_owned(),
    };
    // Notes fit everywhere, and ends have a test of their own. The core lets a runner start on a stopped loop, and
    // asks for a stop before there is a process: neither is ever written.
    let note = |event: &Event| match event {
        Event::AttemptSwept { .. } | Event::Asked { .. } | Event::JournalTorn { .. } => true,
        Event::JournalRestored { .. } | Event::WaitStarted(_) | Event::LoopEnded(_) => true,
        Event::RunnerStarted { .. } => journal.state.ended.is_some(),
        Event::AttemptStopRequested { .. } => {
            journal.state.in_flight().is_some_and(|it| it.spawned.is_none())
        }
        _ => false,
    };
    let fits = |event: &Event| journal.state.clone().apply(&journal.record(event.clone())).is_ok();
    let mut found: Vec<_> = every_event()
        .into_iter()
        .filter(|event| !note(event) && fits(event))
        .map(|event| name(&event))
        .collect();
    let mut moves = moves.to_vec();
    found.sort_unstable();
    moves.sort_unstable();
    assert_eq!(found, moves);
}

#[test]
fn nothing_ends_while_an_attempt_is_in_flight_and_nothing_ends_twice_except_by_cancel() {
    for journal in [Journal::running().starts(), Journal::running().spawns(), ended(End::Cancelled)] {
        journal.refuses(Event::LoopEnded(End::Paused));
        journal.refuses(Event::LoopEnded(End::Cancelled));
        journal.refuses(Event::WaitStarted(pace(9)));
    }
    ended(End::Paused).refuses(Event::LoopEnded(End::TimedOut));
    ended(End::Paused).then(Event::LoopEnded(End::Cancelled));
    ended(End::Completed { claim: ClaimSource::Promise }).refuses(Event::LoopEnded(End::Cancelled));
}

#[test]
fn a_journal_begins_with_its_start_and_only_there() {
    let record = |seq, event| Record { seq, at: time(0), event };
    let first = record(1, started(spec()));
    assert_eq!(LoopState::fold(&[]), Err(Damage::NoStart(0)));
    assert_eq!(LoopState::fold(&[record(1, spawned())]), Err(Damage::NoStart(1)));
    assert_eq!(LoopState::fold(&[record(2, started(spec()))]), Err(Damage::NoStart(2)));
    assert_eq!(
        LoopState::fold(&[first.clone(), record(2, started(spec()))]),
        Err(Damage::Order { seq: 2, what: "loop.started" })
    );
    assert!(LoopState::fold(&[first]).is_ok());
}

#[test]
fn a_missing_or_repeated_record_is_damage() {
    let journal = sample();
    for at in 1..journal.records.len() {
        let mut records = journal.records.clone();
        records.insert(at, records[at - 1].clone());
        let expected = u64::try_from(at).unwrap() + 1;
        let damage = LoopState::fold(&records).unwrap_err();
        assert_eq!(damage, Damage::Sequence { expected, found: expected - 1 });
        records.remove(at);
        records.remove(at);
        if at < records.len() {
            let damage = LoopState::fold(&records).unwrap_err();
            assert_eq!(damage, Damage::Sequence { expected, found: expected + 1 });
        }
    }
}

#[test]
fn time_does_not_go_backwards() {
    let mut journal = Journal::running().after_ms(5).obey();
    let record = Record { seq: 4, at: time(4), event: Event::AttemptSwept { killed: 0 } };
    let before = journal.state.clone();
    assert_eq!(journal.state.apply(&record), Err(Damage::Time(4)));
    assert_eq!(journal.state, before);
}

#[test]
fn another_format_is_named_and_not_guessed_at() {
    for format in [0, FORMAT + 1] {
        let start = LoopStarted { format, refrain: "9".into(), spec: spec() };
        let record = Record { seq: 1, at: time(0), event: Event::LoopStarted(Box::new(start)) };
        let damage = LoopState::begin(&record).unwrap_err();
        assert_eq!(damage, Damage::Format { found: format });
        assert!(damage.to_string().contains("use the version that wrote it"));
    }
}
