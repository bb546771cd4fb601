//! A person has the last word: when they are asked, what their yes covers, and what it means to continue without.

use rstest::rstest;

use crate::agent::Scope;
use crate::event::{ApprovedTree, Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, Urgency};
use crate::git::{CommitReport, CommitResult, Oid, SkipReason, Workflow};
use crate::r#loop::tests::journal::{
    Journal, candidate_taken, claiming, finished, gates, grant, id, oid, reporting, spec, time, tokens,
    unlimited,
};
use crate::r#loop::{Approval, ChildId, Grant, LoopState, Step};
use crate::machine::Refusal;
use crate::prompt::{QuotedLogs, assemble};
use crate::spec::{Limits, Spec, Until};
use crate::view::{self, Alive, ApprovalWord, StatusWord};

const ASKED: Step = Step::Finish(End::Blocked { why: BlockReason::Approval });
const DONE: Step = Step::Finish(End::Completed { claim: ClaimSource::Promise });

fn claim() -> AttemptFinished {
    claiming(ClaimSource::Promise)
}

/// A loop with a gate whose first claim is on tree 1, and whose gate ends with this code.
fn gated(code: i32, change: impl FnOnce(&mut Spec)) -> Journal {
    let journal = Journal::gated_by(gates([true]), |spec| {
        spec.approval = true;
        change(spec);
    });
    let journal = journal.takes(0).gates_end(&[1]).attempts(claim()).takes(1).gates_end(&[code]);
    if code == 0 { journal.takes(1) } else { journal }
}

fn waiting(change: impl FnOnce(&mut Spec)) -> Journal {
    gated(0, change).obey()
}

fn word(state: &LoopState) -> Option<ApprovalWord> {
    view::status(state, Alive::NO_RUNNER).approval.map(|approval| approval.state)
}

#[test]
fn a_person_is_asked_once_the_gates_passed_and_their_yes_completes_it() {
    let journal = gated(0, |_| ());
    assert_eq!((journal.next(), journal.state.is_proven()), (ASKED, false));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Rest);
    let awaited = ApprovedTree { attempt: id(1, 1), tree: Some(oid(1)) };
    assert_eq!(journal.state.awaits_approval(), Some(awaited));
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!((status.status, status.approval.unwrap().state), (StatusWord::Blocked, ApprovalWord::Awaited));
    assert!(status.reason.contains("a person is to approve it"), "{}", status.reason);
    let needs = status.needs.unwrap();
    for said in
        ["refrain diff mend", "refrain approve mend", "refrain steer mend TEXT", "refrain resume mend"]
    {
        assert!(needs.contains(said), "{said}: {needs}");
    }
    let journal = journal.after_ms(9_000).approves();
    // It is looked at once more.
    let journal = journal.takes(1);
    assert_eq!((journal.next(), journal.state.is_proven()), (DONE, true));
    let journal = journal.obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(status.approval.unwrap().at, Some(time(journal.now)));
    assert!(status.reason.ends_with("; a person approved it"), "{}", status.reason);
}

#[rstest]
#[case::the_gate_failed(gated(1, |_| ()))]
#[case::something_protected_was_touched({
    let touched = |journal: Journal| {
        let program = crate::protect::OtherProgram { name: "cargo".into(), before: None, now: None };
        let touched = vec![crate::protect::ProtectionBreach::Program(program)];
        journal.then(Event::CandidateTaken { tree: Some(oid(1)), partial: false, touched, changed: Vec::new() })
    };
    let journal = Journal::gated_by(gates([true]), |spec| spec.approval = true);
    touched(touched(journal.takes(0).gates_end(&[1]).attempts(claim())).gates_end(&[0]))
})]
#[case::nothing_was_claimed(
    Journal::gated_by(gates([true]), |spec| spec.approval = true)
        .takes(0)
        .gates_end(&[0])
        .attempts(finished(Exit::Code(0)))
        .takes(1)
        .gates_end(&[0])
)]
#[case::a_claim_ends_nothing(gated(0, |spec| {
    (spec.until, spec.limits.max_iterations) = (Until::Count, Some(3));
}))]
fn approval_is_not_asked_before_everything_else_holds(#[case] journal: Journal) {
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(word(&journal.state), None);
}

#[test]
fn without_a_gate_the_claim_alone_is_put_up_for_approval() {
    let journal = Journal::ended(End::Blocked { why: BlockReason::Approval });
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert!(status.reason.contains("no gate checks"), "{}", status.reason);
    let journal = journal.approves().takes(1).obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!((status.status, status.verified), (StatusWord::Completed, None));
    assert!(status.reason.contains("a person approved it; unverified"), "{}", status.reason);
    // Nothing that was not claimed is looked at.
    let journal =
        Journal::of(Spec { approval: true, ..spec() }).taken_over().attempts(finished(Exit::Code(0)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_tree_changed_after_approval_is_proven_and_asked_about_again() {
    let journal = waiting(|_| ()).approves().takes(2);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
    let journal = journal.gates_end(&[0]).takes(2);
    assert_eq!(journal.next(), ASKED);
    let journal = journal.obey();
    assert_eq!(journal.state.awaits_approval().unwrap().tree, Some(oid(2)));
    let reason = view::status(&journal.state, Alive::NO_RUNNER).reason;
    assert!(reason.starts_with("what was approved, tree 0000000000, is another by now"), "{reason}");
    assert_eq!(journal.approves().takes(2).next(), DONE);
    // A gate that fails by then refuses it, and no person is asked.
    let journal = waiting(|_| ()).approves().takes(2).gates_end(&[1]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_tree_changed_by_a_commit_hook_is_asked_about_again() {
    let journal = waiting(|spec| spec.git.workflow = Workflow::Commit).approves().takes(1);
    assert_eq!(journal.next(), Step::Commit { iteration: 1 });
    let report = CommitReport {
        result: CommitResult::Made { commit: oid(9), tree: oid(3) },
        ..CommitReport::skipped(1, SkipReason::Nothing, Some(oid(9)))
    };
    let journal = journal.then(Event::CommitSettled(Box::new(report))).takes(3).gates_end(&[0]).takes(3);
    assert_eq!(journal.next(), ASKED);
    assert_eq!(journal.obey().approves().takes(3).next(), DONE);
}

#[test]
fn no_claim_is_committed_before_its_approval() {
    let journal = gated(0, |spec| spec.git.workflow = Workflow::Commit);
    assert_eq!(journal.next(), ASKED);
    let journal = journal.obey().resumes();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 }, "it was sent back");
}

#[test]
fn resuming_without_approval_sends_the_work_back_with_steering() {
    let told = |journal: Journal| assemble(&journal.starts().state, QuotedLogs::default());
    let silent = told(waiting(|_| ()).resumes());
    assert!(
        silent.contains("CLAIM REFUSED: a person looked at your work") && silent.contains("gave no reason"),
        "{silent}"
    );
    let journal = waiting(|_| ()).asks(Ask::Steer("Name it better.".into())).resumes();
    assert_eq!(word(&journal.state), Some(ApprovalWord::Refused));
    let spoken = told(journal);
    assert!(spoken.contains("under STEERING") && spoken.contains("STEERING:\nName it better."), "{spoken}");
    assert!(!spoken.contains("CLAIM REFUSED: gate"), "no gate spoke against it: {spoken}");
}

#[test]
fn the_same_candidate_claimed_again_is_asked_about_again() {
    let journal = waiting(|_| ()).resumes().attempts(claim()).takes(1);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }));
    let journal = journal.gates_end(&[0]).takes(1);
    assert_eq!(journal.next(), ASKED);
}

#[test]
fn a_runner_that_dies_before_the_question_leaves_it_open() {
    let journal = gated(0, |_| ()).taken_over();
    assert_eq!(journal.next(), ASKED);
    // A crash, and a person who grants more: that is no answer, because there was no question.
    let journal = gated(0, |_| ()).granted(Some(9), None);
    assert_eq!(journal.next(), ASKED);
    let refused = gated(0, |_| ()).state.approve(&Grant::default(), None);
    assert_eq!(refused, Err(Refusal::NotAsked("not over")));
}

#[test]
fn a_yes_outlives_a_pause_and_a_crash() {
    let journal = waiting(|_| ()).approves().asks(Ask::Pause(Urgency::Now));
    assert_eq!(journal.next(), Step::Finish(End::Paused));
    let journal = journal.obey().resumes().taken_over();
    assert_eq!(journal.takes(1).next(), DONE);
}

#[test]
fn a_cancel_needs_no_yes() {
    let journal = waiting(|_| ()).asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(journal.next(), Step::Finish(End::Cancelled));
    let journal = journal.obey();
    assert_eq!(journal.state.approve(&Grant::default(), None), Err(Refusal::Final("cancelled")));
}

#[rstest]
#[case::running(Journal::running(), Refusal::NotAsked("not over"))]
#[case::paused(Journal::ended(End::Paused), Refusal::NotAsked("paused"))]
#[case::blocked(Journal::ended(End::Blocked { why: BlockReason::Churn }), Refusal::NotAsked("blocked"))]
#[case::done(Journal::ended(End::Completed { claim: ClaimSource::Promise }), Refusal::Final("completed"))]
fn a_loop_that_waits_for_no_approval_is_not_approved(#[case] journal: Journal, #[case] why: Refusal) {
    assert_eq!(journal.state.approve(&Grant::default(), None), Err(why));
    let approved = Some(ApprovedTree { attempt: id(1, 1), tree: Some(oid(1)) });
    journal.refuses(Event::LoopResumed { limits: unlimited(), approved, no_sandbox: false });
}

#[test]
fn a_yes_does_not_drop_a_text_that_is_queued() {
    let journal = waiting(|_| ()).asks(Ask::Steer("not yet".to_owned()));
    assert_eq!(
        journal.state.approve(&Grant::default(), None),
        Err(Refusal::TextQueued("not yet".to_owned()))
    );
    let needs = view::status(&journal.state, Alive::NO_RUNNER).needs.unwrap();
    assert!(needs.contains("refrain take-back mend, then refrain approve mend"), "{needs}");
}

#[test]
fn a_yes_is_to_the_tree_that_waits_alone() {
    let journal = waiting(|_| ());
    let tree = oid(1).to_string();
    assert!(journal.state.approve(&Grant::default(), Some(&tree)).is_ok());
    let short = &tree[..39];
    assert!(matches!(
        journal.state.approve(&Grant::default(), Some(oid(2).as_str())),
        Err(Refusal::AnotherTree { .. })
    ));
    assert!(
        journal.state.approve(&Grant::default(), Some(short)).is_ok(),
        "the beginning of its name will do"
    );
    let approved = Some(ApprovedTree { attempt: id(1, 1), tree: Some(oid(2)) });
    journal.refuses(Event::LoopResumed { limits: unlimited(), approved, no_sandbox: false });
}

#[test]
fn a_yes_needs_no_iteration_and_no_money_and_a_no_does() {
    let limited = |limits: &mut Limits| (limits.max_iterations, limits.max_tokens) = (Some(1), None);
    let journal = waiting(|spec| limited(&mut spec.limits));
    assert!(journal.state.approve(&Grant::default(), None).is_ok());
    let Err(Refusal::NothingGranted { flag, .. }) = journal.state.resume(&grant(None, None)) else {
        panic!("it would end at once")
    };
    assert_eq!(flag, "--max-iterations 3");
    let needs = view::status(&journal.state, Alive::NO_RUNNER).needs.unwrap();
    assert!(needs.contains("refrain resume mend --max-iterations 3"), "{needs}");
    let journal = Journal::of(Spec { approval: true, ..spec() }).taken_over().obey();
    let used = reporting(|report| report.tokens = Some((Scope::Attempt, tokens(90, 10))));
    let mut journal = journal.attempts(AttemptFinished { promised: true, ..used }).takes(1).obey();
    journal.state.limits.max_tokens = Some(100);
    assert!(journal.state.approve(&Grant::default(), None).is_ok());
    assert!(journal.state.resume(&grant(None, None)).is_err());
}

#[test]
fn without_a_repository_a_yes_is_to_the_attempt() {
    let journal = Journal::of(Spec { approval: true, ..spec() }).taken_over().attempts(claim());
    let journal = journal.then(candidate_taken(None)).obey().approves().then(candidate_taken(None));
    assert_eq!(journal.next(), DONE);
    let approval = journal.state.proof.as_ref().unwrap().approval;
    assert!(matches!(approval, Some(Approval::Given(_))));
}

#[rstest]
#[case::without_a_repository(None, false)]
#[case::with_more_to_it_than_its_tree_shows(Some(oid(1)), true)]
fn approved_work_that_may_have_changed_is_proven_again_and_stays_approved(
    #[case] tree: Option<Oid>,
    #[case] partial: bool,
) {
    let taken =
        || Event::CandidateTaken { tree: tree.clone(), partial, touched: Vec::new(), changed: Vec::new() };
    // A candidate with a tree must still have it after its gates.
    let proven = |journal: Journal, code: i32| match (&tree, code) {
        (Some(_), 0) => journal.then(taken()).gates_end(&[0]).then(taken()),
        (Some(_) | None, code) => journal.then(taken()).gates_end(&[code]),
    };
    let waiting = || {
        let journal = Journal::gated_by(gates([true]), |spec| spec.approval = true);
        let journal = journal.then(taken()).gates_end(&[1]).attempts(claim());
        proven(journal, 0)
    };
    assert_eq!(waiting().next(), ASKED);
    let journal = waiting().obey().approves();
    assert_eq!(journal.next(), Step::TakeCandidate);
    let journal = journal.then(taken());
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 }));
    assert_eq!(proven(waiting().obey().approves(), 0).next(), DONE);
    let journal = proven(waiting().obey().approves(), 1);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 }, "it was edited meanwhile");
}
