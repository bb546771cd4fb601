//! Gates that cannot run: one found before the first iteration blocks a loop, and nothing is spent.

use rstest::rstest;

use crate::event::{BlockReason, ClaimSource, End, Exit, GateFinished};
use crate::gate::GateWhen;
use crate::r#loop::tests::journal::{Journal, claiming, finished, gates};
use crate::r#loop::{ChildId, Grant, Step};
use crate::spec::{Millis, Spec};
use crate::view::{self, Alive, StatusWord};

const BLOCKED: Step = Step::Finish(End::Blocked { why: BlockReason::GateMissing });
const FIRST: Step = Step::BeginIteration { iteration: 1 };

/// A loop whose gates, of which these decide, are still to be asked before its first iteration.
fn starting<const N: usize>(hard: [bool; N], change: impl FnOnce(&mut Spec)) -> Journal {
    let journal = Journal::gated_by(gates(hard), |spec| {
        spec.gates_must_run = true;
        change(spec);
    });
    journal.takes(0)
}

#[rstest]
#[case::not_found([true, true], &[1, 127], BLOCKED)]
#[case::not_executable([true, true], &[126, 0], BLOCKED)]
#[case::one_that_informs([true, false], &[0, 127], BLOCKED)]
#[case::failing([true, true], &[1, 2], FIRST)]
#[case::passing([true, true], &[0, 0], FIRST)]
fn a_gate_that_cannot_run_blocks_the_loop(
    #[case] hard: [bool; 2],
    #[case] codes: &[i32],
    #[case] next: Step,
) {
    assert_eq!(starting(hard, |_| ()).gates_end(codes).next(), next);
}

#[test]
fn a_missing_gate_does_not_block_when_missing_gates_are_allowed() {
    let journal = starting([true], |spec| spec.gates_must_run = false).gates_end(&[127]);
    assert_eq!(journal.next(), FIRST);
}

#[test]
fn a_gate_that_is_tried_again_counts_by_its_last_run() {
    let journal = starting([true], |spec| spec.gates[0].retries = 1).gates_end(&[127]);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 2 })));
    assert_eq!(journal.clone().gates_end(&[1]).next(), FIRST);
    assert_eq!(journal.gates_end(&[127]).next(), BLOCKED);
}

#[test]
fn a_gate_that_is_lost_later_is_a_failure_as_any() {
    let journal = starting([true], |_| ()).gates_end(&[1]);
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[127]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn resuming_runs_the_missing_gates_again() {
    let journal = starting([true], |_| ()).gates_end(&[127]).obey();
    let event = journal.state.resume(&Grant::default()).unwrap().unwrap();
    let journal = journal.then(event).taken_over().obey().takes(0);
    assert!(matches!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 })), "{:?}", journal.next());
    assert_eq!(journal.clone().gates_end(&[127]).next(), BLOCKED);
    assert_eq!(journal.gates_end(&[1]).next(), FIRST);
}

#[rstest]
#[case::not_found(
    127,
    "/bin/sh: 1: crago: not found",
    "gate gate-0 cannot run: crago was not found (exit code 127)"
)]
#[case::not_executable(
    126,
    "sh: 1: ./test.sh: Permission denied",
    "./test.sh may not be executed (exit code 126)"
)]
#[case::in_words_of_its_own(127, "go away", "its command was not found (exit code 127): go away")]
#[case::without_a_word(126, "", "gate gate-0 cannot run: its command may not be executed (exit code 126)")]
fn the_status_explains_why_a_gate_cannot_run(#[case] code: i32, #[case] said: &str, #[case] reason: &str) {
    let journal = starting([true], |_| ()).gates();
    let journal =
        journal.answers(|finished| (finished.exit, finished.preview) = (Exit::Code(code), said.into()));
    let status = view::status(&journal.obey().state, Alive::NO_RUNNER);
    assert_eq!((status.status, status.charged), (StatusWord::Blocked, 0));
    assert!(status.reason.contains(reason), "{}", status.reason);
    let needs = status.needs.unwrap();
    assert!(needs.contains("then refrain resume mend") && needs.contains("--allow-missing-gates"), "{needs}");
}

fn by_default<const N: usize>(hard: [bool; N], when: GateWhen) -> Journal {
    starting(hard, |spec| {
        spec.gates.iter_mut().for_each(|gate| (gate.by_default, gate.when) = (true, when));
    })
}

#[test]
fn a_default_gate_that_cannot_run_is_dropped_and_the_others_stay() {
    let missing = |finished: &mut GateFinished| {
        (finished.exit, finished.preview) = (Exit::Code(1), "python3: No module named pytest".to_owned());
    };
    let journal =
        by_default([true, true, false], GateWhen::Auto).gates_end(&[127]).gates().answers(|finished| {
            finished.exit = Exit::Code(1);
        });
    let journal = journal.gates().answers(missing);
    assert_eq!(journal.next(), FIRST);
    let state = &journal.state;
    let dropped: Vec<_> = state.dropped.iter().map(|gate| gate.name.to_string()).collect();
    assert_eq!(dropped, ["gate-0", "gate-2"]);
    assert_eq!(state.spec.gates.len(), 1);
    let baseline = state.baseline.as_ref().unwrap();
    assert_eq!((baseline.results.len(), baseline.of_gate(0).unwrap().failure.is_some()), (1, true));
}

#[test]
fn without_a_default_gate_that_runs_a_claim_suffices() {
    let journal = by_default([true], GateWhen::Auto).gates_end(&[126]);
    assert_eq!((journal.next(), journal.state.spec.has_hard_gates()), (FIRST, false));
    let journal = journal.attempts(claiming(ClaimSource::Promise));
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
    assert!(!journal.state.is_proven());
}

#[test]
fn a_default_gate_that_the_agent_may_create_is_kept() {
    let journal = starting([true], |spec| {
        (spec.gates_must_run, spec.gates[0].by_default) = (false, true);
    });
    let journal = journal.gates_end(&[127]);
    assert_eq!((journal.next(), journal.state.spec.gates.len()), (FIRST, 1));
}

#[rstest]
#[case::fast(GateWhen::Auto, 150_000, GateWhen::Iteration)]
#[case::slow(GateWhen::Auto, 150_001, GateWhen::Claim)]
#[case::as_the_user_says(GateWhen::Iteration, 150_001, GateWhen::Iteration)]
fn slow_default_gates_wait_for_a_claim(#[case] when: GateWhen, #[case] each: u64, #[case] then: GateWhen) {
    let takes = |journal: Journal| journal.gates().answers(|finished| finished.duration = Millis(each));
    let journal = takes(takes(by_default([true, false], when)));
    assert!(journal.state.spec.gates.iter().all(|gate| gate.when == then));
    // A default gate is asked after an iteration without a claim only if it is fast.
    let journal = journal.attempts(finished(Exit::Code(0)));
    let asks = journal.next() == Step::TakeCandidate;
    let asked = journal.state.proving().map_or(0, |proving| proving.asked.len());
    assert_eq!((asks, asked), if then == GateWhen::Iteration { (true, 2) } else { (false, 0) });
}
