//! The conflict marks that a plan writes into a task's worktree: work that still has them does not land, whatever the
//! gates say, in whichever round and after whatever happened to the plan.

use std::fs;

use testkit::{Gate, Sandbox, Session, write};

use crate::sandbox;

/// Two tasks that can run at once.
const TASKS: &str = r#"{"tag": "x", "tasks": [
    {"id": 1, "title": "One", "status": "pending"}, {"id": 2, "title": "Two", "status": "pending"}]}"#;

/// Each task adds its line to `list`, at the same time as the other; one that was sent back does `AGAIN`.
const AGENT: &str = r#"task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
printf '%s\n' "$1" > "$NOTES/prompt"
if cat list moved 2>/dev/null | grep -q '^<<<<<<<'; then
AGAIN
else echo begun >> "$NOTES/begun"; read -r _ < "$GATES/go"; echo "$number" >> list; fi
echo TASK_COMPLETE"#;

const SETTLE: &str = "printf '1\\n2\\n' > list";

struct Conflicting {
    sandbox: Sandbox,
    agent: String,
    go: Gate,
}

impl Conflicting {
    fn new(again: &str) -> Self {
        let sandbox = sandbox();
        fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
        write(&sandbox.project().join(".scud/tasks/x.json"), TASKS);
        write(&sandbox.project().join("list"), "");
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "Plan"]);
        let agent = sandbox.agent("worker", &AGENT.replace("AGAIN", again));
        let go = sandbox.gate("go");
        Self { sandbox, agent, go }
    }

    /// Starts the plan, and lets both tasks change the same line.
    fn begin(&self) -> Session {
        let words = ["plan", "run", "--tag", "x", "--name", "x", "--jobs", "2", "--verify", "true"];
        let session = self.sandbox.spawn(&[&words[..], &["--command", &self.agent]].concat());
        testkit::eventually("both have begun", || {
            (self.sandbox.note("begun").lines().count() == 2).then_some(())
        });
        (0..2).for_each(|_| self.go.let_one_pass());
        session
    }

    /// What has landed on the branch, of which one task may be missing.
    fn landed(&self) -> String {
        let list = self.sandbox.git(&["show", "main:list"]);
        assert!(!list.contains("<<<<<<<") && !list.contains(">>>>>>>"), "{list}");
        list
    }

    fn newest(&self) -> String {
        self.sandbox.git(&["log", "-1", "--first-parent", "--format=%s", "main"])
    }

    /// That the last agent was told what to do, and where.
    fn is_told(&self) {
        let prompt = self.sandbox.note("prompt");
        for part in ["CONFLICT", "\n- list\n", "take the markers out"] {
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
    }
}

#[test]
fn marks_that_an_agent_leaves_do_not_land_in_the_first_run_nor_after_a_resume() {
    let place =
        Conflicting::new(&format!("if [ -e $NOTES/settle ]; then {SETTLE}; else echo $number >> list; fi"));
    let said = place.begin().wait().with_code(14).stdout;
    assert!(said.contains("in list"), "{said}");
    place.is_told();
    assert_eq!(place.landed().lines().count(), 1);
    assert_eq!(place.newest(), "feat(x): wave 1: 1 of 2 tasks\n");
    for _ in 0..2 {
        place.sandbox.refrain(&["plan", "resume", "x"]).with_code(14);
        place.is_told();
        assert_eq!(place.landed().lines().count(), 1);
        assert_eq!(place.newest(), "feat(x): wave 1: 1 of 2 tasks\n");
    }
    write(&place.sandbox.root().join("notes/settle"), "");
    place.sandbox.refrain(&["plan", "resume", "x"]).with_code(0);
    assert_eq!(place.landed(), "1\n2\n");
    assert_eq!(place.newest(), "feat(x): complete the rest of wave 1\n");
}

#[test]
fn marks_do_not_land_when_a_runner_was_killed_while_they_were_to_be_settled() {
    let place = Conflicting::new(
        "[ -e $NOTES/killed ] || { echo at >> $NOTES/at; read -r _ < $GATES/hold; }; echo $number >> list",
    );
    let _hold = place.sandbox.gate("hold");
    let session = place.begin();
    place.sandbox.wait_for_note("at");
    write(&place.sandbox.root().join("notes/killed"), "");
    session.kill();
    place.sandbox.no_process_is_left();
    place.sandbox.refrain(&["plan", "resume", "x"]).with_code(14);
    assert_eq!(place.landed().lines().count(), 1);
}

#[test]
fn marks_do_not_land_in_another_file_that_they_were_moved_to() {
    let place = Conflicting::new("git mv list moved && git commit -qm Moved");
    place.begin().wait().with_code(14);
    assert_eq!(place.landed().lines().count(), 1);
    let files = place.sandbox.git(&["ls-tree", "--name-only", "main"]);
    assert!(!files.contains("moved"), "{files}");
}

#[test]
fn lines_of_a_file_that_look_like_marks_land() {
    let own =
        r"1\n2\n\nMerging\n=======\n\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n\nEnd\n=======\n";
    let place = Conflicting::new(&format!("printf '{own}' | tee list > merging.rst"));
    place.begin().wait().with_code(0);
    let own = own.replace(r"\n", "\n");
    for file in ["list", "merging.rst"] {
        assert_eq!(place.sandbox.git(&["show", &format!("main:{file}")]), own);
    }
}
