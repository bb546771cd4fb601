//! What the next prompt says of the runs before it: how they ended, what happened to their changes, which tests still
//! fail.

use rstest::rstest;

use crate::agent::{FaultKind, Scope, Usd};
use crate::event::{Ask, AttemptFinished, ClaimSource, Event, Exit, StopReason, Urgency};
use crate::gate::{Check, GateName, GateSpec};
use crate::git::{Base, CommitReport, CommitResult, SkipReason, Workflow};
use crate::ids::AttemptId;
use crate::r#loop::LoopState;
use crate::r#loop::tests::journal::{
    Journal, candidate_taken, claiming, failing, finished, gates, oid, reporting, spawn_failed, spec, stop,
    tokens,
};
use crate::prompt::{GateRun, Quote, QuotedLogs, assemble, quotes};
use crate::spec::{Limits, Millis, Spec};

/// The lines of the section on this run, in the prompt of the attempt that comes next.
fn news(state: &LoopState, quoted: &[(Quote, String)]) -> Vec<String> {
    let prompt = assemble(state, QuotedLogs(quoted));
    let section = &prompt[prompt.rfind("## Run ").unwrap()..];
    section.split("\n\n").next().unwrap().lines().map(str::to_owned).collect()
}

/// The gates' output, and that of their run before.
fn printed(now: &[(usize, String)], then: &[(usize, String)]) -> Vec<(Quote, String)> {
    let run = |gate| GateRun { gate, of: AttemptId { iteration: 1, attempt: 1 }, run: 1 };
    let now = now.iter().map(|(gate, text)| (Quote::Gate(run(*gate)), text.clone()));
    now.chain(then.iter().map(|(gate, text)| (Quote::Before(run(*gate)), text.clone()))).collect()
}

fn failed(state: &LoopState) -> Vec<u32> {
    let of_gate = |quote| if let Quote::Gate(run) = quote { Some(run.of.iteration) } else { None };
    quotes(state).into_iter().filter_map(|(quote, _)| of_gate(quote)).collect()
}

fn compared(state: &LoopState) -> Vec<u32> {
    let of_gate = |quote| if let Quote::Before(run) = quote { Some(run.of.iteration) } else { None };
    quotes(state).into_iter().filter_map(|(quote, _)| of_gate(quote)).collect()
}

fn told(journal: &Journal) -> Vec<String> {
    news(&journal.state, &[])
}

fn ended() -> AttemptFinished {
    finished(Exit::Code(0))
}

/// A loop in a repository that commits nothing.
fn in_git() -> Journal {
    let mut spec = spec();
    spec.git.before = Some(Box::new(Base::default()));
    Journal::of(spec).taken_over()
}

const AGAIN: &str = "The previous run of this iteration was cut off; what it changed is in the working tree: see `git status` \
                     and `git diff` first.";
const BEFORE: &str = "The previous run was cut off; what it changed is in the working tree: see `git status` and `git diff` first.";

fn interrupted() -> Journal {
    let paused = in_git().spawns().asks(Ask::Pause(Urgency::Now)).then(stop(StopReason::Interrupt));
    paused.exits(Exit::Signal(2)).obey().resumes()
}

fn limited(work: u64) -> Journal {
    let limit = AttemptFinished {
        report: reporting(|report| {
            report.fault = failing(FaultKind::Overloaded).report.unwrap().fault;
            report.tokens = Some((Scope::Attempt, tokens(work, 0)));
        })
        .report,
        ..finished(Exit::Code(1))
    };
    in_git().attempts(limit)
}

fn stopped(because: StopReason) -> Journal {
    in_git().spawns().then(stop(because)).exits(Exit::Signal(2)).starts()
}

#[rstest]
#[case::nothing_happened(in_git().starts(), None)]
#[case::it_ended_by_itself(in_git().attempts(ended()).starts(), None)]
#[case::it_failed_by_itself(in_git().attempts(finished(Exit::Code(1))).starts(), None)]
#[case::its_runner_was_killed(in_git().crashes(), Some(AGAIN))]
#[case::its_runner_was_killed_twice(in_git().crashes().crashes(), Some(AGAIN))]
#[case::a_person_interrupted_it(interrupted(), Some(AGAIN))]
#[case::it_could_not_be_started(in_git().starts().then(spawn_failed()), None)]
#[case::the_provider_failed_it_at_once(limited(0), None)]
#[case::the_provider_failed_it_at_work(limited(900), Some(AGAIN))]
#[case::it_took_too_long(stopped(StopReason::TimeLimit), Some(BEFORE))]
#[case::it_was_silent(stopped(StopReason::Silence), Some(BEFORE))]
#[case::that_was_an_iteration_ago(in_git().crashes().attempts(ended()).starts(), None)]
fn a_cut_off_run_is_mentioned_in_one_line(#[case] journal: Journal, #[case] line: Option<&str>) {
    let lines = told(&journal);
    let cut_off: Vec<_> = lines.iter().filter(|line| line.contains("cut off")).map(String::as_str).collect();
    assert_eq!(cut_off, line.into_iter().collect::<Vec<_>>(), "{lines:#?}");
}

#[test]
fn a_prompt_without_git_does_not_mention_git() {
    let journal = Journal::of(spec()).taken_over().crashes();
    let line = "The previous run of this iteration was cut off; what it changed is in the files: look at them first.";
    assert_eq!(told(&journal), ["## Run 1 (no cap)", line]);
    assert!(!assemble(&journal.state, QuotedLogs::default()).contains("git"));
}

#[test]
fn a_session_that_is_taken_over_by_a_runner_has_no_turns_any_more() {
    let journal = Journal::in_session().starts();
    let first = assemble(&journal.state, QuotedLogs::default());
    assert!(first.contains("You continue after each turn"), "{first}");
    let journal = journal.taken_over().then(Event::SessionLeft).taken_over();
    let prompt = assemble(&journal.state, QuotedLogs::default());
    assert!(prompt.contains("You are started again for each run") && !prompt.contains("turn"), "{prompt}");
    assert!(told(&journal)[1].starts_with("The previous run of this iteration was cut off"), "{prompt}");
    // A fresh process has no session to continue, whichever runner drove it before.
    let journal = Journal::of(spec())
        .then(Event::SessionBound(crate::r#loop::tests::journal::session(Some("s"))))
        .starts();
    assert!(assemble(&journal.state, QuotedLogs::default()).contains("You continue after each turn"));
}

#[test]
fn the_prompt_states_what_is_left_of_each_cap() {
    let capped = |change: fn(&mut Limits)| {
        let used = reporting(|report| {
            report.tokens = Some((Scope::Attempt, tokens(30_000, 9_000)));
            report.cost = Some((Scope::Attempt, Usd(1_200_000_000)));
        });
        let journal = Journal::limited(change).taken_over().attempts(used).starts();
        told(&journal)[1].clone()
    };
    let all = capped(|limits| {
        limits.max_cost = Some(Usd(5_000_000_000));
        limits.max_tokens = Some(100_000);
        limits.max_duration = Some(Millis(1_800_000));
        limits.timeout = Some(Millis(600_000));
    });
    assert_eq!(
        all,
        "Left: $3.80 of $5.00, 61,000 of 100,000 tokens, 29m 57s of 30m 0s. This run is stopped after 10m 0s."
    );
    assert_eq!(capped(|limits| limits.max_tokens = Some(100_000)), "Left: 61,000 of 100,000 tokens.");
    assert_eq!(capped(|_| ()), "Run 1: no claim.");
    let journal =
        Journal::limited(|limits| limits.max_cost = Some(Usd(5_000_000_000))).taken_over().crashes();
    assert_eq!(told(&journal)[1], "Left: at most $5.00 of $5.00.", "the cost of a lost attempt is unknown");
}

#[test]
fn the_last_three_runs_have_a_line_each() {
    let says = |words: &str, summary: Option<&str>| AttemptFinished {
        preview: words.into(),
        summary: summary.map(str::to_owned),
        ..ended()
    };
    let journal = Journal::of(spec())
        .taken_over()
        .attempts(says("The first.", None))
        .attempts(says("I say \"two\"  things.", None))
        .crashes()
        .attempts(says("The last line.", Some("found two bugs")))
        .attempts(says(&"long ".repeat(100), None))
        .starts();
    let lines = told(&journal);
    assert_eq!(lines[0], "## Run 5 (no cap)");
    assert_eq!(lines[1], "Run 2: no claim. It said: \"I say 'two' things.\"");
    assert_eq!(lines[2], "Run 3: no claim. It said: \"found two bugs\"");
    assert!(
        lines[3].starts_with("Run 4: no claim. It said: \"long long") && lines[3].len() < 220,
        "{}",
        lines[3]
    );
    assert_eq!(lines.len(), 4);
}

#[rstest]
#[case::a_commit(Journal::committing().attempts(ended()).obey().starts(), "Run 1 is committed as 0000000000.")]
#[case::nothing(
    Journal::committing().attempts(ended()).then(skipped(1, SkipReason::Nothing)).starts(),
    "Run 1 changed nothing that could be committed."
)]
#[case::no_identity(
    Journal::committing().attempts(ended()).then(skipped(1, SkipReason::NoIdentity)).starts(),
    "Run 1 is not committed: git does not know who commits; git config user.name and user.email say it."
)]
#[case::its_gates_failed(red(1), "Not committed for you yet: what run 1 changed.")]
#[case::its_gates_fail_still(red(3), "Not committed for you yet: what runs 1 to 3 changed.")]
#[case::its_gates_fail_since(
    {
        let green = committing_gate().attempts(ended()).takes(1).gates_end(&[0]).takes(1).then(made(1, 1));
        let red = green.attempts(ended()).takes(2).gates_end(&[1]);
        red.attempts(ended()).takes(3).gates_end(&[1]).starts()
    },
    "Not committed for you yet: what runs 2 and 3 changed."
)]
fn the_prompt_says_what_became_of_the_last_changes(#[case] journal: Journal, #[case] line: &str) {
    assert_eq!(told(&journal).last().unwrap(), line);
}

#[test]
fn the_prompt_of_a_loop_without_commits_mentions_none() {
    let lines = told(&in_git().attempts(ended()).starts());
    assert_eq!(lines, ["## Run 2 (no cap)", "Run 1: no claim."]);
}

fn skipped(iteration: u32, why: SkipReason) -> Event {
    Event::CommitSettled(Box::new(CommitReport::skipped(iteration, why, Some(oid(0)))))
}

fn made(iteration: u32, tree: u32) -> Event {
    let result = CommitResult::Made { commit: oid(iteration), tree: oid(tree) };
    let report = CommitReport {
        result,
        ..CommitReport::skipped(iteration, SkipReason::Nothing, Some(oid(iteration)))
    };
    Event::CommitSettled(Box::new(report))
}

fn committing_gate() -> Journal {
    let journal = Journal::gated_by(gates([true]), |spec| spec.git.workflow = Workflow::Commit);
    journal.takes(0).gates_end(&[1])
}

/// A loop that commits what its gate passes; the gate failed this many times in a row.
fn red(times: u32) -> Journal {
    let run = |journal: Journal, tree| journal.attempts(ended()).takes(tree).gates_end(&[1]);
    (1..=times).fold(committing_gate(), run).starts()
}

fn unittest(failing: &[&str], of: u32) -> String {
    let blocks = failing.iter().map(|name| format!("FAIL: {name} (t.T.{name})\nAssertionError: 1 != 2\n\n"));
    format!("{}Ran {of} tests in 0.1s\n\nFAILED (failures={})\n", blocks.collect::<String>(), failing.len())
}

#[rstest]
#[case::the_same(
    &["day", "show"], &["day", "show"],
    "Still failing, 2 of 4: day, show (run 1: the same 2)."
)]
#[case::the_same_one(&["day"], &["day"], "Still failing, 1 of 4: day (run 1: the same).")]
#[case::fewer(&["day", "show"], &["day"], "Still failing, 1 of 4: day (run 1: 2; no longer failing: show).")]
#[case::more(&["day"], &["day", "show"], "Still failing, 2 of 4: day, show (run 1: 1; new: show).")]
#[case::others(&["day"], &["show"], "Failing, 1 of 4: show (run 1: 1; no longer failing: day; new: show).")]
fn failing_tests_are_compared_with_the_run_before(
    #[case] then: &[&str],
    #[case] now: &[&str],
    #[case] line: &str,
) {
    let journal = red(2);
    assert_eq!(compared(&journal.state), [1]);
    assert_eq!(failed(&journal.state), [2]);
    let (then, now) = ([(0, unittest(then, 4))], [(0, unittest(now, 4))]);
    assert_eq!(news(&journal.state, &printed(&now, &then)).last().unwrap(), line);
    // The other way round the numbers are the same, regardless of the lines in between.
    assert!(news(&journal.state, &printed(&now, &[])).last().unwrap().starts_with("Failing, "));
}

#[test]
fn the_first_run_is_compared_with_the_gates_before_it() {
    let now = [(0, unittest(&["day"], 4))];
    let then = [(0, unittest(&["day", "show"], 4))];
    let printed = printed(&now, &then);
    let before = committing_gate().starts();
    assert_eq!(compared(&before.state), [0; 0]);
    let line = "Failing before the first run, 1 of 4: day.";
    assert_eq!(news(&before.state, &printed), ["## Run 1 (no cap)", line]);
    assert_eq!(compared(&red(1).state), [0]);
    let line = "Still failing, 1 of 4: day (before the first run: 2; no longer failing: show).";
    assert_eq!(news(&red(1).state, &printed).last().unwrap(), line);
    // It passed then, regardless of the logs of other runs.
    let journal = Journal::gated_by(gates([true]), |_| ()).takes(0).gates_end(&[0]);
    let journal = journal.attempts(ended()).takes(1).gates_end(&[1]).starts();
    assert_eq!(compared(&journal.state), [0; 0]);
    assert_eq!(
        news(&journal.state, &printed).last().unwrap(),
        "Failing, 1 of 4: day (before the first run: none)."
    );
}

#[test]
fn many_tests_are_counted_and_a_few_named() {
    let names: Vec<_> = (10..40).map(|n| format!("test_{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (then, now) = ([(0, unittest(&names, 50))], [(0, unittest(&names[8..], 50))]);
    let printed = printed(&now, &then);
    let line = news(&red(2).state, &printed).pop().unwrap();
    assert!(
        line.starts_with("Still failing, 22 of 50: test_18, ")
            && line.contains("test_27 and 12 more (run 1: 30;"),
        "{line}"
    );
    assert!(
        line.ends_with("no longer failing: test_10, test_11, test_12, test_13, test_14 and 3 more)."),
        "{line}"
    );
    // A part of them is compared with nothing.
    let cut = [(0, now[0].1.replacen("FAIL: test_20", "....: test_20", 1))];
    let line = news(&red(2).state, &self::printed(&cut, &then)).pop().unwrap();
    assert!(line.ends_with(" and 11 more (run 1: 30)."), "{line}");
}

#[test]
fn of_several_gates_each_is_named() {
    let journal = Journal::gated([true, true]).takes(0).gates_end(&[1, 1]);
    let journal = journal.attempts(ended()).takes(1).gates_end(&[1, 1]).starts();
    let now = [(0, unittest(&["day"], 4)), (1, "no rule to make it\n".to_owned())];
    let lines = news(&journal.state, &printed(&now, &[]));
    assert_eq!(lines.last().unwrap(), "Failing in gate gate-0, 1 of 4: day.");
}

const DAY: &str = "\
FAIL: test_day (test_durations.T.test_day)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"/project/test_durations.py\", line 7, in test_day
    self.assertEqual(parse(\"1d\"), 86400)
AssertionError: 86401 != 86400

";
const SHOW: &str = "\
FAIL: test_show (test_durations.T.test_show)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"/project/test_durations.py\", line 13, in test_show
    self.assertEqual(show(90061), \"1d1h1m1s\")
AssertionError: '1d1h1m' != '1d1h1m1s'

";
const NOTES: &str = "---\nloop_id: job\nstatus: in-progress\niteration: 2\n---\n\n# Goal\n\nThe tests of durations.py fail. Mend \
                     durations.py so that they pass; leave the tests as they are.\n\n# Progress\n\nUnits are in a table now.\n\n\
                     # Next Action\n\n# Notes\n";

/// The prompt that an audit of the release quoted, as it is now.
#[test]
fn the_prompt_of_a_third_iteration_in_full() {
    let tests = GateSpec {
        name: "tests".parse().unwrap(),
        check: Check::Command("python3 -m unittest -q".into()),
        hard: true,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: Default::default(),
        completes: false,
        own_tests: false,
        by_default: false,
    };
    let gate_fails = |journal: Journal| {
        let gate: GateName = "tests".parse().unwrap();
        let journal = journal.then(Event::GateStarted { gate: gate.clone(), run: 1 });
        journal.answers(|finished| (finished.gate, finished.exit) = (gate, Exit::Code(1)))
    };
    let wanted = |spec: &mut Spec| {
        spec.id = "job".parse().unwrap();
        spec.prompt = "The tests of durations.py fail. Mend durations.py so that they pass; leave the tests as they are.".into();
        spec.limits.max_iterations = Some(8);
        spec.git.workflow = Workflow::Commit;
    };
    let journal = gate_fails(Journal::gated_by(vec![tests], wanted).then(candidate_taken(Some(0))));
    let said = |words: &str, finished| AttemptFinished { preview: words.into(), ..finished };
    let one = said("The table of units and the zero are to be mended.", ended());
    let journal = gate_fails(journal.attempts(one).takes(1));
    let two = said("The day is mended.", claiming(ClaimSource::Promise));
    let journal = gate_fails(journal.attempts(two).takes(2)).starts();
    let now = [(0, format!("{DAY}{SHOW}Ran 4 tests in 0.022s\n\nFAILED (failures=2)\n"))];
    let then = [(0, now[0].1.clone())];
    let mut printed = printed(&now, &then);
    printed.push((Quote::Notes, NOTES.to_owned()));
    assert_eq!(
        assemble(&journal.state, QuotedLogs(&printed)),
        THIRD.replace("{DAY}", DAY).replace("{SHOW}", SHOW)
    );
}

const THIRD: &str = "\
The tests of durations.py fail. Mend durations.py so that they pass; leave the tests as they are.

## How this loop works
- You are started again for each run, until you claim to be done and the gates pass. Earlier runs' changes are in the working tree \
(`git status`), committed for you after the gates pass.
- Run these gates yourself before you finish:
  - tests: `python3 -m unittest -q`
- When everything is done, end with <promise>COMPLETE</promise> alone on its line.
- Notes for the next run: `.refrain/job/state.md`. To ask, set `status: blocked` and `question: ...` there.

## Run 3 of 8
Run 1: no claim; gate tests failed: exit code 1. It said: \"The table of units and the zero are to be mended.\"
Run 2: claimed; gate tests failed: exit code 1. It said: \"The day is mended.\"
Not committed for you yet: what runs 1 and 2 changed.
Still failing, 2 of 4: test_day, test_show (run 1: the same 2).

Notes in `.refrain/job/state.md`:

```
# Progress

Units are in a table now.
```

CLAIM REFUSED: gate tests failed (`python3 -m unittest -q`): exit code 1; it failed before the first run too. It printed:

```
{DAY}{SHOW}Ran 4 tests in 0.022s

FAILED (failures=2)
```

That output as it was printed, and a line for each earlier run: `.refrain/job/context.md`.";

/// A session gets the name of each required gate that failed.
#[test]
fn of_many_gates_some_are_quoted_and_all_are_named() {
    let journal = Journal::gated([true; 7]).takes(0).gates_end(&[0; 7]);
    let journal = journal.attempts(ended()).takes(1).gates_end(&[1; 7]).starts();
    let prompt = assemble(&journal.state, QuotedLogs::default());
    assert_eq!(prompt.matches("GATE FAILED: gate-").count(), 5, "{prompt}");
    assert!(prompt.contains("\n\nFAILED TOO: gate gate-5, gate gate-6."), "{prompt}");
}
