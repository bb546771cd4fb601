//! Tables of the sums, and many loops at once that spend, crash and are settled, against what must hold.

use camino::Utf8PathBuf;
use jiff::civil::{Date, date};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::event::{Identity, Process};

const TODAY: Date = date(2026, 11, 21);
const TOMORROW: Date = date(2026, 11, 22);

fn runner() -> Identity {
    Identity { process: Process { pid: 1, start: 1 }, boot: "boot".into(), host: "host".into() }
}

fn wish(of: &str, project: &str, day: Date, amount: u64) -> Reservation {
    Reservation { of: of.into(), run: 1, project: project.into(), day, runner: runner(), amount: Usd(amount) }
}

fn caps(day: u64, project_day: u64, project: u64) -> Caps {
    let cap = |cap| (cap > 0).then_some(Usd(cap));
    Caps { day: cap(day), project_day: cap(project_day), project: cap(project) }
}

fn amount(allowance: Option<Allowance>) -> Option<u64> {
    allowance.map(|allowance| allowance.amount.0)
}

#[rstest]
#[case::no_cap(caps(0, 0, 0), None)]
#[case::the_day(caps(100, 0, 0), Some((CapKind::Day, 100 - 50 - 10 - 5)))]
#[case::the_project_today(caps(100, 30, 0), Some((CapKind::ProjectDay, 30 - 10 - 5)))]
#[case::the_project_in_all(caps(100, 30, 41), Some((CapKind::Project, 41 - 10 - 20 - 5)))]
#[case::nothing_is_never_less(caps(12, 0, 0), Some((CapKind::Day, 0)))]
#[case::the_first_of_two_alike(caps(65, 15, 0), Some((CapKind::Day, 0)))]
fn the_cap_that_leaves_the_least_counts(#[case] caps: Caps, #[case] left: Option<(CapKind, u64)>) {
    let mut ledger = Ledger::default();
    for (of, project, day, used) in [
        ("/p/old", "/p", date(2026, 11, 20), 20),
        ("/p/a", "/p", TODAY, 10),
        ("/q/a", "/q", TODAY, 50),
        ("/p/open", "/p", TODAY, 5),
    ] {
        ledger.reserve(wish(of, project, day, 5), &super::Caps { day: Some(Usd(1_000)), ..Caps::default() });
        if of != "/p/open" {
            assert!(ledger.settle(of.into(), 1, Some(Usd(used))));
        }
    }
    let found = ledger.left(&caps, "/p", TODAY);
    assert_eq!(found.map(|allowance| (allowance.by.which, allowance.amount.0)), left);
}

#[test]
fn two_loops_never_reserve_the_same_money_and_unused_money_returns() {
    let (mut ledger, caps) = (Ledger::default(), caps(100, 0, 0));
    assert_eq!(amount(ledger.reserve(wish("/a", "/p", TODAY, 70), &caps)), Some(70));
    assert_eq!(amount(ledger.reserve(wish("/b", "/q", TODAY, 70), &caps)), Some(30));
    assert_eq!(amount(ledger.reserve(wish("/c", "/p", TODAY, 70), &caps)), Some(0));
    assert_eq!(ledger.open().len(), 2, "nothing is reserved of nothing");
    assert_eq!(amount(ledger.grow("/b".into(), 1, Usd(40), &caps)), Some(30));

    assert!(ledger.settle("/a".into(), 1, Some(Usd(20))));
    assert!(!ledger.settle("/a".into(), 1, Some(Usd(20))), "once");
    assert_eq!(amount(ledger.grow("/b".into(), 1, Usd(40), &caps)), Some(40));
    assert_eq!(amount(ledger.grow("/b".into(), 1, Usd(10), &caps)), Some(40), "it never shrinks");
    assert_eq!(amount(ledger.grow("/b".into(), 2, Usd(50), &caps)), None, "there is none");
    assert_eq!(amount(ledger.reserve(wish("/c", "/p", TODAY, 70), &caps)), Some(40));
}

#[test]
fn an_unreported_cost_counts_as_its_reservation() {
    let (mut ledger, caps) = (Ledger::default(), caps(100, 0, 0));
    ledger.reserve(wish("/a", "/p", TODAY, 70), &caps);
    ledger.settle("/a".into(), 1, None);
    assert_eq!(amount(ledger.left(&caps, "/p", TODAY)), Some(30));
}

#[test]
fn spending_without_a_cap_is_recorded_for_a_later_cap() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.reserve(wish("/a", "/p", TODAY, 70), &Caps::default()), None);
    assert_eq!(ledger.open().len(), 1);
    ledger.settle("/a".into(), 1, Some(Usd(25)));
    assert_eq!(amount(ledger.left(&caps(100, 0, 0), "/p", TODAY)), Some(75));
}

#[test]
fn a_day_is_new_and_a_project_is_not_and_an_attempt_counts_for_the_day_on_which_it_began() {
    let (mut ledger, caps) = (Ledger::default(), caps(100, 0, 250));
    ledger.reserve(wish("/late", "/p", TODAY, 60), &caps);
    assert_eq!(amount(ledger.left(&caps, "/p", TOMORROW)), Some(100));
    ledger.reserve(wish("/early", "/p", TOMORROW, 80), &caps);
    assert_eq!(amount(ledger.grow("/late".into(), 1, Usd(120), &caps)), Some(100), "of its own day");
    ledger.settle("/late".into(), 1, Some(Usd(100)));
    assert_eq!(amount(ledger.left(&caps, "/p", TOMORROW)), Some(20));
    ledger.settle("/early".into(), 1, Some(Usd(100)));
    let after = date(2026, 11, 23);
    let left = ledger.left(&caps, "/p", after).unwrap();
    assert_eq!((left.by.which, left.amount.0), (CapKind::Project, 50));
}

#[test]
fn old_days_are_dropped_unless_a_reservation_still_uses_them() {
    let (mut ledger, caps) = (Ledger::default(), caps(1_000, 0, 0));
    for day in 1..=20 {
        ledger.reserve(wish("/a", "/p", date(2026, 11, day), 5), &caps);
        ledger.settle("/a".into(), 1, Some(Usd(5)));
    }
    ledger.reserve(wish("/long", "/p", date(2026, 11, 20), 5), &caps);
    ledger.reserve(wish("/a", "/p", date(2026, 12, 24), 5), &caps);
    let json = serde_json::to_value(&ledger).unwrap();
    let days: Vec<_> = json["days"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(days, ["2026-11-20"]);
    assert_eq!(json["projects"]["/p"], 1e-7, "that of the project is kept");
    assert_eq!(serde_json::from_value::<Ledger>(json).unwrap(), ledger);
}

#[test]
fn a_project_file_can_only_lower_the_budget_and_is_pinned_at_the_start() {
    assert_eq!(caps(20, 0, 50).lower(caps(30, 5, 10)), caps(20, 5, 10));
    assert!(Caps::default().lower(Caps::default()).is_none());
    assert!(!Caps::default().lower(caps(0, 5, 0)).is_none());
}

#[rstest]
#[case::far_away(0, 1_000_000_000, None)]
#[case::close(750_000_000, 1_000_000_000, Some(1_750_000_000))]
#[case::passed(3_000_000_000, 1_000_000_000, Some(4_000_000_000))]
#[case::a_small_one_grows_at_once(0, 200_000_000, Some(1_000_000_000))]
fn a_reservation_grows_before_it_is_overdrawn(
    #[case] used: u64,
    #[case] amount: u64,
    #[case] to: Option<u64>,
) {
    assert_eq!(to_grow(Usd(used), Usd(amount)).map(|usd| usd.0), to);
}

#[derive(Clone, Copy, Debug)]
enum LoopEvent {
    /// It starts an attempt, if it runs none.
    Start { wish: u64 },
    /// Its agent says that so much more was used.
    Uses(u64),
    /// Its attempt ends, and is settled.
    Ends,
    /// Its runner dies. The next loop to ask for money takes back what is left, according to the journal.
    Crashes,
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    runs: bool,
    crashed: bool,
    amount: u64,
    used: u64,
}

/// The most that one event reports, in the property below.
const EVENT: u64 = 400_000_000;
const LOOPS: usize = 5;

fn happens() -> impl Strategy<Value = (usize, LoopEvent)> {
    let one = prop_oneof![
        3 => (1..3_000_000_000u64).prop_map(|wish| LoopEvent::Start { wish }),
        8 => (0..=EVENT).prop_map(LoopEvent::Uses),
        2 => Just(LoopEvent::Ends),
        1 => Just(LoopEvent::Crashes),
    ];
    (0..LOOPS, one)
}

proptest! {
    /// Whatever many loops do at once, and whenever their runners die: each overshoots the cap by at most one event,
    /// and every billionth that was used is in the ledger in the end.
    #[test]
    fn no_money_is_spent_twice_and_none_is_lost(
        cap in 1..20_000_000_000u64,
        steps in prop::collection::vec(happens(), 0..200),
    ) {
        let (mut ledger, caps) = (Ledger::default(), caps(cap, 0, 0));
        let mut loops = [Attempt::default(); LOOPS];
        let (mut all, mut overshot) = (0u64, 0u64);
        let name = |of: usize| Utf8PathBuf::from(format!("/{of}"));
        for (of, what) in steps {
            let Attempt { runs, crashed, .. } = loops[of];
            match what {
                LoopEvent::Start { wish: amount } if !runs => {
                    // Those of dead runners are settled first, each with its known usage.
                    for (dead, attempt) in loops.iter_mut().enumerate().filter(|(_, it)| it.crashed) {
                        ledger.settle(&name(dead), 1, Some(Usd(attempt.used)));
                        *attempt = Attempt::default();
                    }
                    let of_loop = name(of);
                    let allowed = ledger.reserve(wish(of_loop.as_str(), "/p", TODAY, amount), &caps);
                    let amount = allowed.map_or(0, |allowed| allowed.amount.0);
                    loops[of] = Attempt { runs: amount > 0, crashed: false, amount, used: 0 };
                }
                LoopEvent::Uses(more) if runs && !crashed => {
                    let attempt = &mut loops[of];
                    attempt.used += more;
                    all += more;
                    if let Some(to) = to_grow(Usd(attempt.used), Usd(attempt.amount)) {
                        let grown = ledger.grow(&name(of), 1, to, &caps);
                        attempt.amount = grown.map_or(0, |grown| grown.amount.0);
                    }
                    if attempt.used >= attempt.amount {
                        overshot += attempt.used - attempt.amount;
                        prop_assert!(attempt.used - attempt.amount <= EVENT);
                        ledger.settle(&name(of), 1, Some(Usd(attempt.used)));
                        *attempt = Attempt::default();
                    }
                }
                LoopEvent::Ends if runs && !crashed => {
                    ledger.settle(&name(of), 1, Some(Usd(loops[of].used)));
                    loops[of] = Attempt::default();
                }
                LoopEvent::Crashes if runs => loops[of].crashed = true,
                LoopEvent::Start { .. }
                | LoopEvent::Uses(_)
                | LoopEvent::Ends
                | LoopEvent::Crashes => {}
            }
            prop_assert!(all <= cap + overshot, "{all} of {cap}, {overshot} over");
        }
        for (of, attempt) in loops.iter().enumerate().filter(|(_, it)| it.runs) {
            ledger.settle(&name(of), 1, Some(Usd(attempt.used)));
        }
        prop_assert!(ledger.open().is_empty());
        let caps = super::Caps { project: Some(Usd(1)), ..caps };
        for standing in ledger.standings(&caps, "/p", TODAY) {
            prop_assert_eq!(standing.spent, Usd(all), "{:?}", standing.which);
        }
    }
}
