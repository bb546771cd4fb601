//! Programs that wait for their provider themselves, attempts that end before the first event, and the account's gate.

use rstest::rstest;

use crate::agent::{AgentEvent, AgentReport, Fault, FaultKind, Speaker, Until};
use crate::event::{AttemptFinished, BlockReason, End, Event, Exit, StopReason, Wait, WaitKind};
use crate::gate::{Check, ReviewSpec};
use crate::r#loop::tests::ends::trouble::{fault, of, wait};
use crate::r#loop::tests::journal::{Journal, finished, id, reporting, spec, stop, time};
use crate::r#loop::{ChildId, Outcome, ProviderRetry, Step};
use crate::spec::{AgentKind, Millis};

const MINUTE: i64 = 60_000;

fn named(ms: u64) -> Option<Until> {
    Some(Until::After(Millis(ms)))
}

fn retrying(kind: FaultKind, until: Option<Until>) -> Option<ProviderRetry> {
    Some(ProviderRetry { kind, until, since: time(0) })
}

/// The journal's `exits`, with a report of a program that was ended while it slept.
fn ended(kind: FaultKind, until: Option<Until>) -> AttemptFinished {
    AttemptFinished { exit: Exit::Signal(2), ..fault(kind, until) }
}

#[rstest]
#[case::a_long_delay(FaultKind::RateLimit, named(290_000), Some(0))]
#[case::of_a_plan(FaultKind::Limit, named(66_670_000), Some(0))]
#[case::of_an_outage(FaultKind::Overloaded, named(60_001), Some(0))]
#[case::until_a_time(FaultKind::Limit, Some(Until::At(time(3_600_000))), Some(0))]
#[case::a_short_delay_of_a_limit(FaultKind::RateLimit, named(30_000), Some(2 * MINUTE))]
#[case::a_limit_without_a_delay(FaultKind::RateLimit, None, Some(2 * MINUTE))]
#[case::a_plans_limit_without_one(FaultKind::Limit, None, Some(2 * MINUTE))]
#[case::a_short_delay_of_an_outage(FaultKind::Overloaded, named(60_000), None)]
#[case::an_outage_without_a_delay(FaultKind::Connection, None, None)]
#[case::what_only_a_person_can_mend(FaultKind::Login, named(600_000), None)]
fn a_program_that_sleeps_for_long_is_ended(
    #[case] kind: FaultKind,
    #[case] until: Option<Until>,
    #[case] ends: Option<i64>,
) {
    let mut journal = of(AgentKind::Codex).spawns();
    journal.live.retrying = retrying(kind, until);
    journal.live.last_output = Some(time(0));
    match ends {
        Some(at) if at > 0 => {
            assert_eq!(journal.next(), Step::Await { until: Some(time(at)) });
            journal.now = at - 1;
            assert_eq!(journal.next(), Step::Await { until: Some(time(at)) });
            journal.now = at;
            assert_eq!(journal.next(), Step::Stop(StopReason::ProviderWait));
        }
        Some(_) => assert_eq!(journal.next(), Step::Stop(StopReason::ProviderWait)),
        None => assert_eq!(journal.next(), Step::Await { until: None }),
    }
    journal.live.retrying = None;
    assert_eq!(journal.next(), Step::Await { until: None }, "it continues");
}

#[rstest]
#[case::with_a_delay(ended(FaultKind::RateLimit, named(3_600_000)), Outcome::Outage, 3_600)]
#[case::of_a_plan(ended(FaultKind::Limit, named(7_200_000)), Outcome::Limit, 7_200)]
#[case::without_a_delay(ended(FaultKind::RateLimit, None), Outcome::Outage, 5)]
#[case::without_a_word(AttemptFinished { exit: Exit::Signal(2), ..reporting(|report| report.is_final = false) }, Outcome::Outage, 5)]
#[case::a_command(finished(Exit::Signal(2)), Outcome::Outage, 5)]
fn a_provider_wait_is_refunded_and_its_rest_is_waited_for_on_disk(
    #[case] finished: AttemptFinished,
    #[case] outcome: Outcome,
    #[case] seconds: i64,
) {
    let journal = of(AgentKind::Codex).spawns().then(stop(StopReason::ProviderWait)).ends(finished);
    let last = journal.state.attempts.last().unwrap();
    assert_eq!((last.outcome, last.charged, journal.state.charged), (outcome, false, 0));
    let Wait { until, .. } = wait(journal.next());
    let waits = until.duration_since(time(journal.now)).as_secs();
    assert!((seconds..=seconds * 6 / 5 + 1).contains(&waits), "{waits}");
    let mut journal = journal.obey().after_ms(1_000).taken_over();
    assert_eq!(journal.next(), Step::Await { until: Some(until) }, "another runner waits the rest");
    journal.now = until.duration_since(time(0)).as_millis() as i64;
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
}

#[test]
fn an_attempt_with_its_answer_counts_as_ended_despite_the_stop() {
    let journal = of(AgentKind::Codex).spawns().then(stop(StopReason::ProviderWait)).ends(reporting(|_| ()));
    assert_eq!((journal.state.attempts[0].outcome, journal.state.charged), (Outcome::Ended, 1));
}

#[test]
fn waits_without_end_block_in_the_programs_words() {
    let long = ended(FaultKind::RateLimit, named(3 * 3_600_000));
    let journal = of(AgentKind::Codex).spawns().then(stop(StopReason::ProviderWait)).ends(long);
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Outage }));
}

fn heard(events: &[AgentEvent]) -> AgentReport {
    let mut report = AgentReport::default();
    events.iter().for_each(|event| report.hear(event));
    report
}

fn says(kind: FaultKind) -> Fault {
    Fault { kind, message: "so it was".into(), until: None }
}

#[test]
fn an_interruption_is_put_down_to_the_provider_only_while_nothing_followed_its_failure() {
    let retry = || AgentEvent::Retry(says(FaultKind::RateLimit));
    let aborted = || AgentEvent::Fault(says(FaultKind::Aborted));
    let text = || AgentEvent::Text { text: "on".into(), part: false, by: Speaker::Agent };
    let kind = |events: &[AgentEvent]| heard(events).fault.map(|fault| fault.kind);
    assert_eq!(kind(&[retry(), aborted()]), Some(FaultKind::RateLimit));
    assert_eq!(kind(&[retry(), AgentEvent::Notice("well".into()), aborted()]), Some(FaultKind::RateLimit));
    assert_eq!(kind(&[retry(), text(), aborted()]), Some(FaultKind::Aborted));
    assert_eq!(kind(&[aborted()]), Some(FaultKind::Aborted));
    assert_eq!(kind(&[retry(), AgentEvent::Fault(says(FaultKind::Other))]), Some(FaultKind::Other));
    assert_eq!(kind(&[retry()]), None);
    assert!(heard(&[retry()]).retrying.is_some() && heard(&[retry(), text()]).retrying.is_none());
}

#[rstest]
#[case::time(StopReason::TimeLimit)]
#[case::silence(StopReason::Silence)]
fn an_attempt_stopped_before_its_first_event_is_refunded_three_times(#[case] because: StopReason) {
    let mute = || AttemptFinished {
        exit: Exit::Signal(9),
        ..reporting(|report| (report.is_final, report.no_events) = (false, true))
    };
    let mut journal = of(AgentKind::Gemini);
    for n in 1..=3 {
        assert_eq!(journal.state.refunds_in_a_row, n - 1);
        journal = journal.spawns().then(stop(because)).ends(mute());
        let last = journal.state.attempts.last().unwrap();
        assert_eq!((last.outcome, last.charged), (Outcome::Unresponsive, false));
    }
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
    assert_eq!(journal.state.charged, 0);
    // A person's own stop, and an end of its own, stay what they were.
    let paused = of(AgentKind::Gemini).spawns().then(stop(StopReason::Interrupt)).ends(mute());
    assert_eq!(paused.state.attempts[0].outcome, Outcome::Interrupted);
    let failed = of(AgentKind::Gemini).spawns().after_ms(3_000).ends(mute());
    assert_eq!(failed.state.attempts[0].outcome, Outcome::Failed);
}

#[test]
fn the_account_is_not_waited_for_any_longer_once_its_gate_is_open() {
    let mut journal = of(AgentKind::Claude).obey();
    let closed = Wait { kind: WaitKind::Outage, until: time(30_000) };
    journal.live.account = Some(closed);
    let mut journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: Some(closed.until) });
    (journal.live.account, journal.live.is_account_open) = (None, true);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 1))));
    // A fault of its own still makes it wait.
    let mut journal = journal
        .obey()
        .then(crate::r#loop::tests::journal::spawned())
        .ends(fault(FaultKind::Limit, named(3_600_000)))
        .obey();
    journal.live.is_account_open = true;
    assert!(matches!(journal.next(), Step::Await { until: Some(_) }), "{:?}", journal.next());
}

#[test]
fn a_reviewer_that_sleeps_is_waited_for_too() {
    let mut spec = spec();
    let agent = crate::spec::AgentSpec { kind: AgentKind::Codex, ..spec.agent.clone() };
    spec.gates = crate::r#loop::tests::journal::gates([true]);
    spec.gates[0].check = Check::Review(Box::new(ReviewSpec { agent, spec: "It works.".into() }));
    let mut journal = Journal::of(spec).taken_over();
    while journal.state.running_gate().is_none() {
        journal = match journal.next() {
            Step::Start(ChildId::Attempt(_)) => journal.spawns().after_ms(3_000).exits(Exit::Code(0)),
            _ => journal.obey(),
        };
    }
    let since = time(journal.now);
    journal.live.retrying = Some(ProviderRetry { kind: FaultKind::RateLimit, until: named(600_000), since });
    assert_eq!(journal.next(), Step::Stop(StopReason::ProviderWait));
    let mut journal = journal.obey();
    let review = crate::event::ReviewResult {
        verdict: crate::gate::Verdict::Missing { why: "it was interrupted".into() },
        report: Some(Box::new(AgentReport::default())),
    };
    let finished = crate::r#loop::tests::journal::gate_finished(0, Exit::Signal(2));
    let finished = crate::event::GateFinished { review: Some(Box::new(review)), ..finished };
    journal.live.retrying = None;
    let journal = journal.then(Event::GateFinished(Box::new(finished)));
    assert_eq!(wait(journal.next()).kind, WaitKind::Outage);
}
