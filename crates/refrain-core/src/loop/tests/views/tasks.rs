//! Loops of a plan's task: what else counts as a claim there, and how an agent gives the task up.

use rstest::rstest;

use crate::agent::FaultKind;
use crate::event::{AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, StopReason};
use crate::gate::GateWhen;
use crate::git::Workflow;
use crate::r#loop::tests::journal::{
    Journal, claiming, failing, finished, gates, reporting, spec, stop, task,
};
use crate::r#loop::{Outcome, Step};
use crate::plan::task_loop;
use crate::promise::Promise;
use crate::prompt;
use crate::spec::Spec;
use crate::view::{self, Alive, Kind, StatusWord};

const RESULT: End = End::Completed { claim: ClaimSource::Result };
const GAVE_UP: End = End::Blocked { why: BlockReason::GaveUp };

/// A task's loop with a gate that decides; it begins at tree 0, which landed, so that the gate is not asked about it.
fn gated(change: impl FnOnce(&mut Spec)) -> Journal {
    let about = |spec: &mut Spec| {
        spec.task = Some(task());
        change(spec);
    };
    Journal::gated_by(gates([true]), about).takes(0)
}

fn giving_up() -> AttemptFinished {
    AttemptFinished { gave_up: Some("there is no key".into()), ..finished(Exit::Code(0)) }
}

#[test]
fn changes_of_a_silent_agent_are_judged_by_the_gates() {
    let journal = gated(|_| ());
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[1]);
    let first = &journal.state.attempts[0];
    assert_eq!((first.outcome, first.claim), (Outcome::Claimed, Some(ClaimSource::Result)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    let journal = journal.attempts(finished(Exit::Code(0))).takes(2).gates_end(&[0]).takes(2);
    assert_eq!(journal.next(), Step::Finish(RESULT));
    assert!(journal.obey().state.is_proven());
}

#[test]
fn an_attempt_that_changed_nothing_claims_nothing() {
    let journal = gated(|_| ()).attempts(finished(Exit::Code(0))).takes(0).gates_end(&[0]);
    assert_eq!(journal.state.attempts[0].claim, None, "the gates pass on what it began at");
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    journal.refuses(Event::LoopEnded(RESULT));
}

#[test]
fn gates_that_only_hear_claims_hear_this_one() {
    let journal = gated(|spec| spec.gates[0].when = GateWhen::Claim);
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]).takes(1);
    assert_eq!(journal.next(), Step::Finish(RESULT));
}

#[rstest]
#[case::it_failed(finished(Exit::Code(1)))]
#[case::it_met_a_fault(failing(FaultKind::Context))]
#[case::it_was_cut_off(reporting(|report| report.is_final = false))]
fn an_agent_that_failed_claims_nothing_by_its_changes(#[case] ended: AttemptFinished) {
    let journal = gated(|_| ()).attempts(ended).takes(1);
    assert_eq!(journal.state.attempts[0].claim, None);
}

#[rstest]
#[case::no_task(|spec: &mut Spec| spec.task = None)]
#[case::no_gate_that_decides(|spec: &mut Spec| spec.gates[0].hard = false)]
fn elsewhere_silence_says_nothing(#[case] change: fn(&mut Spec)) {
    let mut journal = gated(change);
    if journal.state.spec.task.is_none() {
        journal = journal.gates_end(&[1]);
    }
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[0]);
    assert_eq!(journal.state.attempts[0].claim, None);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn giving_up_ends_the_loop_and_keeps_its_work() {
    let journal = gated(|spec| spec.git.workflow = Workflow::Commit).attempts(giving_up());
    assert_eq!(journal.next(), Step::SaveWork, "no gate is asked");
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Finish(GAVE_UP));
    let journal = journal.obey();
    assert_eq!(journal.state.given_up.as_deref(), Some("there is no key"));
    assert_eq!(journal.next(), Step::Rest);
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!((status.kind, status.status), (Kind::Task, StatusWord::Blocked));
    assert_eq!(status.reason, "the agent gave the task up: there is no key; its work is on branch wip/mend");
    let journal = journal.resumes();
    assert_eq!(journal.state.given_up, None);
    assert_eq!(journal.starts().state.iteration, 2);
}

#[test]
fn without_gates_its_work_is_committed_first() {
    let mut spec = Spec { task: Some(task()), ..spec() };
    spec.git.workflow = Workflow::Commit;
    let journal = Journal::of(spec).taken_over().attempts(giving_up());
    assert_eq!(journal.next(), Step::Commit { iteration: 1 });
    assert_eq!(journal.obey().next(), Step::SaveWork);
}

#[test]
fn a_claim_in_the_same_breath_wins() {
    let claims = AttemptFinished { gave_up: giving_up().gave_up, ..claiming(ClaimSource::StateFile) };
    let journal = gated(|_| ()).attempts(claims);
    assert_eq!((journal.state.given_up.as_deref(), journal.next()), (None, Step::TakeCandidate));
}

#[test]
fn a_stopped_attempt_does_not_give_up() {
    let journal = gated(|_| ()).spawns();
    let journal = journal.then(stop(StopReason::TimeLimit)).ends(giving_up());
    assert_eq!(journal.state.given_up, None);
}

#[test]
fn a_tasks_loop_claims_commits_and_is_proven_by_its_verification() {
    let common = Spec { gates: gates([false]), ..spec() };
    let verification = ["make check", "cargo test", "make test"].map(str::to_owned);
    let spec = task_loop(common.clone(), task(), "Do it.".into(), &verification);
    let named: Vec<_> = spec.gates.iter().map(|gate| (gate.name.as_str(), gate.hard)).collect();
    assert_eq!(named, [("make", true), ("cargo", true), ("make-2", true), ("gate-0", false)]);
    assert_eq!(spec.promise.as_ref().map(Promise::tag).as_deref(), Some("<promise>TASK_COMPLETE</promise>"));
    assert_eq!((spec.git.workflow, spec.prompt.as_str()), (Workflow::Commit, "Do it."));
    assert!(spec.hears_results() && spec.id.as_str().starts_with("plan-2-"), "{}", spec.id);
    assert_eq!(spec.limits, common.limits);
    let first = prompt::first(&spec);
    assert!(
        first.starts_with("Do it.\n\n## How this loop works\n")
            && first.contains("<promise>TASK_COMPLETE</promise>")
    );
}

#[test]
fn the_first_prompt_is_known_before_the_start_if_no_gate_fails() {
    let common = Spec { gates: gates([true]), ..spec() };
    let spec = task_loop(common, task(), "Do it.".into(), &[]);
    let first = prompt::first(&spec);
    let journal = Journal::of(spec).taken_over().obey().takes(0).starts();
    assert_eq!(prompt::assemble(&journal.state, Default::default()), first);
}

#[rstest]
#[case::cancelled(End::Cancelled, true)]
#[case::used_up(End::IterationCap, true)]
#[case::stuck(End::Stuck, true)]
#[case::paused(End::Paused, false)]
#[case::without_a_login(End::Blocked { why: BlockReason::Login }, false)]
#[case::out_of_money(End::BudgetExceeded { by: None }, false)]
fn a_plan_retries_the_task_of_an_ended_loop_in_another(#[case] end: End, #[case] is_over: bool) {
    let mut journal = Journal::ended(end);
    assert_eq!(journal.state.over_for_plan(), None, "it is no task of a plan");
    journal.state.spec.task = Some(task());
    assert_eq!(journal.state.over_for_plan(), Some(&task()).filter(|_| is_over));
}

#[test]
fn a_task_at_work_is_not_over_for_its_plan() {
    let mut journal = Journal::running();
    journal.state.spec.task = Some(task());
    assert_eq!(journal.state.over_for_plan(), None);
}
