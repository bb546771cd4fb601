//! Agents that judge, reviewers and critics: their cost is the loop's, their failures are not its fault.

use rstest::rstest;

use crate::agent::{AgentReport, Fault, FaultKind, Scope, Tokens, Usage, Usd};
use crate::event::{
    AttemptFinished, BlockReason, ClaimSource, CritiqueFinished, End, Event, Exit, ReviewResult, StopReason,
};
use crate::gate::{Check, ReviewSpec, Verdict};
use crate::r#loop::tests::journal::{Journal, claiming, criticised, gates, reporting, runner, spec, tokens};
use crate::r#loop::{ChildId, Step};
use crate::spec::{AgentKind, AgentSpec, CritiqueSpec, Millis};

fn agent(kind: AgentKind) -> AgentSpec {
    AgentSpec { kind, ..spec().agent }
}

/// A loop of agents of this kind, with tests and a reviewer of another, past its baseline.
fn reviewed(worker: AgentKind, reviewer: AgentKind) -> Journal {
    let mut all = gates([true, true]);
    let review = ReviewSpec { agent: agent(reviewer), spec: "Mend it.".into() };
    all[1].check = Check::Review(Box::new(review));
    let journal = Journal::gated_by(all, |spec| {
        spec.agent.kind = worker;
        spec.limits.max_cost = Some(Usd(1_000));
        spec.limits.max_tokens = Some(1_000);
    });
    journal.takes(1).gates_end(&[0])
}

/// A loop whose every iteration a critic looks at.
fn criticising() -> Journal {
    let mut spec = spec();
    spec.agent.kind = AgentKind::Claude;
    // Room for what is assumed of critics that were cut off.
    spec.limits.max_cost = Some(Usd(100_000_000_000));
    let critic = spec.agent.clone();
    spec.critique = Some(CritiqueSpec { every: 1, critic, timeout: Millis(1_000) });
    Journal::of(spec).taken_over()
}

fn costing(cost: Option<u64>, used: Tokens) -> AgentReport {
    let report = reporting(|report| {
        report.tokens = Some((Scope::Attempt, used));
        report.cost = cost.map(|cost| (Scope::Attempt, Usd(cost)));
    });
    *report.report.expect("it was just made")
}

fn worked(cost: u64, used: Tokens) -> AttemptFinished {
    let report = Some(Box::new(costing(Some(cost), used)));
    AttemptFinished { report, ..claiming(ClaimSource::Promise) }
}

/// The report of a killed agent: everything but the end of it.
fn cut_off() -> AgentReport {
    AgentReport { is_final: false, ..costing(None, tokens(3, 3)) }
}

#[test]
fn a_reviewer_may_use_the_rest_of_the_token_cap() {
    // Gemini reports its usage only at its end: another iteration of 600 tokens would be too much.
    let journal = reviewed(AgentKind::Gemini, AgentKind::Opencode);
    let mut journal = journal.attempts(worked(1, tokens(300, 300))).takes(2).gates_end(&[0]).gates();
    journal.live.used = Usage { tokens: tokens(5, 5), ..Usage::default() };
    assert!(matches!(journal.next(), Step::Await { .. }), "{:?}", journal.next());
}

#[rstest]
#[case::killed(Some(cut_off()))]
#[case::never_heard_of(None)]
fn a_cut_off_critic_does_not_delay_the_loop(#[case] report: Option<AgentReport>) {
    let journal = criticising().attempts(AttemptFinished { promised: false, ..worked(10, tokens(1, 1)) });
    let report = report.map(Box::new);
    let lost = CritiqueFinished { report, error: Some("it took too long".into()), ..criticised(Exit::Lost) };
    let journal = journal.obey().then(Event::CritiqueFinished(Box::new(lost)));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(journal.state.costs, [Some(Usd(10)), None]);
    assert!(journal.state.spent.at_least);
    assert_eq!(journal.state.assumed, Usd(5_000_000_000), "as much as is reserved for one");
}

#[test]
fn a_repeated_review_does_not_wait_for_the_missing_cost_of_the_first() {
    let journal = reviewed(AgentKind::Opencode, AgentKind::Opencode);
    let journal = journal.attempts(worked(10, tokens(1, 1))).takes(2).gates_end(&[0]);
    let review = |verdict, report| Some(Box::new(ReviewResult { verdict, report: Some(Box::new(report)) }));
    let missing = Verdict::Missing { why: "it vanished".into() };
    let journal = journal.gates().answers(|finished| {
        (finished.exit, finished.review) = (Exit::Lost, review(missing, cut_off()));
    });
    let refused = Verdict::Fail { findings: "It counts nothing.".into() };
    let said = costing(Some(20), tokens(1, 1));
    let journal = journal.gates().answers(|finished| finished.review = review(refused, said));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(journal.state.spent.cost, Some(Usd(30)));
}

#[test]
fn critics_that_are_cut_off_again_and_again_make_a_cap_on_money_impossible() {
    let iterates = |journal: Journal, report| {
        let attempt = AttemptFinished { promised: false, ..worked(10, tokens(1, 1)) };
        let report = Some(Box::new(report));
        let judged = CritiqueFinished { report, ..criticised(Exit::Code(0)) };
        journal.attempts(attempt).obey().then(Event::CritiqueFinished(Box::new(judged)))
    };
    let failed = || {
        let fault = Fault { kind: FaultKind::Overloaded, message: "busy".into(), until: None };
        AgentReport { fault: Some(fault), ..costing(None, Tokens::default()) }
    };
    let journal = iterates(iterates(iterates(criticising(), failed()), failed()), cut_off());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 }, "a provider that fails costs nothing");
    let blocked = iterates(journal.clone(), cut_off());
    assert_eq!(blocked.next(), Step::Finish(End::Blocked { why: BlockReason::CostUnknown }));
    let told = iterates(iterates(journal, costing(Some(1), tokens(1, 1))), cut_off());
    assert_eq!(told.next(), Step::BeginIteration { iteration: 6 });
}

#[test]
fn a_reviewer_that_keeps_its_cost_to_itself_makes_a_cap_on_money_impossible() {
    let journal = reviewed(AgentKind::Opencode, AgentKind::Opencode);
    let journal = journal.attempts(worked(10, tokens(1, 1))).takes(2).gates_end(&[0]);
    let verdict = Verdict::Fail { findings: "It counts nothing.".into() };
    let report = Some(Box::new(costing(None, tokens(1, 1))));
    let journal = journal
        .gates()
        .answers(|finished| finished.review = Some(Box::new(ReviewResult { verdict, report })));
    assert!(matches!(journal.next(), Step::Finish(End::Blocked { .. })), "{:?}", journal.next());
}

/// The runner dies during an agent that judges and has reported this.
fn dies(journal: &Journal, judged: Option<AgentReport>) -> Journal {
    let judged = judged.map(Box::new);
    let event =
        Event::RunnerStarted { runner: runner(2), interrupted: None, adopted: None, judged, fence: None };
    journal.clone().then(event)
}

#[test]
fn a_judge_whose_runner_died_is_paid_but_not_believed() {
    let journal = reviewed(AgentKind::Opencode, AgentKind::Opencode);
    let reviewing = journal.attempts(worked(10, tokens(1, 1))).takes(2).gates_end(&[0]).gates();
    let journal = dies(&reviewing, Some(costing(Some(20), tokens(5, 5))));
    assert_eq!(
        (&journal.state.costs[..], journal.state.spent.cost),
        (&[Some(Usd(10)), Some(Usd(20))][..], Some(Usd(30)))
    );
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 1, run: 2 }));
    let journal = dies(&reviewing, None);
    assert_eq!(journal.state.costs, [Some(Usd(10)), None], "it has its place among the agents that ran");
    assert!(journal.state.spent.at_least);

    let attempt = AttemptFinished { promised: false, ..worked(10, tokens(1, 1)) };
    let journal = dies(&criticising().attempts(attempt).obey(), Some(costing(Some(7), tokens(1, 1))));
    assert_eq!((journal.state.spent.cost, journal.state.feedback.said.as_deref()), (Some(Usd(17)), None));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    let judged = Some(Box::new(cut_off()));
    let idle =
        Event::RunnerStarted { runner: runner(3), interrupted: None, adopted: None, judged, fence: None };
    journal.refuses(idle);
}

/// Release 0.1.0 took a reviewer that its provider failed, and that was stopped for its time, for one that failed the
/// work.
#[rstest]
#[case::now(2, true)]
#[case::in_0_1_0(1, false)]
fn a_review_timeout_keeps_the_meaning_of_its_release(#[case] format: u32, #[case] waits: bool) {
    let journal = reviewed(AgentKind::Opencode, AgentKind::Opencode);
    let mut journal = journal.attempts(worked(10, tokens(1, 1))).takes(2).gates_end(&[0]).gates();
    journal.state.format = format;
    let fault = Fault { kind: FaultKind::Overloaded, message: "busy".into(), until: None };
    let report = AgentReport { fault: Some(fault), ..cut_off() };
    let review = ReviewResult {
        verdict: Verdict::Missing { why: "it took too long".into() },
        report: Some(Box::new(report)),
    };
    let journal = journal.then(Event::GateStopRequested { because: StopReason::TimeLimit });
    let journal = journal.answers(|finished| {
        (finished.exit, finished.review) = (Exit::Signal(2), Some(Box::new(review)));
    });
    assert_eq!(matches!(journal.next(), Step::Wait(_)), waits, "{:?}", journal.next());
    assert_eq!(journal.next() == Step::BeginIteration { iteration: 2 }, !waits, "{:?}", journal.next());
}
