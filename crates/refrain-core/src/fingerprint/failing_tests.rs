//! Which tests failed, and out of how many, as far as the output of a known test runner says it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::output_digest::Reading;
use crate::text::printable;

/// The tests that failed in one run of a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailingTests {
    /// Their names, as far as the output holds them.
    pub names: BTreeSet<String>,
    /// How many failed by the runner's own count.
    pub failed: Option<u64>,
    /// How many were run by the runner's own count.
    pub total: Option<u64>,
}

impl FailingTests {
    /// How many failed: by the runner's own count, else by their names.
    pub fn count(&self) -> u64 {
        self.failed.unwrap_or(self.names.len() as u64)
    }
}

pub fn failing_tests(output: &str) -> FailingTests {
    let (failed, total) = tally(output);
    let names = without_repetitions(Reading::of(output).into_tests());
    let total = total.filter(|total| failed.is_some_and(|failed| failed <= *total));
    FailingTests { names, failed: failed.filter(|failed| *failed > 0), total }
}

/// A runner inside another one names a test again without the outer one's words: `roman tests::nine`, `tests::nine`.
fn without_repetitions(names: BTreeSet<String>) -> BTreeSet<String> {
    let is_repeated = |name: &String| {
        names.iter().any(|other| {
            other.len() > name.len()
                && other.strip_suffix(name.as_str()).is_some_and(|before| before.ends_with(' '))
        })
    };
    names.iter().filter(|name| !is_repeated(name)).cloned().collect()
}

/// The summary lines of test runners. `f` counts as failed, `t` as run, `p` as run and passed, `b` and `c` as run and
/// failed.
const SUMMARIES: &[&str] = &[
    // unittest.
    r"^Ran (?P<t>\d+) tests? in ",
    r"^FAILED \((?:failures=(?P<f>\d+))?(?:, )?(?:errors=(?P<g>\d+))?",
    // cargo test, nextest.
    r"^test result: \w+\. (?P<p>\d+) passed; (?P<b>\d+) failed;",
    r"^\s*Summary \[.*\] (?:\d+/)?(?P<t>\d+) tests? run: \d+ passed.*?, (?P<f>\d+) failed",
    // pytest.
    r"^(?:=+ )?(?:(?P<b>\d+) failed)?(?:, )?(?:(?P<p>\d+) passed)?(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?))*(?:, )?(?:(?P<c>\d+) errors?)? in \d",
    // node:test, ctest, RSpec, mocha.
    r"^(?:#|\xe2\x84\xb9) tests (?P<t>\d+)$",
    r"^(?:#|\xe2\x84\xb9) fail (?P<f>\d+)$",
    r"^\d+% tests passed, (?P<f>\d+) tests? failed out of (?P<t>\d+)",
    r"^(?P<t>\d+) examples?, (?P<f>\d+) failures?",
    r"^\s+(?P<p>\d+) passing\b",
    r"^\s+(?P<b>\d+) failing\b",
    // jest, vitest.
    r"^\s*Tests:\s+(?:(?P<f>\d+) failed, )?.*?(?P<t>\d+) total$",
    r"^\s*Tests\s+(?:(?P<f>\d+) failed \| )?.*\((?P<t>\d+)\)$",
];

static TABLE: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compile = |row: &&str| regex::bytes::RegexBuilder::new(row).unicode(false).build().ok();
    SUMMARIES.iter().filter_map(compile).collect()
});

/// How many failed and how many were run, over all runners that report both.
fn tally(output: &str) -> (Option<u64>, Option<u64>) {
    let (mut failed, mut total) = (None, None);
    let add = |sum: &mut Option<u64>, n: u64| *sum = Some(sum.unwrap_or(0_u64).saturating_add(n));
    for line in output.lines() {
        let line = printable(line);
        let line = line.trim_end().as_bytes();
        // Every summary has a number in it.
        if !line.iter().any(u8::is_ascii_digit) {
            continue;
        }
        let Some(found) = TABLE.iter().find_map(|row| row.captures(line)) else { continue };
        let number = |name| {
            let digits = found.name(name)?.as_bytes();
            std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        };
        for (name, fails, runs) in [
            ("f", true, false),
            ("g", true, false),
            ("t", false, true),
            ("p", false, true),
            ("b", true, true),
            ("c", true, true),
        ] {
            let Some(n) = number(name) else { continue };
            if fails {
                add(&mut failed, n);
            }
            if runs {
                add(&mut total, n);
            }
        }
    }
    (failed, total)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn every_row_is_an_expression() {
        assert_eq!(TABLE.len(), SUMMARIES.len());
    }

    #[rstest]
    #[case::unittest(
        "FAIL: test_day (t.T.test_day)\nERROR: test_x (t.T.test_x)\nRan 4 tests in 0.022s\n\nFAILED (failures=1, errors=1)\n",
        &["test_day (t.T.test_day)", "test_x (t.T.test_x)"], 2, Some(4)
    )]
    #[case::unittest_errors("ERROR: test_x (t.T.test_x)\nRan 1 test in 0.1s\nFAILED (errors=1)\n", &["test_x (t.T.test_x)"], 1, Some(1))]
    #[case::cargo_sums_its_targets(
        "test result: ok. 5 passed; 0 failed; 0 ignored\ntest a::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n",
        &["a::b"], 1, Some(7)
    )]
    #[case::nextest(
        "    test tests::nine ... FAILED\n  Summary [   0.037s] 4/4 tests run: 3 passed, 1 failed, 0 skipped\n        FAIL [   0.032s] (2/4) roman tests::nine\n",
        &["roman tests::nine"], 1, Some(4)
    )]
    #[case::pytest(
        "FAILED t.py::test_a - assert 1 == 2\n===== 2 failed, 3 passed, 1 skipped, 1 error in 0.12s =====\n",
        &["t.py::test_a"], 3, Some(6)
    )]
    #[case::pytest_quiet("FAILED t.py::test_a\n1 failed in 0.12s\n", &["t.py::test_a"], 1, Some(1))]
    #[case::node("not ok 1 - adds\n# tests 4\n# pass 3\n# fail 1\n", &["adds"], 1, Some(4))]
    #[case::node_spec("\u{2716} adds (1.5ms)\n\u{2139} tests 4\n\u{2139} pass 3\n\u{2139} fail 1\n", &["adds"], 1, Some(4))]
    #[case::jest("  \u{25cf} suite \u{203a} adds\n\nTests:       1 failed, 3 passed, 4 total\n", &["suite \u{203a} adds"], 1, Some(4))]
    #[case::mocha("  3 passing (5ms)\n  1 failing\n\n  1) adds:\n", &["adds"], 1, Some(4))]
    #[case::go("--- FAIL: TestFour (0.00s)\nFAIL\n", &["TestFour"], 1, None)]
    #[case::nothing("no rule to make the target\n", &[], 0, None)]
    #[case::all_passed("Ran 4 tests in 0.1s\nOK\n", &[], 0, None)]
    fn failing_tests_are_named_and_counted_for_each_test_runner(
        #[case] output: &str,
        #[case] names: &[&str],
        #[case] failed: u64,
        #[case] total: Option<u64>,
    ) {
        let found = failing_tests(output);
        assert_eq!(found.names.iter().map(String::as_str).collect::<Vec<_>>(), names);
        assert_eq!((found.count(), found.total), (failed, total));
    }
}
