//! Loops that a session drives: its turns are attempts, a runner only does what comes between them.

use rstest::rstest;

use super::journal::{Journal, claiming, finished, gates, id, idle, runner, session, spec};
use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, Process, Urgency};
use crate::r#loop::{ChildId, LoopState, Step};
use crate::session::{MAX_IDLE_TURNS, Session};
use crate::spec::{Millis, Spec};
use crate::view::{self, Alive, Kind, StatusWord};

fn ends() -> AttemptFinished {
    finished(Exit::Unseen)
}

fn left() -> LoopState {
    let mut journal = Journal::in_session().starts().taken_over();
    journal = journal.then(Event::SessionLeft);
    journal.state
}

#[test]
fn the_turns_of_a_session_are_iterations_without_a_process() {
    let journal = Journal::in_session();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 }, "no runner is needed to begin");
    let journal = journal.turns(ends()).turns(ends()).starts();
    assert_eq!((journal.state.iteration, journal.state.charged), (3, 2));
    assert_eq!(journal.next(), Step::Await { until: None }, "it is the session's turn");
    assert!(journal.state.is_in_session());
    assert_eq!(journal.state.active(journal.state.updated_at).as_secs(), 6, "its turns are the loop's time");
}

#[test]
fn a_claim_ends_a_session_loop() {
    let claims = AttemptFinished { exit: Exit::Unseen, ..claiming(ClaimSource::Promise) };
    let journal = Journal::in_session().turns(claims);
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
}

#[test]
fn between_two_turns_a_runner_asks_the_gates_and_leaves_the_next_turn_to_the_session() {
    let mut journal = Journal::in_session();
    journal.state.spec.gates = gates([true]);
    let journal = journal.taken_over().takes(1).gates_end(&[1]).starts();
    let claims = AttemptFinished { exit: Exit::Unseen, ..claiming(ClaimSource::Promise) };
    let journal = journal.after_ms(3_000).ends(claims);
    assert!(!journal.state.is_in_session(), "its claim is to be proven first");
    let journal = journal.taken_over().takes(2).gates_end(&[1]).obey();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(2, 1))));
    assert!(journal.state.is_in_session());
    assert_eq!(journal.state.runner, Some(runner(1)));
}

#[rstest]
#[case::soon(Ask::Pause(Urgency::AfterIteration))]
#[case::now(Ask::Pause(Urgency::Now))]
fn a_pause_waits_for_the_end_of_the_turn(#[case] ask: Ask) {
    let journal = Journal::in_session().starts().asks(ask);
    assert_eq!(journal.next(), Step::Await { until: None }, "a session is not ended");
    assert_eq!(journal.after_ms(9).ends(ends()).next(), Step::Finish(End::Paused));
}

#[test]
fn a_session_that_stays_idle_is_released() {
    let nearly = (1..MAX_IDLE_TURNS).fold(Journal::in_session(), |journal, _| journal.turns(idle()));
    let journal = (1..MAX_IDLE_TURNS).fold(nearly.turns(ends()), |journal, _| journal.turns(idle()));
    assert_eq!(journal.state.ended, None, "it did something in between");
    let journal = journal.turns(idle());
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Idle }));
    let journal = journal.obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(status.reason, "its session ended 7 turns in a row without doing anything");
    let event = journal.state.resume(&Default::default()).unwrap().unwrap();
    let journal = journal.then(event).then(Event::SessionBound(session(Some("t"))));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 15 });
}

#[test]
fn a_lost_session_is_refunded_and_another_continues() {
    let journal = Journal::in_session().turns(ends()).starts();
    journal.refuses(Event::SessionLeft);
    let journal = journal.taken_over();
    assert_eq!((journal.state.charged, journal.state.attempts.len()), (1, 2));
    let journal = journal.then(Event::SessionBound(session(Some("t"))));
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(2, 2))));
}

#[test]
fn a_left_session_is_moved_to_a_runner() {
    let state = left();
    assert_eq!(view::status(&state, Alive::DRIVEN).kind, Kind::Process);
    assert!(!state.is_in_session());
}

#[test]
fn a_loop_driven_by_a_runner_has_no_turns() {
    Journal::running().starts().refuses(Event::SessionBound(session(None)));
    Journal::running().starts().refuses(Event::AttemptFinished(Box::new(ends())));
    Journal::of(spec()).refuses(Event::SessionLeft);
}

#[rstest]
#[case::its_own(Some("s"), 9, "s", Some(1), true)]
#[case::another(Some("s"), 9, "t", Some(9), false)]
#[case::unnamed_in_its_process(None, 9, "t", Some(9), true)]
#[case::unnamed_elsewhere(None, 9, "t", Some(8), false)]
#[case::unnamed_and_unknown(None, 9, "t", None, false)]
fn a_stop_is_heard_by_the_loop_of_its_session_alone(
    #[case] named: Option<&str>,
    #[case] pid: i32,
    #[case] id: &str,
    #[case] from: Option<i32>,
    #[case] is: bool,
) {
    let process = |pid| Process { pid, start: 1 };
    let session = Session { process: Some(process(pid)), ..session(named) };
    assert_eq!(session.is(id, from.map(process)), is);
    let unknown = Session { process: None, ..session };
    assert!(named.is_some() || !unknown.is(id, None), "two unknown ones are not the same");
}

#[test]
fn the_status_of_a_session_loop_names_its_runner() {
    let journal = Journal::in_session().starts();
    let unknown = Alive { runner: None, ..Alive::default() };
    let status = view::status(&journal.state, unknown);
    assert_eq!((status.kind, status.status), (Kind::Session, StatusWord::Running));
    let runner = status.runner.unwrap();
    assert_eq!((runner.pid, runner.alive), (Some(9), None));
    assert_eq!(status.reason, "session s works on attempt 1");
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(status.status, StatusWord::Crashed);
    assert!(status.reason.starts_with("its session is gone; nothing is lost"), "{}", status.reason);
}

#[test]
fn no_money_is_reserved_for_a_session() {
    let mut journal = Journal::in_session();
    journal.state.limits.max_duration = Some(Millis(u64::MAX));
    assert_eq!(journal.state.costs_of(&journal.next()), None);
    let spec = Spec { session: None, ..journal.state.spec.clone() };
    assert!(
        Journal::of(spec).taken_over().state.costs_of(&Step::Start(ChildId::Attempt(id(1, 1)))).is_some()
    );
}
