//! `status: blocked` in `state.md`: one more iteration, whose prompt says so, and then a person.

use rstest::rstest;

use crate::agent::Scope;
use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Exit, StopReason};
use crate::r#loop::tests::journal::{
    Journal, blocked, claiming, finished, gates, reporting, spec, stop, task, tokens,
};
use crate::r#loop::{LoopState, Step};
use crate::prompt;
use crate::prompt::state_file::WorkStatus;
use crate::spec::{Limits, Millis, Spec};
use crate::view::{self, Alive, StatusWord, WaitsFor};

const BLOCKED: Step = Step::Finish(End::Blocked { why: BlockReason::StateFile });

fn told(state: &LoopState) -> String {
    prompt::assemble(state, prompt::QuotedLogs::default())
}

#[test]
fn a_blocked_agent_gets_one_more_iteration_and_then_waits_for_a_person() {
    let journal = Journal::running().attempts(blocked());
    let status = view::status(&journal.state, Alive::DRIVEN);
    assert_eq!(status.status, StatusWord::Running);
    let needs = status.needs.expect("a person can help already");
    assert!(needs.contains("state.md") && needs.contains("refrain answer mend TEXT"), "{needs}");
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    let journal = journal.starts();
    let prompt = told(&journal.state);
    assert!(prompt.contains("BLOCKED: .refrain/mend/state.md says `status: blocked`"), "{prompt}");
    let journal = Journal::running().attempts(blocked()).attempts(blocked());
    assert_eq!(journal.next(), BLOCKED);
    let journal = journal.obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(status.status, StatusWord::Blocked);
    assert!(status.reason.contains("status: blocked"), "{}", status.reason);
    let needs = status.needs.expect("a person has to act");
    assert!(needs.contains("refrain answer mend TEXT"), "{needs}");
    let journal = journal.resumes();
    assert_eq!(journal.state.blocked, 0, "what it said is over");
    let journal = journal.starts();
    assert!(!told(&journal.state).contains("BLOCKED:"), "{}", told(&journal.state));
}

#[test]
fn a_blocked_loop_that_finds_a_way_continues() {
    let journal = Journal::running().attempts(blocked()).attempts(finished(Exit::Code(0)));
    assert_eq!((journal.state.blocked, journal.next()), (0, Step::BeginIteration { iteration: 3 }));
    let journal = journal.attempts(blocked());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 }, "it is granted one more again");
}

#[rstest]
#[case::its_promise(AttemptFinished { promised: true, ..blocked() }, ClaimSource::Promise)]
#[case::the_file(claiming(ClaimSource::StateFile), ClaimSource::StateFile)]
fn a_claim_behind_it_is_a_claim(#[case] ended: AttemptFinished, #[case] claim: ClaimSource) {
    let journal = Journal::running().attempts(blocked()).attempts(ended);
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim }));
}

#[rstest]
#[case::by_its_exit_code(Spec { promise: None, ..spec() })]
#[case::by_its_gates(Spec { promise: None, gates: gates([true]), ..spec() })]
#[case::by_what_a_task_changed(Spec { task: Some(task()), gates: gates([true]), ..spec() })]
fn silence_is_no_claim_of_an_agent_that_is_blocked(#[case] spec: Spec) {
    let has_gates = !spec.gates.is_empty();
    let mut journal = Journal::of(spec).taken_over();
    if has_gates {
        journal = journal.takes(0);
        if journal.next() != (Step::BeginIteration { iteration: 1 }) {
            journal = journal.gates_end(&[1]);
        }
    }
    let mut journal = journal.attempts(blocked());
    if has_gates {
        journal = journal.takes(1).gates_end(&[0]);
    }
    assert_eq!(journal.state.attempts[0].claim, None);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_blocked_status_counts_however_the_attempt_ended_unless_refunded() {
    let stopped = Journal::running().attempts(blocked()).spawns().then(stop(StopReason::TimeLimit));
    assert_eq!(stopped.ends(blocked()).next(), BLOCKED);
    let lost = AttemptFinished { exit: Exit::Lost, ..blocked() };
    let journal = Journal::running().attempts(blocked()).spawns().ends(lost);
    assert_eq!(journal.state.blocked, 1);
}

#[test]
fn a_journal_of_before_says_only_that_it_was_done() {
    let now = serde_json::to_value(claiming(ClaimSource::StateFile)).unwrap();
    assert_eq!(now["state"], "done");
    for (said, state) in [(true, Some(WorkStatus::Done)), (false, None)] {
        let mut before = now.clone();
        before.as_object_mut().unwrap().remove("state");
        before["state_done"] = said.into();
        assert_eq!(serde_json::from_value::<AttemptFinished>(before).unwrap().state, state);
    }
}

#[rstest]
#[case::iterations(Limits { max_iterations: Some(1), ..spec().limits }, "--max-iterations 3")]
#[case::time(Limits { max_duration: Some(Millis(3_000)), ..spec().limits }, "--max-duration 60s")]
#[case::tokens(Limits { max_tokens: Some(10), ..spec().limits }, "--max-tokens 200")]
fn a_question_in_the_last_iteration_is_shown_and_its_answer_waits_for_larger_limits(
    #[case] limits: Limits,
    #[case] flag: &str,
) {
    let used = reporting(|report| report.tokens = Some((Scope::Attempt, tokens(100, 0))));
    let asks = AttemptFinished { needs: Some("A or B?".into()), report: used.report, ..blocked() };
    let journal = Journal::of(Spec { limits, keep_failed: true, ..spec() }).taken_over();
    let journal = journal.spawns().after_ms(2_000).ends(asks).after_ms(1_000);
    assert_eq!(journal.next(), BLOCKED);
    let journal = journal.obey();
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!((status.question.as_deref(), status.waits_for), (Some("A or B?"), Some(WaitsFor::Answer)));
    let resume = format!("refrain resume mend {flag}");
    let needs = format!("answer it with refrain answer mend TEXT, then {resume}");
    assert_eq!(status.needs.as_deref(), Some(&*needs));
    let journal = journal.asks(Ask::Steer("B".into()));
    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(status.needs, Some(format!("give it the text that is queued: {resume}")));
}
