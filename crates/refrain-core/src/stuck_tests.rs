//! Each rule as a row: turns, written as letters, and what they amount to.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn failure(name: char) -> Fingerprint {
    format!("{:016x}", u32::from(name)).parse().unwrap()
}

fn oid(n: usize) -> Oid {
    format!("{n:040x}").parse().unwrap()
}

/// Turns in a line of words. A letter is a failure, `-` none; behind it `=` says that the tree stays, a digit which tree it
/// is, `?` that nobody knows; otherwise it is a new one. `+` is a commit, `!` a claim.
fn turns(words: &str) -> Vec<Turn> {
    let mut tree = 0;
    let read = |(at, word): (usize, &str)| {
        let mut turn = Turn::default();
        let mut chars = word.chars();
        if let Some(letter) = chars.next().filter(|letter| letter.is_ascii_alphabetic()) {
            turn.failure = Some(failure(letter));
        }
        let marks: String = chars.collect();
        turn.committed = marks.contains('+');
        turn.claimed = marks.contains('!');
        let named = marks.chars().find_map(|mark| mark.to_digit(10));
        tree = match named {
            Some(digit) => digit as usize,
            None if marks.contains('=') => tree,
            None => 1000 + at,
        };
        turn.tree = (!marks.contains('?')).then(|| oid(tree));
        turn
    };
    words.split_whitespace().enumerate().map(read).collect()
}

fn after(words: &str) -> Stuck {
    let mut stuck = Stuck::starting_at(Some(oid(0)));
    turns(words).iter().for_each(|turn| stuck.after(turn));
    stuck
}

use Pattern::{Alternating, BackAndForth, Empty, Same};
use Verdict::{Moving, Shift};

#[rstest]
// Three in a row, two more.
#[case::nothing_yet("", Moving)]
#[case::once("A", Moving)]
#[case::twice("A A", Moving)]
#[case::three_in_a_row("A A A", Shift(Same))]
#[case::one_more("A A A A", Shift(Same))]
#[case::two_more("A A A A A", Verdict::Stuck(Same))]
#[case::and_on("A A A A A A", Verdict::Stuck(Same))]
#[case::claims_change_nothing("A! A! A!", Shift(Same))]
#[case::nor_do_commits("A+ A+ A+", Shift(Same))]
// A different failure resets.
#[case::another_in_between("A A B A A", Moving)]
#[case::another_behind("A A A B", Moving)]
#[case::another_behind_one_more("A A A A B", Moving)]
#[case::another_three_times("A A A A B B B", Shift(Same))]
#[case::always_another("A B C D E F G", Moving)]
#[case::a_success("A A - A A", Moving)]
#[case::a_success_behind("A A A -", Moving)]
// A-B-A-B.
#[case::back_once("A B A", Moving)]
#[case::in_turn("A B A B", Shift(Alternating))]
#[case::in_turn_behind_others("C A A B A B", Shift(Alternating))]
#[case::in_turn_once_more("A B A B A", Shift(Alternating))]
#[case::in_turn_twice_more("A B A B A B", Verdict::Stuck(Alternating))]
#[case::one_of_the_two_stays("A B A B B", Shift(Alternating))]
#[case::one_of_the_two_stays_again("A B A B B B", Verdict::Stuck(Alternating))]
#[case::a_third_in_between("A B C A B", Moving)]
#[case::a_third_behind("A B A B C", Moving)]
#[case::a_success_in_between("A B - A B", Moving)]
#[case::three_in_turn("A B C A B C A B C", Moving)]
#[case::pairs("A A B B A A B B", Moving)]
// Empty turns.
#[case::empty_twice("-= -=", Moving)]
#[case::empty("-= -= -=", Shift(Empty))]
#[case::empty_and_more("-= -= -= -= -=", Verdict::Stuck(Empty))]
#[case::empty_and_failing_differently("A= B= C=", Shift(Empty))]
#[case::empty_and_failing_alike("A= A= A=", Shift(Same))]
#[case::empty_with_a_claim("-= -=! -= -=", Moving)]
#[case::a_commit_of_earlier_work("-= -=+ -= -=", Moving)]
#[case::empty_then_work("-= -= - -=", Moving)]
#[case::nobody_knows_the_tree("-? -? -? -? -? -?", Moving)]
#[case::work_without_gates("- - - - - - - -", Moving)]
// The work goes back and forth.
#[case::back_and_forth("-1 -2 -1 -2", Shift(BackAndForth))]
#[case::back_and_forth_from_the_start("-1 -0 -1", Shift(BackAndForth))]
#[case::back_and_forth_and_more("-1 -2 -1 -2 -1 -2", Verdict::Stuck(BackAndForth))]
#[case::back_and_forth_failing_differently("A1 B2 C1 D2", Shift(BackAndForth))]
#[case::taken_back_once("-1 -2 -1 -3", Moving)]
#[case::forth_and_on("-1 -2 -1 -2 -3", Moving)]
// What is worse is said.
#[case::stuck_before_shift("A= A= A B A B", Shift(Alternating))]
#[case::stuck_and_due("A1 A2 A1 A2 A1", Verdict::Stuck(Same))]
fn turns_amount_to(#[case] words: &str, #[case] verdict: Verdict) {
    assert_eq!(after(words).verdict(THRESHOLD), verdict, "{words}");
}

#[rstest]
#[case(0, "A", Shift(Same))]
#[case(1, "A", Shift(Same))]
#[case(1, "A A A", Verdict::Stuck(Same))]
#[case(2, "A A", Shift(Same))]
#[case(5, "A A A A", Moving)]
#[case(5, "A A A A A", Shift(Same))]
#[case(5, "A A A A A A A", Verdict::Stuck(Same))]
#[case::in_turn_needs_four_whatever_it_is(10, "A B A B", Shift(Alternating))]
fn the_threshold_is_a_number_of_turns(#[case] threshold: u32, #[case] words: &str, #[case] verdict: Verdict) {
    assert_eq!(after(words).verdict(threshold), verdict);
}

#[test]
fn the_last_failure_is_counted() {
    let stuck = after("B A A");
    assert_eq!((stuck.last(), stuck.count()), (Some(&failure('A')), 2));
    assert_eq!((after("A -").last(), after("A -").count()), (None, 0));
    assert_eq!(after("A B A B A").turns(Alternating), 5);
}

/// What may come behind a shift is what the tables say, whatever came before it.
fn any_turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (prop::char::range('@', 'C'), 0..6usize, any::<bool>(), any::<bool>()).prop_map(
        |(name, tree, committed, claimed)| Turn {
            failure: (name > '@').then(|| failure(name)),
            tree: (tree > 0).then(|| oid(tree)),
            committed,
            claimed,
        },
    );
    prop::collection::vec(turn, 0..24)
}

proptest! {
    #[test]
    fn something_new_resets_everything(before in any_turns()) {
        let mut stuck = Stuck::default();
        before.iter().for_each(|turn| stuck.after(turn));
        stuck.after(&Turn { failure: Some(failure('N')), tree: Some(oid(99)), ..Turn::default() });
        prop_assert_eq!(stuck.verdict(THRESHOLD), Moving);
    }

    #[test]
    fn nobody_is_stuck_without_a_shift(all in any_turns()) {
        let mut stuck = Stuck::default();
        let mut shifts = 0;
        for turn in &all {
            stuck.after(turn);
            match stuck.verdict(THRESHOLD) {
                Moving => shifts = 0,
                Shift(_) => shifts += 1,
                Verdict::Stuck(_) => { prop_assert!(shifts >= MORE); shifts = MORE; }
            }
        }
    }

    #[test]
    fn three_in_a_row_are_seen(before in any_turns(), n in 3usize..8) {
        let mut stuck = Stuck::default();
        before.iter().for_each(|turn| stuck.after(turn));
        for at in 0..n {
            stuck.after(&Turn { failure: Some(failure('N')), tree: Some(oid(100 + at)), ..Turn::default() });
        }
        let verdict = if n >= 5 { Verdict::Stuck(Same) } else { Shift(Same) };
        prop_assert_eq!(stuck.verdict(THRESHOLD), verdict);
    }

    #[test]
    fn a_directive_is_bounded_and_printable(words in "(\\PC|[\u{0}-\u{1f}]){0,60}", n in 0usize..12) {
        let long = words.repeat(n);
        let essence = Essence { tests: vec![long.clone(); n], errors: vec![long.clone(); n] };
        let failing = vec![Failing { gate: Some(&long), essence: &essence }; n];
        let files = vec![long.clone(); n];
        let tried = vec![Tried { iteration: u32::MAX, outcome: &long, files: &files, preview: Some(&long) }; n];
        let text = directive(Pattern::Alternating, u32::MAX, &failing, &tried);
        prop_assert!(text.len() <= LONGEST, "{}", text.len());
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}

#[test]
fn an_agent_is_told_what_fails_and_what_was_tried() {
    let essence = Essence {
        tests: vec!["tests::four".to_owned()],
        errors: vec!["assertion `left == right` failed".to_owned(), "left: \"IIII\"".to_owned()],
    };
    let files = ["src/lib.rs", "src/a.rs", "src/b.rs", "src/c.rs", "src/d.rs", "src/e.rs"].map(str::to_owned);
    let tried = [
        Tried {
            iteration: 4,
            outcome: "claimed; gate tests failed",
            files: &files,
            preview: Some("I fixed\n\u{1b}[1mit."),
        },
        Tried { iteration: 5, outcome: "exit code 1", files: &[], preview: None },
    ];
    let text = directive(Same, 3, &[Failing { gate: Some("tests"), essence: &essence }], &tried);
    assert_eq!(
        text,
        "STRATEGY SHIFT: the same failure came 3 times in a row, whatever was changed.\n\n\
         What fails, says gate tests:\n- test tests::four\n- assertion `left == right` failed\n- left: \"IIII\"\n\n\
         What was tried, and did not work:\n- iteration 4: claimed; gate tests failed; changed src/lib.rs, src/a.rs, \
         src/b.rs, src/c.rs, src/d.rs and 1 more; said: I fixed it.\n- iteration 5: exit code 1\n\n\
         Do not try any of this again. First find out why it fails, and check what you take for granted. Then do \
         something fundamentally different: another algorithm or data structure, another library or interface, the \
         simplest thing that could work, or one small part of it."
    );
}

#[rstest]
#[case(Alternating, "4 runs in a row ended with one of two failures: what mends one brings the other back.")]
#[case(BackAndForth, "4 runs in a row took the work back and forth between two states.")]
#[case(Empty, "4 runs in a row changed nothing, committed nothing and claimed nothing.")]
fn each_pattern_has_words(#[case] pattern: Pattern, #[case] words: &str) {
    let text = directive(pattern, 4, &[], &[]);
    assert!(text.starts_with(&format!("STRATEGY SHIFT: {words}\n\n")), "{text}");
    assert!(!text.contains("What fails") && !text.contains("What was tried"), "{text}");
}
