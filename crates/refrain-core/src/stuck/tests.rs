//! Each rule as a row: iterations, written as letters, and what they amount to.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn failure(name: char) -> Fingerprint {
    format!("{:016x}", u32::from(name)).parse().unwrap()
}

fn work(n: usize) -> WorkDigest {
    format!("{n:032x}").parse().unwrap()
}

/// Iterations in a line of words. A letter is a failure, `-` none; after it `=` says that the work stays, a digit which
/// state it comes to, `?` that it is not known; otherwise it is a new one. `!` is a claim, `*` says that the gate
/// failed before the first iteration too. The work begins as state 0.
fn turns(words: &str) -> Vec<IterationResult> {
    let mut state = 0;
    let read = |(at, word): (usize, &str)| {
        let mut turn = IterationResult::default();
        let mut chars = word.chars();
        if let Some(letter) = chars.next().filter(|letter| letter.is_ascii_alphabetic()) {
            turn.failure = Some(failure(letter));
        }
        let marks: String = chars.collect();
        (turn.claimed, turn.is_expected) = (marks.contains('!'), marks.contains('*'));
        let before = state;
        state = match marks.chars().find_map(|mark| mark.to_digit(10)) {
            Some(digit) => digit as usize,
            None if marks.contains('=') => state,
            None => 1000 + at,
        };
        turn.work = (!marks.contains('?')).then(|| (work(before), work(state)));
        turn
    };
    words.split_whitespace().enumerate().map(read).collect()
}

fn after(words: &str) -> Stuck {
    let mut stuck = Stuck::default();
    turns(words).iter().for_each(|turn| stuck.record(turn));
    stuck
}

fn spec(threshold: u32) -> StuckSpec {
    StuckSpec { threshold, ..StuckSpec::default() }
}

use Pattern::{NewFailure, OldFailure, RefusedClaim, SameWork};
use Verdict::{Moving, Shift};

#[rstest]
#[case::nothing_yet("", Moving)]
// The work did not change, or returned to an earlier state.
#[case::unchanged_twice("-= -=", Moving)]
#[case::unchanged("-= -= -=", Shift(SameWork))]
#[case::unchanged_once_more("-= -= -= -=", Shift(SameWork))]
#[case::unchanged_twice_more("-= -= -= -= -=", Verdict::Stuck(SameWork))]
#[case::unchanged_and_claims("-=! -=! -=!", Shift(SameWork))]
#[case::unchanged_and_failing_differently("A= B= C= D= E=", Verdict::Stuck(SameWork))]
#[case::unchanged_and_failing_alike("A= A= A= A= A=", Verdict::Stuck(SameWork))]
#[case::unchanged_while_red("A=* A=* A=* A=* A=*", Verdict::Stuck(SameWork))]
#[case::work_in_between("-= -= - -= -=", Moving)]
#[case::work_in_the_end("-= -= -= -= -", Moving)]
#[case::work_without_gates("- - - - - - - - - - - -", Moving)]
#[case::back_and_forth("-1 -2 -1 -2 -1", Shift(SameWork))]
#[case::back_and_forth_on("-1 -2 -1 -2 -1 -2 -1", Verdict::Stuck(SameWork))]
#[case::in_a_circle("-1 -2 -3 -1 -2 -3", Shift(SameWork))]
#[case::back_to_the_start("-1 -0 -1 -0", Shift(SameWork))]
#[case::taken_back_once("-1 -2 -1 -3", Moving)]
#[case::unchanged_and_back("-1= -0= -= -=", Shift(SameWork))]
#[case::not_known("-? -? -? -? -? -?", Moving)]
#[case::not_known_in_between("-= -= -? -= -=", Moving)]
// The same failure, and the agent claimed.
#[case::claims("A! A! A!", Shift(RefusedClaim))]
#[case::claims_once_more("A! A! A! A!", Shift(RefusedClaim))]
#[case::claims_twice_more("A! A! A! A! A!", Verdict::Stuck(RefusedClaim))]
#[case::claims_while_red("A!* A!* A!* A!* A!*", Verdict::Stuck(RefusedClaim))]
#[case::claims_of_which_work_is_not_known("A!? A!? A!? A!? A!?", Verdict::Stuck(RefusedClaim))]
#[case::claims_that_fail_differently("A! B! C! D! E! F!", Moving)]
#[case::claims_and_fewer_fail("A! A! B! B! C!", Moving)]
#[case::a_claim_now_and_then("A! A A! A A!", Moving)]
#[case::a_success_in_between("A! A! -! A! A!", Moving)]
// The same failure over changed work, no claim, a gate that passed before.
#[case::fails_five_times("A A A A A", Moving)]
#[case::fails("A A A A A A", Shift(NewFailure))]
#[case::fails_on("A A A A A A A A A", Shift(NewFailure))]
#[case::fails_to_the_end("A A A A A A A A A A", Verdict::Stuck(NewFailure))]
#[case::fails_differently("A A A A A B A A A A A", Moving)]
#[case::fails_in_turn("A B A B A B A B A B A B", Moving)]
#[case::fails_and_claims_in_turn("A A! A A! A A!", Shift(NewFailure))]
// The same, of a gate that failed before: it is expected to until the work is done.
#[case::red_five_times("A* A* A* A* A*", Moving)]
#[case::red("A* A* A* A* A* A*", Shift(OldFailure))]
#[case::red_for_long("A* A* A* A* A* A* A* A* A* A* A* A* A* A* A* A* A* A* A* A*", Shift(OldFailure))]
#[case::red_and_claims("A* A* A* A* A!* A!* A!* A!* A!*", Verdict::Stuck(RefusedClaim))]
// The worse of two verdicts is reported.
#[case::stuck_before_shift("A A A A A A= A= A= A= A=", Verdict::Stuck(SameWork))]
fn turns_amount_to(#[case] words: &str, #[case] verdict: Verdict) {
    assert_eq!(after(words).verdict(&spec(StuckSpec::THRESHOLD)), verdict, "{words}");
}

/// The table of the issue, for every threshold: N and N + 2, 2 N and 2 N + 4.
#[rstest]
#[case("-=", SameWork, 1, Some(2))]
#[case("A!", RefusedClaim, 1, Some(2))]
#[case("A", NewFailure, 2, Some(4))]
#[case("A*", OldFailure, 2, None)]
fn each_row_is_a_multiple_of_the_threshold(
    #[case] word: &str,
    #[case] pattern: Pattern,
    #[case] times: u32,
    #[case] more: Option<u32>,
) {
    for threshold in 0..=12 {
        let shift = times * threshold.max(1);
        let stuck = more.map(|more| shift + more);
        for count in 1..=40 {
            let words = format!("{word} ").repeat(count as usize);
            let expected = match count {
                _ if stuck.is_some_and(|stuck| count >= stuck) => Verdict::Stuck(pattern),
                _ if count >= shift => Shift(pattern),
                _ => Moving,
            };
            assert_eq!(
                after(&words).verdict(&spec(threshold)),
                expected,
                "{count} x {word}, threshold {threshold}"
            );
        }
    }
}

/// `refrain run`: the same error three times, regardless of all else.
#[rstest]
#[case("A A A", Shift(NewFailure))]
#[case("A* A* A*", Shift(OldFailure))]
#[case("A A! A A! A", Verdict::Stuck(NewFailure))]
#[case("A* A* A* A* A*", Verdict::Stuck(OldFailure))]
#[case("A A B A A", Moving)]
#[case("-= -= -=", Shift(SameWork))]
fn a_run_counts_failures(#[case] words: &str, #[case] verdict: Verdict) {
    let spec = StuckSpec { by_failure: true, ..spec(StuckSpec::THRESHOLD) };
    assert_eq!(after(words).verdict(&spec), verdict);
}

#[test]
fn the_last_failure_is_counted() {
    let stuck = after("B A A");
    assert_eq!((stuck.last(), stuck.count()), (Some(&failure('A')), 2));
    assert_eq!((after("A -").last(), after("A -").count()), (None, 0));
    assert_eq!([Pattern::NewFailure, Pattern::OldFailure].map(|it| stuck.count_of(it)), [2, 0]);
}

fn any_turns() -> impl Strategy<Value = Vec<IterationResult>> {
    let turn = (prop::char::range('@', 'C'), any::<bool>(), 0..6usize, 1..6usize, any::<bool>()).prop_map(
        |(name, is_expected, before, after, claimed)| IterationResult {
            failure: (name > '@').then(|| failure(name)),
            is_expected,
            work: (before > 0).then(|| (work(before), work(after))),
            claimed,
        },
    );
    prop::collection::vec(turn, 0..24)
}

proptest! {
    #[test]
    fn something_new_resets_everything(before in any_turns()) {
        let mut stuck = Stuck::default();
        before.iter().for_each(|turn| stuck.record(turn));
        let work = Some((work(98), work(99)));
        stuck.record(&IterationResult { failure: Some(failure('N')), work, ..IterationResult::default() });
        prop_assert_eq!(stuck.verdict(&spec(StuckSpec::THRESHOLD)), Moving);
    }

    #[test]
    fn no_loop_is_stuck_without_a_shift(all in any_turns(), by_failure in any::<bool>()) {
        let spec = StuckSpec { by_failure, ..spec(StuckSpec::THRESHOLD) };
        let mut stuck = Stuck::default();
        let mut shifts = 0;
        for turn in &all {
            stuck.record(turn);
            match stuck.verdict(&spec) {
                Moving => shifts = 0,
                Shift(_) => shifts += 1,
                Verdict::Stuck(_) => { prop_assert!(shifts >= MORE); shifts = MORE; }
            }
        }
    }

    #[test]
    fn three_in_a_row_are_seen_whatever_came_before(before in any_turns(), n in 3usize..8) {
        let mut stuck = Stuck::default();
        before.iter().for_each(|turn| stuck.record(turn));
        for at in 0..n {
            let work = Some((work(100 + at), work(101 + at)));
            stuck.record(&IterationResult { failure: Some(failure('N')), work, claimed: true, ..IterationResult::default() });
        }
        let verdict = if n >= 5 { Verdict::Stuck(RefusedClaim) } else { Shift(RefusedClaim) };
        prop_assert_eq!(stuck.verdict(&spec(StuckSpec::THRESHOLD)), verdict);
    }

    #[test]
    fn a_directive_is_bounded_and_printable(words in "(\\PC|[\u{0}-\u{1f}]){0,60}", n in 0usize..12) {
        let long = words.repeat(n);
        let essence = FailureText { tests: vec![long.clone(); n], errors: vec![long.clone(); n] };
        let failing = vec![CurrentFailure { gate: Some(&long), essence: &essence }; n];
        let tried = vec![long.clone(); n];
        let text = directive((RefusedClaim, &after("A!")), &failing, &tried);
        prop_assert!(text.len() <= LONGEST, "{}", text.len());
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}

#[test]
fn the_strategy_shift_names_the_failure_and_the_attempts() {
    let essence = FailureText {
        tests: vec!["tests::four".to_owned()],
        errors: vec!["assertion `left == right` failed".to_owned(), "left: \"IIII\"".to_owned()],
    };
    let tried = [
        "iteration 4: claimed; gate tests failed; said: I fixed\n\u{1b}[1mit.".to_owned(),
        "iteration 5: exit code 1".to_owned(),
    ];
    let text = directive(
        (NewFailure, &after("A A A")),
        &[CurrentFailure { gate: Some("tests"), essence: &essence }],
        &tried,
    );
    assert_eq!(
        text,
        "STRATEGY SHIFT: the same failure came 3 times in a row, whatever was changed.\n\n\
         What fails, says gate tests:\n- test tests::four\n- assertion `left == right` failed\n- left: \"IIII\"\n\n\
         What was tried, and did not work:\n- iteration 4: claimed; gate tests failed; said: I fixed it.\n- iteration 5: exit code 1\n\n\
         Do not try any of this again. First find out why it fails, and check what you take for granted. Then do \
         something fundamentally different: another algorithm or data structure, another library or interface, the \
         simplest thing that could work, or one small part of it."
    );
}

#[rstest]
#[case(SameWork, "A= A=", "2 runs in a row changed nothing in the work.")]
#[case(SameWork, "-1 -0 -1", "2 runs in a row changed nothing, or took the work back to an earlier state.")]
#[case(RefusedClaim, "A! A!", "the same failure came 2 times in a row, and you claimed each time.")]
#[case(OldFailure, "A* A*", "the same failure came 2 times in a row, whatever was changed.")]
fn each_pattern_has_words(#[case] pattern: Pattern, #[case] turns: &str, #[case] words: &str) {
    let text = directive((pattern, &after(turns)), &[], &[]);
    assert!(text.starts_with(&format!("STRATEGY SHIFT: {words}\n\n")), "{text}");
    assert!(!text.contains("What fails") && !text.contains("What was tried"), "{text}");
}
