//! What release 0.1.0 stored is read, listed, verified and continued by this program: journals, a plan in flight, settings,
//! trust and the list of projects.
//!
//! `golden/home-0.1.0.txt` is what the program of 0.1.0 wrote, as text: its paths begin with `@ROOT@`, its repository
//! is the output of `git fast-export --all`, `@POOL@` is the folder of its worktrees, and each part follows a line with
//! its name and its length in bytes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Sandbox, write};

const STORED: &str = include_str!("golden/home-0.1.0.txt");

fn parts() -> Vec<(&'static str, &'static str)> {
    let (mut rest, mut parts) = (STORED, Vec::new());
    while let Some((head, body)) = rest.strip_prefix("==> ").and_then(|rest| rest.split_once('\n')) {
        let (name, length) = head.rsplit_once(' ').unwrap();
        let (text, more) = body.split_at(length.parse().unwrap());
        parts.push((name, text));
        rest = more.strip_prefix('\n').unwrap();
    }
    assert!(rest.is_empty(), "{rest}");
    parts
}

/// The chain of hashes of a journal whose lines were changed.
fn chained(journal: &str) -> String {
    let mut before = "0".repeat(32);
    let mut text = String::new();
    for line in journal.lines() {
        let (body, _) = line.rsplit_once(",\"hash\":\"").unwrap();
        let hash = blake3::hash(format!("{before}{body}").as_bytes()).to_hex();
        before = hash[..32].to_owned();
        text.push_str(&format!("{body},\"hash\":\"{before}\"}}\n"));
    }
    text
}

/// A home and a project as 0.1.0 left them. `agents` makes their agents.
fn home() -> Sandbox {
    let sandbox = Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"));
    let root = sandbox.root().to_str().unwrap().to_owned();
    let pool = blake3::hash(sandbox.project().to_str().unwrap().as_bytes()).to_hex();
    let pool = format!("project-{}", &pool[..8]);
    sandbox.git(&["init", "--quiet", "--initial-branch", "main"]);
    for (name, text) in parts() {
        if name == "repository" {
            sandbox.tool("git", &["fast-import", "--quiet"]).stdin(text).run().with_code(0);
            sandbox.git(&["read-tree", "HEAD"]);
            // The worktree of the plan's task that was under way.
            let path = sandbox.root().join(format!("home/state/refrain/worktrees/{pool}/_pool/1/project"));
            let path = path.to_str().unwrap();
            sandbox.git(&["worktree", "add", "--quiet", path, "refrain/plan/2"]);
            sandbox.git(&["-C", path, "update-ref", "refs/worktree/refrain-settled", "refs/golden/settled"]);
            continue;
        }
        let path = sandbox.root().join(name.replace("@POOL@", &pool));
        let text = text.replace("@ROOT@", &root).replace("@POOL@", &pool);
        let text = if name.ends_with("journal.jsonl") { chained(&text) } else { text };
        // The name of a trusted entry is derived from the project's path.
        let path = match name.starts_with("home/state/refrain/trust/") {
            true => path.with_file_name(trusted_as(&sandbox, &text)),
            false => path,
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text);
    }
    sandbox
}

fn trusted_as(sandbox: &Sandbox, trusted: &str) -> String {
    let trusted: Value = serde_json::from_str(trusted).unwrap();
    let (project, hash) = (sandbox.project(), trusted["hash"].as_str().unwrap());
    let name = blake3::hash(format!("{}\0{hash}", project.display()).as_bytes()).to_hex();
    format!("{}.json", &name[..32])
}

/// The progress of a loop: its status, its iterations, those that count, and its limit.
fn standing(status: &Value) -> (&str, u64, u64, u64) {
    let number = |key: &str| status[key].as_u64().unwrap_or_default();
    (status["status"].as_str().unwrap(), number("iteration"), number("charged"), number("max_iterations"))
}

/// A status, and how many iterations were begun, charged and granted.
type Counters = (&'static str, u64, u64, u64);

const STOOD: [(&str, Counters); 5] = [
    ("paused", ("paused", 2, 2, 6)),
    ("stuck", ("stuck", 3, 3, 7)),
    ("exact", ("crashed", 2, 1, 3)),
    ("crashed", ("crashed", 1, 0, 7)),
    ("session", ("running", 2, 1, 9)),
];

#[test]
fn stored_data_of_release_0_1_0_is_read_listed_and_verified() {
    let sandbox = home();
    let list = sandbox.refrain(&["list", "--json"]).with_code(0).json();
    let rows = list.as_array().unwrap();
    for (id, stood) in STOOD {
        let row = rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}: {list}"));
        assert_eq!(row["status"], stood.0, "{id}");
        assert_eq!(standing(&sandbox.status(id)), stood, "{id}");
        assert_eq!(sandbox.status(id)["signed"], Value::Null, "{id}");
        for words in [["status", id], ["verify", id], ["report", id]] {
            let said = sandbox.refrain(&words).with_code(0).stdout;
            assert!(said.contains("made before signatures"), "{words:?}: {said}");
        }
        for words in [["show", id], ["logs", id], ["report", id], ["verify", id]] {
            sandbox.refrain(&words).with_code(0);
        }
    }
    let stuck = sandbox.status("stuck");
    assert!(stuck["reason"].as_str().unwrap().contains("in a row"), "{stuck}");
    let plan = sandbox.refrain(&["plan", "status", "plan", "--json"]).with_code(0).json();
    assert_eq!(plan["status"], "paused", "{plan}");
    sandbox.refrain(&["verify", "plan"]).with_code(0);
    let all = sandbox.refrain(&["list", "--all-projects"]).with_code(0).stdout;
    assert!(STOOD.iter().all(|(id, _)| all.contains(id)), "{all}");
}

#[test]
fn settings_count_as_they_did() {
    let sandbox = home();
    let shown = sandbox.refrain(&["config", "show", "--json"]).with_code(0).stdout;
    for part in
        ["\"start.max-iterations\"", "agents.mine.command", "gates.readme.command", "prompts.fix.text"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("untrusted"), "{shown}");
    let agent = sandbox.agent("claims", "echo '<promise>COMPLETE</promise>'");
    let start = ["start", "--command", &agent, "--name", "new", "--share-worktree", "--prompt-name", "fix"];
    sandbox.refrain(&start).with_code(0);
    let status = sandbox.status("new");
    assert_eq!((&status["max_iterations"], &status["verified"]), (&json!(7), &json!(true)));
}

/// Makes each of the agents that 0.1.0 ran do the rest of the work.
fn able(sandbox: &Sandbox) {
    let claims = "touch never; echo '<promise>COMPLETE</promise>'";
    for name in ["twice", "fails", "hangs"] {
        let _ = sandbox.agent(name, claims);
    }
    let _ = sandbox.agent("task", "echo two > two.txt; echo '<promise>TASK_COMPLETE</promise>'");
}

#[test]
fn loops_continue_where_they_stood() {
    let sandbox = home();
    able(&sandbox);
    for (id, stood) in [
        ("paused", ("completed", 3, 3, 6)),
        ("stuck", ("completed", 4, 4, 7)),
        ("crashed", ("completed", 1, 1, 7)),
    ] {
        sandbox.refrain(&["resume", id, "--quiet"]).with_code(0);
        assert_eq!(standing(&sandbox.status(id)), stood, "{id}");
        assert_eq!(sandbox.status(id)["verified"], true, "{id}");
        sandbox.refrain(&["verify", id]).with_code(0);
    }
}

/// `--iterations 3` of 0.1.0 was the exact number: it still is, and the loop ends as completed.
#[test]
fn an_exact_loop_is_completed_by_its_count() {
    let sandbox = home();
    let _ = sandbox.agent("twice", "echo not yet");
    sandbox.refrain(&["resume", "exact", "--quiet"]).with_code(0);
    let status = sandbox.status("exact");
    assert_eq!(standing(&status), ("completed", 3, 3, 3));
    assert_eq!((&status["verified"], &status["claim"]), (&json!(true), &json!(null)), "{status}");
    sandbox.refrain(&["verify", "exact"]).with_code(0);
    sandbox.refrain(&["resume", "exact"]).with_code(17);
}

#[test]
fn a_sessions_loop_counts_on() {
    let sandbox = home();
    let next = sandbox.refrain(&["tick", "advance", "session"]).with_code(0).stdout;
    assert!(next.starts_with("[loop session iteration 3/9]"), "{next}");
    sandbox.refrain(&["tick", "finish", "session", "completed", "built"]).with_code(0);
    assert_eq!(standing(&sandbox.status("session")), ("completed", 3, 3, 9));
}

#[test]
fn a_plan_in_flight_is_worked_on_to_its_end() {
    let sandbox = home();
    able(&sandbox);
    sandbox.refrain(&["plan", "resume", "plan"]).with_code(0);
    let plan = sandbox.refrain(&["plan", "status", "plan", "--json"]).with_code(0).json();
    assert_eq!(plan["status"], "completed", "{plan}");
    assert_eq!(sandbox.git(&["show", "main:two.txt"]), "two\n");
    assert!(read(&sandbox.project().join("PLAN.md")).contains("Task 2"));
    sandbox.refrain(&["verify", "plan"]).with_code(0);
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
