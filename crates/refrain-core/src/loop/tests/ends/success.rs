//! `--success-command`: a required gate that completes the loop by itself, once all others pass too.

use rstest::rstest;

use crate::event::{AttemptFinished, BlockReason, ClaimSource, End, Exit};
use crate::gate::{Check, GateWhen, ReviewSpec};
use crate::git::Workflow;
use crate::r#loop::tests::journal::{Journal, claiming, finished, gates, grant, oid};
use crate::r#loop::{ChildId, Outcome, Step};
use crate::prompt::state_file::WorkStatus;
use crate::spec::{Spec, Until};
use crate::view::{self, Alive};

const COMPLETED: Step = Step::Finish(End::Completed { claim: ClaimSource::Gates });
const SECOND: Step = Step::BeginIteration { iteration: 2 };

/// A loop with one required gate and a success command, in this order, which ended with these codes on tree 0 before
/// the first iteration.
fn success(codes: &[i32], change: impl FnOnce(&mut Spec)) -> Journal {
    let mut all = gates([true, true]);
    all[1].completes = true;
    Journal::gated_by(all, change).takes(0).gates_end(codes)
}

fn silent() -> AttemptFinished {
    finished(Exit::Code(0))
}

#[rstest]
#[case::both_pass(silent(), &[0, 0], true)]
#[case::the_gate_fails(silent(), &[1, 0], false)]
#[case::it_fails(silent(), &[0, 1], false)]
#[case::of_an_agent_that_failed(finished(Exit::Code(3)), &[0, 0], true)]
#[case::of_an_agent_that_is_blocked(AttemptFinished { state: Some(WorkStatus::Blocked), ..silent() }, &[0, 0], true)]
fn the_success_command_completes_the_loop_whatever_the_agent_says(
    #[case] ended: AttemptFinished,
    #[case] codes: &[i32],
    #[case] completes: bool,
) {
    let journal = success(&[1, 1], |_| ()).attempts(ended).takes(1).gates_end(codes);
    if !completes {
        assert_eq!(journal.next(), SECOND);
        assert_eq!(journal.state.attempts[0].claim, None, "there is no claim");
        return;
    }
    let journal = journal.takes(1);
    assert_eq!((journal.next(), journal.state.is_proven()), (COMPLETED, true));
    assert_eq!(journal.state.proven_tree(), Some(&oid(1)));
    assert_ne!(journal.state.attempts[0].outcome, Outcome::Claimed, "that is what the agent did");
    let status = view::status(&journal.obey().state, Alive::NO_RUNNER);
    assert!(
        status.reason.starts_with("the success command and every required gate passed"),
        "{}",
        status.reason
    );
    assert_eq!(status.verified, Some(true));
}

#[test]
fn the_success_command_ends_no_loop_before_its_first_iteration() {
    let journal = success(&[0, 0], |_| ());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
    // Nothing changed: the earlier results hold.
    let journal = journal.attempts(silent()).takes(0);
    assert_eq!(journal.next(), COMPLETED);
}

#[test]
fn the_success_command_runs_after_each_iteration_even_without_changes() {
    // Files that git ignores may have changed.
    let journal = success(&[0, 1], |_| ()).attempts(silent()).takes(0);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { gate: 0, .. })), "{:?}", journal.next());
    let journal = journal.gates_end(&[0, 0]).takes(0);
    assert_eq!(journal.next(), COMPLETED);
}

#[test]
fn a_claim_that_it_does_not_confirm_is_refused() {
    let promise = ClaimSource::Promise;
    let journal = success(&[0, 1], |_| ()).attempts(claiming(promise)).takes(1).gates_end(&[0, 1]);
    assert_eq!(journal.next(), SECOND);
    let journal = journal.attempts(claiming(promise)).takes(2).gates_end(&[0, 0]).takes(2);
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: promise }), "and else it counts");
}

#[test]
fn gates_that_are_kept_for_claims_are_asked_once_it_passes() {
    let mut all = gates([true, true, true]);
    (all[0].when, all[1].completes) = (GateWhen::Claim, true);
    all[1].when = GateWhen::Claim;
    let review = ReviewSpec { agent: crate::r#loop::tests::journal::spec().agent, spec: "It counts.".into() };
    (all[2].check, all[2].when) = (Check::Review(Box::new(review)), GateWhen::Claim);
    let journal = Journal::gated_by(all, |_| ()).takes(0).gates_end(&[1, 1]);
    let journal = journal.attempts(silent()).takes(1);
    assert!(
        matches!(journal.next(), Step::Start(ChildId::Gate { gate: 1, .. })),
        "it, and no other: {:?}",
        journal.next()
    );
    assert_eq!(journal.clone().gates_end(&[1]).next(), SECOND);
    let passed = journal.gates_end(&[0]);
    assert!(matches!(passed.next(), Step::Start(ChildId::Gate { gate: 0, .. })), "{:?}", passed.next());
    assert_eq!(passed.clone().gates_end(&[1]).next(), SECOND, "the reviewer is spared");
    assert!(matches!(passed.gates_end(&[0]).next(), Step::Start(ChildId::Gate { gate: 2, .. })));
}

#[test]
fn a_tree_that_the_gates_changed_is_checked_once_more() {
    let journal = success(&[1, 1], |_| ()).attempts(silent()).takes(1).gates_end(&[0, 0]).takes(2);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 })), "{:?}", journal.next());
    assert_eq!(journal.clone().gates_end(&[0, 1]).next(), SECOND);
    assert_eq!(journal.gates_end(&[0, 0]).takes(2).next(), COMPLETED);
}

#[test]
fn work_proven_by_the_success_command_is_committed_before_the_end() {
    let journal = success(&[1, 1], |spec| spec.git.workflow = Workflow::Commit);
    let journal = journal.attempts(silent()).takes(1).gates_end(&[0, 0]).takes(1);
    assert_eq!(journal.next(), Step::Commit { iteration: 1 });
}

#[test]
fn approval_is_asked_after_the_success_command_passes() {
    let journal = success(&[1, 1], |spec| spec.approval = true);
    let journal = journal.attempts(silent()).takes(1).gates_end(&[0, 0]).takes(1);
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Approval }));
    let journal = journal.obey();
    let event = journal.state.resume(&grant(None, None)).unwrap().unwrap();
    assert_eq!(journal.then(event).taken_over().next(), SECOND, "they sent it back");
}

#[test]
fn without_git_it_is_asked_each_time() {
    let mut all = gates([true]);
    all[0].completes = true;
    let journal = Journal::gated_by(all, |spec| spec.git.candidates = false);
    let taken = || crate::r#loop::tests::journal::candidate_taken(None);
    let journal = journal.then(taken()).gates_end(&[1]);
    let journal = journal.attempts(silent()).then(taken()).gates_end(&[1]);
    assert_eq!(journal.next(), SECOND);
    let journal = journal.attempts(silent()).then(taken()).gates_end(&[0]);
    assert_eq!(journal.next(), COMPLETED);
}

#[rstest]
#[case::before_the_last(2, SECOND)]
#[case::in_the_last(1, COMPLETED)]
fn exactly_so_many_iterations_are_done_whatever_it_says(#[case] count: u32, #[case] next: Step) {
    let journal = success(&[1, 1], |spec| {
        (spec.until, spec.limits.max_iterations) = (Until::Count, Some(count));
    });
    assert_eq!(journal.attempts(silent()).takes(1).gates_end(&[0, 0]).takes(1).next(), next);
}

#[test]
fn a_known_agent_claims_by_its_exit_code_nowhere() {
    use crate::spec::AgentKind::{Claude, Generic};
    for (kind, has_promise, hard, until, trusts) in [
        (Claude, false, None, Until::Complete, true),
        (Claude, false, Some(false), Until::Complete, true),
        (Claude, false, None, Until::Count, true),
        (Claude, false, Some(true), Until::Complete, false),
        (Claude, false, None, Until::Forever, false),
        (Claude, true, None, Until::Complete, false),
        (Generic, false, None, Until::Complete, false),
    ] {
        let mut spec = crate::r#loop::tests::journal::spec();
        spec.agent.kind = kind;
        spec.promise = spec.promise.filter(|_| has_promise);
        spec.gates = hard.map(|hard| gates([hard]).to_vec()).unwrap_or_default();
        spec.until = until;
        assert_eq!(spec.trusts_exit_code(), trusts, "{kind} {has_promise} {hard:?} {until:?}");
    }
}
