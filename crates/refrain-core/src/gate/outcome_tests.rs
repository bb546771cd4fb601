use proptest::prelude::*;

use super::*;

/// Test runner, exit code, output, and how it shows that no test ran; None if tests ran or the output does not say.
const OUTPUTS: &[(&str, i32, &str, Option<&str>)] = &[
    // cargo
    (
        "cargo, one suite",
        0,
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Some("running 0 tests"),
    ),
    (
        "cargo, suites and documentation without tests",
        0,
        "     Running unittests src/lib.rs (target/debug/deps/c-49)\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests c\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Some("running 0 tests"),
    ),
    (
        "cargo, documentation without tests beside others",
        0,
        "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests c\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        None,
    ),
    (
        "cargo, only documentation has tests",
        0,
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\nrunning 1 test\ntest src/lib.rs - (line 1) ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        None,
    ),
    (
        "cargo, everything ignored",
        0,
        "running 2 tests\ntest a ... ignored\ntest b ... ignored\n\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Some("0 passed; 0 failed; 2 ignored"),
    ),
    (
        "cargo, everything filtered out",
        0,
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.00s\n",
        Some("running 0 tests"),
    ),
    (
        "cargo, a failure",
        101,
        "running 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        None,
    ),
    (
        "cargo, a suite that aborted behind an empty one",
        101,
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\nrunning 3 tests\nerror: test failed, to rerun pass `--lib`\n",
        None,
    ),
    (
        "cargo, a benchmark counts",
        0,
        "running 1 test\ntest a ... bench: 12 ns/iter\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n",
        None,
    ),
    (
        "cargo, it did not compile",
        101,
        "error[E0425]: cannot find value `x` in this scope\nerror: could not compile `c` (lib test) due to 1 previous error\n",
        None,
    ),
    (
        "nextest",
        4,
        "    Starting 0 tests across 1 binary\n     Summary [   0.000s] 0 tests run: 0 passed, 0 skipped\nerror: no tests to run\n(hint: use `--no-tests` to customize)\n",
        Some("0 tests run: 0 passed"),
    ),
    (
        "nextest, told to pass",
        0,
        "     Summary [   0.000s] 0 tests run: 0 passed, 7 skipped\n",
        Some("0 tests run"),
    ),
    ("nextest with tests", 0, "     Summary [   0.051s] 12 tests run: 12 passed, 0 skipped\n", None),
    (
        "nextest, cut short",
        100,
        "     Summary [   0.051s] 3/12 tests run: 2 passed, 1 failed, 0 skipped\n",
        None,
    ),
    // Python
    (
        "pytest, nothing collected",
        5,
        "collected 0 items\n\n============================ no tests ran in 0.01s =============================\n",
        Some("collected 0 items"),
    ),
    ("pytest -q", 5, "\nno tests ran in 0.00s\n", Some("no tests ran")),
    ("pytest -qq says nothing", 5, "\n", Some("exit code 5")),
    (
        "pytest, everything deselected",
        5,
        "============================= test session starts ==============================\nplatform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0\ncollected 1 item / 1 deselected / 0 selected\n\n============================ 1 deselected in 0.00s =============================\n",
        Some("1 deselected in 0.00s"),
    ),
    (
        "pytest, everything skipped",
        0,
        "collected 1 item\n\ntest_a.py s                              [100%]\n\n============================== 1 skipped in 0.00s ==============================\n",
        Some("1 skipped in 0.00s"),
    ),
    (
        "pytest",
        0,
        "collected 4 items\n\ntest_a.py ..s.    [100%]\n\n========================= 3 passed, 1 skipped in 0.01s =========================\n",
        None,
    ),
    (
        "pytest in colour",
        0,
        "\u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m, \u{1b}[33m1 skipped\u{1b}[0m\u{1b}[32m in 0.01s\u{1b}[0m\n",
        None,
    ),
    (
        "pytest, a failure",
        1,
        "=========================== short test summary info ============================\nFAILED test_a.py::test_a - assert 1 == 2\n1 failed in 0.02s\n",
        None,
    ),
    ("pytest, only expected failures", 0, "collected 1 item\n1 xfailed in 0.02s\n", None),
    (
        "pytest, a file that cannot be imported",
        2,
        "collected 0 items / 1 error\n=============================== 1 error in 0.05s ===============================\n",
        None,
    ),
    ("pytest-xdist", 0, "created: 4/4 workers\n4 workers [12 items]\n12 passed in 62.10s (0:01:02)\n", None),
    (
        "pytest-xdist, nothing",
        5,
        "created: 4/4 workers\n4 workers [0 items]\n\n============================ no tests ran in 0.31s =============================\n",
        Some("no tests ran"),
    ),
    (
        "tox around pytest",
        5,
        "py312: commands[0]> pytest\ncollected 0 items\n\n============ no tests ran in 0.00s ============\npy312: exit 5 (0.21 seconds) /p> pytest pid=7\n",
        Some("collected 0 items"),
    ),
    (
        "unittest",
        0,
        "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
        Some("Ran 0 tests"),
    ),
    (
        "unittest of Python 3.12",
        5,
        "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
        Some("Ran 0 tests"),
    ),
    (
        "unittest, everything skipped",
        0,
        "s\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nOK (skipped=1)\n",
        Some("Ran 1 test"),
    ),
    (
        "unittest, some skipped",
        0,
        "s..\n----------------------------------------------------------------------\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n",
        None,
    ),
    ("unittest, a failure", 1, "Ran 2 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n", None),
    (
        "Django",
        0,
        "Found 0 test(s).\nSystem check identified no issues (0 silenced).\n\nRan 0 tests in 0.000s\n\nOK\n",
        Some("Ran 0 tests"),
    ),
    ("another exit 5", 5, "deploy: quota exceeded\n", None),
    // Go
    (
        "go, no test files everywhere",
        0,
        "?   \texample.com/m\t[no test files]\n?   \texample.com/m/sub\t[no test files]\n",
        Some("[no test files]"),
    ),
    (
        "go, no test files somewhere",
        0,
        "?   \texample.com/m\t[no test files]\nok  \texample.com/m/sub\t0.002s\n",
        None,
    ),
    ("go, cached", 0, "ok  \texample.com/m/sub\t(cached)\n", None),
    (
        "go, coverage",
        0,
        "\texample.com/m\t\tcoverage: 0.0% of statements\nok  \texample.com/m/sub\t0.002s\tcoverage: 81.2% of statements\n",
        None,
    ),
    (
        "go, a filter that meets nothing",
        0,
        "testing: warning: no tests to run\nPASS\nok  \texample.com/m\t0.001s [no tests to run]\n",
        Some("no tests to run"),
    ),
    ("go, a failure", 1, "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/m\t0.002s\nFAIL\n", None),
    (
        "go, it did not build",
        1,
        "# example.com/m\n./a.go:3:1: syntax error\nFAIL\texample.com/m [build failed]\n?   \texample.com/m/sub\t[no test files]\nFAIL\n",
        None,
    ),
    (
        "Ginkgo",
        0,
        "Ran 0 of 0 Specs in 0.000 seconds\nSUCCESS! -- 0 Passed | 0 Failed\n",
        Some("Ran 0 of 0 Specs"),
    ),
    // Node
    (
        "jest",
        1,
        "No tests found, exiting with code 1\nRun with `--passWithNoTests` to exit with code 0\n",
        Some("No tests found"),
    ),
    ("jest --passWithNoTests", 0, "No tests found, exiting with code 0\n", Some("No tests found")),
    (
        "jest, a file without tests",
        1,
        " FAIL  ./a.test.js\n  ● Test suite failed to run\n\n    Your test suite must contain at least one test.\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n",
        Some("must contain at least one test"),
    ),
    (
        "jest, everything skipped",
        0,
        "Test Suites: 1 skipped, 0 of 1 total\nTests:       2 skipped, 2 total\nSnapshots:   0 total\n",
        Some("2 skipped, 2 total"),
    ),
    (
        "jest with tests",
        0,
        "Test Suites: 1 passed, 1 total\nTests:       1 skipped, 2 passed, 3 total\n",
        None,
    ),
    ("jest, a failure", 1, "Tests:       1 failed, 3 total\n", None),
    (
        "vitest",
        1,
        "No test files found, exiting with code 1\n\ninclude: **/*.{test,spec}.?(c|m)[jt]s?(x)\n",
        Some("No test files found"),
    ),
    (
        "vitest --passWithNoTests",
        0,
        " RUN  v3.0.0 /p\n\nNo test files found, exiting with code 0\n",
        Some("No test files found"),
    ),
    (
        "vitest, everything skipped",
        0,
        " Test Files  1 skipped (1)\n      Tests  2 skipped (2)\n",
        Some("2 skipped (2)"),
    ),
    ("vitest with tests", 0, " Test Files  1 passed (1)\n      Tests  2 passed | 1 skipped (3)\n", None),
    ("vitest, a failure", 1, " Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n", None),
    ("mocha", 0, "\n\n  0 passing (2ms)\n\n", Some("0 passing")),
    ("mocha, everything pending", 0, "  a\n    - b\n\n  0 passing (1ms)\n  1 pending\n", Some("0 passing")),
    ("mocha, no file", 1, "Error: No test files found: \"test\"\n", Some("No test files found")),
    ("mocha with tests", 0, "  12 passing (20ms)\n  1 pending\n", None),
    ("mocha, only failures", 1, "  0 passing (2ms)\n  1 failing\n", None),
    (
        "node --test",
        0,
        "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n# skipped 0\n",
        Some("1..0"),
    ),
    (
        "node --test, everything skipped",
        0,
        "TAP version 13\n# Subtest: a\nok 1 - a # SKIP\n1..1\n# tests 1\n# pass 0\n# fail 0\n# skipped 1\n",
        Some("# pass 0"),
    ),
    ("node --test for people", 0, "✔ a (1.1ms)\nℹ tests 1\nℹ suites 0\nℹ pass 1\nℹ fail 0\n", None),
    ("node --test for people, nothing", 0, "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\n", Some("ℹ tests 0")),
    ("AVA", 1, "\n  ✘ No tests found in test.js\n", Some("No tests found")),
    ("AVA with tests", 0, "  ✔ a\n  ─\n\n  1 test passed\n", None),
    ("Playwright", 1, "Error: No tests found\n", Some("No tests found")),
    ("Playwright with tests", 0, "Running 3 tests using 2 workers\n\n  3 passed (2.1s)\n", None),
    (
        "Karma",
        0,
        "Chrome Headless 120.0 (Linux): Executed 0 of 0 SUCCESS (0.003 secs / 0 secs)\n",
        Some("Executed 0 of 0"),
    ),
    (
        "npm's placeholder",
        1,
        "> test\n> echo \"Error: no test specified\" && exit 1\n\nError: no test specified\n",
        Some("no test specified"),
    ),
    (
        "pnpm -r, one package without tests",
        0,
        "packages/a test: No test files found, exiting with code 0\npackages/b test:       Tests  4 passed (4)\n",
        None,
    ),
    (
        "turbo",
        0,
        "No tasks were executed as part of this run.\n\n Tasks:    0 successful, 0 total\n",
        Some("No tasks were executed"),
    ),
    ("Deno", 1, "error: No test modules found\n", Some("No test modules found")),
    (
        "Deno, everything ignored",
        0,
        "running 1 test from ./a_test.ts\na ... ignored (0ms)\n\nok | 0 passed | 0 failed | 1 ignored (2ms)\n",
        Some("0 passed | 0 failed | 1 ignored"),
    ),
    (
        "Deno with tests",
        0,
        "running 1 test from ./a_test.ts\na ... ok (0ms)\n\nok | 1 passed | 0 failed (2ms)\n",
        None,
    ),
    ("Bun", 1, "bun test v1.2.0\n\nNo tests found!\n", Some("No tests found")),
    (
        "Bun with tests",
        0,
        " 3 pass\n 0 fail\n 3 expect() calls\nRan 3 tests across 1 files. [8.00ms]\n",
        None,
    ),
    // TAP, bats
    ("TAP", 0, "1..0 # SKIP not on this system\n", Some("1..0")),
    ("TAP with tests", 0, "1..2\nok 1 - a\nok 2 - b\n", None),
    ("TAP, everything skipped without a word", 0, "1..1\nok 1 # SKIP later\n", None),
    ("bats", 0, "0 tests, 0 failures\n", Some("0 tests, 0 failures")),
    ("bats with tests", 0, " ✓ a\n\n1 test, 0 failures\n", None),
    // PHP, Ruby, Elixir
    (
        "PHPUnit",
        0,
        "PHPUnit 11.0.0 by Sebastian Bergmann and contributors.\n\nNo tests executed!\n",
        Some("No tests executed!"),
    ),
    ("PHPUnit with tests", 0, "OK (3 tests, 5 assertions)\n", None),
    (
        "PHPUnit, everything skipped",
        0,
        "OK, but some tests were skipped!\nTests: 2, Assertions: 0, Skipped: 2.\n",
        Some("Tests: 2, Assertions: 0, Skipped: 2."),
    ),
    ("PHPUnit, a failure", 1, "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n", None),
    (
        "RSpec",
        0,
        "No examples found.\n\nFinished in 0.0002 seconds\n0 examples, 0 failures\n",
        Some("No examples found."),
    ),
    (
        "RSpec, everything pending",
        0,
        "3 examples, 0 failures, 3 pending\n",
        Some("3 examples, 0 failures, 3 pending"),
    ),
    ("RSpec with tests", 0, "3 examples, 0 failures, 1 pending\n", None),
    ("Minitest", 0, "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n", Some("0 runs")),
    (
        "Minitest, everything skipped",
        0,
        "2 runs, 0 assertions, 0 failures, 0 errors, 2 skips\n",
        Some("2 runs"),
    ),
    ("Minitest with tests", 0, "2 runs, 4 assertions, 0 failures, 0 errors, 0 skips\n", None),
    ("ExUnit", 0, "There are no tests to run\n", Some("There are no tests to run")),
    (
        "ExUnit, everything excluded",
        0,
        "Excluding tags: [:slow]\n\n3 tests, 0 failures, 3 excluded\n",
        Some("3 tests, 0 failures, 3 excluded"),
    ),
    ("ExUnit with tests", 0, "2 doctests, 3 tests, 0 failures, 1 excluded\n", None),
    // The JVM, .NET
    (
        "Maven",
        0,
        "[INFO] --- surefire:3.2.5:test (default-test) @ app ---\n[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n",
        Some("No tests to run."),
    ),
    (
        "Maven, -DskipTests",
        0,
        "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS\n",
        Some("Tests are skipped."),
    ),
    (
        "Maven with tests",
        0,
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s\n",
        None,
    ),
    (
        "Maven, everything skipped",
        0,
        "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n",
        Some("Tests run: 2"),
    ),
    (
        "Gradle",
        0,
        "> Task :compileJava\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
        Some("> Task :test NO-SOURCE"),
    ),
    (
        "Gradle, one module without tests",
        0,
        "> Task :lib:test NO-SOURCE\n> Task :app:test\n\nBUILD SUCCESSFUL in 1s\n",
        None,
    ),
    ("Gradle, nothing changed", 0, "> Task :app:test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s\n", None),
    (
        "Gradle, switched off",
        0,
        "> Task :test SKIPPED\n\nBUILD SUCCESSFUL in 1s\n",
        Some("> Task :test SKIPPED"),
    ),
    (
        ".NET",
        0,
        "No test is available in /p/bin/Debug/net9.0/App.dll. Make sure that test discoverer & executors are registered.\n",
        Some("No test is available"),
    ),
    (
        ".NET with tests",
        0,
        "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - App.Tests.dll (net9.0)\n",
        None,
    ),
    (
        ".NET, everything skipped",
        0,
        "Skipped! - Failed:     0, Passed:     0, Skipped:     3, Total:     3, Duration: 5 ms - App.Tests.dll (net9.0)\n",
        Some("Passed: 0, Skipped: 3"),
    ),
    // C and C++, Swift, Zig, Bazel
    ("CTest", 0, "Test project /p/build\nNo tests were found!!!\n", Some("No tests were found!!!")),
    ("CTest with tests", 0, "100% tests passed, 0 tests failed out of 3\n", None),
    (
        "XCTest",
        0,
        "Test Suite 'All tests' passed at 2026-11-21 12:00:00.000.\n\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n",
        Some("Executed 0 tests"),
    ),
    (
        "XCTest beside Swift Testing",
        0,
        "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n✔ Test run with 2 tests in 1 suite passed after 0.001 seconds.\n",
        None,
    ),
    (
        "Swift, no target",
        1,
        "error: no tests found; create a target in the 'Tests' directory\n",
        Some("no tests found"),
    ),
    ("Zig", 0, "Build Summary: 3/3 steps succeeded; 5/5 tests passed\n", None),
    (
        "Bazel",
        4,
        "ERROR: No test targets were found, yet testing was requested\n",
        Some("No test targets were found"),
    ),
    (
        "Bazel with tests",
        0,
        "//a:a_test                  (cached) PASSED in 0.1s\n\nExecuted 0 out of 1 test: 1 test passes.\n",
        None,
    ),
    // make, and scripts of one's own
    (
        "make, a target without a recipe",
        0,
        "make: Nothing to be done for 'test'.\n",
        Some("Nothing to be done"),
    ),
    ("make, a folder of that name", 0, "make: 'test' is up to date.\n", Some("'test' is up to date")),
    (
        "make around cargo",
        0,
        "cargo test\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        None,
    ),
    ("two runners, one without tests", 0, "Ran 0 tests in 0.000s\n\nOK\n\n  4 passing (3ms)\n", None),
    ("a script that says ok", 0, "ok\n", None),
    ("a script that says nothing", 0, "", None),
    ("a script with numbers of its own", 0, "checked 10 files, 0 problems\n", None),
    ("windows line ends", 5, "collected 0 items\r\n\r\nno tests ran in 0.01s\r\n", Some("collected 0 items")),
    ("a run that was cut off", 143, "", None),
];

#[test]
fn a_runner_that_found_no_test_is_recognised() {
    assert!(OUTPUTS.len() >= 60);
    for (label, exit, output, expected) in OUTPUTS {
        let found = found_no_test(output, *exit);
        match (expected, &found) {
            (None, None) => {}
            (Some(words), Some(said)) if said.contains(words) => {}
            _ => panic!("{label}: {found:?} instead of {expected:?}"),
        }
    }
}

/// Program, exit code, output, and how it shows that the gate could not run.
const CANNOT: &[(&str, i32, &str, Option<&str>)] = &[
    ("dash", 127, "sh: 1: jest: not found\n", Some("exit code 127): sh: 1: jest: not found")),
    ("dash, a script", 127, "sh: 1: ./nosuch.sh: not found\n", Some("./nosuch.sh: not found")),
    ("bash", 127, "bash: line 1: pytest: command not found\n", Some("pytest: command not found")),
    ("no message", 127, "", Some("its command was not found (exit code 127)")),
    (
        "dash, not executable",
        126,
        "sh: 1: ./x.sh: Permission denied\n",
        Some("exit code 126): sh: 1: ./x.sh: Permission denied"),
    ),
    ("bash, not executable", 126, "bash: ./x.sh: Permission denied\n", Some("./x.sh: Permission denied")),
    (
        "bash, no interpreter",
        127,
        "bash: ./y.sh: cannot execute: required file not found\n",
        Some("required file not found"),
    ),
    ("env", 127, "env: 'node': No such file or directory\n", Some("env: 'node'")),
    ("npm", 127, "\n> test\n> jest\n\nsh: 1: jest: not found\n", Some("jest: not found")),
    (
        "npm, no script",
        1,
        "npm error Missing script: \"test\"\nnpm error\n",
        Some("it cannot run: npm error Missing script"),
    ),
    ("pnpm, no script", 1, " ERR_PNPM_NO_SCRIPT  Missing script: test\n", Some("ERR_PNPM_NO_SCRIPT")),
    (
        "yarn, no script",
        1,
        "yarn run v1.22.22\nerror Command \"test\" not found.\n",
        Some("error Command \"test\" not found."),
    ),
    (
        "make in make",
        2,
        "nosuchcmd\nmake: nosuchcmd: No such file or directory\nmake: *** [Makefile:4: y] Error 127\n",
        Some("make: nosuchcmd: No such file or directory"),
    ),
    (
        "make, no target",
        2,
        "make: *** No rule to make target 'test'.  Stop.\n",
        Some("No rule to make target"),
    ),
    (
        "make, a missing command in a shell",
        2,
        "/bin/sh: 1: pytest: not found\nmake: *** [Makefile:2: test] Error 127\n",
        Some("pytest: not found"),
    ),
    ("just", 1, "error: Justfile does not contain recipe `test`\n", Some("does not contain recipe")),
    ("Python", 1, "/usr/bin/python3: No module named pytest\n", Some("No module named pytest")),
    (
        "a test that imports what is missing",
        1,
        "ModuleNotFoundError: No module named 'app'\n1 error in 0.1s\n",
        None,
    ),
    (
        "uv",
        2,
        "error: Failed to spawn: `pytest`\n  Caused by: No such file or directory (os error 2)\n",
        Some("Failed to spawn"),
    ),
    ("Poetry", 1, "Command not found: pytest\n", Some("Command not found: pytest")),
    (
        "cargo, no such command",
        101,
        "error: no such command: `nextest`\n",
        Some("no such command: `nextest`"),
    ),
    (
        "cargo, no toolchain",
        1,
        "error: toolchain 'nightly-x86_64-unknown-linux-gnu' is not installed\n",
        Some("is not installed"),
    ),
    (
        "go, no module",
        1,
        "go: go.mod file not found in current directory or any parent directory; see 'go help modules'\n",
        Some("go.mod file not found"),
    ),
    (
        "Gradle's wrapper",
        1,
        "Error: Could not find or load main class org.gradle.wrapper.GradleWrapperMain\n",
        Some("GradleWrapperMain"),
    ),
    ("Bundler", 127, "bundler: command not found: rspec\n", Some("bundler: command not found: rspec")),
    ("PHP", 1, "Could not open input file: vendor/bin/phpunit\n", Some("Could not open input file")),
    ("Composer", 1, "\n  Command \"test\" is not defined.  \n\n", Some("is not defined")),
    (
        "tests ran, and one prints such words",
        101,
        "running 2 tests\nsh: 1: x: not found\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        None,
    ),
    ("it passed, whatever it printed", 0, "bash: line 1: x: command not found\n", None),
    ("an honest failure", 1, "1 failed in 0.02s\n", None),
    ("it did not compile", 101, "error: could not compile `c` (lib test) due to 1 previous error\n", None),
    (
        "a file that the work needs is missing",
        1,
        "Error: ENOENT: no such file or directory, open 'data.json'\n",
        None,
    ),
];

#[test]
fn a_gate_that_could_not_run_is_recognised() {
    for (label, exit, output, expected) in CANNOT {
        let found = cannot_run(output, *exit);
        match (expected, &found) {
            (None, None) => {}
            (Some(words), Some(said)) if said.contains(words) => {}
            _ => panic!("{label}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn every_pattern_compiles() {
    for (compiled, patterns) in [
        (&COUNTS, COUNT_PATTERNS),
        (&SOME, SOME_PATTERNS),
        (&BEGAN, BEGAN_PATTERNS),
        (&EMPTY, EMPTY_PATTERNS),
        (&MISSING, MISSING_PATTERNS),
    ] {
        assert_eq!(compiled.len(), patterns.len());
    }
}

#[test]
fn quoted_gate_output_is_short_and_has_no_escapes() {
    let output = format!("No tests found \u{1b}[2J{}\n", "x".repeat(10_000));
    let said = found_no_test(&output, 1).unwrap();
    assert!(said.len() < 250 && !said.contains('\u{1b}'), "{said:?}");
}

proptest! {
    #[test]
    fn any_output_is_borne(output in "(\\PC|\n){0,200}", exit: i32) {
        let _ = (found_no_test(&output, exit), cannot_run(&output, exit));
    }
}

#[test]
fn the_missing_program_is_read_from_the_shells_message() {
    for (line, program) in [
        ("/bin/sh: 1: crago: not found", Some("crago")),
        ("/bin/sh: line 1: crago: command not found", Some("crago")),
        ("sh: crago: not found", Some("crago")),
        ("./check.sh: line 7: pytest: command not found", Some("pytest")),
        ("/bin/sh: 1: ./test.sh: Permission denied", Some("./test.sh")),
        ("/bin/sh: line 1: ./test.sh: No such file or directory", Some("./test.sh")),
        ("sh: 1: ./folder: Is a directory", Some("./folder")),
        ("env: 'crago': No such file or directory", Some("crago")),
        ("env: \u{2018}crago\u{2019}: No such file or directory", Some("crago")),
        ("timeout: failed to run command \u{2018}crago\u{2019}: No such file or directory", Some("crago")),
        ("sh: ./x: /opt/none: bad interpreter: No such file or directory", Some("/opt/none")),
        ("sh: ./x: cannot execute: required file not found", Some("./x")),
        ("1 test failed", None),
        (": not found", None),
        ("", None),
    ] {
        assert_eq!(missing_program(line), program, "{line}");
    }
}
