//! Runners of plans that are killed while git works: whatever git was doing, `plan resume` continues, and every task
//! is done once.

use std::fs;

use testkit::{Sandbox, write};

use crate::sandbox;

/// Two tasks that can run at once, and one after the second, which therefore begins first.
const TASKS: &str = r#"{"tag": "x", "tasks": [
    {"id": 1, "title": "One", "status": "pending"}, {"id": 2, "title": "Two", "status": "pending"},
    {"id": 3, "title": "Three", "status": "pending", "depends_on": [2]}]}"#;

const AGENT: &str = r#"task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
SCRIPT
echo "$number" >> list
sort -n list | grep -v '^[<|=>]' > sorted; mv sorted list
echo "$number" > "f$number.txt"
echo TASK_COMPLETE"#;

struct KilledPlan {
    sandbox: Sandbox,
    agent: String,
    /// A `PATH` whose first git is a script that may stop.
    path: String,
}

impl KilledPlan {
    /// `script` decides in the git whether it stops.
    fn new(agent: &str, script: &str) -> Self {
        let sandbox = sandbox();
        fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
        write(&sandbox.project().join(".scud/tasks/x.json"), TASKS);
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "Plan"]);
        let agent = sandbox.agent("worker", &AGENT.replace("SCRIPT", agent));
        let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
        let script = script.replace("STOP", "read -r _ < $GATES/git; [ ! -e $NOTES/killed ] || exit 1");
        let git = sandbox.agent("git", &format!("{script}\nPATH='{usual}' exec git \"$@\""));
        let path = format!("{}:{usual}", std::path::Path::new(&git).parent().unwrap().display());
        Self { sandbox, agent, path }
    }

    fn begin(&self) -> testkit::Session {
        let begin =
            ["plan", "run", "--tag", "x", "--name", "x", "--jobs", "2", "--verify", "test -e README.md"];
        self.sandbox
            .command(&[&begin[..], &["--command", &self.agent]].concat())
            .env("PATH", &self.path)
            .spawn()
    }

    /// Kills the runner, and the git that has stopped unless `goes_on`. From here on neither git nor an agent stops.
    fn kill(&self, session: testkit::Session, git: &testkit::Gate, goes_on: bool) {
        session.kill();
        let notes = self.sandbox.root().join("notes");
        if !goes_on {
            write(&notes.join("killed"), "");
        }
        write(&notes.join("free"), "");
        git.let_one_pass();
        self.sandbox.no_process_is_left();
    }

    fn finish(&self, when: &str) {
        println!("{when}");
        match self.sandbox.status("x")["status"] == "completed" {
            // The runner died while it removed what nothing needs any more.
            true => drop(self.sandbox.refrain(&["gc", "--yes"]).with_code(0)),
            false => {
                self.sandbox.command(&["plan", "resume", "x"]).env("PATH", &self.path).run().with_code(0);
            }
        }
        assert_eq!(self.sandbox.git(&["branch", "--list", "refrain/*"]), "", "{when}");
        let log = self.sandbox.git(&["log", "--format=%s"]);
        for title in ["One", "Two", "Three"] {
            assert_eq!(log.lines().filter(|line| *line == title).count(), 1, "{when}: {log}");
        }
        for file in ["f1.txt", "f2.txt", "f3.txt", "list"] {
            assert!(self.sandbox.project().join(file).exists(), "{when}: {file}");
        }
        let tasks = fs::read_to_string(self.sandbox.project().join(".scud/tasks/x.json")).unwrap();
        assert_eq!(tasks.matches(r#""status": "done""#).count(), 3, "{when}: {tasks}");
        assert_eq!(self.sandbox.git(&["status", "--porcelain"]), " M .scud/tasks/x.json\n", "{when}");
    }
}

#[test]
fn a_task_keeps_its_own_worktree_after_a_kill_during_preparation() {
    // It stops in the second worktree: `git worktree add` keeps other worktrees waiting.
    let place = KilledPlan::new(
        r#"[ -e $NOTES/free ] || { echo at >> $NOTES/at; read -r _ < $GATES/go; }"#,
        r#"case "$PWD" in *_pool/2*) [ -e $NOTES/free ] || { echo at >> $NOTES/git; STOP; };; esac"#,
    );
    let (_go, git) = (place.sandbox.gate("go"), place.sandbox.gate("git"));
    let session = place.begin();
    place.sandbox.wait_for_note("at");
    place.sandbox.wait_for_note("git");
    place.kill(session, &git, false);
    place.finish("it was made ready");
    place.sandbox.no_process_is_left();
}

#[test]
#[ignore = "a plan for each call of git takes minutes: .ci/nightly"]
fn a_plan_killed_at_any_call_of_git_is_resumed() {
    for call in 1.. {
        let place = KilledPlan::new(
            "",
            &format!(
                r#"echo "$*" >> $NOTES/calls
[ -e $NOTES/free ] || [ "$(wc -l < $NOTES/calls)" -lt {call} ] || ! mkdir $NOTES/one 2>/dev/null || {{
    echo "$*" > $NOTES/git; STOP
}}"#
            ),
        );
        let git = place.sandbox.gate("git");
        let mut session = place.begin();
        let is_over = testkit::eventually("git stops, or the plan is over", || {
            match place.sandbox.note("git").is_empty() {
                false => Some(false),
                true => (!session.is_running()).then_some(true),
            }
        });
        if is_over {
            session.wait().with_code(0);
            assert!(call > 20, "git was called only {call} times");
            break;
        }
        place.kill(session, &git, call % 2 == 0);
        let when = format!("call {call}, git {}", place.sandbox.note("git").trim());
        match place.sandbox.project().join(".git/refrain/plans/x/journal.jsonl").exists() {
            true => place.finish(&when),
            // Nothing was begun.
            false => drop(place.begin().wait().with_code(0)),
        }
    }
}

/// An agent that reports its cost only at its end.
#[test]
fn a_plan_whose_runner_is_killed_spends_no_more_than_its_cap() {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write(&sandbox.project().join(".scud/tasks/x.json"), TASKS);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent = sandbox.agent(
        "claude",
        "cat > /dev/null\necho $REFRAIN_ATTEMPT >> $NOTES/started\nread -r _ < $GATES/never",
    );
    let _never = sandbox.gate("never");
    let run = ["plan", "run", "--tag", "x", "--name", "x", "--jobs", "2", "--verify", "true"];
    let session = sandbox.spawn(&[&run[..], &["--command", &agent, "--max-cost", "1"]].concat());
    let both = || (sandbox.note("started").lines().count() == 2).then_some(());
    testkit::eventually("both tasks are worked on", both);
    session.kill();
    sandbox.refrain(&["plan", "resume", "x"]).with_code(11);
    assert_eq!(sandbox.note("started"), "1\n1\n", "no second attempt is paid for");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(17);
}
