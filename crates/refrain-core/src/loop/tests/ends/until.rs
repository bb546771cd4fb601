//! Loops that a claim does not end, or not yet.

use proptest::prelude::*;
use rstest::rstest;

use crate::event::{
    Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, Urgency, Wait, WaitKind,
};
use crate::gate::{GateSpec, GateWhen};
use crate::r#loop::tests::journal::{Journal, claiming, finished, gates, spec};
use crate::r#loop::{ChildId, Grant, Step};
use crate::machine::Refusal;
use crate::spec::{Limits, Millis, Spec, Until};
use crate::view::{self, Alive, StatusWord};

fn of(until: Until, cap: Option<u32>) -> Journal {
    let limits = Limits { max_iterations: cap, ..spec().limits };
    let mut journal = Journal::in_session();
    (journal.state.spec.until, journal.state.limits) = (until, limits);
    journal
}

fn claims() -> AttemptFinished {
    AttemptFinished { exit: Exit::Unseen, ..claiming(ClaimSource::Promise) }
}

fn ends_well() -> AttemptFinished {
    finished(Exit::Code(0))
}

fn ends() -> AttemptFinished {
    finished(Exit::Unseen)
}

fn span(journal: &Journal) -> Option<u64> {
    match journal.next() {
        Step::Wait(Wait { kind: WaitKind::Pace, until }) => {
            let wait = until.duration_since(journal.state.updated_at);
            Some(u64::try_from(wait.as_secs()).unwrap())
        }
        Step::BeginIteration { .. } => None,
        step => panic!("{step:?}"),
    }
}

#[rstest]
#[case::at_once(Until::Complete, 1, Some(ClaimSource::Promise))]
#[case::not_before_the_last(Until::Count, 1, None)]
#[case::with_the_last(Until::Count, 3, Some(ClaimSource::Promise))]
fn a_claim_ends_it(#[case] until: Until, #[case] at: u32, #[case] ended: Option<ClaimSource>) {
    let mut journal = of(until, Some(3));
    for _ in 1..at {
        journal = journal.turns(claims());
    }
    let journal = journal.turns(claims());
    match ended {
        Some(claim) => assert_eq!(journal.next(), Step::Finish(End::Completed { claim })),
        None => assert_eq!(journal.next(), Step::BeginIteration { iteration: at + 1 }),
    }
}

const COUNTED: Step = Step::Finish(End::Completed { claim: ClaimSource::Count });

#[test]
fn a_number_of_iterations_that_is_done_completes_it() {
    let journal = of(Until::Count, Some(3)).turns(claims()).turns(ends()).turns(ends());
    assert_eq!(journal.next(), COUNTED);
    let status = view::status(&journal.obey().state, Alive::NO_RUNNER);
    assert_eq!((status.status, status.verified, status.claim), (StatusWord::Completed, None, None));
    assert_eq!(
        status.reason,
        "the 3 iterations that were asked for are done; unverified, as no gate checks it"
    );
}

/// A gated loop of exactly one iteration, after its baseline.
fn once(gates: Vec<GateSpec>, change: impl FnOnce(&mut Spec)) -> Journal {
    let asked = gates.iter().map(|_| 1).collect::<Vec<_>>();
    let journal = Journal::gated_by(gates, |spec| {
        (spec.until, spec.limits.max_iterations) = (Until::Count, Some(1));
        change(spec);
    });
    journal.takes(0).gates_end(&asked)
}

fn at_claims(mut gates: Vec<GateSpec>) -> Vec<GateSpec> {
    gates.iter_mut().for_each(|gate| gate.when = GateWhen::Claim);
    gates
}

fn approved(spec: &mut Spec) {
    spec.approval = true;
}

/// The work of the last iteration is proven as a claim would be; a failed gate is not asked again.
#[rstest]
#[case::its_gate_passed(once(gates([true]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[0]).takes(1), COUNTED, true)]
#[case::its_gate_failed(once(gates([true]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[1]), COUNTED, false)]
#[case::its_gate_failed_and_it_claimed(
    once(gates([true]), |_| ()).attempts(claiming(ClaimSource::Promise)).takes(1).gates_end(&[1]),
    COUNTED,
    false
)]
#[case::a_gate_for_claims_is_asked(
    once(at_claims(gates([true])), |_| ()).attempts(ends_well()),
    Step::TakeCandidate,
    false
)]
#[case::a_gate_for_claims_passed(
    once(at_claims(gates([true])), |_| ()).attempts(ends_well()).takes(1).gates_end(&[0]).takes(1),
    COUNTED,
    true
)]
#[case::a_gate_for_claims_failed(
    once(at_claims(gates([true])), |_| ()).attempts(ends_well()).takes(1).gates_end(&[1]),
    COUNTED,
    false
)]
#[case::its_gate_changes_the_tree(
    once(gates([true]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[0]).takes(2),
    Step::Start(ChildId::Gate { gate: 0, run: 2 }),
    false
)]
#[case::it_failed_by_itself(
    once(gates([true]), |_| ()).attempts(finished(Exit::Code(1))).takes(1).gates_end(&[0]).takes(1),
    COUNTED,
    true
)]
#[case::a_soft_gate_decides_nothing(
    once(gates([false]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[1]),
    COUNTED,
    false
)]
#[case::a_person_is_asked(
    once(gates([true]), approved).attempts(ends_well()).takes(1).gates_end(&[0]).takes(1),
    Step::Finish(End::Blocked { why: BlockReason::Approval }),
    false
)]
#[case::a_person_said_yes(
    once(gates([true]), approved).attempts(ends_well()).takes(1).gates_end(&[0]).takes(1).obey().approves().takes(1),
    COUNTED,
    true
)]
#[case::it_could_not_be_approved(
    once(gates([true]), approved).attempts(ends_well()).takes(1).gates_end(&[1]),
    Step::Finish(End::IterationCap),
    false
)]
#[case::it_was_about_to_pause(
    once(gates([true]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[1]).asks(Ask::Pause(Urgency::AfterIteration)),
    COUNTED,
    false
)]
fn the_count_ends_with_a_proof(#[case] journal: Journal, #[case] next: Step, #[case] proven: bool) {
    assert_eq!(journal.next(), next);
    assert_eq!(journal.state.is_proven(), proven);
    if next == COUNTED {
        let journal = journal.obey();
        let status = view::status(&journal.state, Alive::NO_RUNNER);
        assert_eq!(status.verified.unwrap_or_default(), proven, "{}", status.reason);
        assert_eq!(status.reason.contains("unverified"), !proven, "{}", status.reason);
        assert_eq!(journal.state.resume(&Grant::default()), Err(Refusal::Final("completed")));
    }
}

/// A journal of 0.1.0 that stopped there as used up continues if it is granted more.
#[test]
fn a_loop_that_stopped_at_its_cap_before_can_be_granted_more() {
    let journal = once(gates([true]), |_| ()).attempts(ends_well()).takes(1).gates_end(&[0]);
    let journal = journal.then(Event::LoopEnded(End::IterationCap));
    assert!(matches!(journal.state.resume(&Grant::default()), Err(Refusal::NothingGranted { .. })));
    let grant = Grant { max_iterations: Some(2), ..Grant::default() };
    let resumed = journal.state.resume(&grant).unwrap().unwrap();
    let journal = journal.then(resumed).taken_over();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn an_endless_loop_waits_longer_after_each_iteration_without_work() {
    let mut journal = of(Until::Forever, None);
    for expected in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
        journal = journal.turns(claims());
        assert_eq!(span(&journal), Some(expected));
        journal = journal.after_ms(1_000 * i64::try_from(expected).unwrap());
    }
    let journal = journal.turns(ends());
    assert_eq!(span(&journal), None, "there was something to do");
    assert_eq!(span(&journal.turns(claims())), Some(5), "it begins anew");
}

#[test]
fn the_claim_of_an_earlier_last_iteration_ends_nothing() {
    let journal = of(Until::Count, Some(1)).turns(claims());
    let limits = Limits { max_iterations: Some(2), ..journal.state.limits.clone() };
    let journal = journal.then(Event::LoopResumed { limits, approved: None, no_sandbox: false }).taken_over();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_longer_rest_that_a_person_asked_for_is_kept() {
    let mut journal = of(Until::Forever, None);
    journal.state.limits.pause = Some(Millis(60_000));
    assert_eq!(span(&journal.turns(claims())), Some(60));
}

#[test]
fn a_good_end_without_a_promise_does_not_say_that_there_is_nothing_to_do() {
    let mut journal = of(Until::Forever, None);
    journal.state.spec.promise = None;
    assert_eq!(span(&journal.turns(ends())), None);
}

proptest! {
    #[test]
    fn no_claim_ends_it_before_its_time(claimed in proptest::collection::vec(any::<bool>(), 1..12), forever: bool) {
        let cap = u32::try_from(claimed.len()).unwrap();
        let mut journal = match forever {
            true => of(Until::Forever, None),
            false => of(Until::Count, Some(cap)),
        };
        let mut nothing = 0;
        for (at, claims_now) in (1..).zip(&claimed) {
            journal = journal.turns(if *claims_now { claims() } else { ends() });
            nothing = if *claims_now && forever { nothing + 1 } else { 0 };
            prop_assert_eq!(journal.state.unneeded, nothing);
            if forever || at < cap {
                prop_assert!(!matches!(journal.next(), Step::Finish(_)), "{:?}", journal.next());
                journal = journal.after_ms(600_000);
            }
        }
        let claim = ClaimSource::Promise;
        let last = claimed.last().copied().unwrap_or_default();
        match (forever, last) {
            (true, _) => {}
            (false, true) => prop_assert_eq!(journal.next(), Step::Finish(End::Completed { claim })),
            (false, false) => prop_assert_eq!(journal.next(), COUNTED),
        }
        prop_assert!(journal.records.iter().all(|record| !matches!(record.event, Event::LoopEnded(_))));
    }
}
