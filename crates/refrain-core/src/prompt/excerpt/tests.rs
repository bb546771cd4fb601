//! Outputs of real tools, and what of them is quoted.

use proptest::prelude::*;
use rstest::rstest;

use super::{FRAMES, GO_PLACE, PASSING, PYTHON, RUST, RUST_OWN, RUST_PLACE, TABLE, without_noise};
use crate::fingerprint;

#[test]
fn every_rule_is_an_expression() {
    assert_eq!(TABLE.lines.len(), PASSING.len() + FRAMES.len());
    for row in [PYTHON, RUST, RUST_PLACE, RUST_OWN, GO_PLACE] {
        assert!(regex::bytes::Regex::new(row).is_ok(), "{row}");
    }
}

const TAP: &str = "\
TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 0.871364
  ...
# Subtest: parses
not ok 2 - parses
  ---
  duration_ms: 9.051913
  location: '/home/a/roman/a.test.js:4:1'
  failureType: 'testCodeFailure'
  error: '1 == 86400'
  expected: 86400
  actual: 1
  stack: |-
    TestContext.<anonymous> (/home/a/roman/a.test.js:4:27)
    Test.runInAsyncScope (node:async_hooks:206:9)
    Test.run (node:internal/test_runner/test:796:25)
    new Promise (<anonymous>)
    async Test.processPendingSubtests (node:internal/test_runner/test:526:7)
  ...
1..2
# tests 2
# suites 0
# pass 1
# fail 1
# cancelled 0
# duration_ms 206.024338
";

const TAP_QUOTED: &str = "\
TAP version 13
not ok 2 - parses
  ---
  location: '/home/a/roman/a.test.js:4:1'
  error: '1 == 86400'
  expected: 86400
  actual: 1
  stack: |-
    TestContext.<anonymous> (/home/a/roman/a.test.js:4:27)
  ...
1..2
# tests 2
# pass 1
# fail 1";

const UNITTEST: &str = "\
test_json (t.T.test_json) ... ERROR
test_ok (t.T.test_ok) ... ok

======================================================================
ERROR: test_json (t.T.test_json)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"/home/a/roman/t.py\", line 5, in test_json
    json.loads(\"{\")
    ^^^^^^^^^^^^^^^
  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads
    return _default_decoder.decode(s)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File \"/home/a/roman/.venv/lib/python3.12/site-packages/x.py\", line 337, in decode
    obj, end = self.raw_decode(s, idx=_w(s, 0).end())
  File \"<frozen importlib._bootstrap>\", line 1, in _find
json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)

----------------------------------------------------------------------
Ran 2 tests in 0.002s

FAILED (errors=1)
";

const UNITTEST_QUOTED: &str = "\
test_json (t.T.test_json) ... ERROR

======================================================================
ERROR: test_json (t.T.test_json)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"/home/a/roman/t.py\", line 5, in test_json
    json.loads(\"{\")
    ^^^^^^^^^^^^^^^
json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)

----------------------------------------------------------------------
Ran 2 tests in 0.002s

FAILED (errors=1)";

const CARGO: &str = "\
running 2 tests
test four ... FAILED
test one ... ok
test two ... ignored, slow

failures:

---- four stdout ----

thread 'four' (3846) panicked at src/lib.rs:3:21:
assertion `left == right` failed
  left: \"IIII\"
 right: \"IV\"
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/panicking.rs:689:5
   1: core::panicking::panic_fmt
   2: 0x558373b1b9f2 - std[e28293b1aa0f68bd]::panicking::panic_with_hook
   3: roman::four
             at ./src/lib.rs:3:21
   4: <fn() as core::ops::function::FnOnce<()>>::call_once
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ops/function.rs:250:5
   5: serde::de::from_str
             at /home/a/.cargo/registry/src/index.crates.io-6f17d22bba15001f/serde-1.0.0/src/de.rs:9:1

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.33s
";

const CARGO_QUOTED: &str = "\
running 2 tests
test four ... FAILED

failures:

---- four stdout ----

thread 'four' (3846) panicked at src/lib.rs:3:21:
assertion `left == right` failed
  left: \"IIII\"
 right: \"IV\"
stack backtrace:
   3: roman::four
             at ./src/lib.rs:3:21

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.33s";

const GO: &str = "\
=== RUN   TestOne
--- PASS: TestOne (0.00s)
=== RUN   TestFour
    a_test.go:9: got 3, want 4
--- FAIL: TestFour (0.00s)
panic: no wheel
goroutine 7 [running]:
testing.tRunner.func1.2({0x1, 0x2})
\t/usr/local/go/src/testing/testing.go:1632 +0x230
example.com/roman.Four(...)
\t/home/a/roman/a.go:3
created by testing.(*T).Run in goroutine 1
\t/usr/local/go/src/testing/testing.go:1743 +0x390
ok  \texample.com/other\t0.012s
FAIL
";

const GO_QUOTED: &str = "\x20   a_test.go:9: got 3, want 4
--- FAIL: TestFour (0.00s)
panic: no wheel
goroutine 7 [running]:
example.com/roman.Four(...)
\t/home/a/roman/a.go:3
FAIL";

const NODE_CRASH: &str = "\
Error: Cannot find module './nix'
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at Object.<anonymous> (/home/a/roman/a.js:1:1)
    at Runner.run (/home/a/roman/node_modules/mocha/lib/runner.js:9:1)
    at node:internal/process/execution:118:14
    at evalScript (node:internal/process/execution:133:3) {
  code: 'MODULE_NOT_FOUND'
}";

const NODE_CRASH_QUOTED: &str = "\
Error: Cannot find module './nix'
    at Object.<anonymous> (/home/a/roman/a.js:1:1)
  code: 'MODULE_NOT_FOUND'
}";

const OUTPUTS: [(&str, &str); 5] = [
    (TAP, TAP_QUOTED),
    (UNITTEST, UNITTEST_QUOTED),
    (CARGO, CARGO_QUOTED),
    (GO, GO_QUOTED),
    (NODE_CRASH, NODE_CRASH_QUOTED),
];

#[test]
fn passing_tests_and_foreign_frames_are_not_quoted() {
    for (output, quoted) in OUTPUTS {
        assert_eq!(without_noise(output).as_deref(), Some(quoted));
        assert_eq!(without_noise(quoted), None, "there is nothing more to leave out");
        let names = |text| fingerprint::failing_tests(text).names;
        assert_eq!(names(output), names(quoted), "no failing test is omitted");
    }
}

#[rstest]
#[case::plain("work is bad\n1 failed\n")]
#[case::empty("")]
#[case::nothing_would_be_left("ok 1 - adds\n\nok 2 - parses\n")]
#[case::words_that_only_look_so(
    "it is ok 1 time\nthe file internal/x (see node)\n  File \"/srv/lib/roman.py\", line 3\n    x\n"
)]
fn output_without_noise_is_not_changed(#[case] output: &str) {
    assert_eq!(without_noise(output), None);
}

proptest! {
    #[test]
    fn quoted_lines_keep_their_order(
        lines in prop::collection::vec(prop::sample::select(all_lines()), 0..60),
    ) {
        let output = lines.join("\n");
        if let Some(quoted) = without_noise(&output) {
            let mut rest = output.lines();
            for line in quoted.lines() {
                prop_assert!(rest.any(|other| other == line), "{line:?} is not in its place");
            }
            prop_assert!(!quoted.trim().is_empty() && quoted.len() < output.len());
        }
    }
}

fn all_lines() -> Vec<&'static str> {
    OUTPUTS.iter().flat_map(|(output, _)| output.lines()).collect()
}
