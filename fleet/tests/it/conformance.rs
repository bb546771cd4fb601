//! The same loops on the person's own machine and on the fleet have the same results: these stand for the subjects of the
//! black-box suite. What that suite has besides cannot apply, as its tests look at what a fleet does not have: the lines of a
//! runner in this terminal, the folder of the loop in this repository, a checkout without a worktree of the loop's own, changes
//! that no commit has, values of `--env`, and the verbs that start no loop.

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::lab::{LONG, Lab};

const CLAIM: &str = "echo '<promise>COMPLETE</promise>'";
const LINE: &str = "echo x > line$REFRAIN_ITERATION";

/// A name, the agent's script, and the words of `refrain start`.
type Scenario = (&'static str, String, Vec<&'static str>);

fn scenarios() -> Vec<Scenario> {
    let claims_in = |last: u32| format!("{LINE}\n[ $REFRAIN_ITERATION -lt {last} ] || {CLAIM}");
    let says = |what: &str| format!("{LINE}\nsed -i 's/^status:.*/status: {what}/' \"$REFRAIN_STATE_FILE\"");
    vec![
        ("claims", claims_in(3), vec!["--max-iterations", "5"]),
        ("cap", LINE.to_owned(), vec!["--max-iterations", "2"]),
        ("exact", claims_in(1), vec!["--exact", "3"]),
        ("promise", format!("{LINE}\necho '<promise>DONE</promise>'"), vec!["--completion-promise", "DONE"]),
        ("nothing", CLAIM.to_owned(), vec!["--max-iterations", "3"]),
        ("done", says("done"), vec!["--max-iterations", "3"]),
        ("blocked", says("blocked  # no key"), vec!["--max-iterations", "5"]),
        ("fails", format!("{LINE}\nexit 3"), vec!["--max-iterations", "2"]),
        (
            "stuck",
            "true".to_owned(),
            vec!["--stuck-threshold", "2", "--on-stuck", "stop", "--max-iterations", "6"],
        ),
        (
            "timeout",
            format!("{LINE}\n[ $REFRAIN_ITERATION = 2 ] && {CLAIM} && exit\nsleep 1000"),
            vec!["--timeout", "1s", "--timeout-grace", "1s"],
        ),
        ("gate", claims_in(1), vec!["--gate", "test -e line2", "--max-iterations", "4"]),
        ("red", claims_in(1), vec!["--gate", "false", "--max-iterations", "2"]),
        ("soft", claims_in(1), vec!["--soft-gate", "false", "--max-iterations", "2"]),
        ("success", LINE.to_owned(), vec!["--success-command", "test -e line2", "--max-iterations", "4"]),
        ("clean", claims_in(1), vec!["--gate", "test -e line1", "--clean-checkout", "--max-iterations", "3"]),
        (
            "protect",
            format!("echo changed > README.md\n{CLAIM}"),
            vec!["--protect", "README.md", "--gate", "true", "--max-iterations", "2"],
        ),
        ("approval", claims_in(1), vec!["--gate", "true", "--require-approval"]),
        (
            "commits",
            format!(
                "{LINE}\ngit add line*\ngit commit --quiet --message Own\n[ $REFRAIN_ITERATION -lt 2 ] || {CLAIM}"
            ),
            vec!["--max-iterations", "4"],
        ),
    ]
}

/// What must be the same: how it ended, its iterations, its events, and what it committed.
fn result(person: &Sandbox, repository: &str, id: &str) -> Value {
    let status = person.status(id);
    let row = |row: &Value| json!([row["n"], row["attempt"], row["charged"], row["outcome"]]);
    let rows: Vec<Value> = status["iterations"].as_array().into_iter().flatten().map(row).collect();
    let shown: Value = person.refrain(&["show", id, "--json"]).with_code(0).json();
    let events =
        shown.as_array().unwrap().iter().map(|record| record["event"]["type"].as_str().unwrap_or_default());
    // How a loop gets to a machine.
    let is_of_machine = |name: &&str| {
        ["runner.started", "loop.left", "loop.moved", "loop.resumed", "worktree.released"].contains(name)
    };
    let events: Vec<&str> = events.filter(|name| !is_of_machine(name)).collect();
    let branch = format!("*{id}*");
    let branches = person.git(&["-C", repository, "branch", "--list", &branch, "--format=%(refname)"]);
    let commits = match branches.lines().next() {
        Some(branch) => {
            person.git(&["-C", repository, "log", "--format=%s", "--name-status", branch, "--not", "main"])
        }
        None => String::new(),
    };
    let keys =
        ["status", "verified", "signed", "iteration", "attempt", "charged", "started", "reason", "question"];
    let mut all: Value = keys.iter().map(|key| ((*key).to_owned(), status[*key].clone())).collect();
    all["claim"] = status["claim"]["source"].clone();
    all["rows"] = rows.into();
    all["events"] = json!(events);
    all["commits"] = commits.into();
    let worktree = status["worktree"].as_str().unwrap();
    serde_json::from_str(&all.to_string().replace(worktree, "WORKTREE").replace(id, "ID")).unwrap()
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn loops_have_the_same_results_on_the_fleet_as_at_home() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let _worker = lab.work(&machine, &[]);
    // The remote of the loops has the branch that they began on, for the comparison alone.
    lab.person.git(&["push", "--quiet", &lab.state, "main"]);
    let (project, mut differences) = (lab.person.project().to_string_lossy().into_owned(), Vec::new());
    for (name, script, options) in scenarios() {
        let (here, there) = (format!("{name}-here"), format!("{name}-there"));
        let agent = lab.person.agent(name, &script);
        let words = |id: &str, place: &[&str]| -> Vec<String> {
            let words = [&["start", "--name", id, "--command", &agent], place, &options, &["Write lines."]];
            words.concat().iter().map(|word| (*word).to_owned()).collect()
        };
        let run = |words: Vec<String>| {
            lab.person
                .command(&words.iter().map(String::as_str).collect::<Vec<_>>())
                .spawn()
                .wait_at_most(LONG)
        };
        run(words(&there, &["--on", "fleet"])).with_code(0);
        // Without required gates each iteration is committed anyway.
        let has_gates = options.iter().any(|option| ["--gate", "--success-command"].contains(option));
        let each: &[&str] = if has_gates { &["--commit-when", "each"] } else { &[] };
        let at_home = run(words(&here, &[&["--worktree", "--auto-commit", "--quiet"], each].concat()));
        assert_ne!(at_home.code, 2, "{}", at_home.stderr);
        let expected = result(&lab.person, &project, &here);
        lab.wait_for_status(&there, expected["status"].as_str().unwrap());
        let found = result(&lab.person, &lab.state, &there);
        if found != expected {
            differences.push(format!("{name}: at home {expected:#}\non the fleet {found:#}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
