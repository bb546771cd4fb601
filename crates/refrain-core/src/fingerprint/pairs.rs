//! Labelled pairs of failures. Each row is an output as a tool prints it and what is changed in it: the two are the
//! same failure, or are not. A label says why the row is there.

use super::of;

/// The changes that turn the first of a pair into the second.
type Changes = &'static [(&'static str, &'static str)];

const SAME: bool = true;
const DIFFER: bool = false;

const CARGO: &str = r#"   Compiling roman v0.1.0 (/home/a/roman)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.70s
     Running unittests src/lib.rs (target/debug/deps/roman-6981f4c9c0f862d7)

running 3 tests
test tests::four ... FAILED
test tests::one ... ok
test tests::nine ... FAILED

failures:

---- tests::four stdout ----

thread 'tests::four' (9468) panicked at src/lib.rs:6:25:
assertion `left == right` failed
  left: "IIII"
 right: "IV"
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::nine stdout ----

thread 'tests::nine' (9469) panicked at src/lib.rs:7:25:
assertion `left == right` failed: nine is special
  left: "IIIIIIIII"
 right: "IX"


failures:
    tests::four
    tests::nine

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: test failed, to rerun pass `--lib`
"#;

const RUSTC: &str = r#"warning: unused variable: `unused`
 --> src/main.rs:2:9
  |
2 |     let unused = 3;
  |         ^^^^^^ help: if this is intentional, prefix it with an underscore: `_unused`
  |
  = note: `#[warn(unused_variables)]` on by default

error[E0425]: cannot find value `y` in this scope
 --> src/main.rs:4:20
  |
4 |     println!("{}", y);
  |                    ^
  |
help: a local variable with a similar name exists
  |
4 -     println!("{}", y);
4 +     println!("{}", x);
  |

error[E0308]: mismatched types
 --> src/main.rs:3:18
  |
3 |     let x: i32 = "a";
  |            ---   ^^^ expected `i32`, found `&str`
  |            |
  |            expected due to this

Some errors have detailed explanations: E0308, E0425.
For more information about an error, try `rustc --explain E0308`.
warning: `roman` (bin "roman") generated 1 warning
error: could not compile `roman` (bin "roman") due to 2 previous errors; 1 warning emitted
"#;

const NEXTEST: &str = r#" Nextest run ID 1cae5144-e0c5-4ab7-9de9-f11dc2065b03 with nextest profile: default
    Starting 4 tests across 1 binary
        PASS [   0.011s] (1/4) roman tests::one
        FAIL [   0.032s] (2/4) roman tests::nine
  stdout ───

    running 1 test
    test tests::nine ... FAILED

    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s

  stderr ───

    thread 'tests::nine' (9512) panicked at src/lib.rs:7:25:
    assertion `left == right` failed: nine is special
      left: "IIIIIIIII"
     right: "IX"
    note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

────────────
     Summary [   0.037s] 4/4 tests run: 3 passed, 1 failed, 0 skipped
        FAIL [   0.032s] (2/4) roman tests::nine
error: test run failed
"#;

const PYTEST: &str = r#"============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0
rootdir: /home/a/roman
plugins: xdist-3.8.0
collected 8 items

test_roman.py .FF                                                        [ 62%]

=================================== FAILURES ===================================
__________________________________ test_four ___________________________________

>   def test_four(): assert roman(4) == "IV"
                     ^^^^^^^^^^^^^^^^^^^^^^^
E   AssertionError: assert 12 == 'IV'
E    +  where 12 = roman(4)

test_roman.py:4: AssertionError
______________________________ TestMore.test_p[1] ______________________________

self = <test_roman.TestMore object at 0x7fe8c4b0f910>, n = 1
tmp_path = PosixPath('/tmp/pytest-of-root/pytest-0/test_p_1_0')

>       raise ValueError(f"bad file {tmp_path}/x {object()}")
E       ValueError: bad file /tmp/pytest-of-root/pytest-0/test_p_1_0/x <object object at 0x7fe8c60c5e30>

test_roman.py:10: ValueError
=========================== short test summary info ============================
FAILED test_roman.py::test_four - AssertionError: assert 12 == 'IV'
FAILED test_roman.py::TestMore::test_p[1] - ValueError: bad file /tmp/pytest-...
========================= 2 failed, 2 passed in 0.07s ==========================
"#;

const XDIST: &str = r#"created: 2/2 workers
2 workers [8 items]

[gw0] [ 12%] PASSED test_roman.py::test_one
[gw1] [ 25%] FAILED test_roman.py::TestMore::test_nine
[gw0] [ 37%] FAILED test_roman.py::test_four
______________________________ TestMore.test_nine ______________________________
[gw1] linux -- Python 3.11.7 /home/a/venv/bin/python3
E   AssertionError: assert 27 == 'IX'
"#;

const UNITTEST: &str = r#"FE.
======================================================================
ERROR: test_b (test_u.T.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/a/py/test_u.py", line 4, in test_b
    return self.fails_to_find("b")
KeyError: 'b'

======================================================================
FAIL: test_a (test_u.T.test_a)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/a/py/test_u.py", line 3, in test_a
    def test_a(self): self.assertEqual(3, 4)
AssertionError: 3 != 4

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, errors=1)
"#;

const JEST: &str = "
> proj@1.0.0 test
> jest

\u{1b}[7m\u{1b}[31m FAIL \u{1b}[39m\u{1b}[27m ./a.test.js
  roman
    ✕ four (20 ms)
    ✓ ok (4 ms)

  ● roman › four

    expect(received).toBe(expected) // Object.is equality

    Expected: \"IV\"
    Received: \"IIII\"

    > 1 | test(\"four\", () => { expect(roman(4)).toBe(\"IV\"); });
        |                                        ^
      2 |

      at Object.toBe (a.test.js:1:71)

Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 passed, 2 total
Snapshots:   0 total
Time:        0.615 s, estimated 2 s
Ran all test suites.
";

const VITEST: &str = r#" RUN  v4.1.12 /home/a/js

 ❯ a.spec.mjs (3 tests | 2 failed) 73ms
     × obj 32ms
     ✓ ok 1ms

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  a.spec.mjs > roman > obj
AssertionError: expected { a: 1, b: 2 } to deeply equal { a: 1, b: 3 }

- Expected
+ Received

  {
    "a": 1,
-   "b": 3,
+   "b": 2,
  }

 ❯ a.spec.mjs:2:117
    1| import { test } from "vitest";
     |        ^

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/1]⎯

 Test Files  1 failed (1)
      Tests  1 failed | 1 passed (2)
   Start at  15:48:32
   Duration  1.11s (transform 69ms, setup 0ms, import 127ms, tests 73ms, environment 0ms)
"#;

const MOCHA: &str = r#"
  roman
    1) four
    ✔ ok

  1 passing (16ms)
  1 failing

  1) roman
       four:

      AssertionError [ERR_ASSERTION]: 'IIII' == 'IV'
      + expected - actual

      -IIII
      +IV

      at Context.<anonymous> (mo/m.js:2:51)
      at process.processImmediate (node:internal/timers:483:21)
"#;

const NODE: &str = r#"TAP version 13
# Subtest: nine
not ok 1 - nine
  ---
  duration_ms: 5.914928
  location: '/home/a/js/n.test.cjs:2:71'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be loosely deep-equal:
  code: 'ERR_ASSERTION'
  expected:
    a: 2
  actual:
    a: 1
  operator: 'deepEqual'
  stack: |-
    TestContext.<anonymous> (/home/a/js/n.test.cjs:2:99)
    Test.run (node:internal/test_runner/test:796:25)
  ...
# Subtest: ok
ok 2 - ok
  ---
  duration_ms: 0.177084
  ...
1..2
# tests 2
# pass 1
# fail 1
# duration_ms 321.289231
"#;

const GO: &str = "=== RUN   TestFour
    roman_test.go:9: Roman(4) = IIII, want IV
--- FAIL: TestFour (0.00s)
=== RUN   TestOne
--- PASS: TestOne (0.00s)
FAIL
FAIL\texample.com/roman\t0.003s
ok  \texample.com/other\t0.012s
FAIL
";

const GO_PANIC: &str = "--- FAIL: TestNine (0.00s)
panic: runtime error: index out of range [3] with length 3 [recovered]

goroutine 7 [running]:
testing.tRunner.func1.2({0x4b2e80, 0xc00001c0f0})
\t/usr/local/go/src/testing/testing.go:1545 +0x1d7
example.com/roman.Roman(0x9)
\t/home/a/roman/roman.go:12 +0x1d
exit status 2
FAIL\texample.com/roman\t0.005s
";

const GRADLE: &str = r"> Task :compileJava UP-TO-DATE
> Task :test FAILED

RomanTest > four() FAILED
    org.opentest4j.AssertionFailedError: expected: <IV> but was: <IIII>
        at app//org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
        at app//RomanTest.four(RomanTest.java:10)

RomanTest > one() PASSED

2 tests completed, 1 failed

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':test'.
> There were failing tests. See the report at: file:///home/a/roman/build/reports/tests/test/index.html

BUILD FAILED in 3s
";

const MAVEN: &str = r"[INFO] Running RomanTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! -- in RomanTest
[ERROR] RomanTest.four -- Time elapsed: 0.012 s <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <IV> but was: <IIII>
	at RomanTest.four(RomanTest.java:10)

[ERROR] Failures: 
[ERROR]   RomanTest.four:10 expected: <IV> but was: <IIII>
[INFO] Total time:  2.345 s
[INFO] Finished at: 2026-11-21T10:00:00Z
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test (default-test)
";

const DOTNET: &str = r"  Determining projects to restore...
  Passed Roman.Tests.One [3 ms]
  Failed Roman.Tests.Four [12 ms]
  Error Message:
   Assert.Equal() Failure: Values differ
Expected: IV
Actual:   IIII
  Stack Trace:
     at Roman.Tests.Four() in /home/a/Roman/Tests.cs:line 10

Failed!  - Failed:     1, Passed:     1, Skipped:     0, Total:     2, Duration: 15 ms - Roman.dll (net8.0)
";

const CTEST: &str = r"    Start 1: adds
1/2 Test #1: adds .............................***Failed    0.01 sec
    Start 2: quick
2/2 Test #2: quick ............................   Passed    0.02 sec

50% tests passed, 1 tests failed out of 2

Total Test time (real) =   0.03 sec

The following tests FAILED:
	  1 - adds (Failed)
Errors while running CTest
";

const GTEST: &str = r"[==========] Running 2 tests from 1 test suite.
[ RUN      ] Roman.Four
roman_test.cc:10: Failure
Expected equality of these values:
  roman(4)
    Which is: IIII
  IV
[  FAILED  ] Roman.Four (0 ms)
[ RUN      ] Roman.One
[       OK ] Roman.One (0 ms)
[==========] 2 tests from 1 test suite ran. (1 ms total)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Roman.Four
";

const GCC: &str = r"a.c: In function ‘main’:
a.c:1:26: warning: initialization of ‘int’ from ‘char *’ makes integer from pointer without a cast [-Wint-conversion]
    1 | int main(void) { int x = 3; return y; }
      |                          ^
a.c:1:38: error: ‘y’ undeclared (first use in this function)
    1 | int main(void) { int x = 3; return y; }
      |                                    ^
a.c:1:38: note: each undeclared identifier is reported only once for each function it appears in
make: *** [Makefile:3: all] Error 1
";

const LD: &str = r"/usr/bin/ld: /tmp/ccX3kd9a.o: in function `main':
a.c:(.text+0x9): undefined reference to `roman'
collect2: error: ld returned 1 exit status
";

const TSC: &str = r"src/x.ts(1,5): error TS2322: Type 'string' is not assignable to type 'number'.
src/x.ts(7,22): error TS2304: Cannot find name 'foo'.
";

const ESLINT: &str = r"
/home/a/js/src/e.js
  1:7   error    'x' is assigned a value but never used  no-unused-vars
  1:12  warning  Missing semicolon                       semi

/home/a/js/src/f.js
  2:1   error    'foo' is not defined                    no-undef

✖ 3 problems (2 errors, 1 warning)
  0 errors and 1 warning potentially fixable with the `--fix` option.
";

const MYPY: &str = r#"roman.py:3: error: Incompatible return value type (got "int", expected "str")  [return-value]
roman.py:9: note: Revealed type is "builtins.int"
Found 1 error in 1 file (checked 1 source file)
"#;

const RUFF: &str = r"F401 [*] `os` imported but unused
 --> src/roman.py:1:8
  |
1 | import os
  |        ^^
2 | def roman(n: int) -> str:
  |
help: Remove unused import: `os`

Found 1 error.
[*] 1 fixable with the `--fix` option.
";

const RUBOCOP: &str = r"Inspecting 2 files
.C

Offenses:

lib/a.rb:3:5: C: [Correctable] Style/StringLiterals: Prefer single-quoted strings

2 files inspected, 1 offense detected, 1 offense autocorrectable
";

const RSPEC: &str = r"Randomized with seed 12345
.F

Failures:

  1) Roman makes four
     Failure/Error: expect(roman(4)).to eq('IV')

       expected: 'IV'
            got: 'IIII'

       (compared using ==)
     # ./spec/roman_spec.rb:5:in `block (2 levels) in <top (required)>'

Finished in 0.01234 seconds (files took 0.1 seconds to load)
2 examples, 1 failure

Failed examples:

rspec ./spec/roman_spec.rb:4 # Roman makes four

Randomized with seed 12345
";

const SHELL: &str = r"start pid 4711
+ got=4
+ for i in 1 2
checking 1
checking 2
+ ./roman 14
roman gave XIIII
";

const NOT_FOUND: &str = "./test.sh: line 4: nosuchcommand: command not found\n";

const LOGS: &str = r"2026-11-21 10:00:01,123 INFO server: listening on 127.0.0.1:43817 (pid 991)
2026-11-21 10:00:01,500 DEBUG request 550e8400-e29b-41d4-a716-446655440000 took 12ms
Downloading model 45% |####      | 12.3MB/s
Could not connect to http://localhost:43817/health?nonce=8f3a2b1c after 3 attempts
bad commit 9f6e5c5d1a2b3c4d5e6f708192a3b4c5d6e7f809 in /home/a/.cache/checkouts/roman-8f3ab12c/src/lib.rs
";

#[rustfmt::skip]
const PAIRS: &[(&str, &str, Changes, bool)] = &[
    // cargo test.
    ("cargo: nothing changed", CARGO, &[], SAME),
    ("cargo: durations", CARGO, &[("0.70s", "1m 03s"), ("in 0.01s", "in 2.34s")], SAME),
    ("cargo: thread ids", CARGO, &[("(9468)", "(31337)"), ("(9469)", "(31338)")], SAME),
    ("cargo: an older one has no thread ids", CARGO, &[(" (9468)", ""), (" (9469)", "")], SAME),
    ("cargo: another hash of the binary", CARGO, &[("6981f4c9c0f862d7", "0123456789abcdef")], SAME),
    ("cargo: nothing was compiled", CARGO, &[("   Compiling roman v0.1.0 (/home/a/roman)\n", "")], SAME),
    ("cargo: another folder", CARGO, &[("/home/a/roman", "/tmp/x.Ab3dE9/roman")], SAME),
    ("cargo: lines moved", CARGO, &[("lib.rs:6:25", "lib.rs:61:9"), ("lib.rs:7:25", "lib.rs:70:9")], SAME),
    ("cargo: tests ran in another order", CARGO, &[("test tests::four ... FAILED\ntest tests::one ... ok\n", "test tests::one ... ok\ntest tests::four ... FAILED\n")], SAME),
    ("cargo: another test was added and passes", CARGO, &[("test tests::one ... ok", "test tests::one ... ok\ntest tests::two ... ok"), ("running 3", "running 4"), ("1 passed", "2 passed")], SAME),
    ("cargo: the hint stands below the other panic", CARGO, &[("note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", ""), (" right: \"IX\"\n", " right: \"IX\"\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n")], SAME),
    ("cargo: a warning came", CARGO, &[("    Finished", "warning: unused variable: `error`\n --> src/lib.rs:1:2\n  |\n1 | let error = 1;\n  |     ^^^^^ help: prefix it\n\n    Finished")], SAME),
    ("cargo: another test fails", CARGO, &[("tests::nine", "tests::ten")], DIFFER),
    ("cargo: one test less fails", CARGO, &[("test tests::nine ... FAILED", "test tests::nine ... ok"), ("---- tests::nine stdout ----\n\nthread 'tests::nine' (9469) panicked at src/lib.rs:7:25:\nassertion `left == right` failed: nine is special\n  left: \"IIIIIIIII\"\n right: \"IX\"\n", "")], DIFFER),
    ("cargo: another wrong value", CARGO, &[("left: \"IIII\"", "left: \"IIV\"")], DIFFER),
    ("cargo: another message", CARGO, &[("nine is special", "nine is nine")], DIFFER),
    ("cargo: a panic instead", CARGO, &[("assertion `left == right` failed\n  left: \"IIII\"\n right: \"IV\"", "index out of bounds: the len is 0 but the index is 3")], DIFFER),
    ("cargo: the panic is elsewhere", CARGO, &[("src/lib.rs:6:25", "src/numerals.rs:6:25")], DIFFER),
    // rustc.
    ("rustc: lines moved", RUSTC, &[("main.rs:4:20", "main.rs:14:20"), ("main.rs:3:18", "main.rs:13:18"), ("4 |", "14 |"), ("3 |", "13 |")], SAME),
    ("rustc: the source around it changed", RUSTC, &[("let x: i32 = \"a\";", "let number: i32 = \"b\";")], SAME),
    ("rustc: a warning less", RUSTC, &[("warning: unused variable: `unused`\n --> src/main.rs:2:9\n  |\n2 |     let unused = 3;\n  |         ^^^^^^ help: if this is intentional, prefix it with an underscore: `_unused`\n  |\n  = note: `#[warn(unused_variables)]` on by default\n\n", ""), ("; 1 warning emitted", "")], SAME),
    ("rustc: errors came in another order", RUSTC, &[("E0425]: cannot find value `y` in this scope", "E0308]: mismatched types"), ("\nerror[E0308]: mismatched types\n --> src/main.rs:3:18", "\nerror[E0425]: cannot find value `y` in this scope\n --> src/main.rs:3:18")], SAME),
    ("rustc: another code", RUSTC, &[("E0308", "E0277")], DIFFER),
    ("rustc: other types", RUSTC, &[("found `&str`", "found `String`")], DIFFER),
    ("rustc: another name", RUSTC, &[("value `y`", "value `z`")], DIFFER),
    ("rustc: another file", RUSTC, &[("src/main.rs:3:18", "src/roman.rs:3:18")], DIFFER),
    ("rustc: the same error once more", RUSTC, &[("Some errors", "error[E0308]: mismatched types\n --> src/main.rs:33:18\n  |\n  |   ^^^ expected `i32`, found `&str`\n\nSome errors")], DIFFER),
    // nextest.
    ("nextest: run, durations, thread ids, order", NEXTEST, &[("1cae5144-e0c5-4ab7-9de9-f11dc2065b03", "94d3c2b1-0000-4ab7-9de9-f11dc2065b03"), ("0.032s", "0.132s"), ("(9512)", "(1)"), ("(2/4)", "(4/4)")], SAME),
    ("nextest: a warning of the build", NEXTEST, &[(" Nextest run", "warning: `roman` (lib) generated 1 warning\n    Finished `test` profile in 0.1s\n Nextest run")], SAME),
    ("nextest: a slow test", NEXTEST, &[("        PASS [", "        SLOW [> 60.000s] (───) roman tests::one\n        PASS [")], SAME),
    ("nextest: another test", NEXTEST, &[("tests::nine", "tests::four")], DIFFER),
    ("nextest: another value", NEXTEST, &[("IIIIIIIII", "VIIII")], DIFFER),
    // pytest.
    ("pytest: addresses, folders, durations", PYTEST, &[("0x7fe8c4b0f910", "0x7f0011223344"), ("0x7fe8c60c5e30", "0x7f9988776655"), ("pytest-0/", "pytest-17/"), ("0.07s", "11.32s")], SAME),
    ("pytest: lines moved", PYTEST, &[("test_roman.py:4:", "test_roman.py:40:")], SAME),
    ("pytest: another version and plug-ins", PYTEST, &[("pytest-9.2.0", "pytest-9.3.1"), ("xdist-3.8.0", "xdist-3.8.0, cov-5.0")], SAME),
    ("pytest: more tests pass", PYTEST, &[("2 passed", "12 passed"), ("collected 8", "collected 18"), (".FF  ", ".......FF  ")], SAME),
    ("pytest: cut off at another width", PYTEST, &[("bad file /tmp/pytest-...", "bad file /t...")], SAME),
    ("pytest: another value", PYTEST, &[("assert 12 ==", "assert 4 =="), ("where 12", "where 4")], DIFFER),
    ("pytest: another exception", PYTEST, &[("ValueError", "TypeError")], DIFFER),
    ("pytest: another parameter", PYTEST, &[("test_p[1]", "test_p[2]")], DIFFER),
    ("pytest: no test ran, or none passed", "===== no tests ran in 0.01s =====\n", &[("no tests ran in 0.01s", "1 failed in 0.01s")], DIFFER),
    ("pytest: other workers, another order", XDIST, &[("[gw1] [ 25%] FAILED", "[gw0] [100%] FAILED"), ("[gw1] linux", "[gw0] linux"), ("created: 2/2 workers\n2 workers", "created: 4/4 workers\n4 workers")], SAME),
    ("pytest: xdist, another test", XDIST, &[("test_four", "test_five")], DIFFER),
    // unittest.
    ("unittest: duration, order of dots, lines, folder", UNITTEST, &[("0.001s", "1.001s"), ("FE.", ".EF"), ("line 4", "line 44"), ("/home/a/py", "/tmp/tmpab12/py")], SAME),
    ("unittest: the source changed", UNITTEST, &[("return self.fails_to_find(\"b\")", "return self.cannot_find(\"b\", 1)")], SAME),
    ("unittest: failure became error", UNITTEST, &[("AssertionError: 3 != 4", "NameError: name 'x' is not defined")], DIFFER),
    ("unittest: another value", UNITTEST, &[("3 != 4", "5 != 4")], DIFFER),
    ("unittest: another test", UNITTEST, &[("ERROR: test_b (test_u.T.test_b)", "ERROR: test_c (test_u.T.test_c)")], DIFFER),
    // JavaScript.
    ("jest: durations, no colours", JEST, &[("(20 ms)", "(3 ms)"), ("0.615 s, estimated 2 s", "2.961 s"), ("\u{1b}[7m\u{1b}[31m", ""), ("\u{1b}[39m\u{1b}[27m", "")], SAME),
    ("jest: a quick test shows no duration", JEST, &[("four (20 ms)", "four"), ("ok (4 ms)", "ok")], SAME),
    ("jest: lines moved", JEST, &[("> 1 |", "> 9 |"), ("2 |", "10 |"), ("a.test.js:1:71", "a.test.js:9:71")], SAME),
    ("jest: more tests pass", JEST, &[("✓ ok (4 ms)", "✓ ok (4 ms)\n    ✓ two"), ("1 passed, 2 total", "2 passed, 3 total")], SAME),
    ("jest: another value", JEST, &[("Received: \"IIII\"", "Received: \"IIIV\"")], DIFFER),
    ("jest: another test", JEST, &[("roman › four", "roman › nine"), ("✕ four", "✕ nine")], DIFFER),
    ("jest: another suite", JEST, &[("./a.test.js", "./b.test.js")], DIFFER),
    ("vitest: times", VITEST, &[("15:48:32", "03:04:05"), ("1.11s", "9.8s"), ("73ms", "7ms"), ("32ms", "1ms")], SAME),
    ("vitest: another value", VITEST, &[("b: 2", "b: 4"), ("\"b\": 2", "\"b\": 4")], DIFFER),
    ("vitest: another test", VITEST, &[("obj", "list")], DIFFER),
    ("mocha: duration, number, stack", MOCHA, &[("(16ms)", "(2s)"), ("m.js:2:51", "m.js:20:5"), ("1) ", "3) "), ("483:21", "512:21")], SAME),
    ("mocha: another value", MOCHA, &[("'IIII'", "'IIV'"), ("-IIII", "-IIV")], DIFFER),
    ("mocha: another test", MOCHA, &[("four", "nine")], DIFFER),
    ("node: durations, places, numbers", NODE, &[("5.914928", "0.1"), ("321.289231", "300"), ("2:71", "12:71"), ("2:99", "12:99"), ("not ok 1", "not ok 7")], SAME),
    ("node: another value over two lines", NODE, &[("a: 1", "a: 3")], DIFFER),
    ("node: another test", NODE, &[("not ok 1 - nine", "not ok 1 - ten")], DIFFER),
    ("TAP: one that is to do", "not ok 1 - four\nnot ok 2 - later # TODO not yet\n", &[("later", "much later")], SAME),
    // Go.
    ("go: durations and cached packages", GO, &[("(0.00s)", "(1.20s)"), ("0.003s", "4.1s"), ("0.012s", "(cached)")], SAME),
    ("go: lines moved", GO, &[("roman_test.go:9", "roman_test.go:19")], SAME),
    ("go: another value", GO, &[("= IIII", "= IIV")], DIFFER),
    ("go: another test", GO, &[("TestFour", "TestNine")], DIFFER),
    ("go: it does not build", GO, &[("FAIL\texample.com/roman\t0.003s", "FAIL\texample.com/roman [build failed]")], DIFFER),
    ("go: goroutines and addresses of a panic", GO_PANIC, &[("goroutine 7", "goroutine 34"), ("0xc00001c0f0", "0xc0000aa0f0"), ("+0x1d", "+0x2e"), ("roman.go:12", "roman.go:15")], SAME),
    ("go: another panic", GO_PANIC, &[("[3] with length 3", "[5] with length 3")], DIFFER),
    // Java and .NET.
    ("gradle: duration, stack, folder", GRADLE, &[("in 3s", "in 1m 4s"), ("RomanTest.java:10", "RomanTest.java:12"), ("/home/a/roman", "/tmp/abc1/roman")], SAME),
    ("gradle: another value", GRADLE, &[("was: <IIII>", "was: <IIV>")], DIFFER),
    ("gradle: another test", GRADLE, &[("four()", "nine()")], DIFFER),
    ("maven: durations, dates, lines", MAVEN, &[("0.05 s", "1.05 s"), ("0.012 s", "0.5 s"), ("10:00:00Z", "11:11:11Z"), ("four:10", "four:12"), ("java:10", "java:12")], SAME),
    ("maven: another value", MAVEN, &[("was: <IIII>", "was: <IIV>")], DIFFER),
    ("maven: another test", MAVEN, &[("RomanTest.four", "RomanTest.nine")], DIFFER),
    ("dotnet: durations, line", DOTNET, &[("12 ms", "< 1 ms"), ("15 ms", "2 s"), ("line 10", "line 11"), ("3 ms", "4 ms")], SAME),
    ("dotnet: another value", DOTNET, &[("Actual:   IIII", "Actual:   IIV")], DIFFER),
    ("dotnet: another test", DOTNET, &[("Tests.Four [", "Tests.Nine [")], DIFFER),
    ("dotnet: another error of the compiler", "Program.cs(10,5): error CS1002: ; expected [/home/a/x.csproj]\n", &[("CS1002: ;", "CS1513: }")], DIFFER),
    ("dotnet: the compiler's line moved", "Program.cs(10,5): error CS1002: ; expected [/home/a/x.csproj]\n", &[("10,5", "12,7"), ("/home/a", "/work")], SAME),
    // C and C++.
    ("ctest: durations", CTEST, &[("0.01 sec", "1.51 sec"), ("0.03 sec", "1.53 sec")], SAME),
    ("ctest: more tests pass", CTEST, &[("50% tests passed, 1 tests failed out of 2", "75% tests passed, 1 tests failed out of 4"), ("1/2", "1/4"), ("2/2", "2/4")], SAME),
    ("ctest: another test", CTEST, &[("adds", "divides")], DIFFER),
    ("googletest: durations, lines", GTEST, &[("(0 ms)", "(12 ms)"), ("(1 ms total)", "(24 ms total)"), ("cc:10", "cc:17")], SAME),
    ("googletest: another value", GTEST, &[("Which is: IIII", "Which is: IIV")], DIFFER),
    ("googletest: another test", GTEST, &[("Roman.Four", "Roman.Nine")], DIFFER),
    ("gcc: lines moved, another warning", GCC, &[("a.c:1:38", "a.c:2:3"), ("initialization of", "assignment to")], SAME),
    ("gcc: another name", GCC, &[("‘y’", "‘z’")], DIFFER),
    ("ld: another temporary object", LD, &[("ccX3kd9a.o", "ccq0Zz1B.o")], SAME),
    ("ld: another symbol", LD, &[("`roman'", "`arabic'")], DIFFER),
    // Compilers and linters.
    ("tsc: lines moved", TSC, &[("(1,5)", "(3,5)"), ("(7,22)", "(9,1)")], SAME),
    ("tsc: another code", TSC, &[("TS2304: Cannot find name 'foo'", "TS2551: Property 'foo' does not exist")], DIFFER),
    ("tsc: one error less", TSC, &[("src/x.ts(7,22): error TS2304: Cannot find name 'foo'.\n", "")], DIFFER),
    ("tsc: one of two like errors less", "a.ts(1,5): error TS1: no\na.ts(2,5): error TS1: no\n", &[("a.ts(2,5): error TS1: no\n", "")], DIFFER),
    ("eslint: lines moved, a warning less", ESLINT, &[("1:7", "11:7"), ("  1:12  warning  Missing semicolon                       semi\n", ""), ("3 problems (2 errors, 1 warning)", "2 problems (2 errors, 0 warnings)"), ("0 errors and 1 warning", "0 errors and 0 warnings")], SAME),
    ("eslint: another rule", ESLINT, &[("'foo' is not defined                    no-undef", "Unexpected var                          no-var")], DIFFER),
    ("eslint: another file", ESLINT, &[("src/f.js", "src/g.js")], DIFFER),
    ("mypy: lines moved, another note", MYPY, &[("py:3", "py:30"), ("builtins.int\"\n", "builtins.str\"\n")], SAME),
    ("mypy: other types", MYPY, &[("got \"int\"", "got \"float\"")], DIFFER),
    ("ruff: lines moved", RUFF, &[("py:1:8", "py:4:8"), ("1 | import", "4 | import"), ("2 | def", "5 | def")], SAME),
    ("ruff: another import", RUFF, &[("`os` imported", "`sys` imported")], DIFFER),
    ("rubocop: lines moved", RUBOCOP, &[("rb:3:5", "rb:33:5"), ("2 files", "3 files"), (".C", "..C")], SAME),
    ("rubocop: another rule", RUBOCOP, &[("Style/StringLiterals: Prefer single-quoted strings", "Layout/LineLength: Line is too long. [90/80]")], DIFFER),
    ("rspec: seed, durations, lines", RSPEC, &[("seed 12345", "seed 54321"), ("0.01234", "0.2"), ("rb:5:", "rb:6:"), ("rb:4 ", "rb:5 ")], SAME),
    ("rspec: another value", RSPEC, &[("got: 'IIII'", "got: 'IIV'")], DIFFER),
    ("rspec: another test", RSPEC, &[("makes four", "makes nine")], DIFFER),
    // Shells, logs, anything.
    ("shell: another process", SHELL, &[("pid 4711", "pid 12")], SAME),
    ("shell: another value in an unknown line", SHELL, &[("gave XIIII", "gave XIV")], DIFFER),
    ("shell: another command", SHELL, &[("./roman 14", "./roman 15")], DIFFER),
    ("shell: the script grew above", NOT_FOUND, &[("line 4", "line 14")], SAME),
    ("shell: another command is missing", NOT_FOUND, &[("nosuchcommand", "othercommand")], DIFFER),
    ("shell: a crash", "./t.sh: line 3: 12345 Segmentation fault (core dumped) ./roman\n", &[("12345", "54321")], SAME),
    ("shell: another crash", "./t.sh: line 3: 12345 Segmentation fault (core dumped) ./roman\n", &[("Segmentation fault", "Aborted")], DIFFER),
    ("logs: times, ports, ids, addresses, nonces, hashes, folders", LOGS, &[("10:00:0", "23:59:5"), ("43817", "50001"), ("pid 991", "pid 99213"), ("550e8400", "661f9511"), ("12ms", "1.5s"), ("nonce=8f3a2b1c", "nonce=1"), ("9f6e5c5d", "0a1b2c3d"), ("/home/a/", "/srv/ci/"), ("8f3ab12c", "77777aaa")], SAME),
    ("logs: progress", LOGS, &[("45% |####      | 12.3MB/s", "97% |######### | 8MB/s")], SAME),
    ("logs: another host", LOGS, &[("http://localhost", "http://database")], DIFFER),
    ("progress with carriage returns", "fetching 1%\rfetching 50%\rfetched\nFAIL 14 is XIV, not XIIII\n", &[("50%", "77%\rfetching 80%")], SAME),
    ("progress with escapes", "\u{1b}[2K\u{1b}[1G[1/4] resolving\u{1b}[2K\u{1b}[1Gdone\nFAIL x\n", &[("[1/4] resolving", "[3/4] linking")], SAME),
    ("line ends of Windows", "checking\nFAIL 14 is XIV, not XIIII\n", &[("\n", "\r\n")], SAME),
    ("a plain value", "FAIL 14 is XIV, not XIIII\n", &[("14", "15")], DIFFER),
    ("a plain number", "expected 3, got 4\n", &[("got 4", "got 5")], DIFFER),
    ("an exit code", "checks failed with exit code 2\n", &[("code 2", "code 3")], DIFFER),
    ("a version is no duration", "needs node 18, found 20\n", &[("node 18", "node 22")], DIFFER),
    ("an error's own code", "failed: HRESULT 0x80070005\n", &[("0x80070005", "0x80070002")], DIFFER),
    ("coverage that rises is progress", "FAIL coverage 61.5% is below 80%\n", &[("61.5%", "70.2%")], DIFFER),
    ("a percentage of a progress bar", "[ 33%] Building\nFAIL x\n", &[("[ 33%]", "[100%]")], SAME),
    ("a size", "out of memory: cannot allocate 12.5 MiB\n", &[("12.5 MiB", "800 KiB")], SAME),
    ("a seed", "property failed (seed=123456789) for input 3\n", &[("123456789", "42")], SAME),
    ("a seed is not its input", "property failed (seed=123456789) for input 3\n", &[("input 3", "input 5")], DIFFER),
    ("a temporary file", "cannot open /tmp/tmpab3x9z/config.json\n", &[("tmpab3x9z", "tmpq7w8e9")], SAME),
    ("another file in a temporary folder", "cannot open /tmp/tmpab3x9z/config.json\n", &[("config.json", "users.json")], DIFFER),
    ("a folder of macOS", "cannot open /var/folders/zz/a1b2c3/T/x9/config.json\n", &[("a1b2c3", "d4e5f6"), ("x9", "y8")], SAME),
    ("a drive of Windows", "cannot open C:\\Users\\a\\AppData\\Local\\Temp\\k3j4\\config.json\n", &[("k3j4", "p9q8"), ("Users\\a", "Users\\b")], SAME),
    ("the log was cut elsewhere", "FAIL x\n[... 1200 bytes left out ...]\nFAIL y\n", &[("1200", "99")], SAME),
    ("make recurses deeper", "make[1]: Entering directory '/home/a'\nmake[1]: *** [Makefile:3: all] Error 1\n", &[("Entering directory '/home/a'", "Entering directory '/srv/b'"), ("Makefile:3", "Makefile:5")], SAME),
    ("npm's own words", "npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-21T10_00_00_000Z-debug-0.log\nnpm error Missing script: \"test\"\n", &[("2026-11-21T10_00_00_000Z", "2026-11-22T11_11_11_111Z")], SAME),
    ("npm: another script is missing", "npm error Missing script: \"test\"\n", &[("\"test\"", "\"lint\"")], DIFFER),
    ("pip: another package does not build", "  Building wheel for roman (setup.py): finished with status 'error'\n", &[("roman", "arabic")], DIFFER),
    ("seconds since 1970", "FAIL x\nrun at 1795421563\n", &[("1795421563", "1795421570")], SAME),
    ("milliseconds since 1970", "FAIL run 1795421563123\n", &[("1795421563123", "1795421570456")], SAME),
    ("microseconds since 1970", "FAIL run 1795421563123456\n", &[("1795421563123456", "1795421570456789")], SAME),
    ("nanoseconds since 1970", "FAIL run 1795421563123456789\n", &[("1795421563123456789", "1795421570456789012")], SAME),
    ("seconds since 1970 in a name", "FAIL run_1795421563_of_job\n", &[("1795421563", "1795421570")], SAME),
    ("a fraction of a second since 1970", "FAIL run 1795421563.1234\n", &[("1795421563.1234", "1795421570.5")], SAME),
    ("fewer failing tests", "FAILED test_a\nFAILED test_b\nFAILED test_c\n", &[("FAILED test_b\n", "")], DIFFER),
    ("another number of digits is no time", "FAIL got 17954215631\n", &[("17954215631", "17954215632")], DIFFER),
    ("nothing at all, or something", "\n", &[("\n", "killed\n")], DIFFER),
];

#[test]
fn pairs_are_the_same_failure_or_are_not() {
    let mut wrong = Vec::new();
    for (label, first, changes, same) in PAIRS {
        let mut second = (*first).to_owned();
        for (from, to) in *changes {
            assert!(second.contains(from), "{label}: nothing to change: {from:?}");
            second = second.replace(from, to);
        }
        if (of("tests", first) == of("tests", &second)) != *same {
            wrong.push(format!(
                "{label}\n  {:#?}\n  {:#?}",
                super::Reading::of(first).items().collect::<Vec<_>>(),
                super::Reading::of(&second).items().collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} pairs:\n{}", wrong.len(), PAIRS.len(), wrong.join("\n"));
}
