//! The main job, on real input: a loop over a real command in a real repository, killed with -9 in the middle, resumed,
//! completed.

use std::fs;

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// Commits one line an attempt; its second iteration waits at a gate; its third claims.
fn worker(sandbox: &Sandbox) -> String {
    sandbox.agent(
        "worker",
        &format!(
            r#"echo "$REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> "$NOTES/attempts"
echo "I work on part $REFRAIN_ITERATION"
echo "part $REFRAIN_ITERATION" >> work.txt
git add work.txt && git commit --quiet --message "Part $REFRAIN_ITERATION.$REFRAIN_ATTEMPT"
case $REFRAIN_ITERATION.$REFRAIN_ATTEMPT in
  2.1) echo waiting > "$NOTES/held"; read -r _ < "$GATES/second" ;;
  3.*) {CLAIM} ;;
esac"#
        ),
    )
}

fn attempts_of(status: &Value) -> Vec<Value> {
    let row = |row: &Value| json!([row["n"], row["attempt"], row["charged"], row["outcome"]]);
    status["iterations"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_loop_killed_in_the_middle_is_resumed_and_completed() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("second");
    let agent = worker(&sandbox);
    let start =
        ["start", "--command", &agent, "--name", "job", "--max-iterations", "5", "--prompt", "Do all parts."];

    let first = sandbox.spawn(&start);
    sandbox.wait_for_note("held");
    first.wait_for_output("[loop job iteration 2/5]");
    let first = first.kill();
    assert!(first.has_line("[loop job iteration 1/5]"), "{}", first.stdout);
    assert!(first.has_line("I work on part 1"), "{}", first.stdout);
    assert!(first.has_line("[loop job iteration 2/5]"), "{}", first.stdout);
    sandbox.no_process_is_left();

    let crashed = sandbox.status("job");
    assert_eq!(crashed["status"], "crashed");
    assert_eq!(
        (&crashed["iteration"], &crashed["charged"], &crashed["started"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(crashed["runner"]["alive"], json!(false));
    assert_eq!(crashed["needs"], "refrain resume job");

    let resumed = sandbox.refrain(&["resume", "job"]).with_code(0);
    assert!(resumed.has_line("[loop job iteration 3/5]"), "{}", resumed.stdout);
    assert_eq!(sandbox.note("attempts"), "1.1\n2.1\n2.2\n3.1\n");

    let status = sandbox.status("job");
    assert_eq!(status["status"], "completed");
    assert_eq!(
        (&status["iteration"], &status["attempt"], &status["started"], &status["charged"]),
        (&json!(3), &json!(1), &json!(4), &json!(3)),
        "the lost attempt is in `started`, and not in `charged`"
    );
    assert_eq!(
        attempts_of(&status),
        [
            json!([1, 1, true, "ended"]),
            json!([2, 1, false, "lost"]),
            json!([2, 2, true, "ended"]),
            json!([3, 1, true, "claimed"])
        ]
    );
    assert_eq!(status["claim"]["source"], "promise");
    assert_eq!(
        sandbox.git(&["rev-list", "--count", "HEAD"]).trim(),
        "5",
        "what the lost attempt committed stays"
    );
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn a_refunded_attempt_is_shown_as_2_and_then_as_2_2() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("second");
    let agent = worker(&sandbox);
    let first = sandbox.spawn(&[
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-m",
        "5",
        "--prompt",
        "Do all parts.",
    ]);
    sandbox.wait_for_note("held");
    first.kill();
    let resumed = sandbox.refrain(&["resume", "job"]).with_code(0);
    insta::assert_snapshot!(sandbox.redact(&resumed.stdout), @r"
    · attempt 2 was interrupted; it is refunded and tried again
    · attempt 2.2
    I work on part 2
    · iteration 2.2 took [took]: no claim
    [loop job iteration 3/5]
    I work on part 3
    <promise>COMPLETE</promise>
    · iteration 3 took [took]: it claims to be done
    ◐ unverified after 3 iterations in [took]: the agent made its promise; unverified, as no gate checks it
      next: refrain diff job, refrain report job, refrain logs job
    ");
    let status = sandbox.refrain(&["status", "job"]).with_code(0);
    let rows: Vec<&str> = status.stdout.lines().filter(|line| line.starts_with("  ")).collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!(names, ["1", "2", "2.2", "3"], "{}", status.stdout);
    let lost: Vec<_> = rows[1].split_whitespace().collect();
    assert_eq!(lost, ["2", "lost", "(refunded)"], "its duration is unknown");
    let watched = sandbox.refrain(&["watch", "job"]).with_code(0).stdout;
    assert!(watched.contains("· iteration 2: lost with its runner or supervisor, refunded"), "{watched}");
    let mut folders: Vec<_> = fs::read_dir(sandbox.loop_dir("job").join("iterations"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    assert_eq!(folders, ["0001", "0002", "0002.2", "0003"]);
    assert_eq!(
        sandbox.kept_text("job", "0002", "output.log"),
        "I work on part 2\n",
        "what it had printed is kept"
    );
}

#[test]
fn the_prompts_are_the_contracts() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("test $REFRAIN_ITERATION -lt 3 || {CLAIM}"));
    let told = |name: &str, prompt: &str| {
        let start = ["start", "--command", &agent, "--name", name, "-m", "4", "--prompt", prompt];
        sandbox.refrain(&start).with_code(0);
        [1, 2, 3].map(|n| sandbox.kept_text(name, &format!("000{n}"), "prompt.md"))
    };
    let plain = told("plain", "Mend the tests.\n");
    let (fixed, _) = plain[0].split_once("\n## Run ").unwrap();
    let section = fixed
        .strip_prefix("Mend the tests.\n\n## How this loop works\n")
        .expect("the user's prompt comes first");
    assert!(section.contains("<promise>COMPLETE</promise>"), "{section}");
    assert!(section.contains("`.refrain/plain/state.md`"), "{section}");
    assert!(
        !section.lines().any(|line| line.trim() == "<promise>COMPLETE</promise>"),
        "its echo is no claim: {section}"
    );
    assert_eq!(plain[0], format!("{fixed}\n## Run 1 of 4"));
    assert_eq!(plain[1], format!("{fixed}\n## Run 2 of 4\nRun 1: no claim."), "caches hit");
    assert_eq!(plain[2], format!("{fixed}\n## Run 3 of 4\nRun 1: no claim.\nRun 2: no claim."));

    let prompt = "Mend it. Output <promise>COMPLETE</promise> when done.";
    let tagged = told("tagged", prompt);
    let without = |line: &&str| !line.contains("<promise>");
    let section = section.replace("plain", "tagged");
    let section: Vec<_> = section.lines().filter(without).collect();
    let fixed = format!("{prompt}\n\n## How this loop works\n{}", section.join("\n"));
    assert_eq!(tagged[0], format!("{fixed}\n\n## Run 1 of 4"), "that line alone is left out");
    assert_eq!(tagged[1], format!("{fixed}\n\n## Run 2 of 4\nRun 1: no claim."));
}

#[test]
fn from_every_prefix_of_its_journal_a_loop_continues_to_its_end() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("test $REFRAIN_ITERATION -lt 2 || {CLAIM}"));
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "-m", "3", "--prompt", "Go."])
        .with_code(0);
    let dir = sandbox.loop_dir("job");
    let whole = fs::read(dir.join("journal.jsonl")).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for end in &ends[..ends.len() - 1] {
        let names: Vec<String> = whole[..*end]
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .map(|record: Value| record["event"]["type"].as_str().unwrap().to_owned())
            .collect();
        let last = names.last().unwrap().clone();
        testkit::write(&dir.join("journal.jsonl"), &whole[..*end]);
        sandbox.forget_signed_records();
        assert_eq!(sandbox.status("job")["status"], "crashed", "after {last}");
        sandbox.refrain(&["resume", "job", "--quiet"]).with_code(0);
        let status = sandbox.status("job");
        let charged = status["charged"].as_u64().unwrap();
        assert_eq!((&status["status"], charged), (&json!("completed"), 2), "after {last}");
        let begun = |names: &[String], name: &str| names.iter().filter(|found| *found == name).count();
        if last == "attempt.finished" {
            let (before, after) =
                (begun(&names, "attempt.started"), begun(&sandbox.event_names("job"), "attempt.started"));
            assert!(after == 2 && before <= 2, "a result that is there is used, not made again");
        }
        sandbox.refrain(&["verify", "job"]).with_code(0);
    }
}

#[test]
fn demo_refuses_a_claim_and_verifies_the_next_one() {
    let sandbox = sandbox();
    let dir = sandbox.root().join("demo");
    let run = sandbox.refrain(&["demo", "--dir", dir.to_str().unwrap()]).with_code(0);
    assert!(run.has_line("[loop demo iteration 2/10]"), "{}", run.stdout);
    for part in ["the claim is refused: gate tests failed", "✔ verified after 2 iterations", "1 file, +4 -0"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let next = "  next: refrain diff demo, refrain merge demo, refrain report demo\n";
    assert!(run.stdout.contains(next) && !run.stdout.contains("unverified"), "{}", run.stdout);
    assert_eq!(
        first_block(&sandbox),
        normalized(&sandbox, &run.stdout),
        "the tutorial shows what the demo prints"
    );
    let there = format!("\n  cd {0}\n  rm -r {0}\n", dir.display());
    assert!(run.stdout.ends_with(&there), "{}", run.stdout);
    assert_eq!(run.stdout.matches("diff demo").count(), 1, "what to type next is said once: {}", run.stdout);
    // What it says to type works.
    let there = dir.to_str().unwrap();
    let run_there = |args: &[&str]| sandbox.refrain(&[&["-C", there], args].concat()).with_code(0);
    assert!(run_there(&["diff", "demo"]).stdout.contains("+take 40 XL"));
    assert!(run_there(&["merge", "demo"]).stdout.contains("into main: fast-forward to "));
    sandbox.tool("./test.sh", &[]).dir(&dir).run().with_code(0);
    sandbox.refrain(&["demo", "--dir", there]).with_code(2);
}

#[test]
fn demo_crash_kills_the_runner_and_resumes() {
    let sandbox = sandbox();
    let dir = sandbox.root().join("demo");
    let run = sandbox.refrain(&["demo", "--crash", "--dir", dir.to_str().unwrap()]).with_code(0);
    for part in
        ["\n$ kill -9 ", "crashed: its runner is gone; nothing is lost", "✔ verified after 2 iterations"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let status =
        sandbox.refrain(&["-C", dir.to_str().unwrap(), "status", "demo", "--json"]).with_code(0).json();
    let found = (&status["verified"], &status["charged"], &status["started"]);
    assert_eq!(found, (&json!(true), &json!(2), &json!(3)), "the killed attempt does not count");
    sandbox.no_process_is_left();
}

#[test]
fn demo_plan_lands_three_tasks() {
    let sandbox = sandbox();
    let dir = sandbox.root().join("demo");
    let run = sandbox.refrain(&["demo", "--plan", "--dir", dir.to_str().unwrap()]).with_code(0);
    assert!(run.stdout.contains("plan status demo"), "{}", run.stdout);
    let shout = sandbox.tool("sh", &["shout.sh", "abc"]).dir(&dir).run().with_code(0);
    assert_eq!(shout.stdout, "ABCABC\n");
    let there = dir.to_str().unwrap();
    let status = sandbox.refrain(&["-C", there, "plan", "status", "demo", "--json"]).with_code(0).json();
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(true)), "{status}");
    sandbox.refrain(&["demo", "--plan", "--crash"]).with_code(2);
}

/// The first example of the tutorial.
fn first_block(sandbox: &Sandbox) -> Vec<String> {
    let page = include_str!("../../../../../docs/tutorial/first-loop.md");
    let (_, block) = page.split_once("```text\n$ refrain demo\n").expect("it begins with the demo");
    normalized(sandbox, block.split_once("```").expect("the block ends").0)
}

/// What the demo says of its loop, without paths, and with times and the names of objects replaced.
fn normalized(sandbox: &Sandbox, text: &str) -> Vec<String> {
    let is_object = |word: &&str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let replaced = |line: &str| {
        let line = sandbox.redact(line);
        line.split(' ')
            .map(|word| if is_object(&word) { "[object]" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let lines = text.lines().skip_while(|line| *line != "loop demo");
    let lines = lines.take_while(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with("  runs ") && !line.starts_with("  in ")).map(replaced).collect()
}

/// The picture of the README is a run of the demo; only times and the names of commits are not those of this
/// run.
#[test]
#[expect(clippy::disallowed_methods, reason = "the developer asks for a new picture by a variable")]
fn the_picture_of_the_demo_is_current() {
    let sandbox = sandbox();
    let dir = sandbox.root().join("demo");
    let run = sandbox.command(&["demo", "--dir", dir.to_str().unwrap()]).env("CLICOLOR_FORCE", "1").run();
    let shown = run.with_code(0).stdout;
    let begin = shown.find("loop demo iteration 1/").and_then(|at| shown[..at].rfind('\n')).unwrap() + 1;
    let end = shown[begin..].find("\n\n").map_or(shown.len(), |at| begin + at);
    let shown: String = shown[begin..end].lines().map(|line| steady(line) + "\n").collect();
    // Dim lines are hard to read on a page.
    let svg = anstyle_svg::Term::new().render_svg(&shown).replace("opacity: 0.4", "opacity: 0.7");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial/demo.svg");
    if std::env::var_os("REFRAIN_DRAW").is_some() {
        testkit::write(&path, &svg);
    }
    let drawn = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        drawn == svg,
        "docs/tutorial/demo.svg is not current: run this test with REFRAIN_DRAW=1\n{shown}"
    );
}

/// A line of the demo with one and the same time, and one name for every commit.
fn steady(line: &str) -> String {
    let is_time = |word: &str| word.strip_suffix('s').is_some_and(|time| time.parse::<f64>().is_ok());
    let words = line.split(' ').map(|word| {
        let bare = &word[..word.find('\u{1b}').filter(|at| *at > 0).unwrap_or(word.len())];
        let bare = bare.trim_end_matches([':', ',']);
        let after = &word[bare.len()..];
        match bare {
            bare if is_time(bare) => format!("0.1s{after}"),
            bare if bare.len() == 10 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                format!("5be8c3d01a{after}")
            }
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
