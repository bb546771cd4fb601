//! Whether a gate's output proves anything: a runner that found no test, and a gate that could not run, are failures
//! whatever their exit code is (issue 5). Both are recognized by the runners' own words, which are a table here.
//! Whether a gate passed follows from its exit code and these two.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::{clip, printable, squeeze};

/// The exit code of a shell if the command is there, and may not be executed.
pub const NOT_EXECUTABLE: i32 = 126;
/// The exit code of a shell if there is no such command.
pub const NOT_FOUND: i32 = 127;

/// How much of a line is quoted, in bytes.
const QUOTED: usize = 200;

/// Why a gate proved nothing: its runners found no test, or skipped every one. None if any test ran, or if no known
/// runner printed: the `exit 0` of a script of one's own counts.
///
/// Several runners may print in one output. One that found no test, beside one that ran some, is fine: cargo's
/// documentation tests, a package without tests in a workspace.
pub fn found_no_test(output: &str, exit: i32) -> Option<String> {
    let output = printable(output);
    if ran_a_test(&output, exit) {
        return None;
    }
    let counted = COUNTS.iter().filter_map(|row| row.find(&output));
    let first =
        EMPTY.iter().filter_map(|row| row.find(&output)).chain(counted).min_by_key(regex::Match::start);
    if let Some(found) = first {
        return Some(format!("no test ran: {}", quoted(&output, found.start())));
    }
    let is_pythons = output.trim().is_empty() || output.contains("pytest") || output.contains("unittest");
    (exit == 5 && is_pythons).then(|| "no test ran: exit code 5, as pytest and unittest end then".to_owned())
}

/// Why a gate could not run at all: its command is missing or may not be executed, or what it was to run is not
/// defined. None if it passed, or if tests ran: a test may well print `command not found`.
///
/// A gate with a time limit or a signal is no case for this: the exit code says so.
pub fn cannot_run(output: &str, exit: i32) -> Option<String> {
    let by_code = match exit {
        0 => return None,
        NOT_EXECUTABLE => Some("its command may not be executed (exit code 126)"),
        NOT_FOUND => Some("its command was not found (exit code 127)"),
        _ => None,
    };
    let output = printable(output);
    if by_code.is_none() && ran_a_test(&output, exit) {
        return None;
    }
    let first = MISSING.iter().filter_map(|row| row.find(&output)).min_by_key(regex::Match::start);
    match (by_code, first) {
        (Some(why), Some(found)) => Some(format!("{why}: {}", quoted(&output, found.start()))),
        (Some(why), None) => Some(why.to_owned()),
        (None, Some(found)) => Some(format!("it cannot run: {}", quoted(&output, found.start()))),
        (None, None) => None,
    }
}

/// The program that a shell, or a program that starts others, says it cannot find or execute; none if the line says
/// something else.
pub fn missing_program(line: &str) -> Option<&str> {
    const ENDS: [&str; 6] = [
        ": command not found",
        ": not found",
        ": No such file or directory",
        ": Permission denied",
        ": Is a directory",
        ": cannot execute: required file not found",
    ];
    let line = line.trim();
    let before = ENDS.iter().find_map(|end| line.strip_suffix(end))?;
    let before = before.strip_suffix(": bad interpreter").unwrap_or(before);
    // The text before it: the shell, the number of the line, "failed to run command".
    let word = before.rsplit(": ").next()?;
    let word = word.strip_prefix("failed to run command ").unwrap_or(word);
    let word = word.trim_matches(['\'', '"', '`', '\u{2018}', '\u{2019}']);
    (!word.is_empty()).then_some(word)
}

/// Whether any runner says that it ran a test. `output` is printable.
fn ran_a_test(output: &str, exit: i32) -> bool {
    let counts = |row: &Regex| {
        row.captures_iter(output).any(|found| {
            let number = |name| found.name(name).and_then(|n| n.as_str().parse::<u64>().ok()).unwrap_or(0);
            let ran = number("ran") + number("ran2") + number("ran3");
            ran > number("skipped") + number("skipped2")
        })
    };
    // A suite that crashed has no result; that it began is all there is to see.
    let began = || exit != 0 && BEGAN.iter().any(|row| row.is_match(output));
    COUNTS.iter().any(counts) || SOME.iter().any(|row| row.is_match(output)) || began()
}

/// The line that a match begins on, fit to be quoted.
fn quoted(output: &str, at: usize) -> String {
    let rest = output[at..].trim_start();
    let at = output.len() - rest.len();
    let begin = output[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = output[begin..].lines().next().unwrap_or_default();
    clip(&squeeze(line), QUOTED).into_owned()
}

type Rows = LazyLock<Vec<Regex>>;

/// Every pattern compiles; a test says so. The words are ASCII: their boundaries are found much faster for that.
pub(super) fn compiled(patterns: &[&str]) -> Vec<Regex> {
    let regex = |pattern: &&str| Regex::new(&format!("(?m){}", pattern.replace(r"\b", r"(?-u:\b)")));
    patterns.iter().filter_map(|pattern| regex(pattern).ok()).collect()
}

/// Results that count: tests ran if `ran`, `ran2` and `ran3` are more than `skipped`. The text before a count is left
/// open, because `pnpm -r`, turbo and docker put the package's name before each line.
static COUNTS: Rows = LazyLock::new(|| compiled(COUNT_PATTERNS));
const COUNT_PATTERNS: &[&str] = &[
    // cargo test
    r"test result: \w+\. (?<ran>[0-9]+) passed; (?<ran2>[0-9]+) failed; [0-9]+ ignored; (?<ran3>[0-9]+) measured",
    // nextest, also when cut short: `3/10 tests run`
    r"Summary \[[^\]]*\] +(?<ran>[0-9]+)(?:/[0-9]+)? tests? run",
    // pytest: `2 failed, 3 passed, 1 skipped in 0.12s`; an error of collection is no lack of tests
    r"(?<ran>[0-9]+) (?:passed|failed|errors?|xfailed|xpassed)\b[^\n]* in [0-9.]+s",
    r"[0-9]+ (?:skipped|deselected)[^\n]* in [0-9.]+s",
    // unittest, Django: the verdict is some lines below
    r"^Ran (?<ran>[0-9]+) tests? in [^\n]*\n\s*(?:(?:OK|FAILED)(?: \([^)\n]*?skipped=(?<skipped>[0-9]+))?)?",
    // node --test, tap
    r"^[^\n]*(?:#|ℹ) (?:pass|fail) +(?<ran>[0-9]+)\s*$",
    r"^[^\n]*(?:#|ℹ) tests +0\s*$",
    // mocha
    r"\b(?<ran>[0-9]+) (?:passing|failing)\b",
    // jest, vitest: `Tests:       1 failed, 2 passed, 3 total`, `Tests  1 failed | 2 passed (3)`
    r"\bTests:? +(?:[0-9]+ (?:skipped|todo)(?:, | \| ))*(?<ran>[0-9]+) (?:passed|failed)\b",
    r"\bTests:? +(?:[0-9]+ (?:skipped|todo)(?:, | \| | ))+(?:[0-9]+ total|\([0-9]+\))",
    r"\bTests: +0 total",
    // AVA, zig
    r"\b(?<ran>[0-9]+) tests? (?:passed|failed)\b",
    // Playwright
    r"^ +(?<ran>[0-9]+) (?:passed|failed)(?: \(|$)",
    // Deno
    r"\| (?<ran>[0-9]+) passed(?: \([0-9]+ steps?\))? \| (?<ran2>[0-9]+) failed",
    // Bun
    r"^ *(?<ran>[0-9]+) (?:pass|fail)$",
    // Karma
    r"Executed (?<ran>[0-9]+) of [0-9]+",
    // PHPUnit
    r"\bOK \((?<ran>[0-9]+) tests?, [0-9]+ assertions?\)",
    r"\bTests: (?<ran>[0-9]+), Assertions: [0-9]+(?:[^\n]*?\bSkipped: (?<skipped>[0-9]+))?",
    // RSpec
    r"\b(?<ran>[0-9]+) examples?, [0-9]+ failures?(?:, (?<skipped>[0-9]+) pending)?",
    // Minitest
    r"\b(?<ran>[0-9]+) runs?, [0-9]+ assertions?, [0-9]+ failures?, [0-9]+ errors?, (?<skipped>[0-9]+) skips?",
    // test-unit
    r"\b(?<ran>[0-9]+) tests?, [0-9]+ assertions?, [0-9]+ failures?, [0-9]+ errors?, (?<skipped>[0-9]+) pendings?",
    // ExUnit, bats
    r"\b(?<ran>[0-9]+) tests?, [0-9]+ failures?(?:, (?<skipped>[0-9]+) (?:excluded|skipped))?(?:, (?<skipped2>[0-9]+) skipped)?",
    // Surefire
    r"\bTests run: (?<ran>[0-9]+), Failures: [0-9]+, Errors: [0-9]+, Skipped: (?<skipped>[0-9]+)",
    // Gradle, if tests failed
    r"\b(?<ran>[0-9]+) tests? completed, [0-9]+ failed(?:, (?<skipped>[0-9]+) skipped)?",
    // dotnet test, and its newer reporter
    r"Failed: +(?<ran>[0-9]+), Passed: +(?<ran2>[0-9]+), Skipped: +[0-9]+",
    r"Test summary: total: (?<ran>[0-9]+), failed: [0-9]+, succeeded: [0-9]+, skipped: (?<skipped>[0-9]+)",
    // CTest
    r"[0-9]+% tests passed, [0-9]+ tests? failed out of (?<ran>[0-9]+)",
    // XCTest, Swift Testing
    r"Executed (?<ran>[0-9]+) tests?, with (?:(?<skipped>[0-9]+) tests? skipped)?",
    r"Test run with (?<ran>[0-9]+) tests?",
    // Bazel
    r"Executed [0-9]+ out of (?<ran>[0-9]+) tests?:",
    // Ginkgo
    r"\bRan (?<ran>[0-9]+) of [0-9]+ Specs",
];

/// Lines that only a test that ran has.
static SOME: Rows = LazyLock::new(|| compiled(SOME_PATTERNS));
const SOME_PATTERNS: &[&str] = &[
    // go test: `ok  pkg  0.01s`, but not `ok  pkg  0.01s [no tests to run]`
    r"^ok[ \t]+\S+[ \t]+(?:\(cached\)|[0-9.]+s)(?:[ \t]+coverage:[^\n\[]*)?$",
    r"^FAIL[ \t]+\S+[ \t]+[0-9.]+s$",
    r"^--- (?:PASS|FAIL): ",
    // TAP; `ok 1 # SKIP` is none
    r"^(?:not )?ok [0-9]+(?: - [^\n#]*| [^\n#]*)?$",
    // Gradle's task ran, or had run on the same input
    r"^> Task :(?:[\w:-]*:)?(?:test|[\w-]*Test|test[A-Z]\w*)(?: UP-TO-DATE| FROM-CACHE| FAILED)?$",
];

/// Signs that tests were begun, or would have been.
static BEGAN: Rows = LazyLock::new(|| compiled(BEGAN_PATTERNS));
const BEGAN_PATTERNS: &[&str] = &[
    r"^running [1-9][0-9]* tests?$",
    r"^collected [1-9][0-9]* items?$",
    r"^FAIL[ \t]+\S+ \[(?:build|setup) failed\]$",
];

/// The messages of runners that had nothing to do.
static EMPTY: Rows = LazyLock::new(|| compiled(EMPTY_PATTERNS));
const EMPTY_PATTERNS: &[&str] = &[
    // cargo, nextest
    r"^running 0 tests$",
    r"^error: no tests to run",
    // pytest, unittest
    r"\bno tests ran\b",
    r"^NO TESTS RAN",
    r"^collected 0 items",
    // go
    r"\[no test files\]",
    r"\[no tests to run\]",
    r"testing: warning: no tests to run",
    // jest, AVA, Playwright, Bun, Swift
    r"\b[Nn]o tests found\b",
    r"Your test suite must contain at least one test",
    // vitest, mocha
    r"[Nn]o test files found",
    r"\bTests +no tests\b",
    // Bun, Deno
    r"error: 0 test files matching",
    r"No test modules found",
    // TAP
    r"^1\.\.0(?: |$)",
    // PHPUnit, RSpec, ExUnit, CTest
    r"^No tests executed!",
    r"^No examples found\.",
    r"There are no tests to run",
    r"All tests have been excluded",
    r"^No tests were found!!!",
    // Surefire, Gradle
    r"\bNo tests to run\.",
    r"\bTests are skipped\.",
    r"^> Task :(?:[\w:-]*:)?(?:test|[\w-]*Test|test[A-Z]\w*) (?:NO-SOURCE|SKIPPED)$",
    // dotnet
    r"No test is available in ",
    r"No test matches the given testcase filter",
    // Bazel
    r"No test targets were found, yet testing was requested",
    // npm's placeholder, pnpm, turbo, nx, lerna
    r"no test specified",
    r#"None of the selected packages has an? "test"#,
    r"No tasks were executed as part of this run",
    r"No tasks were run",
    // make: a target without a recipe, or a folder of the target's name
    r"make(?:\[[0-9]+\])?: Nothing to be done for ",
    r"make(?:\[[0-9]+\])?: ['`][^'\n]+' is up to date\.",
];

/// Messages of a missing command, or a missing thing to run.
static MISSING: Rows = LazyLock::new(|| compiled(MISSING_PATTERNS));
const MISSING_PATTERNS: &[&str] = &[
    // Shells: `sh: 1: jest: not found`, `bash: line 1: x: command not found`, `zsh: command not found: x`
    r"^[^\n]*\bcommand not found\b",
    r"^(?:[\w./-]*sh|/[^\n:]*): (?:line )?[0-9]+: [^\n]+: (?:not found|Permission denied)$",
    r"^(?:[\w./-]*sh): (?:line )?(?:[0-9]+: )?[^\n]+: (?:No such file or directory|Permission denied|not found)$",
    r"^env: [^\n]+: (?:No such file or directory|Permission denied)$",
    r"bad interpreter: ",
    r"cannot execute: required file not found",
    r"^[^\n]*: Exec format error$",
    // make, just
    r"^make(?:\[[0-9]+\])?: (?:\w+: )?[^\n*]+: (?:No such file or directory|Permission denied)$",
    r"^make(?:\[[0-9]+\])?: \*\*\* (?:No rule to make target|No targets)",
    r"^make(?:\[[0-9]+\])?: \*\*\* [^\n]*Error 12[67]$",
    r"^error: (?:No justfile found|[Jj]ustfile does not contain recipe)",
    // Node
    r"^npm (?:error|ERR!) Missing script:",
    r"^npm (?:error|ERR!) enoent Could not read package\.json",
    r"ERR_PNPM_NO_SCRIPT",
    r"^error Command [^\n]+ not found\.$",
    r"^Usage Error: Couldn't find a script named",
    r"^error: Script not found ",
    r"npx canceled due to missing packages",
    // Python: by the interpreter, not by a test that imports
    r"^\S*python[0-9.]*(?:\.exe)?: No module named ",
    r"^error: Failed to spawn: ",
    r"^pyenv: [^\n]+: command not found",
    r"^pyenv: version [^\n]+ is not installed",
    r"^Command not found: ",
    // Rust
    r"^error: no such command: ",
    r"^error: could not find `Cargo\.toml`",
    r"^error: toolchain '[^']+' is not installed",
    r"^error: '[^']+' is not installed for the toolchain",
    // Go
    r"^go: (?:go\.mod file not found|cannot find main module)",
    r"^go: command not found",
    // The JVM
    r"Could not find or load main class org\.gradle\.wrapper",
    r"^ERROR: JAVA_HOME is not set",
    r"The JAVA_HOME environment variable is not defined correctly",
    // Others
    r"No \.NET SDKs were found",
    r"^\*\* \(Mix\) (?:The task |Could not find a Mix\.Project)",
    r"^bundler: (?:command not found|failed to load command)",
    r"^Could not locate Gemfile",
    r#"^ *Command "[^"\n]+" is not defined\."#,
    r"^Could not open input file: ",
];

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
