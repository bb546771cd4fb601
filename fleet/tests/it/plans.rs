//! Plans whose tasks the machines of the fleet work on. The plan itself is driven on the person's machine.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Sandbox, Session, Signal, within, write};

use crate::lab::{LEASE, LONG, Lab, hold};

/// How long a plan may take on a machine that other tests need.
const LONGER: Duration = Duration::from_secs(300);

/// Speaks the dialect of Claude Code as far as the money goes: each answer costs half a dollar. It hangs where the file `hold`
/// of its machine's notes is, or that for its task.
const AGENT: &str = r#"cat > /dev/null
task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
echo "$number $REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> $NOTES/attempts
if [ -e $NOTES/hold ] || [ -e $NOTES/hold$number ]; then echo held >> $NOTES/held; exec sleep 1000; fi
echo "$number" > "f$number.txt"
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s%s","result":"TASK_COMPLETE","total_cost_usd":0.5,"usage":{"input_tokens":900,"output_tokens":50},"terminal_reason":"completed"}\n' "$number""#;

/// A fleet, and a project with so many tasks that need nothing of each other.
struct Planned {
    lab: Lab,
    agent: String,
    tasks: u32,
}

impl Planned {
    fn new(tasks: u32) -> Self {
        let lab = Lab::new();
        let task = |id| format!(r#"{{"id": {id}, "title": "Task {id}", "status": "pending"}}"#);
        let all: Vec<String> = (1..=tasks).map(task).collect();
        let folder = lab.person.project().join(".scud/tasks");
        fs::create_dir_all(&folder).unwrap();
        write(&folder.join("x.json"), format!(r#"{{"tag": "x", "tasks": [{}]}}"#, all.join(", ")));
        lab.person.git(&["add", "-A"]);
        lab.person.git(&["commit", "--quiet", "--message", "Plan"]);
        let agent = lab.person.agent("claude", AGENT);
        Self { lab, agent, tasks }
    }

    /// A machine that takes loops of this agent.
    fn machine(&self, name: &str) -> Sandbox {
        let machine = self.lab.machine(name);
        let config = machine.root().join("home/config/refrain/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        write(&config, text.replace(r#"agents = ["generic"]"#, r#"agents = ["claude"]"#));
        machine
    }

    fn run(&self, more: &[&str]) -> Session {
        let words = ["plan", "run", "--on", "fleet", "--tag", "x", "--name", "x", "--command", &self.agent];
        let verify = ["--verify", "test -e README.md"];
        self.lab.person.spawn(&[&words[..], &verify, more].concat())
    }

    fn status(&self) -> Value {
        self.lab.person.refrain(&["plan", "status", "x", "--json"]).with_code(0).json()
    }

    /// Every task landed once and cost what it costs once, and every journal is as it was written.
    fn assert_whole(&self) {
        let log = self.lab.person.git(&["log", "--format=%s"]);
        for number in 1..=self.tasks {
            let title = format!("Task {number}");
            assert_eq!(log.lines().filter(|line| **line == title).count(), 1, "{title}: {log}");
            assert!(self.lab.person.project().join(format!("f{number}.txt")).exists(), "f{number}.txt");
        }
        let status = self.status();
        assert_eq!(status["tasks_done"], self.tasks, "{status:#}");
        let usage = &status["usage"];
        assert_eq!(usage["iterations_used"], self.tasks, "a lost attempt counts for nothing: {status:#}");
        assert_eq!(usage["iterations_reserved"], 0, "{status:#}");
        assert_eq!(usage["cost_usd"], f64::from(self.tasks) / 2.0, "{status:#}");
        let verdicts: Value = self.lab.person.refrain(&["verify", "x", "--json"]).with_code(0).json();
        let verdicts = verdicts.as_array().cloned().unwrap_or_else(|| vec![verdicts]);
        assert_eq!(verdicts.len(), 1 + self.tasks as usize, "{verdicts:#?}");
        for verdict in verdicts {
            assert!(verdict["intact"] == true && verdict["agrees"] == true, "{verdict:#}");
        }
        assert_eq!(self.lab.person.git(&["branch", "--list", "refrain/*"]), "");
    }

    fn no_process_is_left(mut self, machines: &[&Sandbox]) {
        self.lab.kill_server();
        for machine in machines {
            machine.no_process_is_left();
        }
        self.lab.person.no_process_is_left();
    }
}

fn lines(machine: &Sandbox, note: &str) -> usize {
    machine.note(note).lines().count()
}

fn wait_for_lines(machine: &Sandbox, note: &str, count: usize) {
    within(LONG, &format!("{count} agents write {note}"), || (lines(machine, note) >= count).then_some(()));
}

fn end(worker: Session) {
    worker.signal(Signal::TERM);
    worker.wait_at_most(LONG).with_code(0);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_plan_survives_a_killed_worker_a_frozen_one_and_the_server() {
    let mut planned = Planned::new(12);
    let (one, two, three) = (planned.machine("w1"), planned.machine("w2"), planned.machine("w3"));
    hold(&one);
    hold(&two);
    let first = planned.lab.work(&one, &[]);
    let second = planned.lab.work(&two, &[]);
    let plan = planned.run(&["--jobs", "6", "--max-cost", "12"]);
    wait_for_lines(&one, "held", 2);
    wait_for_lines(&two, "held", 2);
    let third = planned.lab.work(&three, &[]);
    wait_for_lines(&three, "attempts", 1);
    first.kill();
    second.signal(Signal::STOP);
    planned.lab.kill_server();
    planned.lab.start_server();
    wait_for_lines(&three, "attempts", 8);
    fs::remove_file(two.root().join("notes/hold")).unwrap();
    second.signal(Signal::CONT);
    plan.wait_at_most(LONGER).with_code(0);
    planned.assert_whole();
    assert!(lines(&one, "attempts") == 2, "nothing was begun on a dead machine: {}", one.note("attempts"));
    end(second);
    end(third);
    planned.no_process_is_left(&[&one, &two, &three]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_cancelled_plan_ends_its_agents_on_all_machines() {
    let planned = Planned::new(6);
    let (one, two) = (planned.machine("w1"), planned.machine("w2"));
    hold(&one);
    hold(&two);
    let (first, second) = (planned.lab.work(&one, &[]), planned.lab.work(&two, &[]));
    let plan = planned.run(&["--jobs", "4"]);
    wait_for_lines(&one, "held", 2);
    wait_for_lines(&two, "held", 2);
    let asked = Instant::now();
    planned.lab.person.refrain(&["plan", "cancel", "x", "--now"]).with_code(0);
    within(LONG, "the agents are gone", || {
        let left = [&one, &two].map(|machine| machine.processes_named("sleep").len());
        (left == [0, 0]).then_some(())
    });
    let gone = asked.elapsed();
    println!("four agents on two machines were gone {gone:?} after it was asked");
    assert!(gone < LEASE * 2, "{gone:?}");
    plan.wait_at_most(LONG);
    let status = planned.status();
    assert_eq!((&status["status"], &status["tasks_done"]), (&"cancelled".into(), &0.into()), "{status:#}");
    assert_eq!((lines(&one, "attempts"), lines(&two, "attempts")), (2, 2), "nothing else was begun");
    end(first);
    end(second);
    planned.no_process_is_left(&[&one, &two]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn tasks_go_on_while_the_plan_is_away_and_it_continues() {
    let planned = Planned::new(3);
    let machine = planned.machine("w1");
    let worker = planned.lab.work(&machine, &["--slots", "3"]);
    hold(&machine);
    let plan = planned.run(&["--jobs", "3"]);
    wait_for_lines(&machine, "held", 3);
    plan.kill();
    assert_eq!(planned.status()["status"], "crashed");
    // Requests reach its tasks all the same.
    planned.lab.person.refrain(&["plan", "pause", "x", "--now"]).with_code(0);
    within(LONG, "the agents are gone", || machine.processes_named("sleep").is_empty().then_some(()));
    let person = &planned.lab.person;
    let references =
        || person.git(&["-C", &planned.lab.state, "for-each-ref", "refs/refrain"]).lines().count();
    let garbage = || person.refrain(&["gc", "--json"]).with_code(0).stdout.matches("refs/refrain/").count();
    assert_eq!((garbage(), references()), (0, 3), "they may continue");
    fs::remove_file(machine.root().join("notes/hold")).unwrap();
    let plan = person.spawn(&["plan", "resume", "x"]);
    plan.wait_at_most(LONGER).with_code(0);
    planned.assert_whole();
    assert_eq!((garbage(), references()), (3, 3));
    person.refrain(&["gc", "--yes"]).with_code(0);
    assert_eq!((garbage(), references()), (0, 0));
    planned.assert_whole();
    end(worker);
    planned.no_process_is_left(&[&machine]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn the_references_of_a_task_that_is_done_stay_until_its_plan_is_over() {
    let planned = Planned::new(2);
    let machine = planned.machine("w1");
    let worker = planned.lab.work(&machine, &[]);
    write(&machine.root().join("notes/hold2"), "");
    let plan = planned.run(&["--jobs", "2"]);
    machine.wait_for_note("held");
    let landed = || (planned.status()["tasks_done"] == 1).then_some(());
    let waited =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| within(LONG, "task 1 landed", landed)));
    waited.unwrap_or_else(|_| panic!("task 1 did not land: {:#}\n{}", planned.status(), worker.stderr()));
    let person = &planned.lab.person;
    let garbage = || person.refrain(&["gc", "--json"]).with_code(0).stdout.matches("refs/refrain/").count();
    assert_eq!(garbage(), 0, "the plan is driven");
    plan.kill();
    assert_eq!((planned.status()["status"].as_str(), garbage()), (Some("crashed"), 0), "it may continue");
    person.refrain(&["gc", "--yes"]).with_code(0);
    let references = person.git(&["-C", &planned.lab.state, "for-each-ref", "refs/refrain"]);
    assert_eq!(references.lines().count(), 2, "{references}");
    person.refrain(&["plan", "cancel", "x", "--now"]).with_code(0);
    within(LONG, "all is garbage once the plan is over", || (garbage() == 2).then_some(()));
    end(worker);
    planned.no_process_is_left(&[&machine]);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_plan_without_a_server_begins_nothing() {
    let mut planned = Planned::new(1);
    planned.lab.kill_server();
    let run = planned.run(&[]).wait_at_most(LONG);
    assert!(run.code == 1 && run.stderr.contains("cannot be reached"), "{}", run.stderr);
    planned.lab.person.refrain(&["plan", "status", "x"]).with_code(3);
    let valued = planned.run(&["--env", "KEY=value"]).wait_at_most(LONG);
    assert!(!valued.stderr.is_empty() && valued.code != 0, "{}", valued.stderr);
}
