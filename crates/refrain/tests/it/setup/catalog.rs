//! Loops of all projects together: lists and usage.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// Another project in the same home.
fn other_project(sandbox: &Sandbox, name: &str) -> PathBuf {
    let path = sandbox.root().join(name);
    std::fs::create_dir(&path).unwrap();
    sandbox.tool("git", &["init", "--quiet"]).dir(&path).run().with_code(0);
    path
}

/// A program that speaks Claude Code's dialect, as far as usage goes.
fn claude(sandbox: &Sandbox, cost: &str) -> String {
    sandbox.agent(
        "claude",
        &format!(
            r#"cat > /dev/null
echo '{{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-4","claude_code_version":"2.1.0"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>","session_id":"s","total_cost_usd":{cost},"usage":{{"input_tokens":1000,"output_tokens":20}}}}'"#
        ),
    )
}

fn run(sandbox: &Sandbox, dir: &Path, agent: &str, id: &str, code: i32) {
    let words = ["start", "--command", agent, "--name", id, "-m", "2", "--quiet", "p"];
    sandbox.command(&words).dir(dir).run().with_code(code);
}

/// Three loops in two projects: one that completed, one at its cap, and one that reported its cost.
fn three(sandbox: &Sandbox) -> PathBuf {
    let other = other_project(sandbox, "other");
    run(sandbox, &sandbox.project(), &sandbox.agent("quick", CLAIM), "done", 0);
    run(sandbox, &sandbox.project(), &sandbox.agent("slow", "echo not yet"), "capped", 10);
    run(sandbox, &other, &claude(sandbox, "0.25"), "paid", 0);
    other
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|status| status["id"].as_str().unwrap()).collect()
}

fn catalog(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("home/data/refrain/catalog.sqlite")
}

#[test]
fn loops_of_all_projects_are_listed_from_anywhere_last_touched_first() {
    let sandbox = sandbox();
    let other = three(&sandbox);
    let all = ["list", "--all-projects", "--json"];
    assert_eq!(ids(&sandbox.refrain(&all).with_code(0).json()), ["paid", "capped", "done"]);
    let from_outside = sandbox.command(&all).dir(sandbox.root()).run().with_code(0).json();
    assert_eq!(ids(&from_outside), ["paid", "capped", "done"]);
    let mut own = sandbox.status("done");
    assert!(own["iterations"].is_array());
    own.as_object_mut().unwrap().remove("iterations");
    assert_eq!(from_outside[2], own, "the same object, without iterations");
    assert_eq!(ids(&sandbox.refrain(&["list", "--json"]).with_code(0).json()), ["capped", "done"]);
    let text = sandbox.refrain(&["list", "--all-projects"]).with_code(0).stdout;
    assert!(text.lines().next().unwrap().ends_with(other.to_str().unwrap()), "{text}");

    std::fs::rename(&other, sandbox.root().join("elsewhere")).unwrap();
    assert_eq!(ids(&sandbox.refrain(&all).with_code(0).json()), ["capped", "done"], "it is not there");
    std::fs::rename(sandbox.root().join("elsewhere"), &other).unwrap();
    assert_eq!(ids(&sandbox.refrain(&all).with_code(0).json()).len(), 3);
}

#[test]
fn a_loop_is_listed_correctly_while_running_crashed_and_resumed() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo x > $NOTES/up.$REFRAIN_ATTEMPT\ntest $REFRAIN_ATTEMPT = 1 || {{ {CLAIM}; exit; }}\nexec sleep 1000"),
    );
    let listed = || {
        let list = sandbox.refrain(&["list", "--all-projects", "--json"]).with_code(0).json();
        (list[0]["status"].clone(), list[0]["iteration"].clone())
    };
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up.1");
    assert_eq!(listed(), (json!("running"), json!(1)));
    // What runs comes first, for scripts too.
    sandbox.refrain(&["start", "--command", "false", "--name", "later", "-m", "1", "--share-worktree", "p"]);
    assert_eq!(ids(&sandbox.refrain(&["list", "--limit", "1", "--json"]).with_code(0).json()), ["job"]);
    sandbox.refrain(&["archive", "later"]).with_code(0);
    session.kill();
    assert_eq!(listed().0, "crashed");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(listed(), (json!("completed"), json!(1)));
}

#[test]
fn deleting_or_damaging_the_catalog_loses_nothing() {
    let sandbox = sandbox();
    three(&sandbox);
    sandbox.refrain(&["archive", "capped"]).with_code(0);
    let asked = || {
        [["list", "--all-projects", "--json"].as_slice(), &["usage", "--all-projects", "--json"]]
            .map(|words| sandbox.refrain(words).with_code(0).stdout)
    };
    let before = asked();
    assert!(catalog(&sandbox).is_file());
    std::fs::remove_file(catalog(&sandbox)).unwrap();
    assert_eq!(asked(), before);
    testkit::write(&catalog(&sandbox), "no database at all".repeat(1000));
    assert_eq!(asked(), before);
    assert_eq!(asked(), before, "and again, from the new one");
    testkit::write(&catalog(&sandbox), "no database at all".repeat(1000));
    let agent = sandbox.agent("agent", CLAIM);
    run(&sandbox, &sandbox.project(), &agent, "later", 0);
    assert_eq!(sandbox.refrain(&["list", "--json"]).with_code(0).json()[0]["id"], "later");
}

#[test]
fn a_catalog_that_cannot_be_written_harms_neither_a_loop_nor_a_list() {
    let sandbox = sandbox();
    // A folder in its place: no process can write that, root neither.
    std::fs::create_dir_all(catalog(&sandbox).join("in the way")).unwrap();
    three(&sandbox);
    assert_eq!(
        ids(&sandbox.refrain(&["list", "--all-projects", "--json"]).with_code(0).json()),
        ["paid", "capped", "done"]
    );
    assert_eq!(sandbox.refrain(&["usage", "--json"]).with_code(0).json()["total"]["attempts"], 3);
}

#[test]
fn usage_adds_up_and_never_takes_unknown_for_nothing() {
    let sandbox = sandbox();
    let other = three(&sandbox);
    sandbox.refrain(&["archive", "capped"]).with_code(0);
    let own = sandbox.refrain(&["usage", "--json"]).with_code(0).json();
    assert_eq!(own["project"], sandbox.project().to_str().unwrap());
    assert_eq!((&own["schema"], &own["by"], &own["time_zone"]), (&json!(1), &json!("day"), &json!("UTC")));
    let total = &own["total"];
    assert_eq!((&total["attempts"], &total["loops"]), (&json!(3), &json!(2)), "the archived one counts");
    assert_eq!((&total["usage"]["cost_usd"], &total["without_cost"]), (&json!(null), &json!(3)));

    let all = |by| sandbox.refrain(&["usage", "--all-projects", "--by", by, "--json"]).with_code(0).json();
    let by_project = all("project");
    assert_eq!(by_project["groups"][0]["key"], other.to_str().unwrap(), "the dearest first");
    assert_eq!(by_project["total"]["usage"]["cost_usd"], 0.25);
    assert_eq!(by_project["total"]["usage"]["input_tokens"], 1000);
    let keys = |report: Value| {
        let groups = report["groups"].as_array().unwrap().clone();
        groups.iter().map(|group| group["key"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(all("agent")), [json!("claude"), json!("generic")]);
    assert_eq!(keys(all("model")), [json!("claude-opus-4"), json!(null)]);
    let spread = json!({"loops": 2, "min": 1, "p25": 1.0, "median": 1.0, "p75": 1.0, "max": 1, "sum": 2});
    assert_eq!(by_project["iterations_to_done"], spread);
    let stops = json!([
        {"status": "completed", "why": null, "loops": 2}, {"status": "iteration-cap", "why": null, "loops": 1}
    ]);
    assert_eq!(by_project["stops"], stops);

    let text = sandbox.refrain(&["usage", "--all-projects", "--by", "agent"]).with_code(0).stdout;
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "all projects, in UTC",
            "AGENT COST ATTEMPTS LOOPS TOKENS IN TOKENS OUT",
            "claude $0.25 1 1 1.0k 20",
            "generic unknown 3 2 unknown unknown",
            "total at least $0.25 4 3 at least 1.0k at least 20",
            "stopped: 2 completed, 1 iteration-cap",
            "iterations to done: 1",
            "done in their first iteration: 2 of 2 (100 %)",
        ]
    );
}

#[test]
fn usage_is_of_the_days_of_the_persons_zone_and_since_when_they_say() {
    let sandbox = sandbox();
    run(&sandbox, &sandbox.project(), &sandbox.agent("quick", CLAIM), "done", 0);
    let usage = |since: &str, zone: &str| {
        let words = ["usage", "--since", since, "--json"];
        sandbox.command(&words).env("TZ", zone).run().with_code(0).json()
    };
    assert_eq!(usage("7d", "UTC")["total"]["attempts"], 1);
    assert_eq!(usage("2020-02-01", "UTC")["since"], "2020-02-01T00:00:00Z");
    let far = usage("2020-02-01", "<+14>-14");
    assert_eq!((&far["since"], &far["time_zone"]), (&json!("2020-01-31T10:00:00Z"), &json!("+14")));
    let future = usage("2200-01-01", "UTC");
    assert_eq!((&future["total"]["attempts"], &future["stops"]), (&json!(0), &json!([])));
    for bad in ["yesterday", "2026-13-01", "7", "", "-3d"] {
        let refused = sandbox.refrain(&["usage", &format!("--since={bad}")]).with_code(2);
        assert!(refused.stderr.contains("accepted: a date"), "{}", refused.stderr);
    }
    let empty = sandbox.command(&["usage"]).dir(sandbox.root()).run().with_code(0).stdout;
    assert!(empty.ends_with("Nothing was used.\n"), "{empty}");
}

#[test]
fn a_damaged_journal_is_named_and_hides_nothing_else() {
    let sandbox = sandbox();
    three(&sandbox);
    testkit::write(&sandbox.loop_dir("capped").join("journal.jsonl"), "damage\u{1b}[2J\n");
    for words in [["list", "--all-projects", "--json"].as_slice(), &["usage", "--all-projects", "--json"]] {
        let run = sandbox.refrain(words).with_code(0);
        assert!(
            run.stderr.starts_with("refrain: capped: ") && !run.stderr.contains('\u{1b}'),
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.json()["schema"].is_u64() || run.json().is_array());
    }
}
