//! What is proven, and what a proof decides: candidates, gates in their order, what is run again and what is kept.

use rstest::rstest;

use crate::event::{Ask, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency};
use crate::gate::GateWhen;
use crate::git::{CommitReport, CommitResult, CommitWhen, SkipReason, Workflow};
use crate::r#loop::tests::journal::{
    Journal, candidate_taken, claiming, finished, gate_finished, gate_name, gates, oid, spec, stop,
};
use crate::r#loop::{ChildId, GateFailure, Grant, MAX_REFUNDS, MAX_ROUNDS, Phase, Step};
use crate::plan::{Stop, TaskEnd};
use crate::spec::{Millis, Spec};
use crate::stuck::{Pattern, Verdict};
use crate::view::{Alive, status};

const PROMISE: ClaimSource = ClaimSource::Promise;
const DONE: Step = Step::Finish(End::Completed { claim: PROMISE });

/// One hard gate, which failed on tree 0 before the first iteration.
fn failing_before() -> Journal {
    Journal::gated([true]).takes(0).gates_end(&[1])
}

/// The first iteration claims, and its candidate is to be taken.
fn claims() -> Journal {
    failing_before().attempts(claiming(PROMISE))
}

fn committing(hard: bool) -> Journal {
    let journal = Journal::gated_by(gates([hard]), |spec| spec.git.workflow = Workflow::Commit);
    journal.takes(0).gates_end(&[1])
}

fn commits(journal: Journal, tree: u32) -> Journal {
    assert_eq!(journal.next(), Step::Commit { iteration: journal.state.iteration });
    let skipped = CommitReport::skipped(journal.state.iteration, SkipReason::Nothing, Some(oid(9)));
    let report = CommitReport { result: CommitResult::Made { commit: oid(9), tree: oid(tree) }, ..skipped };
    journal.then(Event::CommitSettled(Box::new(report)))
}

#[test]
fn each_iteration_is_committed_on_request() {
    let second = Step::BeginIteration { iteration: 2 };
    let refused = committing(true).attempts(claiming(PROMISE)).takes(1).gates_end(&[1]);
    assert_eq!(refused.next(), second, "what the gates refuse is not committed");
    let journal = Journal::gated_by(gates([true]), |spec| {
        spec.git.workflow = Workflow::Commit;
        spec.git.commit_when = CommitWhen::Each;
    });
    let journal = journal.takes(0).gates_end(&[1]).attempts(claiming(PROMISE)).takes(1).gates_end(&[1]);
    let journal = commits(journal, 1);
    assert_eq!(journal.next(), second);
    let journal = journal.attempts(claiming(PROMISE)).takes(2).gates_end(&[0]).takes(2);
    let journal = commits(journal, 2);
    assert!(matches!(journal.next(), Step::Finish(End::Completed { .. })), "{:?}", journal.next());
}

fn resumes(journal: Journal) -> Journal {
    let event = journal.state.resume(&Grant::default()).unwrap().unwrap();
    journal.then(event).taken_over()
}

fn ended(journal: &Journal) -> Option<End> {
    journal.state.ended.map(|ended| ended.end)
}

/// The failure that counts is the gate's then, which is red from the start.
#[test]
fn an_agent_that_fails_without_a_failure_of_its_own_does_not_end_a_red_loop() {
    let journal = (1..=14).fold(failing_before(), |journal, tree| {
        journal.attempts(finished(Exit::Code(1))).takes(tree).gates_end(&[1])
    });
    assert_eq!(journal.state.progress.stuck.count(), 14);
    assert_eq!(journal.state.verdict(), Verdict::Shift(Pattern::OldFailure));
}

#[test]
fn gates_run_once_before_the_first_iteration_and_end_nothing() {
    let journal = Journal::gated([true, false]);
    journal.refuses(Event::IterationBegun { iteration: 1, work: None });
    let journal = journal.takes(0);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let journal = journal.gates_end(&[1]);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 1, run: 1 }), "all results are wanted");
    let journal = journal.gates_end(&[0]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
    assert_eq!(journal.state.failed_before(0), Some(true));
    assert_eq!(journal.state.failed_before(1), Some(false));
    journal.refuses(candidate_taken(Some(0)));
}

#[test]
fn a_claim_is_refused_until_every_gate_that_decides_passed_on_it() {
    let journal = claims().takes(1).gates_end(&[1]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    journal.refuses(Event::LoopEnded(End::Completed { claim: PROMISE }));
    assert!(!journal.state.is_proven());

    let journal = journal.attempts(claiming(PROMISE)).takes(2).gates_end(&[0]).takes(2);
    assert!(journal.state.is_proven());
    assert_eq!(journal.state.proven_tree(), Some(&oid(2)));
    assert_eq!(journal.next(), DONE);
    assert_eq!(journal.obey().state.proven_tree(), Some(&oid(2)));
}

#[rstest]
#[case::none(0, false)]
#[case::some(1, true)]
fn a_loop_that_makes_its_own_tests_is_verified_once_it_has_some(
    #[case] summaries: u32,
    #[case] proven: bool,
) {
    let mut gates = gates([true]);
    gates[0].own_tests = true;
    let journal = Journal::gated_by(gates, |_| ()).takes(0).gates_end(&[0]);
    let journal = journal.attempts(claiming(PROMISE)).takes(1).gates();
    let journal = journal.answers(|finished| finished.summaries = summaries).takes(1);
    assert_eq!(journal.next(), DONE, "it is done either way");
    assert_eq!(journal.state.is_proven(), proven);
}

#[test]
fn a_soft_gate_informs_and_decides_nothing() {
    let journal = Journal::gated([false, true]).takes(0).gates_end(&[1, 1]);
    let journal = journal.attempts(claiming(PROMISE)).takes(1).gates_end(&[1, 0]).takes(1);
    assert_eq!(journal.next(), DONE);
    let only_soft = Journal::gated([false]).takes(0).gates_end(&[1]);
    let only_soft = only_soft.attempts(claiming(PROMISE)).takes(1).gates_end(&[1]);
    assert_eq!(only_soft.next(), DONE);
    assert!(!only_soft.state.is_proven(), "nothing that decides was asked");
}

#[rstest]
#[case::a_good_end(Exit::Code(0), None, None, None)]
#[case::a_code(Exit::Code(1), None, None, Some(GateFailure::Exit(Exit::Code(1))))]
#[case::a_signal(Exit::Signal(9), None, None, Some(GateFailure::Exit(Exit::Signal(9))))]
#[case::nothing_tested(Exit::Code(0), Some("0 tests"), None, Some(GateFailure::NoTest("0 tests".into())))]
#[case::too_long(Exit::Signal(2), None, Some(StopReason::TimeLimit), Some(GateFailure::TimeLimit))]
#[case::too_long_whatever_it_says_then(
    Exit::Code(0),
    None,
    Some(StopReason::TimeLimit),
    Some(GateFailure::TimeLimit)
)]
fn a_gate_that_ends_is_a_result(
    #[case] exit: Exit,
    #[case] no_test: Option<&str>,
    #[case] stopped: Option<StopReason>,
    #[case] failure: Option<GateFailure>,
) {
    let mut journal = claims().takes(1).gates();
    if let Some(because) = stopped {
        journal = journal.then(Event::GateStopRequested { because });
    }
    let journal = journal.answers(|finished| {
        finished.exit = exit;
        finished.no_test = no_test.map(str::to_owned);
    });
    let journal = if failure.is_none() { journal.takes(1) } else { journal };
    let last = journal.state.attempts.last().unwrap().proof.as_ref().unwrap();
    assert_eq!(last.results[0].failure, failure);
    assert_eq!(journal.state.is_proven(), failure.is_none());
}

#[rstest]
#[case::cancelled(Exit::Signal(2), Some(StopReason::Cancel))]
#[case::interrupted(Exit::Code(0), Some(StopReason::Interrupt))]
#[case::out_of_time(Exit::Signal(2), Some(StopReason::LoopDuration))]
#[case::its_keeper_died(Exit::Lost, None)]
#[case::its_keeper_died_while_it_was_too_slow(Exit::Lost, Some(StopReason::TimeLimit))]
fn a_gate_ended_from_outside_has_no_result(#[case] exit: Exit, #[case] stopped: Option<StopReason>) {
    let mut journal = claims().takes(1).gates();
    if let Some(because) = stopped {
        journal = journal.then(Event::GateStopRequested { because });
    }
    let journal = journal.answers(|finished| finished.exit = exit);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
}

#[test]
fn a_gate_that_cannot_be_started_failed() {
    let failed = || Event::GateSpawnFailed { error: "no such folder".into() };
    let journal = claims().takes(1);
    journal.refuses(failed());
    let journal = journal.gates().then(failed());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    let results = &journal.state.proof.as_ref().unwrap().results;
    assert_eq!(results[0].failure, Some(GateFailure::NotStarted("no such folder".into())));
}

#[test]
fn a_gate_in_flight_when_its_runner_died_is_run_again_and_a_finished_one_is_not() {
    let journal = Journal::gated([true, true]).takes(0).gates_end(&[0]).gates().taken_over();
    assert_eq!(journal.state.running_gate(), None);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 1, run: 2 }));
    let journal = journal.gates_end(&[0]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
}

#[test]
fn a_gate_that_takes_its_runner_with_it_blocks_after_the_third_time() {
    let journal = (0..MAX_REFUNDS).fold(claims().takes(1), |journal, _| journal.gates().taken_over());
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
    let journal = journal.obey();
    let why = "its gates were interrupted three times in a row: their runner or supervisor was lost";
    assert_eq!(status(&journal.state, Alive::NO_RUNNER).reason, why);
    let journal = resumes(journal);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 4 }));
    // One that ends begins the count again.
    assert_eq!(journal.gates_end(&[1]).state.refunds_in_a_row, 0);
}

#[test]
fn an_unchanged_candidate_keeps_its_results() {
    let journal = failing_before().attempts(finished(Exit::Code(0))).takes(0);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert!(!journal.state.attempts[0].proof.as_ref().unwrap().results[0].passed());

    let proven = failing_before().attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]);
    assert_eq!(proven.attempts(claiming(PROMISE)).takes(1).next(), DONE, "it passed on this very tree");
}

#[test]
fn a_claim_on_an_unchanged_candidate_that_failed_is_looked_at_again() {
    // Files that git ignores may have changed, such as installed packages.
    let journal = claims().takes(0);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let journal = journal.gates_end(&[0]).takes(0);
    assert_eq!(journal.next(), DONE);
    assert!(journal.state.proof.unwrap().results[0].flaky, "it failed on the same files before");
}

#[test]
fn without_a_repository_every_candidate_is_another() {
    let none = |journal: Journal| journal.then(candidate_taken(None));
    let journal = Journal::gated_by(gates([true]), |spec| spec.git.candidates = false);
    let journal = none(none(journal).gates_end(&[1]).attempts(finished(Exit::Code(0))));
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let journal = none(journal.gates_end(&[1]).attempts(claiming(PROMISE))).gates_end(&[0]);
    assert_eq!(journal.next(), DONE);
    assert_eq!((journal.state.is_proven(), journal.state.proven_tree()), (true, None));
}

#[test]
fn a_candidate_that_its_tree_does_not_show_whole_is_another() {
    let partial = || Event::CandidateTaken {
        tree: Some(oid(0)),
        partial: true,
        touched: Vec::new(),
        changed: Vec::new(),
    };
    let journal = failing_before().attempts(finished(Exit::Code(0))).then(partial());
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let journal = journal.gates_end(&[1]).attempts(finished(Exit::Code(0))).then(partial());
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
}

#[test]
fn retries_find_the_flaky_and_only_those_pass() {
    let retried = |codes: &[i32]| {
        let mut gates = gates([true]);
        gates[0].retries = 2;
        let journal = Journal::gated_by(gates, |_| ()).takes(0).gates_end(&[1, 1, 1]);
        journal.attempts(claiming(PROMISE)).takes(1).gates_end(codes)
    };
    let flaky = retried(&[1, 1, 0]).takes(1);
    assert_eq!(flaky.next(), DONE);
    let result = &flaky.state.proof.as_ref().unwrap().results[0];
    assert_eq!((result.flaky, result.run), (true, 3));
    let failed = retried(&[1, 1, 1]);
    assert_eq!(failed.next(), Step::BeginIteration { iteration: 2 });
    assert!(!failed.state.proof.unwrap().results[0].flaky);
}

#[test]
fn a_proof_is_of_one_tree_so_gates_that_change_it_are_asked_again() {
    let journal = claims().takes(1).gates_end(&[0]).takes(2);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
    let journal = journal.gates_end(&[0]).takes(2);
    assert_eq!(journal.next(), DONE);
    assert_eq!(journal.state.proven_tree(), Some(&oid(2)));
}

#[test]
fn a_candidate_that_never_comes_to_rest_is_not_proven() {
    let journal =
        (1..=MAX_ROUNDS).fold(claims().takes(1), |journal, round| journal.gates_end(&[0]).takes(round + 1));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert!(journal.state.proof.as_ref().unwrap().restless);
    // Its results are not kept, whatever they are.
    let journal = journal.attempts(finished(Exit::Code(0))).takes(MAX_ROUNDS + 1);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { .. })));
}

#[test]
fn without_a_promise_the_gates_alone_claim() {
    let silent = |spec: &mut Spec| spec.promise = None;
    let journal = Journal::gated_by(gates([true]), silent).takes(0).gates_end(&[1]);
    let failed = journal.clone().attempts(finished(Exit::Code(1))).takes(1).gates_end(&[0]);
    assert_eq!(failed.next(), Step::BeginIteration { iteration: 2 }, "no result, no claim");
    let done = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]).takes(1);
    assert_eq!(done.next(), Step::Finish(End::Completed { claim: ClaimSource::Gates }));

    let soft = Journal::gated_by(gates([false]), silent).takes(0).gates_end(&[1]);
    let done = soft.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[1]);
    assert_eq!(done.next(), Step::Finish(End::Completed { claim: ClaimSource::ExitCode }));
}

#[test]
fn gates_can_be_saved_for_claims() {
    let mut gates = gates([true, true]);
    gates[1].when = GateWhen::Claim;
    let commits = |spec: &mut Spec| spec.git.workflow = Workflow::Commit;
    let journal = Journal::gated_by(gates.clone(), commits).takes(0).gates_end(&[0, 1]);
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]);
    assert_eq!(
        journal.next(),
        Step::BeginIteration { iteration: 2 },
        "not all that decide saw what it changed"
    );
    assert_eq!(journal.state.gate_results().map(|result| result.gate).collect::<Vec<_>>(), [0, 1]);
    // Not all have seen this tree.
    let journal = journal.attempts(claiming(PROMISE)).takes(1).gates_end(&[0, 0]).takes(1);
    assert_eq!(crate::r#loop::tests::proof::gates::commits(journal, 1).next(), DONE);

    gates[0].when = GateWhen::Claim;
    let journal = Journal::gated_by(gates, |_| ()).takes(0).gates_end(&[1, 1]);
    let journal = journal.attempts(finished(Exit::Code(0)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(journal.state.attempts[0].proof, None);
    let journal = journal.attempts(claiming(PROMISE)).takes(1).gates_end(&[0, 0]).takes(1);
    assert_eq!(journal.next(), DONE);
}

#[test]
fn only_a_candidate_whose_gates_passed_is_committed() {
    let failed = committing(true).attempts(finished(Exit::Code(0))).takes(1).gates_end(&[1]);
    assert_eq!(failed.next(), Step::BeginIteration { iteration: 2 });
    let passed = committing(true).attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]).takes(1);
    assert_eq!(commits(passed, 1).next(), Step::BeginIteration { iteration: 2 });
    let soft = committing(false).attempts(finished(Exit::Code(0))).takes(1).gates_end(&[1]);
    assert_eq!(commits(soft, 1).next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_claim_is_committed_before_it_completes() {
    let claimed = committing(true).attempts(claiming(PROMISE)).takes(1).gates_end(&[0]).takes(1);
    assert_eq!(commits(claimed, 1).next(), DONE);
}

#[test]
fn a_hook_that_changes_proven_work_sends_it_back_to_the_gates() {
    let claimed = committing(true).attempts(claiming(PROMISE)).takes(1).gates_end(&[0]).takes(1);
    let journal = commits(claimed.clone(), 2).takes(2);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { .. })));
    let proven = journal.clone().gates_end(&[0]).takes(2);
    assert_eq!(proven.next(), DONE, "it is committed already");
    assert_eq!(proven.state.proven_tree(), Some(&oid(2)));
    assert_eq!(journal.gates_end(&[1]).next(), Step::BeginIteration { iteration: 2 });

    // It changes only committed files, and again each time.
    let journal = (1..MAX_ROUNDS).fold(claimed, |journal, _| commits(journal, 2).takes(1));
    let journal = commits(journal, 2);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert!(journal.state.attempts[0].proof.as_ref().unwrap().restless);
}

#[rstest]
#[case::cancel(Ask::Cancel(Urgency::Now), StopReason::Cancel, End::Cancelled)]
#[case::pause(Ask::Pause(Urgency::Now), StopReason::Interrupt, End::Paused)]
fn an_urgent_request_stops_the_gate(#[case] ask: Ask, #[case] because: StopReason, #[case] end: End) {
    let journal = claims().takes(1).gates().asks(ask);
    assert_eq!(journal.next(), Step::Stop(because));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.refuses(Event::LoopEnded(end));
    let journal = journal.answers(|finished| finished.exit = Exit::Signal(2)).obey();
    assert_eq!(ended(&journal), Some(end));
    if end == End::Paused {
        assert_eq!(resumes(journal).next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
    }
}

#[rstest]
#[case::pause(Ask::Pause(Urgency::AfterIteration), DONE)]
#[case::cancel(Ask::Cancel(Urgency::AfterIteration), Step::Finish(End::Cancelled))]
fn gates_are_a_part_of_the_iteration_that_is_to_be_finished(#[case] ask: Ask, #[case] then: Step) {
    let journal = claims().asks(ask).takes(1).gates_end(&[0]).takes(1);
    assert_eq!(journal.next(), then);
}

#[rstest]
#[case::pause(Ask::Pause(Urgency::AfterIteration), End::Paused)]
#[case::cancel(Ask::Cancel(Urgency::AfterIteration), End::Cancelled)]
fn before_the_first_iteration_there_is_nothing_to_be_finished(#[case] ask: Ask, #[case] end: End) {
    let journal = Journal::gated([true, true]).takes(0).gates().asks(ask);
    assert_eq!(journal.next(), Step::Await { until: Some(crate::r#loop::tests::journal::time(60_000)) });
    let journal = journal.answers(|_| ());
    assert_eq!(journal.next(), Step::Finish(end));
    if end == End::Paused {
        assert_eq!(resumes(journal.obey()).next(), Step::Start(ChildId::Gate { gate: 1, run: 1 }));
    }
}

#[test]
fn a_gates_own_time_counts_from_its_start() {
    let journal = claims().takes(1).gates();
    let from = journal.now;
    assert_eq!(
        journal.next(),
        Step::Await { until: Some(crate::r#loop::tests::journal::time(from + 60_000)) }
    );
    assert_eq!(journal.after_ms(60_000).next(), Step::Stop(StopReason::TimeLimit));
}

#[test]
fn gates_take_the_loops_own_time_and_are_run_again_when_it_gets_more() {
    let short = |spec: &mut Spec| spec.limits.max_duration = Some(Millis(10_000));
    let journal = Journal::gated_by(gates([true]), short).takes(0).gates_end(&[1]);
    let journal = journal.attempts(claiming(PROMISE)).takes(1).gates().after_ms(7_000);
    assert_eq!(journal.next(), Step::Stop(StopReason::LoopDuration));
    let journal = journal.obey().answers(|finished| finished.exit = Exit::Signal(15));
    assert_eq!(journal.next(), Step::Finish(End::TimedOut));
    let journal = journal.obey().granted(None, Some(Millis(60_000)));
    let journal = journal.gates_end(&[0]).takes(1);
    assert_eq!(journal.next(), DONE, "the claim was not lost");
}

#[test]
fn a_loop_at_its_cap_may_finish_its_last_claim() {
    let capped = |spec: &mut Spec| spec.limits.max_iterations = Some(1);
    let journal = Journal::gated_by(gates([true]), capped).takes(0).gates_end(&[1]);
    let journal = journal.attempts(claiming(PROMISE)).takes(1).asks(Ask::Pause(Urgency::Now)).obey();
    let journal = resumes(journal);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let failed = journal.clone().gates_end(&[1]);
    assert_eq!(failed.next(), Step::Finish(End::IterationCap));
    assert!(failed.obey().state.resume(&Grant::default()).is_err());
    assert_eq!(journal.gates_end(&[0]).takes(1).next(), DONE);
}

#[test]
fn no_gate_runs_before_left_processes_are_swept() {
    let mut left = claiming(PROMISE);
    left.left = true;
    let swept = || Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] };
    let journal = failing_before().attempts(left);
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.refuses(candidate_taken(Some(1)));
    let journal = journal.then(swept()).takes(1).gates().answers(|finished| finished.left = true);
    assert_eq!(journal.next(), Step::Await { until: None });
    assert_eq!(journal.then(swept()).takes(1).next(), DONE);
}

#[test]
fn a_gate_with_lost_output_has_no_result_and_needs_a_person() {
    let mut journal = claims().takes(1).gates();
    journal.live.output_lost = true;
    assert_eq!(journal.next(), Step::Stop(StopReason::OutputLost));
    let mut journal = journal.obey().answers(|finished| finished.output_error = Some("full".into()));
    journal.live.output_lost = false;
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::OutputLost }));
    assert_eq!(resumes(journal.obey()).next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
}

#[test]
fn a_repository_that_says_nothing_needs_a_person_and_is_asked_again_after_that() {
    let refused = || Event::CandidateRefused { error: "fatal: no".into(), bad_work: false };
    Journal::running().refuses(refused());
    for journal in [Journal::gated([true]), claims()] {
        let journal = journal.then(refused());
        assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Repository }));
        assert_eq!(resumes(journal.obey()).next(), Step::TakeCandidate);
    }
}

/// A checkout elsewhere has not what its gates saw besides the tree.
#[test]
fn a_task_whose_gates_saw_more_than_its_tree_is_verified_before_it_lands() {
    for (partial, tree) in [(false, Some(oid(0))), (true, None)] {
        let taken =
            Event::CandidateTaken { tree: Some(oid(0)), partial, touched: Vec::new(), changed: Vec::new() };
        let state = failing_before().attempts(claiming(PROMISE)).then(taken).gates_end(&[0]).obey().state;
        assert_eq!(TaskEnd::of(&state, "why", None), TaskEnd::Proven { tree });
    }
}

/// Another task would meet the same repository, but not the same work.
#[test]
fn bad_work_stops_its_task_and_a_bad_repository_the_plan() {
    let end = |bad_work| {
        let refused = Event::CandidateRefused { error: "a path ..".into(), bad_work };
        let state = claims().then(refused).obey().state;
        TaskEnd::of(&state, "why", None)
    };
    assert_eq!(end(true), TaskEnd::Stopped(Stop::Other { reason: "why".into() }));
    assert_eq!(end(false), TaskEnd::Hindered { error: "why".into() });
    let again =
        resumes(claims().then(Event::CandidateRefused { error: "a path ..".into(), bad_work: true }).obey());
    let again =
        again.then(Event::CandidateRefused { error: "no space".into(), bad_work: false }).obey().state;
    assert_eq!(TaskEnd::of(&again, "why", None), TaskEnd::Hindered { error: "why".into() });
}

#[test]
fn gates_are_asked_in_their_order_and_about_something() {
    let started = |place, run| Event::GateStarted { gate: gate_name(place), run };
    let journal = Journal::gated([true, true]);
    journal.refuses(started(0, 1));
    let journal = journal.takes(0);
    journal.refuses(started(1, 1));
    journal.refuses(started(0, 2));
    journal.refuses(candidate_taken(Some(0)));
    let journal = journal.then(started(0, 1));
    journal.refuses(started(0, 2));
    journal.refuses(Event::GateFinished(Box::new(gate_finished(1, Exit::Code(0)))));
    journal.refuses(stop(StopReason::Cancel));
    assert_eq!(journal.answers(|_| ()).next(), Step::Start(ChildId::Gate { gate: 1, run: 1 }));
}

#[test]
fn a_loop_without_gates_knows_nothing_of_them() {
    assert!(!spec().has_hard_gates());
    let journal = Journal::claimed(PROMISE);
    assert_eq!(journal.next(), DONE);
    assert!(matches!(journal.state.phase, Phase::Idle { claim: Some(_), .. }));
    assert!(!journal.state.is_proven());
    journal.refuses(candidate_taken(None));
}
