//! The outcome of an attempt, and what it counts.

use rstest::rstest;

use crate::agent::{AgentEvent, AgentReport, Speaker};
use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Exit, StopReason, Urgency};
use crate::r#loop::tests::journal::{
    Journal, asked, finished, id, spawn_failed, spawned, spec, stop, unlimited,
};
use crate::r#loop::{ChildId, MAX_REFUNDS, Outcome, Phase, Step};
use crate::prompt::state_file::WorkStatus;
use crate::sandbox::SandboxSpec;
use crate::spec::{Limits, Millis, Spec};
use crate::view::{self, Alive};

const QUICK: i64 = 1_999;
const SLOW: i64 = 2_000;

#[rstest]
#[case::a_good_end_is_charged(Exit::Code(0), None, Outcome::Ended, true)]
#[case::a_failure_is_charged(Exit::Code(1), None, Outcome::Failed, true)]
#[case::a_signal_from_outside_is_a_failure(Exit::Signal(9), None, Outcome::Failed, true)]
#[case::a_time_limit_is_charged(Exit::Signal(2), Some(StopReason::TimeLimit), Outcome::TimeLimit, true)]
#[case::silence_is_charged(Exit::Signal(2), Some(StopReason::Silence), Outcome::Silence, true)]
#[case::the_loops_own_duration_is_charged(
    Exit::Code(0),
    Some(StopReason::LoopDuration),
    Outcome::LoopDuration,
    true
)]
#[case::a_cancelled_attempt_is_refunded(Exit::Signal(2), Some(StopReason::Cancel), Outcome::Cancelled, false)]
#[case::an_interrupted_one_too(Exit::Code(130), Some(StopReason::Interrupt), Outcome::Interrupted, false)]
#[case::and_a_lost_one(Exit::Lost, None, Outcome::Lost, false)]
#[case::a_lost_one_is_lost_though_it_was_being_stopped(
    Exit::Lost,
    Some(StopReason::TimeLimit),
    Outcome::Lost,
    false
)]
fn an_end_amounts_to_an_outcome(
    #[case] exit: Exit,
    #[case] because: Option<StopReason>,
    #[case] outcome: Outcome,
    #[case] charged: bool,
) {
    let journal = Journal::running().spawns();
    let journal = match because {
        Some(because) => journal.then(stop(because)),
        None => journal,
    };
    let state = journal.exits(exit).state;
    let last = state.attempts.last().unwrap();
    assert_eq!((last.outcome, last.charged, outcome.is_charged()), (outcome, charged, charged));
    assert_eq!(state.charged, u32::from(charged));
    assert_eq!(
        state.phase,
        if charged {
            Phase::Idle { claim: None, uncommitted: false }
        } else {
            Phase::Begun { next: id(1, 2), hindered: None }
        }
    );
}

/// Neither more iterations nor words help an agent that the same limit always stops.
#[rstest]
#[case::all_at_their_time_limit(
    [StopReason::TimeLimit; 2],
    "2 iterations, each stopped at its time limit (--timeout 30m 0s)",
    "start another loop with a larger --timeout; if it makes progress, refrain resume mend --max-iterations 4"
)]
#[case::all_after_their_silence(
    [StopReason::Silence; 2],
    "2 iterations, each stopped because it printed nothing (--idle-timeout 5m 0s)",
    "start another loop with a larger --idle-timeout; if it makes progress, refrain resume mend --max-iterations 4"
)]
#[case::by_different_limits(
    [StopReason::Silence, StopReason::TimeLimit],
    "2 iterations without a claim",
    "refrain resume mend --max-iterations 4"
)]
fn a_loop_whose_every_iteration_was_cut_short_names_the_limit(
    #[case] stops: [StopReason; 2],
    #[case] reason: &str,
    #[case] needs: &str,
) {
    let journal = Journal::limited(|limits| {
        limits.max_iterations = Some(2);
        (limits.timeout, limits.idle_timeout) = (Some(Millis(1_800_000)), Some(Millis(300_000)));
    });
    let cut = |journal: Journal, why| journal.spawns().then(stop(why)).exits(Exit::Signal(2));
    let journal = stops.into_iter().fold(journal, cut).obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!((status.reason.as_str(), status.needs.as_deref()), (reason, Some(needs)));
}

#[test]
fn an_attempt_whose_runner_died_is_lost_and_refunded() {
    for journal in [Journal::running().starts(), Journal::running().spawns()] {
        let state = journal.taken_over().state;
        assert_eq!(state.attempts[0].outcome, Outcome::Lost);
        assert_eq!(state.attempts[0].finished, None);
        assert_eq!((state.charged, state.iteration), (0, 1));
    }
}

#[rstest]
#[case::the_promise(Exit::Code(0), true, false, true, Some(ClaimSource::Promise))]
#[case::the_promise_of_an_agent_that_fails(Exit::Code(1), true, false, true, Some(ClaimSource::Promise))]
#[case::the_state_file(Exit::Code(0), false, true, true, Some(ClaimSource::StateFile))]
#[case::the_promise_is_named_before_the_state_file(
    Exit::Code(0),
    true,
    true,
    true,
    Some(ClaimSource::Promise)
)]
#[case::exit_code_0_without_a_promise(Exit::Code(0), false, false, false, Some(ClaimSource::ExitCode))]
#[case::the_state_file_without_a_promise(Exit::Code(1), false, true, false, Some(ClaimSource::StateFile))]
#[case::exit_code_0_with_a_promise_is_no_claim(Exit::Code(0), false, false, true, None)]
#[case::another_code_without_a_promise_is_none(Exit::Code(1), false, false, false, None)]
#[case::nor_is_a_signal(Exit::Signal(15), false, false, false, None)]
#[case::nor_a_lost_agent_whatever_it_said(Exit::Lost, true, true, true, None)]
fn a_claim_has_a_source(
    #[case] exit: Exit,
    #[case] promised: bool,
    #[case] state_done: bool,
    #[case] with_promise: bool,
    #[case] claim: Option<ClaimSource>,
) {
    let mut spec = spec();
    spec.promise = spec.promise.filter(|_| with_promise);
    let mut end = finished(exit);
    (end.promised, end.state) = (promised, state_done.then_some(WorkStatus::Done));
    let journal = Journal::of(spec).taken_over().spawns().ends(end);
    let last = journal.state.attempts.last().unwrap();
    assert_eq!(last.claim, claim);
    assert_eq!(last.outcome == Outcome::Claimed, claim.is_some());
    match claim {
        Some(claim) => assert_eq!(journal.next(), Step::Finish(End::Completed { claim })),
        None => assert_ne!(last.outcome, Outcome::Claimed),
    }
}

#[rstest]
fn a_stopped_attempt_claims_nothing(
    #[values(
        StopReason::Cancel,
        StopReason::Interrupt,
        StopReason::TimeLimit,
        StopReason::Silence,
        StopReason::LoopDuration
    )]
    because: StopReason,
    #[values(true, false)] with_promise: bool,
) {
    let mut spec = spec();
    spec.promise = spec.promise.filter(|_| with_promise);
    let mut end = finished(Exit::Code(0));
    (end.promised, end.state) = (true, Some(WorkStatus::Done));
    let state = Journal::of(spec).taken_over().spawns().then(stop(because)).ends(end).state;
    assert_eq!(state.attempts[0].claim, None);
    assert_ne!(state.attempts[0].outcome, Outcome::Claimed);
}

#[test]
fn a_refund_starts_the_next_attempt_of_the_same_iteration() {
    let journal = Journal::running().runs(SLOW, Exit::Code(0)).crashes();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(2, 2))));
    let journal = journal.runs(SLOW, Exit::Lost);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(2, 3))));
    let journal = journal.runs(SLOW, Exit::Code(0));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 3 });
    assert_eq!((journal.state.iteration, journal.state.charged, journal.state.attempts.len()), (2, 2, 4));
}

#[test]
fn three_refunds_in_a_row_block() {
    let journal = Journal::running().crashes().runs(SLOW, Exit::Lost);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 3))));
    let journal = journal.crashes();
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
}

#[test]
fn an_interrupted_attempt_is_refunded_but_not_counted_in_the_row() {
    let interrupted = |journal: Journal| {
        journal.spawns().after_ms(SLOW).then(stop(StopReason::Interrupt)).exits(Exit::Signal(2))
    };
    let journal = interrupted(Journal::running().crashes().crashes());
    assert_eq!(journal.state.attempts.last().unwrap().outcome, Outcome::Interrupted);
    assert_eq!((journal.state.refunds_in_a_row, journal.state.charged), (2, 0));
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 4))));
    let journal = interrupted(interrupted(journal));
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 6))));
    // Nor does it begin the row again.
    assert_eq!(journal.crashes().next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
}

#[test]
fn a_pause_after_two_refunds_is_a_pause() {
    let journal = Journal::running().crashes().crashes().spawns().asks(Ask::Pause(Urgency::Now)).obey();
    assert_eq!(journal.exits(Exit::Signal(2)).next(), Step::Finish(End::Paused));
}

#[test]
fn an_attempt_lost_while_interrupted_counts_in_the_row() {
    let journal = Journal::running().crashes().crashes().spawns().then(stop(StopReason::Interrupt));
    for journal in [journal.clone().exits(Exit::Lost), journal.taken_over()] {
        assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
    }
}

#[test]
fn a_charged_attempt_between_refunds_begins_the_count_again() {
    let journal = Journal::running().crashes().crashes().runs(SLOW, Exit::Code(1)).crashes().crashes();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(2, 3))));
    assert_eq!(journal.crashes().next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
}

#[test]
fn resume_forgives_refunds() {
    let journal = Journal::running().crashes().crashes().crashes().obey().resumes();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 4))));
    let journal = journal.crashes().crashes();
    assert_eq!(journal.state.refunds_in_a_row, MAX_REFUNDS - 1);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 6))));
}

#[test]
fn an_agent_that_cannot_be_started_blocks_at_once_and_resume_tries_again() {
    let journal = Journal::running().starts().then(spawn_failed());
    assert_eq!(journal.state.attempts[0].outcome, Outcome::NotStarted);
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::AgentMissing }));
    // The next runner decides the same before the end is recorded.
    assert_eq!(journal.clone().taken_over().next(), journal.next());
    let journal = journal.obey().resumes();
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    assert_eq!(journal.state.charged, 0);
}

#[test]
fn three_instant_failures_in_a_row_block() {
    let journal = Journal::running().runs(QUICK, Exit::Code(1)).runs(0, Exit::Signal(11));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 3 });
    let journal = journal.runs(QUICK, Exit::Code(127));
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Churn }));
    assert_eq!(journal.state.charged, 3);
}

#[rstest]
#[case::in_a_sandbox(Some(SandboxSpec::default()), true)]
#[case::without_one(None, false)]
fn an_agent_that_may_not_write_names_the_sandbox(
    #[case] sandbox: Option<SandboxSpec>,
    #[case] is_named: bool,
) {
    let preview = "touch: cannot touch '/etc/x': Read-only file system".to_owned();
    let failed = AttemptFinished { preview, ..finished(Exit::Code(1)) };
    let journal = Journal::of(Spec { sandbox, ..spec() }).taken_over();
    let journal = (0..3).fold(journal, |journal, _| journal.spawns().after_ms(QUICK).ends(failed.clone()));
    let status = view::status(&journal.obey().state, Alive::NO_RUNNER);
    let hint = "the sandbox may have refused it: refrain docs sandbox";
    assert_eq!(status.needs.unwrap().contains(hint), is_named);
}

#[rstest]
#[case::a_slower_failure(SLOW, Exit::Code(1))]
#[case::a_quick_good_end(0, Exit::Code(0))]
fn churn_begins_again_after(#[case] ms: i64, #[case] exit: Exit) {
    let quick = |journal: Journal| journal.runs(QUICK, Exit::Code(1));
    let journal = quick(quick(quick(quick(Journal::running())).runs(ms, exit)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 6 });
    assert_eq!(quick(journal).next(), Step::Finish(End::Blocked { why: BlockReason::Churn }));
}

#[test]
fn an_attempt_that_was_stopped_at_once_is_no_churn() {
    let journal = (0..4).fold(Journal::running(), |journal, _| {
        journal.spawns().then(stop(StopReason::Silence)).exits(Exit::Signal(2))
    });
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 5 });
}

#[test]
fn resume_forgives_churn() {
    let quick = |journal: Journal| journal.runs(QUICK, Exit::Code(1));
    let journal = quick(quick(quick(Journal::running()))).obey().resumes();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
    assert_eq!(quick(quick(journal)).next(), Step::BeginIteration { iteration: 6 });
}

#[test]
fn steering_survives_refunds_until_a_charged_iteration_got_it() {
    let journal = Journal::running().asks(Ask::Steer("a".into())).crashes().asks(Ask::Steer("b".into()));
    assert_eq!(journal.state.steering, ["a", "b"]);
    let journal = journal.runs(SLOW, Exit::Code(0));
    assert_eq!(journal.state.steering, [""; 0]);
}

#[test]
fn steering_after_the_start_of_an_attempt_goes_to_the_next() {
    let journal = Journal::running().spawns().then(asked(Ask::Steer("late".into()))).exits(Exit::Code(0));
    assert_eq!(journal.state.steering, ["late"]);
}

#[test]
fn delivered_steering_is_dropped_and_later_steering_is_kept() {
    let steer = |text: &str| Ask::Steer(text.into());
    let journal =
        Journal::running().asks(steer("a")).starts().asks(steer("b")).then(spawned()).asks(steer("c"));
    assert_eq!(journal.clone().exits(Exit::Code(0)).state.steering, ["b", "c"]);
    // A refund keeps all the words, and the next attempt gets them all.
    let journal = journal.exits(Exit::Lost);
    assert_eq!(journal.state.steering, ["a", "b", "c"]);
    let journal = journal.spawns().asks(steer("d")).exits(Exit::Code(1));
    assert_eq!(journal.state.steering, ["d"]);
    assert_eq!(journal.runs(SLOW, Exit::Code(0)).state.steering, [""; 0]);
}

#[test]
fn the_more_urgent_of_two_asks_stands() {
    let journal =
        Journal::running().asks(Ask::Cancel(Urgency::Now)).asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(journal.state.cancel, Some(Urgency::Now));
    let journal = Journal::running().asks(Ask::Pause(Urgency::AfterIteration)).asks(Ask::Pause(Urgency::Now));
    assert_eq!(journal.state.pause, Some(Urgency::Now));
}

#[test]
fn an_attempt_that_took_too_long_says_how_long_and_at_what() {
    let mut report = AgentReport::default();
    for name in ["Read", "Ba\u{1b}[2Jsh"] {
        report.hear(&AgentEvent::ToolCall { name: name.into(), about: String::new(), by: Speaker::Agent });
    }
    let ended = AttemptFinished { report: Some(Box::new(report)), ..finished(Exit::Signal(2)) };
    let journal = Journal::limited(|limits| limits.timeout = Some(Millis(1_000)));
    let journal = journal.spawns().after_ms(2_500).then(stop(StopReason::TimeLimit)).ends(ended);
    let status = view::status(&journal.state, Alive::DRIVEN);
    let overran = status.iterations.unwrap()[0].overran.clone().unwrap();
    assert_eq!((overran.limit, overran.last_tool.as_deref()), (Some(Millis(1_000)), Some("Bash")));
    assert!(overran.elapsed >= Millis(2_500), "{overran}");
    assert!(overran.to_string().ends_with("where 1.0s is the limit, last in its tool Bash"), "{overran}");
    let well = Journal::running().runs(3_000, Exit::Code(0));
    assert_eq!(view::status(&well.state, Alive::DRIVEN).iterations.unwrap()[0].overran, None);
}

#[test]
fn only_a_time_limit_has_a_grace() {
    let limits = Limits { timeout_grace: Some(Millis(30_000)), ..unlimited() };
    assert_eq!(limits.grace(StopReason::TimeLimit), Some(Millis(30_000)));
    for because in [StopReason::Cancel, StopReason::Interrupt, StopReason::Silence, StopReason::Budget] {
        assert_eq!(limits.grace(because), None);
    }
    assert_eq!(unlimited().grace(StopReason::TimeLimit), None);
}
