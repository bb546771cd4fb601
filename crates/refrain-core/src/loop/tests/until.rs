//! Loops that a claim does not end, or not yet.

use proptest::prelude::*;
use rstest::rstest;

use super::journal::{Journal, claiming, finished, spec};
use crate::event::{AttemptFinished, ClaimSource, End, Event, Exit, Wait, WaitKind};
use crate::r#loop::Step;
use crate::spec::{Limits, Millis, Until};

fn of(until: Until, cap: Option<u32>) -> Journal {
    let limits = Limits { max_iterations: cap, ..spec().limits };
    let mut journal = Journal::in_session();
    (journal.state.spec.until, journal.state.limits) = (until, limits);
    journal
}

fn claims() -> AttemptFinished {
    AttemptFinished { exit: Exit::Unseen, ..claiming(ClaimSource::Promise) }
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

#[test]
fn exactly_so_many_iterations_are_done() {
    let journal = of(Until::Count, Some(3)).turns(claims()).turns(ends()).turns(ends());
    assert_eq!(journal.next(), Step::Finish(End::IterationCap));
}

#[test]
fn one_that_goes_on_for_ever_waits_longer_each_time_that_there_is_nothing_to_do() {
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
fn a_claim_of_what_is_not_the_last_iteration_any_more_ends_nothing() {
    let journal = of(Until::Count, Some(1)).turns(claims());
    let limits = Limits { max_iterations: Some(2), ..journal.state.limits.clone() };
    let journal = journal.then(Event::LoopResumed { limits, approved: None }).taken_over();
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
            (false, false) => prop_assert_eq!(journal.next(), Step::Finish(End::IterationCap)),
        }
        prop_assert!(journal.records.iter().all(|record| !matches!(record.event, Event::LoopEnded(_))));
    }
}
