//! Which requests a loop accepts, and what resumes a stopped one.

use std::time::Duration;

use rstest::rstest;

use super::journal::{Journal, grant, id, pace, request, runner, spec, stop, time};
use crate::event::{Ask, Asker, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency};
use crate::r#loop::{ChildId, Grant, Step};
use crate::machine::{MAX_STEERING, Refusal};
use crate::sandbox::{Host, SandboxSpec};
use crate::signature::{Check, Flaw};
use crate::spec::{Limits, Millis, Spec};

const COMPLETED: End = End::Completed { claim: ClaimSource::Promise };
const PAUSE: Ask = Ask::Pause(Urgency::AfterIteration);
const BLOCKED: End = End::Blocked { why: BlockReason::Churn };

#[rstest]
#[case::a_persons(Asker::Person, Ok(()), Asker::Person)]
#[case::of_0_1_0(Asker::Person, Err(Flaw::Missing), Asker::Unknown)]
#[case::forged(Asker::Person, Err(Flaw::Invalid), Asker::Unknown)]
#[case::of_another_home(Asker::Person, Err(Flaw::Unknown("ab".repeat(32).parse().unwrap())), Asker::Unknown)]
#[case::an_agents(Asker::Agent, Err(Flaw::Missing), Asker::Agent)]
#[case::nothing_makes_it_a_persons(Asker::Unknown, Ok(()), Asker::Unknown)]
fn only_a_signature_shows_a_person(#[case] named: Asker, #[case] check: Check, #[case] from: Asker) {
    assert_eq!(named.checked(&check), from);
}

#[rstest]
fn a_loop_that_has_not_ended_admits_every_request(
    #[values(
        Ask::Pause(Urgency::AfterIteration),
        Ask::Pause(Urgency::Now),
        Ask::Cancel(Urgency::AfterIteration),
        Ask::Cancel(Urgency::Now),
        Ask::Steer("left".into()),
        Ask::Proceed
    )]
    ask: Ask,
) {
    for journal in [
        Journal::of(spec()),
        Journal::running(),
        Journal::running().starts(),
        Journal::running().spawns(),
        Journal::running().asks(Ask::Pause(Urgency::Now)),
    ] {
        assert_eq!(journal.state.admits(&ask), Ok(()), "{:?}", journal.state.phase);
    }
}

#[rstest]
#[case::nothing_is_stopped(Journal::running().spawns(), &[])]
#[case::nothing_runs(Journal::running().asks(Ask::Pause(Urgency::Now)), &[])]
#[case::at_its_limit(stopping(Journal::running().spawns()), &[Ask::Cancel(Urgency::Now)])]
#[case::at_its_limit_and_asked_before(
    stopping(Journal::running().spawns().asks(Ask::Pause(Urgency::AfterIteration))),
    &[Ask::Cancel(Urgency::Now), Ask::Pause(Urgency::Now)]
)]
#[case::asked_to_stop(
    Journal::running().spawns().asks(Ask::Pause(Urgency::Now)).then(stop(StopReason::Interrupt)),
    &[Ask::Cancel(Urgency::Now), Ask::Pause(Urgency::Now)]
)]
#[case::a_gate(
    Journal::gated([true]).takes(0).gates().then(Event::GateStopRequested { because: StopReason::TimeLimit }),
    &[Ask::Cancel(Urgency::Now)]
)]
fn a_second_request_while_a_process_is_stopped_kills_it_at_once(
    #[case] journal: Journal,
    #[case] kill: &[Ask],
) {
    let asks = [
        Ask::Cancel(Urgency::AfterIteration),
        Ask::Cancel(Urgency::Now),
        Ask::Pause(Urgency::AfterIteration),
        Ask::Pause(Urgency::Now),
        Ask::Steer("left".into()),
        Ask::Proceed,
    ];
    let killing: Vec<Ask> = asks.into_iter().filter(|ask| journal.state.kills_at_once(ask)).collect();
    assert_eq!(killing, kill);
    for ask in killing {
        let killed = journal.clone().asks(ask.clone()).state;
        assert!(killed.is_killed() && !killed.kills_at_once(&ask), "once is enough");
    }
    assert!(!journal.state.is_killed());
}

fn stopping(journal: Journal) -> Journal {
    journal.then(stop(StopReason::TimeLimit))
}

#[rstest]
fn a_final_loop_refuses_every_request(
    #[values(
        Ask::Pause(Urgency::Now),
        Ask::Cancel(Urgency::Now),
        Ask::Steer("left".into()),
        Ask::Proceed
    )]
    ask: Ask,
    #[values((COMPLETED, "completed"), (End::Cancelled, "cancelled"))] (end, name): (End, &'static str),
) {
    assert_eq!(Journal::ended(end).state.admits(&ask), Err(Refusal::Final(name)));
}

#[rstest]
#[case(End::Paused, "paused")]
#[case(End::IterationCap, "iteration-cap")]
#[case(End::TimedOut, "timed-out")]
#[case(BLOCKED, "blocked")]
fn a_stopped_loop_can_be_cancelled_and_steered_but_nothing_else(
    #[case] end: End,
    #[case] name: &'static str,
) {
    let state = Journal::ended(end).state;
    for ask in [Ask::Pause(Urgency::AfterIteration), Ask::Pause(Urgency::Now), Ask::Proceed] {
        assert_eq!(state.admits(&ask), Err(Refusal::Stopped(name)), "{ask:?}");
    }
    assert_eq!(state.admits(&Ask::Cancel(Urgency::AfterIteration)), Ok(()));
    assert_eq!(state.admits(&Ask::Steer("left".into())), Ok(()));
}

fn sandboxed() -> Journal {
    Journal::of(Spec { sandbox: Some(SandboxSpec::default()), ..spec() })
}

#[rstest]
#[case(Asker::Person, &["packages.example:443"])]
#[case(Asker::Unknown, &[])]
#[case(Asker::Agent, &[])]
fn only_a_person_widens_a_sandbox(#[case] by: Asker, #[case] expected: &[&str]) {
    let host: Host = "packages.example".parse().unwrap();
    let ask = |id| Event::Asked { request: Some(request(id)), ask: Ask::AllowHost(host.clone()), by };
    let journal = sandboxed().then(ask("a-1")).then(ask("a-2"));
    let hosts = journal.state.spec.sandbox.unwrap().hosts;
    assert_eq!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    assert_eq!(Journal::of(spec()).state.admits(&Ask::AllowHost(host)), Err(Refusal::NoSandbox));
}

#[test]
fn a_loop_leaves_its_sandbox_only_at_a_persons_request() {
    let paused = || sandboxed().asks(Ask::Pause(Urgency::Now)).then(Event::LoopEnded(End::Paused));
    for no_sandbox in [false, true] {
        let journal = paused();
        let event = journal.state.resume(&Grant { no_sandbox, ..Grant::default() }).unwrap().unwrap();
        assert_eq!(journal.then(event).state.spec.sandbox.is_none(), no_sandbox);
    }
}

#[test]
fn an_answer_is_remembered_by_the_requests_id() {
    let ask = Event::Asked { request: Some(request("a-1")), ask: Ask::Proceed, by: Default::default() };
    let journal = Journal::running().then(ask);
    assert!(journal.state.has_answered(&request("a-1")));
    assert!(!journal.state.has_answered(&request("a-2")));
}

fn heard(name: &str, ask: Ask) -> Event {
    Event::Asked { request: Some(request(name)), ask, by: Asker::Person }
}

#[rstest]
#[case::a_text(Journal::running().then(heard("a", Ask::Steer("left".into()))), true)]
#[case::a_text_after_its_prompt(Journal::running().then(heard("a", Ask::Steer("left".into()))).starts(), false)]
#[case::a_text_for_the_next_prompt(Journal::running().spawns().then(heard("a", Ask::Steer("left".into()))), true)]
#[case::a_text_for_a_stopped_loop(Journal::ended(End::IterationCap).then(heard("a", Ask::Steer("left".into()))), true)]
#[case::a_pause(Journal::running().spawns().then(heard("a", PAUSE)), true)]
#[case::a_pause_between_iterations(Journal::running().then(heard("a", PAUSE)), false)]
#[case::a_pause_at_once(Journal::running().spawns().then(heard("a", Ask::Pause(Urgency::Now))), false)]
#[case::a_pause_that_became_urgent(Journal::running().spawns().then(heard("a", PAUSE)).asks(Ask::Pause(Urgency::Now)), false)]
#[case::a_cancel(Journal::running().spawns().then(heard("a", Ask::Cancel(Urgency::AfterIteration))), true)]
#[case::a_cancel_while_the_agent_is_stopped(
    stopping(Journal::running().spawns().then(heard("a", Ask::Cancel(Urgency::AfterIteration)))),
    false
)]
#[case::an_unknown_request(Journal::running().spawns(), false)]
#[case::a_request_without_a_queue(Journal::running().spawns().then(heard("a", Ask::Proceed)), false)]
fn a_request_is_taken_back_until_it_has_its_effect(#[case] journal: Journal, #[case] can: bool) {
    let withdraw = Ask::Withdraw(request("a"));
    let expected = if can { Ok(()) } else { Err(Refusal::NotQueued) };
    assert_eq!(journal.state.admits(&withdraw), expected);
    let by_agent = Event::Asked { request: Some(request("b")), ask: withdraw.clone(), by: Asker::Agent };
    let journal = journal.then(by_agent);
    assert_eq!(
        journal.state.admits(&withdraw),
        expected,
        "an agent takes nothing back that a person asked for"
    );
    if can {
        let state = journal.then(heard("c", withdraw)).state;
        assert_eq!((state.queued().count(), state.steering.len()), (0, 0));
        assert_eq!((state.pause, state.cancel), (None, None));
    }
}

#[test]
fn the_stop_of_a_task_is_its_plans() {
    let journal = Journal::of(Spec { task: Some(super::journal::task()), ..spec() }).taken_over().spawns();
    let journal = journal.then(heard("a", PAUSE)).then(heard("b", Ask::Steer("left".into())));
    let queued: Vec<_> = journal.state.queued().map(|queued| queued.request).collect();
    assert_eq!(queued, [request("b")]);
}

#[test]
fn resume_keeps_the_totals_that_it_does_not_name() {
    let journal = Journal::limited(|limits| {
        (limits.max_iterations, limits.max_duration) = (Some(5), Some(Millis(60_000)));
        limits.timeout = Some(Millis(7_000));
    });
    let before = journal.state.limits.clone();
    let journal = journal.runs(3_000, Exit::Code(0)).asks(Ask::Pause(Urgency::AfterIteration)).obey();
    let state = journal.state;
    assert_eq!(state.ended.unwrap().end, End::Paused);
    let granted = |iterations, duration| match state.resume(&grant(iterations, duration)) {
        Ok(Some(Event::LoopResumed { limits, approved: None, no_sandbox: false })) => limits,
        other => panic!("{other:?}"),
    };
    assert_eq!(granted(None, None), before);
    assert_eq!(granted(Some(9), None), Limits { max_iterations: Some(9), ..before.clone() });
    let duration = Some(Millis(90_000));
    assert_eq!(granted(None, duration), Limits { max_duration: duration, ..before });
}

#[test]
fn resume_grants_totals_not_additions() {
    let journal =
        Journal::limited(|limits| limits.max_iterations = Some(1)).runs(3_000, Exit::Code(0)).obey();
    let journal = journal.granted(Some(2), None).runs(3_000, Exit::Code(0));
    assert_eq!(journal.next(), Step::Finish(End::IterationCap));
    assert_eq!(journal.state.charged, 2);
}

#[rstest]
#[case::no_more(None)]
#[case::the_same(Some(2))]
#[case::less(Some(1))]
fn resume_after_the_cap_needs_more_iterations(#[case] asked: Option<u32>) {
    let journal = Journal::limited(|limits| limits.max_iterations = Some(2));
    let journal = journal.runs(3_000, Exit::Code(0)).runs(3_000, Exit::Code(0)).obey();
    assert_eq!(
        journal.state.resume(&grant(asked, None)),
        Err(Refusal::NothingGranted {
            used: "2 iterations are used up".into(),
            flag: "--max-iterations 4".into()
        })
    );
    assert!(journal.state.resume(&grant(Some(22), None)).is_ok(), "what the refusal names is accepted");
}

#[rstest]
#[case::short(1_000, "1.0s", "--max-duration 60s", 60)]
#[case::long(90_000, "1m 30s", "--max-duration 180s", 180)]
fn resume_after_the_loops_own_duration_needs_more_time(
    #[case] ms: u64,
    #[case] used: &str,
    #[case] flag: &str,
    #[case] enough: u64,
) {
    let journal = Journal::limited(|limits| limits.max_duration = Some(Millis(ms))).spawns();
    let journal = journal.after_ms(i64::try_from(ms).unwrap()).obey().exits(Exit::Signal(2)).obey();
    assert_eq!(journal.state.ended.unwrap().end, End::TimedOut);
    for asked in [None, Some(Millis(ms)), Some(Millis(ms - 1))] {
        assert_eq!(
            journal.state.resume(&grant(None, asked)),
            Err(Refusal::NothingGranted { used: format!("{used} are used up"), flag: flag.into() })
        );
    }
    assert!(journal.state.resume(&grant(None, Some(Millis(enough * 1_000)))).is_ok());
}

#[test]
fn resume_grants_at_most_200_more_iterations_at_a_time() {
    let journal =
        Journal::limited(|limits| limits.max_iterations = Some(1)).runs(3_000, Exit::Code(0)).obey();
    assert!(journal.state.resume(&grant(Some(201), None)).is_ok());
    assert_eq!(
        journal.state.resume(&grant(Some(202), None)),
        Err(Refusal::TooMany { asked: 202, most: 201 })
    );
}

#[test]
fn a_loop_that_has_not_stopped_needs_no_event_to_continue() {
    for journal in [Journal::of(spec()), Journal::running(), Journal::running().spawns()] {
        assert_eq!(journal.state.resume(&grant(None, None)), Ok(None));
    }
}

#[test]
fn a_pause_that_is_still_to_come_is_taken_back_by_an_event() {
    for journal in [
        Journal::of(spec()),
        Journal::running(),
        Journal::running().runs(3_000, Exit::Code(0)),
        Journal::running().spawns(),
        Journal::running().spawns().then(stop(StopReason::Interrupt)),
    ] {
        let limits = journal.state.limits.clone();
        let journal = journal.asks(Ask::Pause(Urgency::Now));
        let event = journal.state.resume(&grant(None, None)).unwrap();
        assert_eq!(
            event,
            Some(Event::LoopResumed { limits, approved: None, no_sandbox: false }),
            "{:?}",
            journal.state.phase
        );
        let paused = journal.taken_over();
        assert_eq!(paused.next(), Step::Finish(End::Paused), "else it would stop again at once");
        let journal = paused.then(event.unwrap()).taken_over();
        assert_eq!((journal.state.pause, journal.state.ended), (None, None));
        assert!(matches!(journal.next(), Step::BeginIteration { .. } | Step::Start(ChildId::Attempt(_))));
        assert_eq!(journal.state.resume(&grant(None, None)), Ok(None));
    }
}

#[test]
fn resume_takes_a_wait_back() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000))).runs(3_000, Exit::Code(0));
    let waiting = journal.obey();
    assert_eq!(waiting.state.wait, Some(pace(13_000)));
    let event = waiting.state.resume(&grant(Some(9), None)).unwrap().unwrap();
    // Its runner died while it waited; the next runner would continue to wait.
    let journal = waiting.after_ms(1_000).taken_over();
    assert_eq!(journal.next(), Step::Await { until: Some(time(13_000)) });
    let journal = journal.then(event);
    assert_eq!(journal.state.wait, None);
    let journal = journal.taken_over().after_ms(500);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_millis(3_500));
}

#[test]
fn a_loop_whose_runner_died_can_be_granted_more() {
    let journal = Journal::limited(|limits| limits.max_iterations = Some(1)).spawns();
    let event = journal.state.resume(&grant(Some(2), None)).unwrap().unwrap();
    journal.refuses(event.clone());
    // The attempt is settled first, by the next runner.
    let journal = journal.taken_over().then(event).taken_over();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    let journal = journal.runs(3_000, Exit::Code(0));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_loop_whose_runner_died_is_granted_nothing_that_would_end_it_at_once() {
    let journal = Journal::limited(|limits| limits.max_iterations = Some(5)).runs(3_000, Exit::Code(0));
    assert!(matches!(journal.state.resume(&grant(Some(1), None)), Err(Refusal::NothingGranted { .. })));
    assert!(matches!(
        journal.state.resume(&grant(None, Some(Millis(3_000)))),
        Err(Refusal::NothingGranted { .. })
    ));
    let cancelled = journal.asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(
        cancelled.state.resume(&grant(Some(9), None)),
        Ok(None),
        "it gets no more, but may be finished"
    );
    assert_eq!(cancelled.taken_over().next(), Step::Finish(End::Cancelled));
}

#[test]
fn steering_is_taken_as_far_as_the_next_prompt_has_room() {
    let words = |n: usize| Ask::Steer("x".repeat(n));
    let journal = Journal::running().asks(words(5_000));
    let refused = Refusal::TooLong { waiting: 5_001, asked: 3_192 };
    assert_eq!(journal.state.admits(&words(3_192)), Err(refused));
    assert_eq!(journal.state.admits(&words(3_191)), Ok(()));
    let long = Err(Refusal::SteeringTooLong { asked: MAX_STEERING + 1 });
    assert_eq!(journal.state.admits(&words(MAX_STEERING + 1)), long);
    assert_eq!(Journal::ended(COMPLETED).state.admits(&words(MAX_STEERING + 1)), long, "whatever its state");
    // Words that an iteration got make room.
    assert_eq!(journal.runs(3_000, Exit::Code(0)).state.admits(&words(MAX_STEERING)), Ok(()));
}

#[rstest]
#[case(COMPLETED, "completed")]
#[case(End::Cancelled, "cancelled")]
fn a_final_loop_is_not_resumed(#[case] end: End, #[case] name: &'static str) {
    assert_eq!(Journal::ended(end).state.resume(&grant(Some(9), None)), Err(Refusal::Final(name)));
}

#[test]
fn a_stopped_loop_that_is_cancelled_is_not_resumed_before_its_end_is_recorded() {
    let journal = Journal::ended(End::Paused).asks(Ask::Cancel(Urgency::AfterIteration));
    assert!(matches!(journal.state.resume(&grant(None, None)), Err(Refusal::Final(_))));
    journal.refuses(Event::LoopResumed {
        limits: journal.state.limits.clone(),
        approved: None,
        no_sandbox: false,
    });
}

#[test]
fn and_the_refusal_names_the_cancel() {
    let journal = Journal::ended(End::Paused).asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(journal.state.resume(&grant(None, None)), Err(Refusal::Final("cancelled")));
}

#[test]
fn resume_takes_a_pause_back_and_rests_no_more() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000))).runs(3_000, Exit::Code(0));
    let journal = journal.asks(Ask::Pause(Urgency::Now)).obey().resumes();
    assert_eq!((journal.state.pause, journal.state.ended), (None, None));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_resumed_loop_has_no_runner_until_one_starts() {
    let journal = Journal::ended(End::Paused);
    let resumed = journal.state.resume(&grant(None, None)).unwrap().unwrap();
    let journal = journal.then(resumed);
    assert_eq!(journal.state.runner, None);
    journal.refuses(Event::IterationBegun { iteration: 1, work: None });
    assert_eq!(journal.taken_over().state.runner, Some(runner(1)));
}

#[test]
fn refusals_say_what_to_type() {
    let refusal = |journal: Journal| journal.state.resume(&grant(None, None)).unwrap_err().to_string();
    let capped = Journal::limited(|limits| limits.max_iterations = Some(1)).runs(1, Exit::Code(0)).obey();
    assert_eq!(
        refusal(capped),
        "it would stop at once: 1 iteration is used up; give it a larger total with --max-iterations 3"
    );
    let capped = Journal::limited(|limits| limits.max_iterations = Some(2));
    let capped = capped.runs(1, Exit::Code(0)).runs(1, Exit::Code(0)).obey();
    assert_eq!(
        refusal(capped),
        "it would stop at once: 2 iterations are used up; give it a larger total with --max-iterations 4"
    );
    assert_eq!(
        refusal(Journal::ended(End::TimedOut)),
        "it would stop at once: 3.0s are used up; give it a larger total with --max-duration 60s"
    );
    assert_eq!(refusal(Journal::ended(End::Cancelled)), "it is cancelled");
    let paused = Journal::ended(End::Paused).state.admits(&Ask::Pause(Urgency::Now)).unwrap_err();
    assert_eq!(paused.to_string(), "it has stopped already (paused)");
    let most = Journal::ended(End::Paused).state.resume(&grant(Some(999), None)).unwrap_err();
    assert_eq!(most.to_string(), "at most 200 more iterations at a time: up to 200, not 999");
}
