//! The summaries of test runners. A runner that the code under test ends, with `os._exit(0)` for instance, exits with 0
//! and prints no summary: a gate that passes so tested nothing, if it printed one before the first iteration.

use std::sync::LazyLock;

use regex::Regex;

use super::outcome::compiled;
use crate::text::printable;

/// The summary line of each runner that prints one whether its tests pass or fail. Words that a script of one's own may
/// print only for a failure (`2 tests failed`), and runners that are silent about success in a usual mode (Maven,
/// Gradle), are omitted: their absence says nothing.
const SUMMARIES: &[&str] = &[
    // cargo test
    r"^test result: (?:ok|FAILED)\. [0-9]+ passed; [0-9]+ failed; [0-9]+ ignored; [0-9]+ measured;",
    // nextest
    r"^ +Summary \[[^\]]*\] +[0-9]+(?:/[0-9]+)? tests? run: ",
    // pytest, also with -q
    r"^(?:=+ )?[0-9]+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed)\b[^\n]* in [0-9.]+s(?: \([0-9:]+\))?(?: =+)?$",
    // unittest, Django
    r"^Ran [0-9]+ tests? in [0-9.]+s$",
    // node --test, tap
    r"^(?:#|ℹ) (?:tests|pass) [0-9]+$",
    // mocha
    r"^ +[0-9]+ passing(?: \([0-9.]+\w+\))?$",
    // jest
    r"^Tests: +[^\n]*[0-9]+ total$",
    // vitest
    r"^ +Tests +[^\n]*\([0-9]+\)$",
    // go test
    r"^(?:ok  |FAIL)\t\S+\t(?:\(cached\)|[0-9.]+s)",
    // Deno
    r"^(?:ok|FAILED) \| [0-9]+ passed(?: \([0-9]+ steps?\))? \| [0-9]+ failed",
    // Bun
    r"^Ran [0-9]+ tests? across [0-9]+ files?\.",
    // PHPUnit
    r"^(?:OK \([0-9]+ tests?, [0-9]+ assertions?\)|Tests: [0-9]+, Assertions: [0-9]+)",
    // RSpec
    r"^[0-9]+ examples?, [0-9]+ failures?",
    // Minitest, test-unit
    r"^[0-9]+ (?:runs?|tests?), [0-9]+ assertions?, [0-9]+ failures?, [0-9]+ errors?",
    // ExUnit, bats
    r"^[0-9]+ tests?, [0-9]+ failures?",
    // CTest
    r"^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+",
    // the gate of `refrain run` for tests that the run makes
    r"^new-tests: [^\n]* (?:passed|failed)$",
];

static TABLE: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(SUMMARIES));

pub fn summaries(output: &str) -> u32 {
    let output = printable(output);
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    let output = lines.join("\n");
    let count = TABLE.iter().filter(|row| row.is_match(&output)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Why a gate that exited with 0 tested nothing: fewer runners printed their summary than did before the first
/// iteration.
pub fn lacks_summary(printed: u32, before: u32) -> Option<String> {
    let runners = |n: u32| match n {
        0 => "no test runner".to_owned(),
        1 => "1 test runner".to_owned(),
        n => format!("{n} test runners"),
    };
    (printed < before).then(|| {
        format!(
            "{} printed a summary, but {} did before the first iteration; the code under test may have ended the runner",
            runners(printed),
            runners(before)
        )
    })
}

/// Whether the command itself lets everything through that its runners print. One that writes it to a file, or takes
/// it, may show it only for a failure.
pub fn shows_output(command: &str) -> bool {
    let keeps = |(at, _): (usize, &str)| {
        let rest = command[at + 1..].trim_start_matches('>');
        !rest.starts_with('&') || rest.starts_with("&-")
    };
    !command.contains("$(") && !command.contains('`') && !command.match_indices('>').any(keeps)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(TABLE.len(), SUMMARIES.len());
    }

    #[rstest]
    #[case::cargo(
        "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
    )]
    #[case::nextest(
        "     Summary [   0.037s] 4/4 tests run: 3 passed, 1 failed, 0 skipped",
        "     Summary [   0.037s] 4 tests run: 4 passed, 0 skipped"
    )]
    #[case::pytest(
        "===== 2 failed, 3 passed in 0.12s =====",
        "===== 5 passed, 1 warning in 62.12s (0:01:02) ====="
    )]
    #[case::pytest_quiet("1 failed in 0.12s", "1 passed in 0.12s")]
    #[case::pytest_collection("=== 1 error in 0.09s ===", "=== 1 passed in 0.09s ===")]
    #[case::unittest("Ran 4 tests in 0.022s\n\nFAILED (failures=1)", "Ran 4 tests in 0.022s\n\nOK")]
    #[case::node("# tests 1\n# pass 0\n# fail 1", "ℹ tests 1\nℹ pass 1\nℹ fail 0")]
    #[case::mocha("  0 passing (5ms)\n  1 failing", "  1 passing (5ms)")]
    #[case::jest("Tests:       1 failed, 2 passed, 3 total", "Tests:       3 passed, 3 total")]
    #[case::vitest("      Tests  1 failed | 2 passed (3)", "      Tests  3 passed (3)")]
    #[case::go("--- FAIL: TestFour (0.00s)\nFAIL\texample.com/a\t0.01s", "ok  \texample.com/a\t(cached)")]
    #[case::deno("FAILED | 1 passed | 1 failed (5ms)", "ok | 2 passed (3 steps) | 0 failed (5ms)")]
    #[case::bun("Ran 3 tests across 1 file. [5.00ms]", "Ran 3 tests across 2 files. [5.00ms]")]
    #[case::phpunit("Tests: 3, Assertions: 3, Failures: 1.", "OK (3 tests, 3 assertions)")]
    #[case::rspec("3 examples, 1 failure", "3 examples, 0 failures")]
    #[case::minitest(
        "3 runs, 3 assertions, 1 failures, 0 errors, 0 skips",
        "3 runs, 3 assertions, 0 failures, 0 errors, 0 skips"
    )]
    #[case::exunit("3 tests, 1 failure", "3 tests, 0 failures")]
    #[case::ctest("50% tests passed, 1 tests failed out of 2", "100% tests passed, 0 tests failed out of 2")]
    #[case::of_run("new-tests: npm test failed", "new-tests: npm test passed")]
    fn a_summary_is_printed_for_both_ends(#[case] failed: &str, #[case] passed: &str) {
        assert_eq!((summaries(failed), summaries(passed)), (1, 1));
        assert_eq!(
            summaries(&format!("before\r\n{passed}\r\nafter")),
            1,
            "with the ends of lines of Windows"
        );
    }

    #[rstest]
    #[case::a_script_of_ones_own("2 tests failed")]
    #[case::words("1 failing check, and all 3 tests passed")]
    #[case::maven("Tests run: 3, Failures: 1, Errors: 0, Skipped: 0")]
    #[case::gradle("3 tests completed, 1 failed")]
    #[case::tap("1..2\nnot ok 1 - adds")]
    #[case::nothing("")]
    fn output_that_may_be_missing_after_a_pass_is_no_summary(#[case] output: &str) {
        assert_eq!(summaries(output), 0);
    }

    #[test]
    fn runners_are_counted_once_each() {
        let cargo = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(summaries(&format!("{cargo}{cargo}Ran 1 test in 0.1s\n")), 2);
    }

    #[test]
    fn fewer_summaries_than_before_are_a_reason() {
        assert_eq!(lacks_summary(1, 1), None);
        assert_eq!(lacks_summary(1, 0), None);
        let none = lacks_summary(0, 1).unwrap();
        assert!(none.starts_with("no test runner printed a summary, but 1 test runner did before"), "{none}");
        let fewer = lacks_summary(1, 2).unwrap();
        assert!(
            fewer.starts_with("1 test runner printed a summary, but 2 test runners did before"),
            "{fewer}"
        );
    }

    #[rstest]
    #[case("python3 -m unittest", true)]
    #[case("npm test 2>&1 | tail -n 20", true)]
    #[case("echo begin >&2; cargo test", true)]
    #[case("pytest > log 2>&1 || { cat log; exit 1; }", false)]
    #[case("pytest &> log || cat log", false)]
    #[case("pytest >> log || cat log", false)]
    #[case("out=$(pytest) || { echo \"$out\"; exit 1; }", false)]
    #[case("out=`pytest` || { echo \"$out\"; exit 1; }", false)]
    fn a_command_that_keeps_output_to_itself_is_known(#[case] command: &str, #[case] expected: bool) {
        assert_eq!(shows_output(command), expected);
    }
}
