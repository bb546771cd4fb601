//! Faults of providers and agents, the waits that follow, and what it all costs.

use jiff::Timestamp;
use rstest::rstest;

use crate::agent::{AgentReport, Fault, FaultKind, Scope, Until, Usage, Usd};
use crate::event::{
    Ask, AttemptFinished, BlockReason, End, Event, Exit, StopReason, Urgency, Wait, WaitKind,
};
use crate::r#loop::tests::journal::{
    Journal, failing, finished, grant, id, reporting, spec, stop, time, tokens,
};
use crate::r#loop::{ChildId, Grant, LoopState, Outcome, Phase, Step};
use crate::machine::Refusal;
use crate::price::Price;
use crate::spec::{AgentKind, AgentSpec, Millis, OutputFormat};
use crate::view::{self, Alive};

/// A loop whose agents have the output of this kind.
pub(crate) fn of(kind: AgentKind) -> Journal {
    let mut spec = spec();
    spec.agent.kind = kind;
    Journal::of(spec).taken_over()
}

pub(crate) fn fault(kind: FaultKind, until: Option<Until>) -> AttemptFinished {
    let fault = Fault { kind, message: "so it was".into(), until };
    AttemptFinished { exit: Exit::Code(1), ..reporting(|report| report.fault = Some(fault)) }
}

pub(crate) fn wait(step: Step) -> Wait {
    match step {
        Step::Wait(wait) => wait,
        step => panic!("{step:?} is no wait"),
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

#[rstest]
#[case(FaultKind::Limit, Outcome::Limit)]
#[case(FaultKind::RateLimit, Outcome::Outage)]
#[case(FaultKind::Overloaded, Outcome::Outage)]
#[case(FaultKind::Connection, Outcome::Outage)]
#[case(FaultKind::Busy, Outcome::Outage)]
#[case(FaultKind::Login, Outcome::Unable)]
#[case(FaultKind::Forbidden, Outcome::Unable)]
#[case(FaultKind::Credit, Outcome::Unable)]
#[case(FaultKind::Model, Outcome::Unable)]
#[case(FaultKind::Setup, Outcome::Unable)]
#[case(FaultKind::Session, Outcome::Unable)]
#[case(FaultKind::Budget, Outcome::Budget)]
#[case(FaultKind::Context, Outcome::Failed)]
#[case(FaultKind::OutputLimit, Outcome::Failed)]
#[case(FaultKind::Refused, Outcome::Failed)]
#[case(FaultKind::Turns, Outcome::Failed)]
#[case(FaultKind::Aborted, Outcome::Failed)]
#[case(FaultKind::Other, Outcome::Failed)]
fn every_fault_has_its_outcome(#[case] kind: FaultKind, #[case] outcome: Outcome) {
    let journal = of(AgentKind::Claude).spawns().after_ms(3_000).ends(failing(kind));
    assert_eq!(journal.state.attempts[0].outcome, outcome);
    assert_eq!(journal.state.charged, u32::from(outcome.is_charged()));
    let next = journal.next();
    match outcome {
        Outcome::Limit | Outcome::Outage => assert!(matches!(next, Step::Wait(_)), "{next:?}"),
        Outcome::Unable => assert!(matches!(next, Step::Finish(End::Blocked { .. })), "{next:?}"),
        _ => assert_eq!(next, Step::BeginIteration { iteration: 2 }),
    }
}

#[rstest]
#[case(
    FaultKind::Model,
    "start the loop anew with another --model, or refrain resume mend when agent has opsu"
)]
#[case(
    FaultKind::Setup,
    "correct the settings of agent, then refrain resume mend, or start the loop anew with other options"
)]
fn a_resume_repeats_the_options_of_the_start(#[case] kind: FaultKind, #[case] needs: &str) {
    let mut spec = spec();
    (spec.agent.program, spec.agent.model) = ("agent".into(), Some("opsu".into()));
    let journal = Journal::of(spec).taken_over().spawns().ends(failing(kind)).obey();
    assert_eq!(view::status(&journal.state, Alive::NO_RUNNER).needs.as_deref(), Some(needs));
}

#[rstest]
#[case("write context.md: No space left on device (os error 28)", "make room, then refrain resume mend")]
#[case("Too many open files", "raise the limit of open files (ulimit -n), then refrain resume mend")]
#[case("Read-only file system (os error 30)", "make the file system writable, then refrain resume mend")]
#[case("no such file", "see why with refrain show mend, make it start, then refrain resume mend")]
fn an_error_of_the_system_is_removed_before_a_resume(#[case] error: &str, #[case] needs: &str) {
    let failed = Event::AttemptSpawnFailed { error: error.into() };
    let journal = Journal::running().starts().then(failed).obey();
    assert_eq!(view::status(&journal.state, Alive::NO_RUNNER).needs.as_deref(), Some(needs));
}

#[test]
fn an_attempt_that_a_person_stopped_has_no_fault() {
    let journal = of(AgentKind::Claude).spawns().asks(Ask::Pause(Urgency::Now)).obey();
    let journal = journal.ends(failing(FaultKind::Limit));
    assert_eq!(journal.state.attempts[0].outcome, Outcome::Interrupted);
    assert_eq!(journal.next(), Step::Finish(End::Paused));
}

#[test]
fn a_limit_with_a_reset_time_is_waited_for_and_the_same_iteration_tried_again() {
    let reset = time(3_600_000);
    let journal = of(AgentKind::Claude).spawns().ends(fault(FaultKind::Limit, Some(Until::At(reset))));
    let wait = wait(journal.next());
    assert_eq!(wait.kind, WaitKind::Limit);
    assert!((0..=12).contains(&seconds(reset, wait.until)), "soon after it: {}", wait.until);
    let mut journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: Some(wait.until) });
    // A runner that dies and another that takes over: the wait stays.
    let journal_after_a_crash = journal.clone().after_ms(1_000_000).taken_over();
    assert_eq!(journal_after_a_crash.next(), Step::Await { until: Some(wait.until) });
    journal.now = 3_700_000;
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    assert_eq!(journal.state.charged, 0);
}

#[test]
fn a_request_to_proceed_ends_the_wait_once() {
    let until = Some(Until::After(Millis(3_600_000)));
    let journal = of(AgentKind::Codex).spawns().ends(fault(FaultKind::Limit, until)).obey();
    let mut journal = journal.asks(Ask::Proceed);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    // Not for the others of the account either, this once.
    journal.live.account = Some(Wait { kind: WaitKind::Limit, until: time(900_000) });
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    let journal = journal.spawns().ends(fault(FaultKind::Limit, None));
    assert!(matches!(journal.next(), Step::Wait(_)), "only this once");
}

#[test]
fn outages_are_waited_for_longer_and_longer_and_never_count_as_refunds_in_a_row() {
    let mut journal = of(AgentKind::Claude);
    let mut waited = Vec::new();
    for _ in 0..12 {
        journal = journal.spawns().ends(failing(FaultKind::Overloaded));
        let wait = wait(journal.next());
        assert_eq!(wait.kind, WaitKind::Outage);
        waited.push(seconds(time(journal.now), wait.until));
        journal = journal.obey();
        journal.now += wait.until.duration_since(time(journal.now)).as_millis() as i64;
    }
    let bases = [5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600];
    for (waited, base) in waited.iter().zip(bases) {
        assert!((base..=base * 6 / 5).contains(waited), "{waited} for {base}");
    }
    // A run that works starts the backoff anew.
    let journal = journal.runs(3_000, Exit::Code(0)).spawns().ends(failing(FaultKind::Overloaded));
    assert!(seconds(time(journal.now), wait(journal.next()).until) <= 6);
}

#[test]
fn a_wait_that_would_be_too_long_blocks_and_a_resume_tries_again() {
    for (kind, blocked, hours) in
        [(FaultKind::Limit, BlockReason::Limit, 24), (FaultKind::RateLimit, BlockReason::Outage, 2)]
    {
        let until = |hours: u64| Some(Until::After(Millis(hours * 3_600_000)));
        let short = of(AgentKind::Claude).spawns().ends(fault(kind, until(hours - 1)));
        assert!(matches!(short.next(), Step::Wait(_)), "{kind:?}");
        let long = of(AgentKind::Claude).spawns().ends(fault(kind, until(hours + 1)));
        assert_eq!(long.next(), Step::Finish(End::Blocked { why: blocked }), "{kind:?}");
        let resumed = long.obey().resumes();
        assert_eq!(resumed.next(), Step::Start(ChildId::Attempt(id(1, 2))));
        assert!(matches!(resumed.spawns().ends(fault(kind, until(1))).next(), Step::Wait(_)), "counted anew");
    }
}

#[test]
fn loops_of_one_limit_do_not_come_back_at_the_same_time() {
    let reset = Some(Until::At(time(3_600_000)));
    let until = |name: &str| {
        let mut spec = spec();
        spec.id = name.parse().unwrap();
        spec.agent.kind = AgentKind::Claude;
        let journal = Journal::of(spec).taken_over().spawns().ends(fault(FaultKind::Limit, reset));
        wait(journal.next()).until
    };
    let times: std::collections::BTreeSet<_> = (0..50).map(|n| until(&format!("loop-{n}"))).collect();
    assert!(times.len() > 40, "{} different times", times.len());
}

#[test]
fn a_wait_of_the_whole_account_precedes_the_attempt() {
    let mut journal = of(AgentKind::Claude).obey();
    assert!(matches!(journal.state.phase, Phase::Begun { .. }));
    let gate = Wait { kind: WaitKind::Limit, until: time(60_000) };
    journal.live.account = Some(gate);
    assert_eq!(journal.next(), Step::Wait(gate));
    let mut journal = journal.obey();
    journal.now = 60_000;
    // Longer than was thought: recorded again.
    journal.live.account = Some(Wait { until: time(90_000), ..gate });
    assert!(matches!(journal.next(), Step::Wait(_)));
    journal.live.account = None;
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 1))));
}

#[test]
fn a_wait_that_began_under_a_clock_that_was_ahead_begins_again() {
    let mut journal =
        of(AgentKind::Claude).after_ms(32_400_000).spawns().ends(failing(FaultKind::Overloaded));
    let first = wait(journal.next());
    let length = first.until.duration_since(time(journal.now));
    journal.live.account = Some(first);
    let mut journal = journal.obey().after_ms(1_000);
    assert_eq!(journal.next(), Step::Await { until: Some(first.until) });
    // Also for another runner.
    journal.now = 10_000;
    for mut journal in [journal.clone(), journal.taken_over()] {
        let again = Wait { until: time(10_000) + length, ..first };
        assert_eq!(journal.next(), Step::Wait(again));
        journal = journal.obey();
        assert_eq!(journal.next(), Step::Await { until: Some(again.until) });
        journal.now = again.until.as_millisecond() + 1;
        assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
        let journal = journal.spawns().ends(failing(FaultKind::Overloaded));
        assert!(matches!(journal.next(), Step::Wait(_)), "it is no other");
    }
}

#[test]
fn a_success_needs_the_agents_last_word() {
    let ends = |change: fn(&mut AgentReport), exit: Exit| {
        let finished = AttemptFinished { promised: true, exit, ..reporting(change) };
        of(AgentKind::Claude).spawns().after_ms(3_000).ends(finished).state.attempts[0].outcome
    };
    assert_eq!(ends(|_| (), Exit::Code(0)), Outcome::Claimed);
    assert_eq!(ends(|_| (), Exit::Unseen), Outcome::Claimed, "it was not seen to end, but had said all");
    assert_eq!(ends(|report| report.is_final = false, Exit::Code(0)), Outcome::Failed, "cut off");
}

#[test]
fn an_attempt_that_had_said_its_last_word_is_adopted_and_not_run_again() {
    let journal = of(AgentKind::Codex).spawns().after_ms(9_000);
    let adopted = Some(Box::new(AttemptFinished { exit: Exit::Unseen, ..reporting(|_| ()) }));
    let Event::RunnerStarted { runner, interrupted, .. } =
        journal.state.recover(crate::r#loop::tests::journal::runner(2))
    else {
        panic!("it takes over")
    };
    let journal =
        journal.then(Event::RunnerStarted { runner, interrupted, adopted, judged: None, fence: None });
    assert_eq!((journal.state.charged, journal.state.attempts[0].outcome), (1, Outcome::Ended));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
}

#[test]
fn a_failure_that_used_tokens_is_no_churn() {
    let fails = |used: u64| AttemptFinished {
        exit: Exit::Code(1),
        ..reporting(|report| report.tokens = Some((Scope::Attempt, tokens(used, 0))))
    };
    for (used, churns) in [(0, true), (7, false)] {
        let journal = (0..3).fold(of(AgentKind::Claude), |journal, _| journal.spawns().ends(fails(used)));
        assert_eq!(
            journal.next() == Step::Finish(End::Blocked { why: BlockReason::Churn }),
            churns,
            "{used}"
        );
    }
}

fn said(session: &str, of: Scope, input: u64, usd: u64, resumed: bool) -> AttemptFinished {
    reporting(|report| {
        report.session.id = Some(session.into());
        report.tokens = Some((of, tokens(input, 0)));
        report.cost = Some((of, Usd(usd)));
        report.resumed = resumed;
    })
}

fn used(state: &LoopState) -> (Option<u64>, Option<u64>, bool) {
    (state.spent.tokens.input, state.spent.cost.map(|usd| usd.0), state.spent.at_least)
}

#[test]
fn totals_of_a_continued_session_are_not_counted_twice() {
    let journal = of(AgentKind::Claude).spawns().ends(said("a", Scope::Session, 1_000, 50, false));
    assert_eq!(used(&journal.state), (Some(1_000), Some(50), false));
    let journal = journal.obey().spawns().ends(said("a", Scope::Session, 2_500, 90, true));
    assert_eq!(used(&journal.state), (Some(2_500), Some(90), false));
    assert_eq!(journal.state.attempts[1].usage.tokens.input, Some(1_500));
    let journal = journal.obey().spawns().ends(said("b", Scope::Session, 10, 1, false));
    assert_eq!(used(&journal.state), (Some(2_510), Some(91), false));
}

/// An agent that gives each run the same session reports what the run cost.
#[test]
fn a_cost_of_a_session_that_does_not_grow_is_that_of_a_run() {
    let run = |input| {
        reporting(|report| {
            report.session.id = Some("fixed".into());
            report.tokens = Some((Scope::Attempt, tokens(input, 0)));
            report.cost = Some((Scope::Session, Usd(60)));
        })
    };
    let journal = of(AgentKind::Claude).spawns().ends(run(100)).obey().spawns().ends(run(100));
    assert_eq!(used(&journal.state), (Some(200), Some(120), false));
    let journal = journal.obey().spawns().ends(run(0));
    assert_eq!(used(&journal.state), (Some(200), Some(120), false), "it used nothing");
}

#[test]
fn usage_of_a_persons_session_before_the_loop_is_unknown_not_zero() {
    let journal = of(AgentKind::Codex).spawns().ends(said("theirs", Scope::Session, 9_000, 700, true));
    assert_eq!(used(&journal.state), (None, None, true));
    let journal = journal.obey().spawns().ends(said("theirs", Scope::Session, 9_400, 720, true));
    assert_eq!(used(&journal.state), (Some(400), Some(20), true), "from here on it is known");
}

#[test]
fn a_cut_off_attempt_used_at_least_what_it_reported() {
    let cut = |report: &mut AgentReport| {
        report.is_final = false;
        report.tokens = Some((Scope::Attempt, tokens(70, 7)));
    };
    let journal = of(AgentKind::Claude).spawns().ends(reporting(cut));
    assert_eq!(used(&journal.state), (Some(70), None, true));
    let lost = of(AgentKind::Claude).spawns().taken_over();
    assert_eq!(used(&lost.state), (None, None, true));
    let command = Journal::running().spawns().taken_over();
    assert_eq!(used(&command.state), (None, None, true), "a command never says what it uses");
}

fn capped(kind: AgentKind, change: impl FnOnce(&mut crate::spec::Limits)) -> Journal {
    let mut spec = spec();
    spec.agent.kind = kind;
    change(&mut spec.limits);
    Journal::of(spec).taken_over()
}

#[test]
fn a_cap_stops_the_attempt_that_passes_it_and_the_loop_ends() {
    let mut journal = capped(AgentKind::Opencode, |limits| limits.max_cost = Some(Usd(1_000))).spawns();
    journal.live.used = Usage { cost: Some(Usd(999)), ..Usage::default() };
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.live.used.cost = Some(Usd(1_000));
    assert_eq!(journal.next(), Step::Stop(StopReason::Budget));
    let cut = |report: &mut AgentReport| {
        (report.is_final, report.cost) = (false, Some((Scope::Attempt, Usd(1_100))));
    };
    let journal = journal.obey().ends(AttemptFinished { exit: Exit::Signal(2), ..reporting(cut) });
    assert_eq!((journal.state.attempts[0].outcome, journal.state.charged), (Outcome::Budget, 1));
    let journal = journal.obey();
    assert_eq!(journal.state.ended.map(|ended| ended.end), Some(End::BudgetExceeded { by: None }));
    let refusal = journal.state.resume(&grant(None, None)).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::NothingGranted { flag, .. } if flag.starts_with("--max-cost")),
        "{refusal}"
    );
    let more = Grant { max_cost: Some(Usd(5_000)), ..Grant::default() };
    assert!(journal.state.resume(&more).unwrap().is_some());
}

#[test]
fn with_usage_known_only_at_the_end_an_overshooting_iteration_is_refused() {
    let uses = |n| reporting(move |report| report.tokens = Some((Scope::Attempt, tokens(n, 0))));
    for (kind, next) in [
        (AgentKind::Codex, Step::Finish(End::BudgetExceeded { by: None })),
        (AgentKind::Claude, Step::BeginIteration { iteration: 2 }),
    ] {
        let journal = capped(kind, |limits| limits.max_tokens = Some(1_000)).spawns().ends(uses(600));
        assert_eq!(journal.next(), next, "{kind}");
    }
}

#[test]
fn a_resume_that_would_stop_at_once_names_every_used_up_limit() {
    let uses = |n| reporting(move |report| report.tokens = Some((Scope::Attempt, tokens(n, 0))));
    let limit = |limits: &mut crate::spec::Limits| {
        (limits.max_tokens, limits.max_iterations) = (Some(1_000), Some(1))
    };
    let both = capped(AgentKind::Codex, limit).spawns().ends(uses(600)).obey();
    let refusal = both.state.resume(&Grant::default()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "it would stop at once: 1 iteration is used up, 600 of 1000 tokens are used, and an iteration like the last \
         takes 600 more; give it a larger total with --max-iterations 3 --max-tokens 2400"
    );
    let needs = crate::view::status(&both.state, crate::view::Alive::NO_RUNNER).needs;
    assert_eq!(needs.as_deref(), Some("refrain resume mend --max-iterations 3 --max-tokens 2400"));
    let grant = |max_iterations| Grant { max_iterations, max_tokens: Some(2_400), ..Grant::default() };
    assert!(both.state.resume(&grant(Some(21))).is_ok() && both.state.resume(&grant(None)).is_err());
    let used_up =
        capped(AgentKind::Codex, |limits| limits.max_tokens = Some(500)).spawns().ends(uses(600)).obey();
    let refusal = used_up.state.resume(&Grant::default()).unwrap_err().to_string();
    assert!(refusal.contains(": 600 of 500 tokens are used up; give it"), "{refusal}");
}

#[test]
fn a_cap_on_money_that_cannot_be_kept_blocks() {
    let journal = capped(AgentKind::Opencode, |limits| limits.max_cost = Some(Usd(1_000)));
    let silent = reporting(|report| report.tokens = Some((Scope::Attempt, tokens(5, 5))));
    let journal = journal.spawns().ends(silent);
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::CostUnknown }));
}

#[test]
fn a_cap_on_money_is_not_kept_by_agents_that_are_cut_off_again_and_again() {
    let cut = || {
        reporting(|report| {
            report.tokens = Some((Scope::Attempt, tokens(5, 5)));
            report.is_final = false;
        })
    };
    let blocked = Step::Finish(End::Blocked { why: BlockReason::CostUnknown });
    let of = |max_cost| capped(AgentKind::Claude, |limits| limits.max_cost = max_cost);
    let cap = Some(Usd(100_000_000_000));
    let once = of(cap).spawns().ends(cut());
    assert_eq!(once.next(), Step::BeginIteration { iteration: 2 });
    assert_eq!(once.obey().spawns().ends(cut()).next(), blocked);
    let told = reporting(|report| report.cost = Some((Scope::Session, Usd(5))));
    let journal = of(cap).spawns().ends(cut()).obey().spawns().ends(told);
    let journal = journal.obey().spawns().ends(cut());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
    let uncapped = of(None).spawns().ends(cut()).obey().spawns().ends(cut());
    assert_eq!(uncapped.next(), Step::BeginIteration { iteration: 3 });
}

const DOLLAR: u64 = 1_000_000_000;

/// A loop of Claude Code with a cap of so many dollars, whose first iteration cost $0.90, and whose second is at work.
fn at_work(dollars: u64) -> Journal {
    let told = reporting(|report| report.cost = Some((Scope::Attempt, Usd(900_000_000))));
    capped(AgentKind::Claude, |limits| limits.max_cost = Some(Usd(dollars * DOLLAR)))
        .spawns()
        .ends(told)
        .spawns()
}

fn cut_off(exit: Exit) -> AttemptFinished {
    let report = |report: &mut AgentReport| {
        (report.tokens, report.is_final) = (Some((Scope::Attempt, tokens(5, 5))), false);
    };
    AttemptFinished { exit, ..reporting(report) }
}

fn interrupted() -> Journal {
    let journal = at_work(8).asks(Ask::Pause(Urgency::Now)).then(stop(StopReason::Interrupt));
    journal.ends(cut_off(Exit::Signal(2))).obey().resumes().taken_over()
}

#[rstest]
#[case::lost_with_its_runner(at_work(8).taken_over(), at_work(5).taken_over())]
#[case::interrupted(interrupted(), at_work(5).then(stop(StopReason::Interrupt)).ends(cut_off(Exit::Signal(2))))]
#[case::killed(at_work(8).ends(cut_off(Exit::Signal(9))), at_work(5).ends(cut_off(Exit::Signal(9))))]
fn a_cap_on_money_counts_what_would_be_reserved_for_an_agent_that_was_cut_off(
    #[case] roomy: Journal,
    #[case] tight: Journal,
) {
    assert_eq!(roomy.state.budget(), Some(Usd(8 * DOLLAR - 900_000_000 - 5 * DOLLAR)));
    assert!(!matches!(roomy.next(), Step::Finish(_)));
    assert_eq!(roomy.state.spent.cost, Some(Usd(900_000_000)), "what it cost is what was said");
    assert_eq!(tight.next(), Step::Finish(End::BudgetExceeded { by: None }));
    let tight = tight.obey();
    let reason = crate::view::status(&tight.state, crate::view::Alive::NO_RUNNER).reason;
    let assumed = "$5.00 of $5.00 spent ($4.10 of it assumed for agents that did not report their cost)";
    assert!(reason.starts_with(assumed), "{reason}");
    let refusal = tight.state.resume(&Grant::default()).unwrap_err().to_string();
    assert!(refusal.contains("$5.00 of $5.00 ($4.10 of it assumed"), "{refusal}");
    assert!(refusal.ends_with("--max-cost 10.00"), "{refusal}");
}

#[test]
fn an_agent_that_did_not_work_costs_nothing() {
    let failed = fault(FaultKind::Overloaded, None);
    for journal in [at_work(5).after_ms(9_000).ends(failed), at_work(5).exits(Exit::Code(1))] {
        assert_eq!(journal.state.budget(), Some(Usd(4_100_000_000)));
    }
    let unstarted =
        capped(AgentKind::Claude, |limits| limits.max_cost = Some(Usd(DOLLAR))).starts().taken_over();
    assert_eq!(unstarted.state.budget(), Some(Usd(DOLLAR)));
}

/// Tokens for a thousandth of a dollar each million in, a hundredth out: one token in costs one billionth.
const PRICE: Price = Price { input: Usd(1_000_000), cached_input: Usd(0), output: Usd(10_000_000) };

fn priced(kind: AgentKind, cap: u64) -> Journal {
    let mut spec = spec();
    (spec.agent.kind, spec.agent.price) = (kind, Some(PRICE));
    spec.limits.max_cost = Some(Usd(cap));
    Journal::of(spec).taken_over()
}

#[rstest]
#[case::the_price_counts(None, Some(70 + 700))]
#[case::its_own_word_counts_more(Some(5), Some(5))]
fn tokens_are_priced_at_the_pinned_price(#[case] told: Option<u64>, #[case] cost: Option<u64>) {
    for is_final in [true, false] {
        let used = reporting(|report| {
            report.tokens = Some((Scope::Attempt, tokens(70, 70)));
            report.cost = told.map(|usd| (Scope::Attempt, Usd(usd)));
            report.is_final = is_final;
        });
        let journal = priced(AgentKind::Codex, 1_000_000).spawns().ends(used);
        let spent = journal.state.spent;
        assert_eq!((spent.cost.map(|usd| usd.0), spent.at_least), (cost, !is_final));
        assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    }
}

#[test]
fn only_new_usage_of_a_continued_session_costs() {
    let told = |input, resumed| {
        reporting(move |report| {
            report.session.id = Some("a".into());
            report.tokens = Some((Scope::Session, tokens(input, 0)));
            report.resumed = resumed;
        })
    };
    let journal = priced(AgentKind::Codex, 1_000_000).spawns().ends(told(1_000, false));
    let journal = journal.obey().spawns().ends(told(1_400, true));
    assert_eq!(journal.state.attempts[1].usage.cost, Some(Usd(400)));
    assert_eq!(journal.state.spent.cost, Some(Usd(1_400)));
}

#[test]
fn a_cap_on_money_is_kept_by_the_price_also_while_an_attempt_runs() {
    let mut journal = priced(AgentKind::Opencode, 1_000).spawns();
    journal.live.used = Usage { tokens: tokens(999, 0), ..Usage::default() };
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.live.used.tokens = tokens(1_000, 0);
    assert_eq!(journal.next(), Step::Stop(StopReason::Budget));
}

#[test]
fn a_price_does_not_help_where_the_tokens_are_unknown() {
    let journal = priced(AgentKind::Codex, 1_000).spawns().ends(reporting(|report| report.tokens = None));
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::CostUnknown }));
}

#[rstest]
#[case(AgentKind::Claude, OutputFormat::Auto, true, true)]
#[case(AgentKind::Codex, OutputFormat::Auto, false, true)]
#[case(AgentKind::Gemini, OutputFormat::Auto, false, true)]
#[case(AgentKind::Generic, OutputFormat::Auto, false, false)]
#[case(AgentKind::Generic, OutputFormat::Json, false, false)]
#[case(AgentKind::Generic, OutputFormat::StreamJson, true, true)]
fn each_agent_accepts_or_refuses_a_cost_cap(
    #[case] kind: AgentKind,
    #[case] format: OutputFormat,
    #[case] without_price: bool,
    #[case] with_price: bool,
) {
    for (price, taken) in [(None, without_price), (Some(PRICE), with_price)] {
        let agent = AgentSpec { kind, output_format: format, price, ..spec().agent };
        assert_eq!(agent.admits(true, false).is_ok(), taken, "{price:?}");
    }
}

#[test]
fn money_that_a_refunded_attempt_cost_stays_spent() {
    let mut lost = said("a", Scope::Attempt, 10, 30, false);
    lost.exit = Exit::Lost;
    let journal = of(AgentKind::Claude).spawns().ends(lost);
    assert_eq!(journal.state.charged, 0);
    assert_eq!(journal.state.spent.cost, Some(Usd(30)));
    assert_eq!(finished(Exit::Lost).report, None);
}

#[test]
fn a_pause_is_no_wait() {
    let journal = of(AgentKind::Claude).spawns().ends(failing(FaultKind::Overloaded)).obey();
    let journal = journal.asks(Ask::Pause(Urgency::Now)).obey();
    assert_eq!(journal.state.ended.map(|e| e.end), Some(End::Paused));
    let journal = journal.after_ms(3 * 3_600_000).resumes();
    let journal = journal.spawns().ends(failing(FaultKind::Overloaded));
    assert!(matches!(journal.next(), Step::Wait(_)), "{:?}", journal.next());
}

#[test]
fn work_between_two_faults_is_no_wait() {
    let mut journal = of(AgentKind::Claude);
    for k in 0..3 {
        let mut done = failing(FaultKind::Overloaded);
        done.report.as_mut().unwrap().tokens = Some((Scope::Attempt, tokens(100_000, 5_000)));
        journal = journal.spawns().after_ms(3_600_000).ends(done);
        assert!(matches!(journal.next(), Step::Wait(_)), "{k} {:?}", journal.next());
        let wait = wait(journal.next());
        journal = journal.obey();
        journal.now += wait.until.duration_since(time(journal.now)).as_millis() as i64;
    }
}

#[test]
fn a_session_that_said_nothing_yet_has_no_known_total() {
    let silent = reporting(|report| {
        report.session.id = Some("theirs".into());
        report.resumed = true;
        report.is_final = false;
    });
    let journal = of(AgentKind::Codex).spawns().ends(silent);
    let journal = journal.obey().spawns().ends(said("theirs", Scope::Session, 9_400, 720, true));
    assert_eq!(used(&journal.state), (None, None, true));
}

#[test]
fn a_limit_is_waited_for_also_under_a_cap_on_money() {
    let journal = capped(AgentKind::Opencode, |limits| limits.max_cost = Some(Usd(1_000)));
    let journal = journal.spawns().ends(fault(FaultKind::Limit, Some(Until::After(Millis(60_000)))));
    assert!(matches!(journal.next(), Step::Wait(_)), "{:?}", journal.next());
}

#[test]
fn an_outage_is_waited_for_also_under_a_cap_on_money() {
    let journal = capped(AgentKind::Opencode, |limits| limits.max_cost = Some(Usd(1_000)));
    let journal = journal.spawns().ends(failing(FaultKind::Connection));
    assert!(matches!(journal.next(), Step::Wait(_)), "{:?}", journal.next());
}

#[test]
fn a_resume_grants_no_cap_that_cannot_be_kept() {
    let journal = of(AgentKind::Codex).spawns().ends(reporting(|_| ())).asks(Ask::Pause(Urgency::Now)).obey();
    let more = Grant { max_cost: Some(Usd(5_000)), ..Grant::default() };
    assert!(journal.state.resume(&more).is_err(), "accepted");
}

#[test]
fn numbers_from_outside_never_overflow() {
    let journal = capped(AgentKind::Codex, |limits| limits.max_tokens = Some(1_000)).spawns();
    let journal = journal.ends(reporting(|r| r.tokens = Some((Scope::Attempt, tokens(u64::MAX, 0))))).obey();
    let _ = crate::view::status(&journal.state, crate::view::Alive::NO_RUNNER);
}

#[test]
fn the_reason_names_the_cap() {
    let journal = capped(AgentKind::Claude, |limits| {
        limits.max_cost = Some(Usd(10_000_000_000));
        limits.max_tokens = Some(1_000);
    });
    let journal = journal.spawns().ends(said("a", Scope::Attempt, 2_000, 500_000_000, false)).obey();
    let status = crate::view::status(&journal.state, crate::view::Alive::NO_RUNNER);
    assert!(status.reason.contains("tokens"), "{}", status.reason);
}

#[test]
fn a_wait_for_the_account_quotes_no_fault_of_old() {
    let mut journal = of(AgentKind::Claude).spawns().after_ms(3_000).ends(failing(FaultKind::Turns)).obey();
    journal.live.account = Some(Wait { kind: WaitKind::Limit, until: time(journal.now + 60_000) });
    let journal = journal.obey();
    let status = crate::view::status(&journal.state, crate::view::Alive::DRIVEN);
    assert!(!status.reason.contains("so it was"), "{}", status.reason);
}

#[rstest]
#[case::budget(StopReason::Budget)]
#[case::silence(StopReason::Silence)]
#[case::time(StopReason::TimeLimit)]
#[case::a_pause(StopReason::Interrupt)]
fn a_claim_made_before_a_stop_counts(#[case] because: StopReason) {
    let last_word = AttemptFinished { promised: true, exit: Exit::Signal(2), ..reporting(|_| ()) };
    let journal =
        of(AgentKind::Claude).spawns().then(Event::AttemptStopRequested { because }).ends(last_word);
    assert_eq!(journal.state.attempts[0].outcome, Outcome::Claimed);
    let cut = AttemptFinished {
        promised: true,
        exit: Exit::Signal(2),
        ..reporting(|report| report.is_final = false)
    };
    let journal = of(AgentKind::Claude).spawns().then(Event::AttemptStopRequested { because }).ends(cut);
    assert_ne!(journal.state.attempts[0].outcome, Outcome::Claimed);
}

#[test]
fn a_limit_comes_before_the_silence_that_follows_it() {
    let silence = Event::AttemptStopRequested { because: StopReason::Silence };
    let journal = of(AgentKind::Claude).spawns().then(silence).ends(failing(FaultKind::Limit));
    assert_eq!((journal.state.attempts[0].outcome, journal.state.charged), (Outcome::Limit, 0));
}
