//! Sums of usage: what makes them incomplete, and how that is shown.

use rstest::rstest;

use crate::agent::{AgentReport, FaultKind, Scope, Tokens, Usage, Usd};
use crate::event::{AttemptFinished, Exit};
use crate::r#loop::tests::ends::trouble::of;
use crate::r#loop::tests::journal::{Journal, failing, reporting, tokens};
use crate::spec::AgentKind;
use crate::view;

const SOME: Option<Tokens> = Some(Tokens { input: Some(1_000), cached_input: None, output: Some(50) });
const FREE: Option<Tokens> = Some(Tokens { input: None, cached_input: None, output: None });
const MONEY: Option<Usd> = Some(Usd(500_000_000));

/// The view of the sum of these runs: tokens in, money, and whether both are incomplete.
fn shown(runs: &[Usage]) -> (Option<u64>, Option<f64>, bool, bool, bool) {
    let all = runs.iter().fold(Usage::default(), |all, run| all + *run);
    let view = view::Usage::from(all);
    (view.input_tokens, view.cost_usd, view.at_least, view.tokens_at_least, view.cost_at_least)
}

#[rstest]
#[case::nothing_ran(&[], (None, None, false, false, false))]
#[case::all_is_known(&[Usage::of_run(SOME, MONEY, true)], (Some(1_000), Some(0.5), false, false, false))]
#[case::no_money_in_any(&[Usage::of_run(SOME, None, true); 2], (Some(2_000), None, false, false, false))]
#[case::money_in_one(
    &[Usage::of_run(SOME, MONEY, true), Usage::of_run(SOME, None, true)],
    (Some(2_000), Some(0.5), true, false, true)
)]
#[case::no_tokens_in_one(
    &[Usage::of_run(SOME, MONEY, true), Usage::of_run(None, None, true)],
    (Some(1_000), Some(0.5), true, true, true)
)]
#[case::nor_in_this(
    &[Usage::of_run(SOME, None, true), Usage::of_run(FREE, None, true)],
    (Some(1_000), None, true, true, false)
)]
#[case::cut_off(&[Usage::of_run(SOME, MONEY, false)], (Some(1_000), Some(0.5), true, true, true))]
#[case::nothing_reported(&[Usage::of_run(None, None, false); 3], (None, None, false, false, false))]
#[case::tokens_alone_are_cut_off(
    &[Usage::of_run(SOME, None, false)],
    (Some(1_000), None, true, true, false)
)]
fn an_incomplete_sum_is_marked_and_an_unknown_one_is_not(
    #[case] runs: &[Usage],
    #[case] expected: (Option<u64>, Option<f64>, bool, bool, bool),
) {
    assert_eq!(shown(runs), expected);
}

#[test]
fn a_refunded_attempt_without_tokens_makes_the_loops_sum_incomplete() {
    let used = |report: &mut AgentReport| report.tokens = Some((Scope::Session, tokens(3_430, 110)));
    let journal =
        of(AgentKind::Codex).spawns().ends(failing(FaultKind::Connection)).asks(crate::event::Ask::Proceed);
    assert!(!view::Usage::from(journal.state.spent).at_least, "of nothing known nothing is said");
    let journal = journal.spawns().ends(reporting(used));
    let view = view::status(&journal.state, view::Alive::NO_RUNNER);
    assert_eq!((view.usage.input_tokens, view.usage.at_least), (Some(3_430), true));
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["usage"]["at_least"], true);
    let iterations = json["iterations"].as_array().unwrap();
    let of = |at: usize| iterations[at]["usage"].get("at_least").is_some();
    assert_eq!((of(0), of(1)), (false, false), "the one said nothing, the other all");
}

#[test]
fn usage_reported_for_one_run_needs_no_earlier_total() {
    let run = |session: u64, run: u64| AttemptFinished {
        exit: Exit::Code(0),
        ..reporting(|report| {
            report.session.id = Some("theirs".into());
            report.resumed = true;
            report.tokens = Some((Scope::Attempt, tokens(session, 0)));
            report.cost = Some((Scope::Attempt, Usd(run)));
        })
    };
    let journal = of(AgentKind::Claude).spawns().ends(run(10, 12)).obey().spawns().ends(run(10, 20));
    let spent = journal.state.spent;
    assert_eq!((spent.cost, spent.at_least, spent.cost_at_least), (Some(Usd(32)), false, false));
}

#[test]
fn a_command_without_usage_makes_the_sum_incomplete() {
    let command = Journal::running().runs(3_000, Exit::Code(0)).state.spent;
    assert!(!view::Usage::from(command).at_least);
    assert!(view::Usage::from(command + Usage::of_run(SOME, MONEY, true)).at_least);
}
