//! The shared money, as one loop sees it: what is left is a value, and what follows from it is decided here.

use jiff::civil::date;
use rstest::rstest;

use crate::agent::{AgentReport, Scope, Usage, Usd};
use crate::budget::{Allowance, CapKind, CapUsage};
use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency};
use crate::gate::{Check, ReviewSpec};
use crate::r#loop::tests::journal::{Journal, gates, reporting, spec, tokens};
use crate::r#loop::{ChildId, Outcome, Step};
use crate::spec::{AgentKind, AgentSpec, CritiqueSpec, Millis};
use crate::view::{self, Alive};

fn left(amount: u64) -> Option<Allowance> {
    let (which, day) = (CapKind::Day, date(2026, 11, 21));
    let by = CapUsage { which, day, cap: Usd(20_000_000_000), spent: Usd(19_000_000_000), reserved: Usd(0) };
    Some(Allowance { amount: Usd(amount), by })
}

fn of(kind: AgentKind) -> Journal {
    let mut spec = spec();
    spec.agent.kind = kind;
    Journal::of(spec).taken_over()
}

fn cost(cost: u64) -> AttemptFinished {
    reporting(move |report: &mut AgentReport| {
        report.tokens = Some((Scope::Attempt, tokens(9, 9)));
        report.cost = Some((Scope::Attempt, Usd(cost)));
    })
}

fn exceeded() -> Step {
    Step::Finish(End::BudgetExceeded { by: left(0).map(|allowance| allowance.by) })
}

#[test]
fn nothing_is_begun_without_money() {
    let mut journal = of(AgentKind::Opencode);
    journal.live.allowance = left(1);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
    journal.live.allowance = left(0);
    assert_eq!(journal.next(), exceeded());
    // Another loop may take the last of it between the two steps.
    journal.live.allowance = left(1);
    let mut journal = journal.obey();
    assert!(matches!(journal.next(), Step::Start(ChildId::Attempt(_))));
    journal.live.allowance = left(0);
    assert_eq!(journal.next(), exceeded());
    let journal = journal.obey();

    let status = view::status(&journal.state, Alive::NO_RUNNER);
    assert_eq!(
        status.reason,
        "$19.00 of the $20.00 a day for all loops (max-cost-per-day) spent on 2026-11-21; there is more from midnight on"
    );
    assert_eq!(
        status.needs.unwrap(),
        "refrain resume mend from midnight on, or with a higher max-cost-per-day in your config.toml"
    );
    let mut journal = journal.granted(None, None);
    journal.live.allowance = left(9);
    assert!(matches!(journal.taken_over().next(), Step::Start(ChildId::Attempt(_))), "the next day");
}

#[test]
fn steps_without_cost_continue_without_money() {
    let mut journal = of(AgentKind::Opencode).spawns();
    journal.live.allowance = left(1_000);
    let claim = AttemptFinished { promised: true, ..cost(1_000) };
    let mut journal = journal.ends(claim);
    journal.live.allowance = left(0);
    assert_eq!(journal.next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
    let mut journal = of(AgentKind::Opencode);
    journal.live.allowance = left(0);
    let journal = journal.asks(Ask::Cancel(Urgency::AfterIteration));
    assert_eq!(journal.next(), Step::Finish(End::Cancelled));
}

#[test]
fn an_agent_that_used_up_its_allowance_is_stopped_and_charged() {
    let mut journal = of(AgentKind::Opencode).spawns();
    let used = |cost| Usage { cost: Some(Usd(cost)), ..Usage::default() };
    journal.live.allowance = left(1_000);
    journal.live.used = used(999);
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.live.used = used(1_000);
    assert_eq!(journal.next(), Step::Stop(StopReason::Budget));
    let cut = AttemptFinished { exit: Exit::Signal(2), ..cost(1_000) };
    let cut = AttemptFinished {
        report: cut.report.map(|it| Box::new(AgentReport { is_final: false, ..*it })),
        ..cut
    };
    let mut journal = journal.obey().ends(cut);
    assert_eq!((journal.state.attempts[0].outcome, journal.state.charged), (Outcome::Budget, 1));
    assert_eq!(journal.state.costs, [Some(Usd(1_000))]);
    // Another loop may have given back its unused money.
    journal.live.allowance = left(7);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[rstest]
#[case::said_at_the_end(AgentKind::Acp, exceeded())]
#[case::said_as_it_goes(AgentKind::Opencode, Step::BeginIteration { iteration: 2 })]
fn an_attempt_that_could_not_be_stopped_in_time_is_not_started(#[case] kind: AgentKind, #[case] next: Step) {
    let mut journal = of(kind).spawns().ends(cost(600));
    journal.live.allowance = left(599);
    assert_eq!(journal.next(), next);
    journal.live.allowance = left(600);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_cap_needs_an_agent_that_reports_its_cost() {
    let unknown = Step::Finish(End::Blocked { why: BlockReason::CostUnknown });
    for kind in [AgentKind::Generic, AgentKind::Codex] {
        let mut journal = of(kind);
        assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 }, "without a cap");
        journal.live.allowance = left(1_000);
        assert_eq!(journal.next(), unknown, "{kind}");
    }
    let silent = reporting(|report| report.tokens = Some((Scope::Attempt, tokens(5, 5))));
    let mut journal = of(AgentKind::Opencode).spawns().ends(silent);
    assert_eq!(journal.state.costs, [None]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 }, "without a cap");
    journal.live.allowance = left(1_000);
    assert_eq!(journal.next(), unknown);
    let reason = view::status(&journal.obey().state, Alive::NO_RUNNER).reason;
    assert_eq!(reason, "opencode does not say what it costs, so the caps of [budget] cannot be kept");
}

#[test]
fn reviewers_and_critics_spend_it_too() {
    let agent = |kind| AgentSpec { kind, ..spec().agent };
    let review = ReviewSpec { agent: agent(AgentKind::Opencode), spec: "Mend it.".into() };
    let mut all = gates([true, true]);
    all[1].check = Check::Review(Box::new(review));
    let journal = Journal::gated_by(all, |spec| {
        spec.agent.kind = AgentKind::Opencode;
        let critic = agent(AgentKind::Generic);
        spec.critique = Some(CritiqueSpec { every: 1, critic, timeout: Millis(1_000) });
    });
    assert_eq!(
        journal.state.costs_of(&Step::Start(ChildId::Critic { iteration: 1 })).unwrap().kind,
        AgentKind::Generic
    );
    assert!(journal.state.costs_of(&Step::TakeCandidate).is_none());
    // Before the first iteration there is nothing to review.
    let claim = AttemptFinished { promised: true, ..cost(500) };
    let mut journal = journal.takes(1).gates_end(&[0]).attempts(claim).takes(2);
    journal.live.allowance = left(0);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 0, run: 1 }), "a command costs nothing");
    let mut journal = journal.gates_end(&[0]);
    assert!(matches!(journal.next(), Step::Finish(End::BudgetExceeded { .. })));
    journal.live.allowance = left(50);
    assert_eq!(journal.next(), Step::Start(ChildId::Gate { gate: 1, run: 1 }));
    let mut journal = journal.obey();
    assert_eq!(journal.state.runs().unwrap().kind, AgentKind::Opencode);
    journal.live.used = Usage { cost: Some(Usd(50)), ..Usage::default() };
    assert_eq!(journal.next(), Step::Stop(StopReason::Budget));
}

#[test]
fn the_reservation_follows_the_cost_of_recent_attempts() {
    let reserves = |journal: &Journal| journal.state.to_reserve(&journal.state.spec.agent).0;
    let mut journal = of(AgentKind::Opencode);
    assert_eq!(reserves(&journal), 1_000_000_000, "nothing is known");
    for (used, reserved) in [(400, 500), (800, 1_000), (100, 1_000), (0, 1_000)] {
        journal = journal.spawns().ends(cost(used));
        assert_eq!(reserves(&journal), reserved);
    }
    for _ in 0..5 {
        journal = journal.spawns().ends(cost(40));
    }
    assert_eq!(reserves(&journal), 50, "what was long ago is forgotten");
    assert_eq!(reserves(&of(AgentKind::Claude)), 5_000_000_000, "it cannot ask for more on the way");
}

#[test]
fn every_agent_that_ran_has_its_place_among_the_costs() {
    let journal = of(AgentKind::Opencode).spawns().ends(cost(7)).spawns().taken_over();
    assert_eq!(journal.state.costs, [Some(Usd(7)), None], "the end of the second was not seen");
    let journal = journal.starts().then(Event::AttemptSpawnFailed { error: "gone".into() });
    assert_eq!(journal.state.costs.len(), 2, "one that was not started is none");
}
