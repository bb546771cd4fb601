//! Which lines of a failure's output are quoted: not the tests that passed, nor frames of code outside the project (a
//! language's own library, its test runner, dependencies). Every quoted line is unchanged.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Lines that say that a test passed, or only that it is run.
const PASSING: &[&str] = &[
    // cargo, nextest.
    r"^\s*test .+ \.\.\. (?:ok|ignored(?:,.*)?)$",
    r"^\s*(?:PASS|START|SKIP) +\[",
    // unittest, pytest.
    r" \.\.\. (?:ok|skipped.*|expected failure)$",
    r"^(?:\[gw\d+\].*(?:PASSED|SKIPPED|XFAIL|XPASS) |\S+::.* (?:PASSED|SKIPPED|XFAIL|XPASS)\b)",
    // Go.
    r"^\s*--- (?:PASS|SKIP): |^=== (?:RUN|PAUSE|CONT|NAME)\b|^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)|^\?\s+\S+.*no test files",
    // TAP and node:test; what failed is named again on its own line.
    r"^\s*ok \d+\b|^\s*# Subtest: |^\s*(?:duration_ms: |type: 'test'$|type: 'suite'$|failureType: )",
    r"^\s*# (?:(?:suites|cancelled|skipped|todo) 0|duration_ms [\d.]+)$",
    // jest, vitest, mocha; googletest.
    r"^\s*(?:\xe2\x9c\x93|\xe2\x9c\x94|\xe2\x88\x9a) |^\s*PASS\s+\S",
    r"^\[ +(?:OK|RUN) +\]",
];

const FRAMES: &[&str] = &[
    // Node: its own files, and what was installed.
    r"^\s+(?:at )?.*\((?:node:|internal/)[^)]*\)(?: \{)?$",
    r"^\s+(?:at )?(?:async )?node:\S+:\d+:\d+$",
    r"^\s+at .*/node_modules/",
    r"^\s+(?:at )?(?:async )?(?:new )?\S+ \(<anonymous>\)$",
    // Java, .NET.
    r"^\s+at (?:java\.base/|(?:java|javax|jdk|sun|kotlin|org\.junit|org\.gradle|org\.apache\.maven)\.)|^\s+\.\.\. \d+ more$",
    r"^\s+at (?:System|Microsoft|Xunit|NUnit)\.",
];

/// A frame of Python, whose source follows, indented more.
const PYTHON: &str =
    r#"^(?P<indent>\s*)File "(?:[^"]*/lib(?:64)?/python[\d.]+/|[^"]*/(?:site|dist)-packages/|<frozen )"#;
/// A frame of a Rust backtrace, which may have its place on the next line.
const RUST: &str = r"^\s+\d+: +\S";
/// Such a place, in code that is not the project's.
const RUST_PLACE: &str =
    r"^\s+at (?:/rustc/|\S*/library/(?:std|core|alloc|test)/|\S*/\.cargo/registry/|\S*/toolchains/)";
/// Such a frame without a place.
const RUST_OWN: &str = r"^\s+\d+: +(?:0x[0-9a-f]+ - )?<*(?:std|core|alloc|test|__rustc|rust_begin_unwind|__rust_\w+|__libc_start_main|_start|clone|start_thread)\b";
/// The place of a Go frame, whose function is on the line before.
const GO_PLACE: &str = r"^\t\S*/(?:go|golang|pkg/mod)/\S+\.go:\d+";

struct Table {
    lines: RegexSet,
    python: Option<Regex>,
    rust: Option<Regex>,
    rust_place: Option<Regex>,
    rust_own: Option<Regex>,
    go_place: Option<Regex>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A test sees that every row is an expression; one that is none would leave its lines in.
    let one = |row: &str| RegexBuilder::new(row).unicode(false).build().ok();
    let lines = RegexSetBuilder::new(PASSING.iter().chain(FRAMES)).unicode(false).build();
    Table {
        lines: lines.unwrap_or_else(|_| RegexSet::empty()),
        python: one(PYTHON),
        rust: one(RUST),
        rust_place: one(RUST_PLACE),
        rust_own: one(RUST_OWN),
        go_place: one(GO_PLACE),
    }
});

fn fits(row: Option<&Regex>, line: &str) -> bool {
    row.is_some_and(|row| row.is_match(line.as_bytes()))
}

/// The output without passing tests and foreign frames; none if it has neither, or nothing would be left.
pub fn without_noise(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().collect();
    let mut kept: Vec<&str> = Vec::with_capacity(lines.len());
    let (mut at, mut dropped, mut dropped_before) = (0, false, false);
    while at < lines.len() {
        let noise = noise_at(&lines[at..]);
        if noise > 0 {
            (dropped, dropped_before) = (true, true);
            at += noise;
            continue;
        }
        let line = lines[at];
        // Two empty lines that only noise was between are one.
        let is_doubled = dropped_before
            && line.trim().is_empty()
            && kept.last().is_none_or(|last: &&str| last.trim().is_empty());
        if !is_doubled {
            kept.push(line);
            dropped_before = false;
        }
        at += 1;
    }
    let is_left = kept.iter().any(|line| !line.trim().is_empty());
    (dropped && is_left).then(|| kept.join("\n"))
}

/// How many of these lines, from the first on, are noise.
fn noise_at(lines: &[&str]) -> usize {
    let (Some(line), next) = (lines.first(), lines.get(1)) else { return 0 };
    if TABLE.lines.is_match(line.trim_end().as_bytes()) {
        return 1 + block_of_passed(line, &lines[1..]);
    }
    if let Some(found) = TABLE.python.as_ref().and_then(|row| row.captures(line.as_bytes())) {
        let indent = found.name("indent").map_or(0, |indent| indent.len());
        let is_source = |line: &&&str| indent_of(line) > indent && !line.trim().is_empty();
        return 1 + lines[1..].iter().take_while(is_source).count();
    }
    if fits(TABLE.rust.as_ref(), line) {
        return match next {
            Some(next) if fits(TABLE.rust_place.as_ref(), next) => 2,
            Some(next) if next.trim_start().starts_with("at ") => 0,
            Some(_) | None => usize::from(fits(TABLE.rust_own.as_ref(), line)),
        };
    }
    let is_call = line.ends_with(')') || line.starts_with("created by ");
    match next {
        Some(next) if is_call && fits(TABLE.go_place.as_ref(), next) => 2,
        Some(_) | None => 0,
    }
}

/// How many lines belong to a test that passed: the YAML block below its line in TAP.
fn block_of_passed(line: &str, below: &[&str]) -> usize {
    let is_passed = line
        .trim_start()
        .strip_prefix("ok ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if !is_passed || below.first().is_none_or(|line| line.trim() != "---") {
        return 0;
    }
    below.iter().position(|line| line.trim() == "...").map_or(0, |end| end + 1)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests;
