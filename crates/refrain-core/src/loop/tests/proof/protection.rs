//! What a touched protection decides, and to whom a change counts while a loop is stopped.

use rstest::rstest;

use crate::event::{ClaimSource, End, Event, Exit};
use crate::git::{Base, Oid, Workflow};
use crate::r#loop::tests::journal::{Journal, candidate_taken, claiming, finished, gates, oid};
use crate::r#loop::{Grant, Step};
use crate::protect::{OtherProgram, ProtectionBreach};
use crate::spec::ProtectSpec;

const PROMISE: ClaimSource = ClaimSource::Promise;

fn touching(tree: u32) -> Event {
    let program = OtherProgram { name: "make".into(), before: Some("/usr/bin/make".into()), now: None };
    Event::CandidateTaken {
        tree: Some(oid(tree)),
        partial: false,
        touched: vec![ProtectionBreach::Program(program)],
        changed: Vec::new(),
    }
}

fn based(protected: u32) -> Event {
    Event::BaseTaken(Box::new(Base {
        head: Some(oid(0)),
        protected: Some(oid(protected)),
        ..Base::default()
    }))
}

/// A loop whose base is to be taken, with N required gates.
fn protecting<const N: usize>(workflow: Workflow) -> Journal {
    let mut spec = crate::r#loop::tests::journal::spec();
    spec.git.workflow = workflow;
    spec.git.candidates = true;
    spec.gates = gates([true; N]);
    spec.protect = ProtectSpec { frozen: vec!["ci".into()], ..ProtectSpec::default() };
    Journal::of(spec).taken_over().then(based(7))
}

fn protected(journal: &Journal) -> Option<&Oid> {
    journal.state.git.base.as_ref()?.protected.as_ref()
}

#[test]
fn a_claim_with_touched_paths_is_refused_although_all_gates_pass() {
    let journal = protecting::<1>(Workflow::None).takes(0).gates_end(&[1]).attempts(claiming(PROMISE));
    let journal = journal.then(touching(1)).gates_end(&[0]);
    assert_eq!(journal.next(), Step::TakeCandidate, "once more after gates that pass");
    let kept = journal.clone().then(touching(1));
    assert_eq!(kept.next(), Step::BeginIteration { iteration: 2 });
    let put_back_by_the_gates = journal.then(candidate_taken(Some(1)));
    assert_eq!(put_back_by_the_gates.next(), Step::BeginIteration { iteration: 2 }, "they ran with it");
}

#[test]
fn a_claim_without_gates_is_looked_at_too() {
    let journal = protecting::<0>(Workflow::None).attempts(claiming(PROMISE));
    assert_eq!(journal.next(), Step::TakeCandidate);
    assert_eq!(journal.clone().then(touching(1)).next(), Step::BeginIteration { iteration: 2 });
    let journal = journal.then(candidate_taken(Some(1)));
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: PROMISE }));
}

#[rstest]
#[case::looked_at(candidate_taken(Some(1)), 8)]
#[case::touched(touching(1), 7)]
fn a_change_during_a_pause_is_the_persons_unless_the_agent_touched_it(
    #[case] taken: Event,
    #[case] expected: u32,
    #[values(Workflow::None, Workflow::Commit)] workflow: Workflow,
) {
    let journal = protecting::<0>(workflow).attempts(finished(Exit::Code(0))).then(taken);
    let journal = if journal.next() == (Step::Commit { iteration: 1 }) { journal.obey() } else { journal };
    let journal = journal.then(Event::LoopEnded(End::Paused));
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    let journal = journal.then(resumed).taken_over();
    let journal = if journal.next() == Step::TakeBase { journal.then(based(8)) } else { journal };
    assert_eq!(protected(&journal), Some(&oid(expected)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn unchecked_changes_of_an_attempt_stay_the_agents() {
    let journal = protecting::<0>(Workflow::None).crashes();
    let journal = journal.then(Event::LoopEnded(End::Paused));
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    assert_ne!(journal.then(resumed).taken_over().next(), Step::TakeBase);
}
