//! What the prompt contains: how the loop works, what earlier runs came to, which tests still fail, and what was cut
//! off.

use std::fs;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

/// Fails as Python's unittest does, for each name in `broken`, out of four tests.
const TESTS: &str = r#"[ -s broken ] || { printf 'Ran 4 tests in 0.022s\n\nOK\n'; exit 0; }
echo 'test_zero (test_durations.T.test_zero) ... ok'
while read -r name; do
  printf '======================================================================\n'
  printf 'FAIL: %s (test_durations.T.%s)\n' "$name" "$name"
  printf -- '----------------------------------------------------------------------\n'
  printf 'Traceback (most recent call last):\n'
  printf '  File "%s/test_durations.py", line 7, in %s\n' "$PWD" "$name"
  printf '    self.assertEqual(parse("1d"), 86400)\n'
  printf '  File "/usr/lib/python3.11/unittest/case.py", line 873, in assertEqual\n'
  printf '    assertion_func(first, second, msg=msg)\n'
  printf 'AssertionError: 86401 != 86400\n\n'
done < broken
printf -- '----------------------------------------------------------------------\n'
printf 'Ran 4 tests in 0.022s\n\nFAILED (failures=%s)\n' "$(wc -l < broken)"
exit 1
"#;

/// A project whose tests fail, and a loop that commits passing work. Its agent says something in each iteration,
/// notes something in the first, and fixes one test in each from the second on, which claims.
fn durations(sandbox: &Sandbox) -> String {
    write(&sandbox.project().join("tests.sh"), TESTS);
    write(&sandbox.project().join("broken"), "test_day\ntest_show\ntest_show_zero\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    sandbox.agent(
        "mender",
        &format!(
            r#"case $REFRAIN_ITERATION in
  1) echo 'Units are in a table now.' > units.txt
     sed -i 's/^# Progress$/# Progress\n\nUnits are in a table now./' "$REFRAIN_STATE_FILE"
     echo 'The table of units and the zero are to be mended.' ;;
  2) sed -i 1d broken; echo 'The day is mended.'; {CLAIM} ;;
  *) sed -i 1d broken; {CLAIM} ;;
esac"#
        ),
    )
}

const PROMPT: &str =
    "The tests of durations.py fail. Mend durations.py so that they pass; leave the tests as they are.";

#[test]
fn a_third_iteration_gets_all_the_context_it_needs() {
    let sandbox = sandbox();
    let agent = durations(&sandbox);
    let start = ["start", "--command", &agent, "--name", "job", "-m", "8", "--git-workflow", "commit"];
    let gate = ["--gate", "tests=sh tests.sh", "--prompt", PROMPT];
    sandbox.refrain(&[&start[..], &gate].concat()).with_code(0);
    let prompt = |n: u32| sandbox.kept_text("job", &format!("{n:04}"), "prompt.md");
    insta::assert_snapshot!(sandbox.redact(&prompt(3)), @r#"
    The tests of durations.py fail. Mend durations.py so that they pass; leave the tests as they are.

    ## How this loop works
    - You are started again for each run, until you claim to be done and the gates pass. Earlier runs' changes are in the working tree (`git status`), committed for you after the gates pass.
    - Run these gates yourself before you finish:
      - tests: `sh tests.sh`
    - When everything is done, end with <promise>COMPLETE</promise> alone on its line.
    - Notes for the next run: `.refrain/job/state.md`. To ask, set `status: blocked` and `question: ...` there.

    ## Run 3 of 8
    Run 1: no claim; gate tests failed: exit code 1. It said: "The table of units and the zero are to be mended."
    Run 2: claimed; gate tests failed: exit code 1. It said: "The day is mended."
    Not committed for you yet: what runs 1 and 2 changed.
    Still failing, 2 of 4: test_show, test_show_zero (run 1: 3; no longer failing: test_day).

    Notes in `.refrain/job/state.md`:

    ```
    # Progress

    Units are in a table now.
    ```

    CLAIM REFUSED: gate tests failed (`sh tests.sh`): exit code 1; it failed before the first run too, but differently. It printed, without passing tests and library frames:

    ```
    ======================================================================
    FAIL: test_show (test_durations.T.test_show)
    ----------------------------------------------------------------------
    Traceback (most recent call last):
      File "[root]/project/test_durations.py", line 7, in test_show
        self.assertEqual(parse("1d"), 86400)
    AssertionError: 86401 != 86400

    ======================================================================
    FAIL: test_show_zero (test_durations.T.test_show_zero)
    ----------------------------------------------------------------------
    Traceback (most recent call last):
      File "[root]/project/test_durations.py", line 7, in test_show_zero
        self.assertEqual(parse("1d"), 86400)
    AssertionError: 86401 != 86400

    ----------------------------------------------------------------------
    Ran 4 tests in [took]

    FAILED (failures=2)
    ```

    That output as it was printed, and a line for each earlier run: `.refrain/job/context.md`.
    "#);
    let line = |n| prompt(n).lines().find(|line| line.contains("ailing")).unwrap().to_owned();
    assert_eq!(line(1), "Failing before the first run, 3 of 4: test_day, test_show, test_show_zero.");
    assert_eq!(
        line(2),
        "Still failing, 3 of 4: test_day, test_show, test_show_zero (before the first run: the same 3)."
    );
    assert_eq!(line(4), "Still failing, 1 of 4: test_show_zero (run 2: 2; no longer failing: test_show).");
    // If the output is shown in full, nothing is omitted from it.
    let log = sandbox.kept_text("job", "0003", "gates/tests.log");
    assert!(log.contains("test_zero") && log.contains("unittest/case.py"), "{log}");
}

/// The working folder of an agent whose loop is killed.
#[rstest]
#[case::in_a_repository(
    sandbox(),
    "what it changed is in the working tree: see `git status` and `git diff` first."
)]
#[case::in_a_plain_folder(plain_folder(), "what it changed is in the files: look at them first.")]
fn the_prompt_after_a_killed_attempt_says_so(#[case] sandbox: Sandbox, #[case] line: &str) {
    let _gate = sandbox.gate("first");
    let held = format!(
        r#"case $REFRAIN_ITERATION.$REFRAIN_ATTEMPT in
  1.1) echo half > work.txt; echo waiting > "$NOTES/held"; read -r _ < "$GATES/first" ;;
  2.1) {CLAIM} ;;
esac"#
    );
    let agent = sandbox.agent("agent", &held);
    let words = ["start", "--command", &agent, "--name", "job", "-m", "4", "--prompt", "Do it."];
    let runner = sandbox.spawn(&words);
    sandbox.wait_for_note("held");
    runner.kill();
    sandbox.no_process_is_left();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    let [first, again, next] = ["0001", "0001.2", "0002"].map(|of| sandbox.kept_text("job", of, "prompt.md"));
    assert_eq!(again, format!("{first}\nThe previous run of this iteration was cut off; {line}"));
    assert!(!first.contains("cut off") && !next.contains("cut off"), "{next}");
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn the_prompt_after_a_timed_out_attempt_says_so() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("test $REFRAIN_ITERATION = 1 && exec sleep 1000; {CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "job", "--timeout", "1s"];
    sandbox.refrain(&[&words[..], &["--prompt", "Do it."]].concat()).with_code(0);
    let second = sandbox.kept_text("job", "0002", "prompt.md");
    let news = "\n## Run 2 of 20\nThis run is stopped after 1.0s.\nThe previous run was cut off; what it changed is in the working \
                tree: see `git status` and `git diff` first.\nRun 1: stopped, it took too long.\n\nLAST RUN FAILED: your last run \
                took too long and was stopped.";
    assert!(second.ends_with(news), "{second}");
}

#[test]
fn the_state_file_names_the_iteration_and_keeps_the_agents_text() {
    let sandbox = sandbox();
    let script = format!(
        r#"grep '^iteration:' "$REFRAIN_STATE_FILE" >> "$NOTES/iterations"
echo "- a note of $REFRAIN_ITERATION" >> "$REFRAIN_STATE_FILE"
test $REFRAIN_ITERATION = 3 && sed -i '/^iteration:/d' "$REFRAIN_STATE_FILE"
test $REFRAIN_ITERATION -lt 4 || {CLAIM}"#
    );
    let agent = sandbox.agent("agent", &script);
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--prompt", "Write a poem."])
        .with_code(0);
    assert_eq!(
        sandbox.note("iterations"),
        "iteration: 1\niteration: 2\niteration: 3\n",
        "it is not put back"
    );
    let state = fs::read_to_string(sandbox.project().join(".refrain/job/state.md")).unwrap();
    assert!(
        state.ends_with("# Notes\n- a note of 1\n- a note of 2\n- a note of 3\n- a note of 4\n"),
        "{state}"
    );
    assert_eq!(sandbox.status("job")["claim"]["source"], json!("promise"), "its number is no claim");
    let [first, second] = ["0001", "0002"].map(|of| sandbox.kept_text("job", of, "prompt.md"));
    assert!(!first.contains("Notes in "), "the goal is not told twice: {first}");
    let notes = "\n\nNotes in `.refrain/job/state.md`:\n\n```\n# Notes\n- a note of 1\n```";
    assert!(second.ends_with(notes), "{second}");
}

/// A link that the agent put there may lead to any file of the user's.
#[test]
fn notes_behind_a_link_are_not_quoted() {
    let sandbox = sandbox();
    write(&sandbox.root().join("private"), "the user's own\n");
    let private = sandbox.root().join("private");
    let script = format!("ln -sf {} \"$REFRAIN_STATE_FILE\"", private.display());
    let agent = sandbox.agent("agent", &script);
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "-m", "2", "--prompt", "Do it."])
        .with_code(10);
    assert!(!sandbox.kept_text("job", "0002", "prompt.md").contains("the user's own"));
    assert_eq!(fs::read_to_string(private).unwrap(), "the user's own\n");
}
