//! What the lines of real tools look like. A flat table: the first row that fits a line says what it is.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Noise,
    /// It names a failing test, as `n`; and what is wrong, as `e`, if it says so.
    Test,
    /// A compiler's or linter's own complaint, as `e` or all of it. How many there are counts: one less is progress.
    Diagnostic,
    /// What is wrong, as `e` or all of it.
    Message,
    /// It may be what is wrong, or may belong to it.
    Detail,
    /// What is wrong is in the lines below it, up to an empty one.
    Headline,
    /// A warning: it and the lines that belong to it are skipped.
    Warning,
    /// A place in a program: the line below it is an excerpt.
    Frame,
    /// A file that the rows below it are about.
    File,
    /// A complaint about the [`Shape::File`] above it, as `e`.
    Row,
    /// A log line of a program, with the time in front.
    Log,
}

use Shape::{Detail, Diagnostic, File, Frame, Headline, Log, Message, Noise, Row, Test, Warning};

/// `\w`, `\s`, `\d` and `\b` are ASCII here.
pub(super) const SHAPES: &[(Shape, &str)] = &[
    // Any tool.
    (Noise, r"^[^0-9A-Za-z\x80-\xff]*$"),
    (Noise, r"^\[\.\.\. \d+ bytes left out \.\.\.\]$"),
    (Warning, r"^\s*warning(?:\[[^\]]*\])?: "),
    (Noise, r"^\s*\S+?:\d+(?::\d+)?: (?:warning|note|info|remark)\b"),
    (Noise, r"^\s*\d+%[ |].*\|"),
    (Noise, r"^\s*(?:\[.*\]\s*)?\d{1,3}%\s*$"),
    // rustc, cargo, nextest.
    (Message, r"^\s*\|[\s|]*.*[\^~] (?P<e>\S.*)$"),
    (Noise, r"^\s*>?\s*\d+\s*(?:\||│)|^\s+(?:\||│)|^\|$|^\s*\d+ +[-+~] "),
    (Detail, r"(?i)^\s*(?:Building|Installing|Running|Updating)\b.*\b(?:errors?|failed|failure)\b"),
    (
        Noise,
        r"^\s*(?:Compiling|Checking|Finished|Running|Doc-tests|Downloading|Downloaded|Updating|Blocking|Locking|Fresh|Building|Installing|Adding|Removing|Documenting|Packaging|Starting|Nextest run|Summary +\[|Canceling|Cancelling)\b",
    ),
    (
        Noise,
        r"^\s*(?:running \d+ tests?$|test result: |test .* \.\.\. (?:ok|ignored|bench:)|(?:failures|successes):$)",
    ),
    (Noise, r"^test .* has been running for over \d+ seconds"),
    (Test, r"^\s*test (?P<n>.+?)(?: - should panic)? \.\.\. FAILED"),
    (Test, r"^---- (?P<n>.+) stdout ----$"),
    (Headline, r"^\s*thread '[^']*' (?:\(\d+\) )?(?P<e>panicked at .*)$"),
    (
        Test,
        r"^\s*(?:TRY \d+ )?(?:FAIL|TIMEOUT|SIG[A-Z]+|ABORT|LEAK-FAIL) \[[^\]]*\] (?:\(\s*\d+/\d+\) )?(?P<n>.+)$",
    ),
    (Noise, r"^\s*(?:TRY \d+ )?(?:PASS|SLOW|LEAK|SKIP|FLAKY|DELAY|START|RETRY)\b.* \["),
    (
        Noise,
        r"^error: (?:could not compile|aborting due to|test failed, to rerun|\d+ targets? failed|test run failed|process didn't exit successfully: `rustc)",
    ),
    (
        Noise,
        r"^\s*(?:For more information about|Some errors have detailed|note: |help: |stack backtrace:|error: build failed)",
    ),
    (Diagnostic, r"^error(?:\[\w+\])?: .+$"),
    (Diagnostic, r"^\s*--> (?P<e>.+)$"),
    (Message, r"\bundefined (?:reference|symbols?)\b.*$"),
    (Noise, r"^\s*(?:::: |= (?:note|help): |\.\.\.$)"),
    (Noise, r"^\s+\d+: +(?:0x|[\w<].*::)"),
    // pytest, unittest, python.
    (
        Noise,
        r"^(?:platform|rootdir|plugins|cachedir|configfile|hypothesis profile|Using --randomly-seed|collecting|collected|testpaths|asyncio)[: ]",
    ),
    (Message, r"^=+ (?P<e>no tests (?:ran|collected))\b"),
    (Noise, r"^=+ .* =+$|^_{3,}.*_{3,}$|^(?:_ )+_$|^!+ .* !+$"),
    (Noise, r"^[.FEsxX]+(?: +\[ *\d+%\])?$|^\S+\.py [.FEsxX]+(?: +\[ *\d+%\])?$"),
    // Text that is cut at the width of the terminal is cut elsewhere next time.
    (Test, r"^(?:FAILED|ERROR) (?P<n>\S+::.+?|\S+\.py) - .*\.\.\.$"),
    (Test, r"^(?:\[gw\d+\] ?(?:\[ *\d+%\] ?)?)?(?:FAILED|ERROR) (?P<n>\S+::.+?|\S+\.py)(?: - (?P<e>.*))?$"),
    (Test, r"^(?P<n>\S+::.+?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$"),
    (Noise, r"^(?:\[gw\d+\].*(?:PASSED|SKIPPED|XFAIL|XPASS) |\S+::.* (?:PASSED|SKIPPED|XFAIL|XPASS)\b)"),
    (Noise, r"^\[gw\d+\] .* Python|^bringing up nodes|^created: \d+/\d+ workers?|^\d+ workers? \["),
    (Message, r"^E {2,}(?P<e>.+)$"),
    (Noise, r"^> {3,}\S"),
    (Frame, r#"^\s*File "(?P<e>[^"]+)", line \d+"#),
    (Noise, r"^\s*(?:Traceback \(most recent|During handling of the above|The above exception was)"),
    (Test, r"^(?:FAIL|ERROR): (?P<n>\w+ \([\w.<>]+\).*)$"),
    (Test, r"^(?P<n>\w+ \([\w.<>]+\)(?: \[.*\])?) \.\.\. (?:FAIL|ERROR)$"),
    (Noise, r" \.\.\. (?:ok|skipped.*|expected failure)$|^Ran \d+ tests? in |^FAILED \((?:failures|errors)"),
    // Go.
    (Test, r"^\s*--- FAIL: (?P<n>\S+)"),
    (
        Noise,
        r"^\s*--- (?:PASS|SKIP|BENCH): |^=== |^ok\s+\S+\s|^\?\s+\S+.*no test files|^(?:PASS|FAIL)$|^exit status \d+$",
    ),
    (Test, r"^FAIL\t(?P<n>\S+(?: \[.*\])?)"),
    (Message, r"^\s+(?P<e>[\w./-]+\.go:\d+: .+)$"),
    (Diagnostic, r"^(?:vet: )?(?P<e>[\w./-]+\.go:\d+:\d+: .+)$"),
    (Message, r"^(?:panic|fatal error): .+$"),
    (Noise, r"^goroutine \d+|^\s+\S+\.go:\d+ \+0x|^created by "),
    // TAP, node:test.
    (Noise, r"(?i)^\s*not ok \d+.* # (?:TODO|SKIP)\b"),
    (Test, r"^\s*not ok \d+(?: -)? ?(?P<n>.+?)(?: # .*)?$"),
    (Noise, r"^\s*ok \d+\b|^\s*\d+\.\.\d+(?:\s|$)|^TAP version"),
    (Noise, r"^\s*(?:#|ℹ) (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms|Subtest|ok)\b"),
    (Headline, r"^\s*(?:error|expected|actual): *(?:\|-?)?$"),
    (Noise, r"^\s*(?:duration_ms|type|location|stack|failureType): |^\s*stack: \|"),
    // jest, vitest, mocha, jasmine, npm.
    (Noise, r"^\s*(?:✖|×) (?:\d+ problems?|failing tests)\b"),
    (Test, r"^\s*FAIL\s+(?P<n>\S*[./]\S*.*?)(?: \([\d.]+ m?s\))?$"),
    (Noise, r"^\s*(?:PASS|RUNS)\s+\S|^\s*(?:✓|✔|√|○|↓|✎|ℹ|▶|✅|❯|⎯|🟢) ?"),
    (Test, r"^\s*(?:●|×|✕|✗|✖|✘|❌) (?P<n>.+?)(?: \(?[\d.]+ ?m?s\)?)?$"),
    (
        Noise,
        r"^\s*(?:Tests|Test Suites|Test Files|Snapshots|Time|Start at|Duration|Type Errors|Errors|Ran all test suites):?\s+(?:\d|no |matching|in )|^Ran all test suites",
    ),
    (Noise, r"^\s*\d+ (?:passing|pending|failing)\b"),
    (Test, r"^\s+\d+\) (?P<n>.+?):?$"),
    (Noise, r"^\s+at .+|^Node\.js v|^node:internal|^\s*(?:triggerUncaughtException|throw )"),
    (
        Noise,
        r"^npm (?:ERR!|error) (?:code ELIFECYCLE|errno|Exit status|Failed at|This is probably|A complete log|.*-debug|Lifecycle|command|path|workspace|location|Test failed|in workspace|at location)",
    ),
    (
        Noise,
        r"^npm (?:warn|WARN|notice|info)\b|^(?:yarn run|\$ |Done in|info Visit|error Command failed|\s*ELIFECYCLE)",
    ),
    (Noise, r"^> \S+@\d\S* "),
    // Java, Kotlin.
    (Test, r"^(?P<n>\S.* > .+) FAILED$"),
    (Noise, r"^\S.* > .+ (?:PASSED|SKIPPED|STANDARD_OUT|STANDARD_ERROR)$|^\[(?:INFO|WARNING|DEBUG)\]"),
    (
        Noise,
        r"^\[ERROR\]\s*(?:$|Tests run:|Failures:|Errors:|-> \[Help|To see the full|Re-run Maven|For more information|\[Help|After correcting|Failed to execute goal|There are test failures)",
    ),
    (
        Noise,
        r"^BUILD (?:FAILED|FAILURE) in |^> Task .*|^\d+ (?:actionable tasks?|tests completed)|^> (?:There were failing tests|Run with)|^\* (?:Try|Get more)",
    ),
    (
        Test,
        r"^\[ERROR\]\s+(?P<n>[A-Za-z_$][\w.$]*[.#][\w$]+(?:\([^)]*\))?)(?::\d+| --? ?Time elapsed.*| +Time elapsed.*)(?: +(?P<e>.*))?$",
    ),
    (Diagnostic, r"^\[ERROR\]\s+(?P<e>\S+\.\w+:\[\d+,\d+\].*)$"),
    (Diagnostic, r"^e: (?P<e>.+)$"),
    // .NET, TypeScript.
    (Test, r"^\s*Failed (?P<n>[\w.+`<>]+(?:\(.*\))?) \[[^\]]*\]$"),
    (
        Noise,
        r"^\s*Passed \S+|^(?:Failed|Passed)!\s+- |^\s*(?:Error Message|Stack Trace):$|^Total tests:|^\s+(?:Passed|Failed|Skipped|Total time): ",
    ),
    (Diagnostic, r"^\s*(?P<e>\S.*\(\d+(?:,\d+)*\): error \w+: .+?)(?: \[[^\]]*proj\])?$"),
    // ctest, googletest.
    (Test, r"^\s*\d+/\d+ Test\s+#\d+: (?P<n>\S+) [. ]*\*\*\*"),
    (
        Test,
        r"^\s*\d+ - (?P<n>.+) \((?:Failed|Timeout|SEGFAULT|Not Run|Exception|ILLEGAL|NUMERICAL|OTHER_FAULT|Subprocess.*)\)",
    ),
    (
        Noise,
        r"^\s*\d+/\d+ Test\s+#\d+: .*Passed|^\s*Start\s+\d+: |^\d+% tests passed|^Total Test time|^The following tests FAILED|^Errors while running CTest",
    ),
    (Test, r"^\[  FAILED  \] (?P<n>[\w/]+\.[\w/]+)(?:,.*)?(?: \(\d+ ms\))?$"),
    (Noise, r"^\[(?: +OK | RUN  +|-+|=+|  PASSED  |  FAILED  )\s*\]"),
    (Headline, r"^(?P<e>\S+:\d+: Failure)$"),
    // Compilers and linters.
    (Diagnostic, r"^(?P<e>\S.*?:\d+(?::\d+)?(?::| -) (?:fatal )?error\b.*)$"),
    (
        Noise,
        r"^collect2: |^In file included from|^\s+from \S+:\d+|^\S+: In (?:function|member function|instantiation)",
    ),
    (Diagnostic, r"^(?P<e>\S+:\d+:\d+: (?:[A-Z]{1,4}\d+|[CWEFR]:) .+)$"),
    (Diagnostic, r"^(?P<e>[A-Z]{1,4}\d{3,4} (?:\[\*\] )?.+)$"),
    (File, r"^(?P<e>(?:/|[A-Za-z]:\\|\./)?[\w@.+-]+(?:[/\\][\w@.+-]+)*\.\w{1,5})$"),
    (Row, r"^\s+\d+:\d+\s+error\s+(?P<e>.+)$"),
    (Noise, r"^\s+\d+:\d+\s+warning\s"),
    (
        Noise,
        r"^Found \d+ errors?\b|^\[\*\] \d+ fixable|^\s*\d+ errors? and \d+ warnings? potentially fixable|^\d+ files? inspected|^Inspecting \d+ files|^Success: no issues|^[.CWEFR]+$",
    ),
    // RSpec.
    (Test, r"^rspec (?P<n>\S+)"),
    (Message, r"^\s+(?P<e>Failure/Error: .+)$"),
    (Noise, r"^Finished in |^\d+ examples?, |^Randomized with seed|^Failed examples:|^\s+# \S+:\d+"),
    // Make, shells.
    (Noise, r"^make(?:\[\d+\])?: (?:Entering|Leaving|Nothing)"),
    (Message, r"^(?:[\w.$]+\.)?[A-Z]\w*(?:Error|Exception|Failure|Interrupt)(?: \[\w+\])?(?:: .*)?$"),
    (
        Message,
        r"^\s*(?:Uncaught |Unhandled |Caused by: )?(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)(?: \[\w+\])?: .*$",
    ),
    (Log, r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ]|^\[?\d\d:\d\d:\d\d|^\[?(?:INFO|DEBUG|TRACE|WARN|WARNING)\b"),
    (
        Detail,
        r"(?i)\b(?:errors?|err|fail|fails|failed|failures?|failing|fatal|panic|panicked|exception|abort|aborted|assert\w*|segmentation fault|core dumped|killed|timed? ?out|timeout|denied|refused|cannot|can't|unable|not found|no such|missing|undefined|unexpected|invalid|expect|expected|actual|received|got|want|wanted|but was|mismatch|differs?|left|right|unresolved|does not|doesn't|should)\b|\w(?:Error|Exception)\b|!=|^\s*(?:[-+] ?\S|[<>] )",
    ),
];

pub(super) struct Table {
    any: RegexSet,
    rows: Vec<(Shape, Regex)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A test sees that every row is an expression; one that is none would fit no line.
    let compiled = SHAPES.iter().filter_map(|(shape, row)| {
        let compiled = RegexBuilder::new(row).unicode(false).build().ok()?;
        Some((*row, (*shape, compiled)))
    });
    let (patterns, rows): (Vec<_>, Vec<_>) = compiled.unzip();
    let any = RegexSetBuilder::new(patterns).unicode(false).build().unwrap_or_else(|_| RegexSet::empty());
    Table { any, rows }
});

/// What a line is, with the name and the message in it. None if it fits no row.
pub(super) fn of(line: &str) -> Option<(Shape, Option<String>, Option<String>)> {
    let at = TABLE.any.matches(line.as_bytes()).iter().next()?;
    let (shape, row) = TABLE.rows.get(at)?;
    if row.captures_len() == 1 {
        return Some((*shape, None, None));
    }
    let found = row.captures(line.as_bytes())?;
    let part = |name| found.name(name).map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned());
    Some((*shape, part("n"), part("e")))
}

#[cfg(test)]
pub(super) fn is_built() -> bool {
    TABLE.rows.len() == SHAPES.len() && TABLE.any.len() == SHAPES.len()
}
