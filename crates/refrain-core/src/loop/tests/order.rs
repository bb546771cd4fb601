//! Which event can follow which. Any other order in a journal is damage, and changes nothing.

use std::collections::BTreeSet;

use rstest::rstest;

use super::every_event::{every_end, every_event, heard, sample, samples};
use super::journal::{
    Journal, claiming, finished, kind, other_agent, pace, spawn_failed, spawned, spec, started, stop, time,
    unlimited,
};
use crate::event::{
    Ask, BlockReason, ClaimSource, End, Event, Exit, FORMAT, LoopStarted, Record, StopReason, Urgency,
};
use crate::r#loop::LoopState;
use crate::machine::{Damage, MachineEnd};
use crate::spec::OnStuck;
use crate::stuck::Verdict;

#[test]
fn after_every_event_each_other_event_either_fits_or_changes_nothing() {
    let (mut fitting, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for journal in samples() {
        for end in 1..=journal.records.len() {
            let state = LoopState::fold(&journal.records[..end]).unwrap();
            for event in every_event() {
                let mut after = state.clone();
                let record = Record { seq: state.seq + 1, at: state.updated_at, event };
                match after.apply(&record) {
                    Ok(()) => {
                        assert_eq!((after.seq, after.updated_at), (record.seq, record.at));
                        fitting.insert(kind(&record.event));
                    }
                    Err(damage) => {
                        assert_eq!(damage, Damage::Order { seq: record.seq, what: kind(&record.event) });
                        assert_eq!(after, state, "changed by an event that it refused: {:?}", record.event);
                        refused.insert(kind(&record.event));
                    }
                }
            }
        }
    }
    // So the samples pass through every phase, and each kind of event was tried when it fits and when it does not.
    let every: BTreeSet<_> = every_event().iter().map(kind).collect();
    let notes = ["attempt.swept", "journal.restored", "journal.torn"];
    let but = |left: &[&'static str]| every.iter().copied().filter(|kind| !left.contains(kind)).collect();
    assert_eq!((fitting, refused), (but(&["loop.started"]), but(&notes)));
}

const CANCEL: Ask = Ask::Cancel(Urgency::AfterIteration);

/// Events that may come while a loop is driven and nothing runs.
const BETWEEN: &str = "session.bound, work.saved, work.unsaved";

/// Events that move a loop on: exactly these of the events of [`every_event`] that are no mere notes.
#[rstest]
#[case::it_has_no_runner(Journal::of(spec()), &["runner.started", "loop.resumed", "session.bound"])]
#[case::idle(Journal::running(), &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 1"])]
#[case::begun(Journal::running().obey(), &["runner.started", "loop.resumed", BETWEEN, "wait.started", "attempt.started 1"])]
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
#[case::charged(
    Journal::running().runs(1, Exit::Code(0)),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 2"]
)]
#[case::claimed(
    Journal::claimed(ClaimSource::Promise),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started"]
)]
#[case::refunded(
    Journal::running().crashes(),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "attempt.started 1.2"]
)]
#[case::not_started(
    Journal::running().starts().then(spawn_failed()),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "attempt.started 1.2"]
)]
#[case::before_its_baseline(
    Journal::gated([true]),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "candidate.taken", "candidate.refused"]
)]
#[case::to_be_gated(
    Journal::gated([true]).takes(0),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "gate.started"]
)]
#[case::in_a_gate(
    Journal::gated([true]).takes(0).gates(),
    &["runner.started", "gate.spawn-failed", "gate.stop-requested", "gate.finished"]
)]
#[case::behind_its_baseline(
    Journal::gated([true]).takes(0).gates_end(&[1]),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 1"]
)]
#[case::to_be_proven(
    Journal::gated([true]).takes(0).gates_end(&[1]).attempts(claiming(ClaimSource::Promise)),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "candidate.taken", "candidate.refused"]
)]
#[case::waiting(
    Journal::running().runs(1, Exit::Code(0)).then(Event::WaitStarted(pace(9))),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 2"]
)]
#[case::waiting_again_after_a_crash(
    Journal::running().runs(1, Exit::Code(0)).then(Event::WaitStarted(pace(9))).taken_over(),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 2"]
)]
#[case::waited_enough(
    Journal::running().runs(1, Exit::Code(0)).then(Event::WaitStarted(pace(9))).asks(Ask::Proceed),
    &["runner.started", "loop.resumed", BETWEEN, "wait.started", "iteration.begun 2"]
)]
#[case::resumed(
    Journal::ended(End::Paused).then(Event::LoopResumed { limits: unlimited(), approved: None, no_sandbox: false }),
    &["runner.started", "loop.resumed", "session.bound"]
)]
#[case::paused(Journal::ended(End::Paused), &["loop.resumed"])]
#[case::capped(Journal::ended(End::IterationCap), &["loop.resumed"])]
#[case::timed_out(Journal::ended(End::TimedOut), &["loop.resumed"])]
#[case::blocked(Journal::ended(End::Blocked { why: BlockReason::Refunds }), &["loop.resumed"])]
#[case::blocked_without_an_agent(Journal::ended(End::Blocked { why: BlockReason::AgentMissing }), &["loop.resumed"])]
#[case::paused_and_cancelled(Journal::ended(End::Paused).asks(CANCEL), &[])]
#[case::completed(Journal::ended(End::Completed { claim: ClaimSource::Promise }), &[])]
#[case::cancelled(Journal::ended(End::Cancelled), &[])]
fn a_loop_moves_on_by(#[case] journal: Journal, #[case] moves: &[&str]) {
    let name = |event: &Event| match event {
        Event::IterationBegun { iteration, .. } => format!("{} {iteration}", kind(event)),
        Event::AttemptStarted(id) | Event::RunnerStarted { interrupted: Some(id), .. } => {
            format!("{} {id}", kind(event))
        }
        Event::AttemptFinished(finished) if finished.exit == Exit::Lost => format!("{} lost", kind(event)),
        event => kind(event).to_owned(),
    };
    let fits = |event: &Event| journal.state.clone().apply(&journal.record(event.clone())).is_ok();
    let mut found = Vec::new();
    for event in every_event() {
        match event {
            Event::AttemptSwept { .. }
            | Event::Asked { .. }
            | Event::JournalTorn { .. }
            | Event::JournalRestored { .. } => assert!(fits(&event), "a note fits everywhere: {event:?}"),
            // Ends have a test of their own.
            Event::LoopEnded(_) => {}
            event if fits(&event) => found.push(name(&event)),
            _ => {}
        }
    }
    let mut moves: Vec<_> = moves.iter().flat_map(|names| names.split(", ")).collect();
    found.sort_unstable();
    found.dedup();
    moves.sort_unstable();
    assert_eq!(found, moves);
}

/// Ends that need neither a claim nor a cancel.
const STOPS: &[&str] = &["iteration-cap", "timed-out", "paused", "blocked", "blocked", "blocked", "blocked"];

/// How a loop can end: exactly these of [`every_end`].
#[rstest]
#[case::idle(Journal::running(), STOPS, None)]
#[case::begun(Journal::running().obey(), STOPS, None)]
#[case::charged(Journal::running().runs(1, Exit::Code(0)), STOPS, None)]
#[case::refunded(Journal::running().crashes(), STOPS, None)]
#[case::waiting(Journal::running().runs(1, Exit::Code(0)).then(Event::WaitStarted(pace(9))), STOPS, None)]
#[case::promised(Journal::claimed(ClaimSource::Promise), STOPS, Some(ClaimSource::Promise))]
#[case::done_by_file(Journal::claimed(ClaimSource::StateFile), STOPS, Some(ClaimSource::StateFile))]
#[case::done_by_exit(Journal::claimed(ClaimSource::ExitCode), STOPS, Some(ClaimSource::ExitCode))]
#[case::promised_to_a_dead_runner(
    Journal::claimed(ClaimSource::Promise).taken_over(),
    STOPS,
    Some(ClaimSource::Promise)
)]
#[case::started(Journal::running().starts(), &[], None)]
#[case::spawned(Journal::running().spawns(), &[], None)]
#[case::stopping(Journal::running().spawns().then(stop(StopReason::Silence)), &[], None)]
#[case::spawned_and_cancelled(Journal::running().spawns().asks(CANCEL), &[], None)]
#[case::idle_and_cancelled(Journal::running().asks(CANCEL), &["cancelled"], None)]
#[case::begun_and_cancelled(Journal::running().obey().asks(CANCEL), &["cancelled"], None)]
#[case::promised_and_cancelled(Journal::claimed(ClaimSource::Promise).asks(CANCEL), &["cancelled"], None)]
#[case::paused(Journal::ended(End::Paused), &[], None)]
#[case::paused_and_cancelled(Journal::ended(End::Paused).asks(CANCEL), &["cancelled"], None)]
#[case::capped(Journal::ended(End::IterationCap), &[], None)]
#[case::capped_and_cancelled(Journal::ended(End::IterationCap).asks(CANCEL), &["cancelled"], None)]
#[case::cancelled(Journal::ended(End::Cancelled), &[], None)]
#[case::completed(Journal::ended(End::Completed { claim: ClaimSource::Promise }), &[], None)]
#[case::completed_and_cancelled(
    Journal::ended(End::Completed { claim: ClaimSource::Promise }).asks(CANCEL),
    &[],
    None
)]
fn a_loop_ends_as(#[case] journal: Journal, #[case] names: &[&str], #[case] claim: Option<ClaimSource>) {
    let mut found = Vec::new();
    for end in every_end() {
        let mut state = journal.state.clone();
        match (state.apply(&journal.record(Event::LoopEnded(end))), end) {
            (Ok(()), End::Completed { claim: by }) => assert_eq!(claim, Some(by)),
            (Ok(()), end) => found.push(end.name()),
            (Err(damage), end) => {
                assert_eq!(damage, Damage::Order { seq: state.seq + 1, what: "loop.ended" });
                assert!(claim.is_none_or(|claim| end != End::Completed { claim }), "{end:?}");
            }
        }
    }
    let mut names = names.to_vec();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names);
}

#[test]
fn a_request_is_heard_once() {
    let journal = Journal::running().then(heard("a", Ask::Steer("left".into())));
    // Whatever it asks the second time, and whichever runner reads it.
    for journal in [journal.clone(), journal.clone().taken_over(), journal.starts()] {
        for ask in [Ask::Steer("left".into()), Ask::Proceed, CANCEL] {
            let damage = journal.refuses(heard("a", ask));
            assert_eq!(damage, Damage::Order { seq: journal.state.seq + 1, what: "asked" });
        }
        let journal = journal.then(heard("b", Ask::Proceed));
        journal.refuses(heard("b", Ask::Proceed));
        // A signal has no name, and may come again.
        let journal = journal.asks(Ask::Pause(Urgency::Now)).asks(Ask::Pause(Urgency::Now));
        assert_eq!(journal.state.steering, ["left"]);
    }
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
    let record = Record {
        seq: 4,
        at: time(4),
        event: Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] },
    };
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

/// Release 0.1.0 called a loop stuck by other rules, and then changed its agent.
#[test]
fn a_change_of_agent_is_read_whatever_the_rules_for_stuck_were() {
    let mut spec = spec();
    spec.stuck.answer = OnStuck::Change(Box::new(other_agent()));
    let journal = Journal::of(spec).taken_over().attempts(finished(Exit::Code(0)));
    assert_eq!(journal.state.verdict(), Verdict::Moving);
    let journal = journal.then(Event::AgentChanged(Box::new(other_agent())));
    assert_eq!(journal.state.spec.agent, other_agent());
}
