use std::time::Duration;

use rstest::rstest;

use super::journal::{Journal, finished, id, pace, spec, time};
use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency};
use crate::r#loop::{ChildId, MAX_CHURN, MAX_REFUNDS, Outcome, Phase, Step};
use crate::spec::Millis;

#[test]
fn requests_precede_proof_and_proof_precedes_limits() {
    let claim = ClaimSource::Promise;
    let mut journal = Journal::limited(|limits| {
        limits.max_iterations = Some(5);
        limits.max_duration = Some(Millis(60_000));
        limits.pause = Some(Millis(1_000));
    });
    // Everything at once; then the reasons are taken away one by one, the first of them first.
    let state = &mut journal.state;
    state.lifecycle.cancel = Some(Urgency::AfterIteration);
    state.phase = Phase::Idle { claim: Some(claim), uncommitted: false };
    state.refunds_in_a_row = MAX_REFUNDS;
    state.lifecycle.pause = Some(Urgency::AfterIteration);
    state.lifecycle.active = Duration::from_secs(60);
    (state.charged, state.iteration) = (5, 5);
    state.churn = MAX_CHURN;
    state.rested_since = Some(time(0));
    assert_eq!(journal.next(), Step::Finish(End::Cancelled));
    journal.state.lifecycle.cancel = None;
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim }));
    journal.state.phase = Phase::Begun { next: id(5, 2), hindered: Some(BlockReason::AgentMissing) };
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::AgentMissing }));
    journal.state.phase = Phase::Begun { next: id(5, 2), hindered: None };
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
    journal.state.refunds_in_a_row = MAX_REFUNDS - 1;
    assert_eq!(journal.next(), Step::Finish(End::Paused));
    journal.state.lifecycle.pause = None;
    assert_eq!(journal.next(), Step::Finish(End::TimedOut));
    journal.state.lifecycle.active = Duration::from_millis(59_999);
    // An iteration that has begun is tried again whatever the cap says: it is within it.
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(5, 2))));
    journal.state.phase = Phase::Idle { claim: None, uncommitted: false };
    assert_eq!(journal.next(), Step::Finish(End::IterationCap));
    journal.state.charged = 4;
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Churn }));
    journal.state.churn = MAX_CHURN - 1;
    assert_eq!(journal.next(), Step::Wait(pace(1_000)));
    journal.state.rested_since = None;
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 6 });
}

#[test]
fn an_iteration_begins_then_its_attempt_starts_then_it_is_awaited() {
    let journal = Journal::running();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 1))));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: None });
    assert_eq!(journal.exits(Exit::Lost).next(), Step::Start(ChildId::Attempt(id(1, 2))));
}

#[test]
fn as_many_iterations_are_charged_as_were_granted() {
    let journal = Journal::limited(|limits| limits.max_iterations = Some(2));
    let journal = journal.runs(5_000, Exit::Code(0)).crashes().runs(5_000, Exit::Code(1));
    assert_eq!((journal.state.charged, journal.state.iteration), (2, 2));
    assert_eq!(journal.next(), Step::Finish(End::IterationCap));
}

#[test]
fn a_claim_in_the_last_iteration_counts() {
    let mut spec = spec();
    (spec.limits.max_iterations, spec.promise) = (Some(1), None);
    let journal = Journal::of(spec).taken_over().runs(1, Exit::Code(0));
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::ExitCode }));
}

#[test]
fn a_claim_survives_the_runner_that_heard_it() {
    let mut spec = spec();
    spec.promise = None;
    let journal = Journal::of(spec).taken_over().runs(1, Exit::Code(0)).taken_over();
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::ExitCode }));
}

#[rstest]
#[case::cancelled(Ask::Cancel(Urgency::AfterIteration), End::Cancelled)]
#[case::paused(Ask::Pause(Urgency::AfterIteration), End::Paused)]
fn a_patient_ask_lets_the_iteration_finish(#[case] ask: Ask, #[case] end: End) {
    let journal = Journal::running().spawns().asks(ask);
    assert_eq!(journal.next(), Step::Await { until: None });
    assert_eq!(journal.exits(Exit::Code(0)).next(), Step::Finish(end));
}

#[test]
fn a_stopped_loop_rests() {
    for end in [
        End::Paused,
        End::TimedOut,
        End::IterationCap,
        End::Blocked { why: BlockReason::Refunds },
        End::Blocked { why: BlockReason::Churn },
        End::Blocked { why: BlockReason::GaveUp },
        End::Blocked { why: BlockReason::AgentMissing },
        End::Cancelled,
        End::Completed { claim: ClaimSource::Promise },
        End::Completed { claim: ClaimSource::StateFile },
        End::Completed { claim: ClaimSource::ExitCode },
    ] {
        let journal = Journal::ended(end);
        assert_eq!(journal.next(), Step::Rest, "{end:?}");
        assert_eq!(journal.asks(Ask::Proceed).next(), Step::Rest, "{end:?}");
    }
}

#[test]
fn a_stopped_loop_can_be_cancelled_and_then_rests_for_ever() {
    let journal = Journal::ended(End::Paused);
    let journal = journal.asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(journal.next(), Step::Finish(End::Cancelled));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Rest);
    assert!(journal.state.is_final());
}

#[test]
fn a_completed_loop_is_not_cancelled_afterwards() {
    let end = End::Completed { claim: ClaimSource::Promise };
    let journal = Journal::ended(end).asks(Ask::Cancel(Urgency::Now));
    assert_eq!(journal.next(), Step::Rest);
    assert_eq!(journal.state.ended.unwrap().end, end);
}

#[test]
fn a_loop_rests_between_iterations_from_the_end_of_the_last() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 }, "not before the first");
    let journal = journal.runs(5_000, Exit::Code(0)).after_ms(3_000);
    assert_eq!(journal.next(), Step::Wait(pace(15_000)));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: Some(time(15_000)) });
    assert_eq!(journal.clone().taken_over().next(), journal.next(), "a new runner waits for the rest of it");
    assert_eq!(journal.clone().after_ms(6_999).next(), journal.next());
    let journal = journal.after_ms(7_000);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(journal.obey().state.wait, None);
}

#[test]
fn no_wait_is_recorded_once_its_time_has_passed() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000)));
    let journal = journal.runs(5_000, Exit::Code(0)).after_ms(10_000);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_refund_is_tried_again_without_rest() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000)));
    assert_eq!(journal.crashes().next(), Step::Start(ChildId::Attempt(id(1, 2))));
}

#[test]
fn proceed_ends_a_rest_before_and_while_it_is_waited() {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000)));
    let journal = journal.runs(5_000, Exit::Code(0));
    let waiting = journal.clone().obey();
    for journal in [journal, waiting] {
        assert_eq!(journal.asks(Ask::Proceed).next(), Step::BeginIteration { iteration: 2 });
    }
}

#[rstest]
#[case::cancel(Ask::Cancel(Urgency::AfterIteration), End::Cancelled)]
#[case::pause(Ask::Pause(Urgency::AfterIteration), End::Paused)]
fn a_wait_is_no_reason_to_wait_with_a(#[case] ask: Ask, #[case] end: End) {
    let journal = Journal::limited(|limits| limits.pause = Some(Millis(10_000)));
    let journal = journal.runs(5_000, Exit::Code(0)).obey().asks(ask);
    assert_eq!(journal.next(), Step::Finish(end));
    assert_eq!(journal.obey().state.wait, None);
}

#[test]
fn no_attempt_starts_before_the_sweep_but_an_end_is_recorded() {
    let leaves = |claim: bool| AttemptFinished { left: true, promised: claim, ..finished(Exit::Code(0)) };
    let swept = || Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] };
    let journal = Journal::running().spawns().after_ms(3_000).ends(leaves(false)).obey();
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.refuses(Event::AttemptStarted(id(2, 1)));
    assert_eq!(journal.then(swept()).next(), Step::Start(ChildId::Attempt(id(2, 1))));

    let journal = Journal::running().spawns().after_ms(3_000).ends(leaves(true));
    // Recorded before another request can arrive.
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
    assert_eq!(journal.obey().then(swept()).next(), Step::Rest);
}

#[test]
fn an_agent_with_lost_output_is_stopped_refunded_and_blocks_the_loop() {
    let mut journal = Journal::running().spawns();
    journal.live.output_lost = true;
    assert_eq!(journal.next(), Step::Stop(StopReason::OutputLost));
    let full = AttemptFinished {
        output_error: Some("disk full".into()),
        promised: true,
        ..finished(Exit::Signal(2))
    };
    let journal = journal.obey().after_ms(3_000).ends(full);
    assert_eq!((journal.state.charged, journal.state.attempts[0].outcome), (0, Outcome::OutputLost));
    let mut journal = journal.obey();
    assert_eq!(
        journal.state.ended.map(|ended| ended.end),
        Some(End::Blocked { why: BlockReason::OutputLost })
    );
    journal.live.output_lost = false;
    assert_eq!(journal.resumes().next(), Step::Start(ChildId::Attempt(id(1, 2))));
}
