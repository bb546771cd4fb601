//! What holds for every output, and what people are shown. Which failures are the same is in [`super::pairs`].

use proptest::prelude::*;
use rstest::rstest;

use super::{FailureText, Fingerprint, Reading, essence, normal, of, shapes};

#[test]
fn every_rule_is_an_expression() {
    assert!(normal::is_built() && shapes::is_built());
}

/// The journals of a loop that is resumed by a later version hold these.
#[test]
fn fingerprints_stay_equal_across_versions() {
    let now: Vec<_> = GOLDEN.iter().map(|(gate, output, _)| of(gate, output)).collect();
    let before: Vec<_> = GOLDEN.iter().map(|(_, _, fingerprint)| *fingerprint).collect();
    assert_eq!(now.iter().map(Fingerprint::as_str).collect::<Vec<_>>(), before);
}

const GOLDEN: &[(&str, &str, &str)] = &[
    ("tests", "", "002e40254211a62e"),
    ("tests", "FAIL 14 is XIV, not XIIII\n", "0691cf6f31a26ba3"),
    ("tests", "test tests::four ... FAILED\n  left: 3\n", "93346691c9193993"),
    ("lint", "error[E0308]: mismatched types\n --> /home/a/b/src/lib.rs:3:4\n", "7e0758ec9d97c945"),
];

#[test]
fn fingerprints_differ_between_gates() {
    assert_ne!(of("tests", "FAIL x"), of("lint", "FAIL x"));
    assert_ne!(of("tests", "FAIL x"), of("tests\nline FAIL x", ""));
}

#[test]
fn a_fingerprint_is_text() {
    let fingerprint = of("tests", "FAIL x");
    let json = serde_json::to_string(&fingerprint).unwrap();
    assert_eq!(json, format!("\"{fingerprint}\""));
    assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint);
    for bad in ["", "0123", "0123456789ABCDEF", "0123456789abcdefg"] {
        assert!(bad.parse::<Fingerprint>().is_err(), "{bad:?}");
    }
}

#[rstest]
#[case::space("  a   b\t c ", "a b c")]
#[case::date("on 2026-11-21T10:00:00.123Z it", "on <time> it")]
#[case::date_in_words("Sat Nov 21 15:33:08 UTC 2026", "<time> <time> UTC 2026")]
#[case::duration("took 1h 2m 3.5s", "took <time>")]
#[case::not_a_duration("3 errors in 2 files", "3 errors in 2 files")]
#[case::address("at 0x7fe8c4b0f910", "at <address>")]
#[case::code("error 0xC0000005", "error 0xC0000005")]
#[case::little_hex("0x1F != 0x2F", "0x1F != 0x2F")]
#[case::pid("pid=123 (process: 45) [pid 6]", "pid <n> (process <n> [pid <n>")]
#[case::host("http://127.0.0.1:8080/a?b=c", "http://127.0.0.1/a")]
#[case::port("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED <host>")]
#[case::uuid("id 550e8400-e29b-41d4-a716-446655440000", "id <id>")]
#[case::oid("at 9f6e5c5 on main", "at <id> on main")]
#[case::word_of_hex_letters("defaced facade", "defaced facade")]
#[case::number("1234567 != 7654321", "1234567 != 7654321")]
#[case::relative("in src/lib.rs:10:5", "in src/lib.rs")]
#[case::absolute("in /home/a/roman/src/lib.rs:10:5", "in _/roman/src/lib.rs")]
#[case::temporary("in /tmp/.tmpAb3dE9/src/lib.rs", "in tmp/src/lib.rs")]
#[case::windows(r"in C:\work\roman\src\lib.rs:10", "in _/roman/src/lib.rs")]
#[case::bracketed("src/x.ts(1,5): error", "src/x.ts: error")]
#[case::line("at line 12, column 4", "at line <n>, column <n>")]
#[case::passed("3 failed, 12 passed", "3 failed, <n> passed")]
#[case::test_name("tests::utf8_to_utf16_in_7_steps", "tests::utf8_to_utf16_in_7_steps")]
#[case::value("expected 3.14, got 2.71", "expected 3.14, got 2.71")]
#[case::not_english("größer als 3 µs", "größer als <time>")]
fn a_line_is_compared_as(#[case] line: &str, #[case] normal: &str) {
    assert_eq!(normal::line(line), normal);
}

#[test]
fn people_see_names_and_first_lines_as_they_were_printed() {
    let output = "running 2 tests\ntest tests::four ... FAILED\ntest tests::one ... ok\n\n---- tests::four stdout \
                  ----\n\nthread 'tests::four' (9468) panicked at src/lib.rs:6:25:\nassertion `left == right` \
                  failed\n  left: \"\u{1b}[31mIIII\u{1b}[0m\"\n right: \"IV\"\nnote: run with `RUST_BACKTRACE=1`\n";
    let FailureText { tests, errors } = essence(output);
    assert_eq!(tests, ["tests::four"]);
    assert_eq!(
        errors,
        [
            "thread 'tests::four' (9468) panicked at src/lib.rs:6:25:",
            "assertion `left == right` failed",
            "left: \"IIII\"",
            "right: \"IV\"",
        ]
    );
    assert_eq!(essence("checking\nroman gave XIIII\n").errors, ["checking", "roman gave XIIII"]);
    assert_eq!(essence(""), FailureText::default());
}

#[test]
fn people_see_a_bounded_part() {
    let many: String =
        (0..1000).map(|n| format!("test t{n} ... FAILED\nerror: {n}{}\n", "x".repeat(2000))).collect();
    let FailureText { tests, errors } = essence(&many);
    assert_eq!((tests.len(), errors.len()), (FailureText::MOST, FailureText::MOST));
    assert!(tests.iter().chain(&errors).all(|line| line.len() <= FailureText::LINE));
}

/// Blocks of the output of tests that ran side by side, in any order.
const BLOCKS: &[&str] = &[
    "test tests::four ... FAILED\n",
    "---- tests::four stdout ----\n\nthread 'tests::four' (1) panicked at src/lib.rs:6:25:\nleft is right\n  left: 1\n\n",
    "test tests::nine ... FAILED\n",
    "---- tests::nine stdout ----\n\nthread 'tests::nine' (2) panicked at src/lib.rs:7:25:\nnine is not ten\n\n",
    "error[E0308]: mismatched types\n --> src/a.rs:1:2\n\n",
    "--- FAIL: TestFour (0.00s)\n    a_test.go:9: got 3, want 4\n",
    "FAILED tests/test_a.py::test_b - AssertionError: assert 3 == 4\n",
];

/// Lines that say nothing of a failure, in any place between such blocks.
const NOISE: &[&str] = &[
    "test tests::one ... ok\n",
    "   Compiling libc v0.2.1\n",
    "ok  \texample.com/other\t0.012s\n",
    "[gw0] [ 12%] PASSED test_roman.py::test_one\n",
    "    ✓ adds (3 ms)\n",
    "2026-11-21T10:00:01Z INFO server: listening on port 43817\n",
    "=== RUN   TestOne\n",
    "ok 3 - adds\n",
    "warning: unused variable: `error`\n --> src/lib.rs:1:2\n  |\n1 | let error = 1;\n  |     ^^^^^ help: prefix it\n\n",
    " 45% |####      | 12.3MB/s\n",
    "\u{1b}[2K\u{1b}[1G\u{1b}[32mPASS\u{1b}[0m src/a.test.js\n",
    "[INFO] Running RomanTest\n",
    "------\n",
];

proptest! {
    #[test]
    fn any_output_has_one(output in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}]){0,400}") {
        prop_assert_eq!(of("tests", &output), of("tests", &output));
        let _ = essence(&output);
    }

    #[test]
    fn a_normal_line_is_normal(words in prop::collection::vec(word(), 0..8)) {
        let once = normal::line(&words.join(" "));
        prop_assert_eq!(normal::line(&once), once);
    }

    #[test]
    fn the_order_of_parallel_tests_does_not_count(blocks in Just(BLOCKS.to_vec()).prop_shuffle()) {
        prop_assert_eq!(of("tests", &blocks.concat()), of("tests", &BLOCKS.concat()));
    }

    #[test]
    fn noise_between_does_not_count(noise in prop::collection::vec((0..=BLOCKS.len(), 0..NOISE.len()), 0..12)) {
        let mut output = String::new();
        for at in 0..=BLOCKS.len() {
            output.extend(noise.iter().filter(|(place, _)| *place == at).map(|(_, line)| NOISE[*line]));
            output.push_str(BLOCKS.get(at).unwrap_or(&""));
        }
        let plain = BLOCKS.concat();
        prop_assert_eq!(Reading::of(&output).items().collect::<Vec<_>>(), Reading::of(&plain).items().collect::<Vec<_>>());
    }

    #[test]
    fn each_block_counts(gone in 0..BLOCKS.len()) {
        // A name and its message are two blocks, either of which names the test.
        let left: String = BLOCKS.iter().enumerate().filter(|(at, _)| at / 2 != gone / 2).map(|(_, block)| *block).collect();
        prop_assert_ne!(of("tests", &left), of("tests", &BLOCKS.concat()));
    }
}

/// The parts of lines.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z]{1,10}[:,.]?",
        "[0-9]{1,12}",
        "(/[a-z0-9_.-]{1,8}){2,5}(:[0-9]{1,3}){0,3}",
        "[a-z]{1,6}(/[a-zA-Z0-9_.-]{1,8}){1,4}(:[0-9]{1,3}){0,3}",
        "(lib.rs|a_test.go|x.spec.ts)((:[0-9]{1,3}){0,3}|[(][0-9]{1,3},[0-9]{1,2}[)])",
        "(/tmp|/var/tmp|/dev/shm)(/[.]?[a-zA-Z0-9_.-]{1,8}){0,5}",
        "C:(\\\\[a-zA-Z0-9_.]{1,8}){1,4}(:[0-9]{1,3})?",
        "[0-9]{1,4}(ms|s|m|h| ms| MiB|%|kB)",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
        "0x[0-9a-f]{1,16}",
        "[0-9a-f]{7,64}",
        "(pid|port|seed|worker|line|thread)[ =:#]?[0-9]{1,6}",
        "https?://[a-z0-9.]{1,8}(:[0-9]{2,5})?(/[a-z0-9.]{1,8}){0,3}([?]a=[0-9])?",
        "\\[ {0,2}[0-9]{1,3}(%|/[0-9]{1,3})\\]",
        "[\"'`<>(){}\\[\\]!=&|+*-]{1,3}",
        "\\PC{1,6}",
    ]
}
