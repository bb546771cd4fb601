//! Plans as stories: what happened, and what is shown of it then.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::event::{Record, WaitKind};
use crate::machine::Machine;
use crate::plan::{PlanEvent, PlanStarted};

struct ScriptedPlan {
    state: PlanState,
    seconds: i64,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn oid(n: usize) -> String {
    format!("{n:040x}")
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

impl ScriptedPlan {
    /// A plan with these options beside the usual, and these tasks: id, complexity, status, dependencies.
    fn of(options: Value, tasks: &[(&str, u32, &str, &[&str])]) -> Self {
        let gate = json!({"name": "verify", "command": "cargo test", "hard": true, "timeout_ms": 1000});
        let each = json!({
            "id": "feature-x", "prompt": "p", "iteration_context": true, "limits": {}, "project": "/p", "worktree": "/p",
            "working_dir": "/p", "depth": 0, "output_cap": 1024, "gates": [gate],
            "agent": {
                "kind": "claude", "program": "claude", "args": [], "prompt_mode": "auto", "clean_env": false, "env": {},
                "permissions": "auto", "output_format": "auto"
            }
        });
        let mut spec = json!({
            "id": "feature-x", "tag": "feature-x", "tasks": "/p/.scud/tasks/feature-x.json", "each": each, "jobs": 2,
            "limits": {"per_task": 3, "total": 100}
        });
        for (key, value) in options.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let started = json!({"type": "plan.started", "data": {"format": 1, "refrain": "0", "spec": spec}});
        let record = Record { seq: 1, at: at(0), event: serde_json::from_value(started).unwrap() };
        let story = Self { state: PlanState::begin(&record).unwrap(), seconds: 0 };
        let runner = json!({"runner": {"process": {"pid": 7, "start": 1}, "boot": "b", "host": "h"}});
        let cards: Vec<_> = tasks
            .iter()
            .map(|(id, complexity, status, on)| {
                json!({"id": id, "title": format!("Title of {id}"), "status": status, "complexity": complexity, "dependencies": on})
            })
            .collect();
        story
            .then("runner.started", runner)
            .then("tasks.taken", json!({"tasks": cards}))
            .then("base.taken", json!({"head": oid(1), "branch": "main"}))
    }

    /// Four tasks: 2 and 3 follow 1, and 4 follows both.
    fn diamond(options: Value) -> Self {
        let tasks: [(&str, u32, &str, &[&str]); 4] = [
            ("1", 2, "pending", &[]),
            ("2", 3, "pending", &["1"]),
            ("3", 5, "pending", &["1"]),
            ("4", 1, "pending", &["2", "3"]),
        ];
        Self::of(options, &tasks)
    }

    fn after(mut self, seconds: i64) -> Self {
        self.seconds += seconds;
        self
    }

    fn then(mut self, name: &str, data: Value) -> Self {
        let event = serde_json::from_value(json!({"type": name, "data": data})).unwrap();
        let record = Record { seq: self.state.seq + 1, at: at(self.seconds), event };
        self.state.apply(&record).unwrap();
        self
    }

    fn starts(self, task: &str) -> Self {
        let round = self.state.task(&id(task)).unwrap().rounds + 1;
        let name = self.state.spec.loop_of(&id(task), round);
        self.then(
            "task.started",
            json!({"task": task, "round": round, "id": name, "slot": 1, "onto": oid(1), "granted": 3}),
        )
    }

    fn ends(self, task: &str, end: Value, iterations: u32) -> Self {
        self.then("task.ended", json!({"task": task, "end": end, "iterations": iterations, "cost": 0.5}))
    }

    fn proves(self, task: &str) -> Self {
        self.ends(task, json!({"proven": {"tree": oid(9)}}), 1)
    }

    fn lands(self, task: &str) -> Self {
        self.then("batch.merged", json!({"merged": [{"task": task, "tree": oid(9)}], "refused": []}))
            .then("batch.landed", json!({"commits": [oid(5)], "tip": oid(5)}))
    }

    /// Starts, is proven `seconds` later and lands at once.
    fn does(self, task: &str, seconds: i64) -> Self {
        self.starts(task).after(seconds).proves(task).lands(task)
    }

    fn completes(self, wave: u32, tasks: &[&str]) -> Self {
        self.then("wave.completed", json!({"wave": wave, "commit": oid(6), "tasks": tasks}))
            .then("waves.handed-over", json!({"head": oid(6)}))
    }

    fn stops(self, end: &str) -> Self {
        self.then("plan.ended", json!(end))
    }

    fn view(&self) -> PlanStatus {
        self.view_with(&BTreeMap::new(), Some(true))
    }

    fn view_with(&self, loops: &BTreeMap<TaskId, TaskLoop>, alive: Option<bool>) -> PlanStatus {
        status(&self.state, loops, alive, at(self.seconds))
    }
}

fn says(status: StatusWord, wait: Option<WaitView>) -> TaskLoop {
    let usage = Usage { cost_usd: Some(0.25), ..Usage::default() };
    let reason = "attempt 2 is running".to_owned();
    TaskLoop { iteration: 2, attempt: 1, status, reason, wait, preview: Some("I look.".to_owned()), usage }
}

fn words(view: &PlanStatus) -> Vec<(String, &'static str)> {
    view.tasks.iter().map(|task| (task.id.to_string(), task.status.as_str())).collect()
}

#[test]
fn a_plan_in_the_middle_of_its_second_wave() {
    let story =
        ScriptedPlan::diamond(json!({})).does("1", 10).completes(1, &["1"]).starts("2").starts("3").after(4);
    let loops = BTreeMap::from([(id("2"), says(StatusWord::Running, None))]);
    let view = story.view_with(&loops, Some(true));
    assert_eq!((view.status, view.kind, view.verified), (StatusWord::Running, Kind::Plan, Some(false)));
    assert_eq!(view.reason, "wave 2 of 3: 2 tasks at work");
    assert_eq!((view.tasks_total, view.tasks_done, view.needs), (4, 1, None));
    let waves: Vec<_> =
        view.waves.iter().map(|wave| (wave.status, wave.tasks_done, wave.tasks_total)).collect();
    let expected = [(WaveWord::Complete, 1, 1), (WaveWord::InProgress, 0, 2), (WaveWord::Pending, 0, 1)];
    assert_eq!(waves, expected);
    assert_eq!(view.tasks[3].waits_for, [id("2"), id("3")]);
    let commit = serde_json::to_value(&view.wave_commits).unwrap();
    let timestamp = at(10).to_string();
    let expected =
        json!([{"wave": 1, "commit_hash": oid(6), "timestamp": timestamp, "tasks_completed": ["1"]}]);
    assert_eq!(commit, expected, "seed 001's own keys");
    let current: Vec<_> = view.current.iter().map(|it| (it.task.as_str(), it.iteration, it.status)).collect();
    assert_eq!(current, [("2", 2, Some(StatusWord::Running)), ("3", 0, None)]);
    assert_eq!(view.current[0].id_of_loop.as_str(), "feature-x-2-443ca1cb");
    assert_eq!(view.usage.cost_usd, Some(0.75), "with what is being spent");
    assert_eq!((view.usage.iterations_used, view.usage.iterations_reserved), (1, 6));
    assert_eq!(view.verification, ["cargo test"]);
}

#[test]
fn a_wave_whose_tasks_all_wait_on_a_blocked_one_is_blocked_and_never_the_current_one() {
    let story = ScriptedPlan::diamond(json!({})).does("1", 10).completes(1, &["1"]).starts("2").starts("3");
    let story = story.ends("2", json!({"stopped": "used-up"}), 3);
    let view = story.view();
    let words = |view: &PlanStatus| view.waves.iter().map(|wave| wave.status).collect::<Vec<_>>();
    assert_eq!(words(&view), [WaveWord::Complete, WaveWord::InProgress, WaveWord::Blocked]);
    assert_eq!(view.reason, "wave 2 of 3: 1 task at work");
    let view = story.proves("3").lands("3").view();
    assert_eq!(words(&view), [WaveWord::Complete, WaveWord::Blocked, WaveWord::Blocked]);
    assert!(view.reason.starts_with("wave 2 of 3: "), "{}", view.reason);
}

#[test]
fn every_task_has_a_word() {
    let tasks: [(&str, u32, &str, &[&str]); 8] = [
        ("1", 1, "done", &[]),
        ("2", 1, "cancelled", &[]),
        ("3", 1, "pending", &["2"]),
        ("4", 1, "pending", &["1"]),
        ("5", 1, "in-progress", &[]),
        ("6", 1, "pending", &["5"]),
        ("7", 1, "pending", &[]),
        ("8", 1, "pending", &["7"]),
    ];
    let story = ScriptedPlan::of(json!({}), &tasks).starts("4").proves("4").starts("5").starts("7");
    let story = story.ends("7", json!({"stopped": {"gave-up": {"reason": "the API is gone"}}}), 2);
    let expected = [
        "done",
        "cancelled",
        "waiting-on-blocked",
        "landing",
        "in-progress",
        "pending",
        "blocked",
        "waiting-on-blocked",
    ];
    let view = story.view();
    assert_eq!(words(&view).iter().map(|(_, word)| *word).collect::<Vec<_>>(), expected);
    let blocked = &view.blocked[0];
    assert_eq!((blocked.reason.as_str(), blocked.attempts), ("the API is gone", 2));
    assert_eq!(view.reason, "wave 1 of 2: 1 task at work, 1 to land");
    let cancelled = story
        .then("asked", json!({"ask": {"cancel": "now"}}))
        .ends("5", json!({"stopped": "cancelled"}), 1)
        .stops("cancelled")
        .view();
    let ended: Vec<_> = [4, 5, 6, 7].map(|at| cancelled.tasks[at].status.as_str()).into();
    assert_eq!(ended, ["pending", "pending", "blocked", "waiting-on-blocked"], "5 was stopped with the plan");
}

#[rstest]
#[case::paused(
    "paused",
    "by a signal to its runner (Ctrl-C, SIGTERM or a closed terminal), with 1 of 4 tasks landed",
    Some("refrain plan resume feature-x")
)]
#[case::cancelled("cancelled", "by a person, with 1 of 4 tasks landed", None)]
#[case::capped(
    "iteration-cap",
    "1 iteration used, and 3 tasks not done",
    Some("refrain plan resume feature-x --max-total-iterations 101")
)]
#[case::late(
    "timed-out",
    "the plan's own duration is over, with 1 of 4 tasks landed",
    Some("refrain plan resume feature-x --max-duration 60s")
)]
#[case::broke(
    "budget-exceeded",
    "$0.50 of $0.50 spent, and 3 tasks not done",
    Some("refrain plan resume feature-x --max-cost 1.00")
)]
fn each_end_of_a_plan_states_the_reason_and_the_next_command(
    #[case] end: &str,
    #[case] reason: &str,
    #[case] needs: Option<&str>,
) {
    let total = if end == "iteration-cap" { 1 } else { 100 };
    let mut limits = json!({"per_task": 3, "total": total});
    match end {
        "timed-out" => limits["max_duration_ms"] = json!(10_000),
        "budget-exceeded" => limits["max_cost_usd"] = json!(0.5),
        _ => {}
    }
    let view =
        ScriptedPlan::diamond(json!({"limits": limits})).does("1", 10).completes(1, &["1"]).stops(end).view();
    assert_eq!((view.status.as_str(), view.reason.as_str(), view.needs.as_deref()), (end, reason, needs));
}

#[test]
fn a_completed_plan_names_its_landed_tasks() {
    let all = |story: ScriptedPlan| {
        let story =
            story.does("1", 1).completes(1, &["1"]).does("2", 1).does("3", 1).completes(2, &["2", "3"]);
        story.does("4", 1).completes(3, &["4"]).stops("completed").view()
    };
    let view = all(ScriptedPlan::diamond(json!({})));
    assert_eq!((view.status, view.verified), (StatusWord::Completed, Some(true)));
    assert_eq!(view.reason, "4 tasks landed in 3 waves");
    assert_eq!(view.estimate, None);
    let nothing = ScriptedPlan::of(json!({}), &[("1", 1, "done", &[])]).stops("completed").view();
    assert_eq!((nothing.reason.as_str(), nothing.tasks_total), ("nothing was to be done", 0));
}

#[test]
fn a_blocked_plan_names_the_first_task_and_counts_the_rest() {
    let used_up = json!({"stopped": "used-up"});
    let blocked = |options: Value| {
        ScriptedPlan::diamond(options)
            .starts("1")
            .ends("1", used_up.clone(), 3)
            .then("wave.completed", json!({"wave": 1, "commit": null, "tasks": []}))
    };
    let view = blocked(json!({})).stops("blocked").view();
    assert_eq!(view.reason, "task 1: not proven in 3 iterations; 3 tasks wait on that");
    let needs = "refrain plan tune 1 --name feature-x, then refrain plan resume feature-x";
    assert_eq!(view.needs.as_deref(), Some(needs));
    assert_eq!(view.tasks[0].status, TaskWord::Blocked);
    let tuned = blocked(json!({"tune": true})).stops("blocked").view();
    assert_eq!(tuned.tasks[0].status, TaskWord::AwaitingTune);
    assert!(tuned.blocked[0].awaits_tune);
    let hindered =
        ScriptedPlan::diamond(json!({})).then("plan.hindered", json!({"error": "git did not do it"}));
    let view = hindered.stops("blocked").view();
    assert_eq!(
        (view.reason.as_str(), view.needs.as_deref()),
        ("git did not do it", Some("correct that, then refrain plan resume feature-x"))
    );
    let login = "the agent is not logged in; log in with claude, then refrain plan resume feature-x";
    let hindered = ScriptedPlan::diamond(json!({})).then("plan.hindered", json!({"error": login}));
    let view = hindered.stops("blocked").view();
    assert_eq!(
        (view.reason.as_str(), view.needs.as_deref()),
        ("the agent is not logged in", Some("log in with claude, then refrain plan resume feature-x"))
    );
    let asks = json!({"stopped": {"gave-up": {"reason": "the agent asks: Which database?"}}});
    let asks = ScriptedPlan::diamond(json!({})).starts("1").ends("1", asks, 1);
    let asks = asks.then("wave.completed", json!({"wave": 1, "commit": null, "tasks": []})).stops("blocked");
    let needs = "tell its agent what to do with refrain plan tune feature-x 1 --words TEXT --resume";
    assert_eq!(asks.view().needs.as_deref(), Some(needs));
    let in_vain = ScriptedPlan::of(json!({}), &[("1", 1, "deferred", &[]), ("2", 1, "pending", &["1"])]);
    let view = in_vain.stops("blocked").view();
    assert_eq!(view.reason, "task 2 waits: task 1 is deferred");
}

#[test]
fn a_plan_without_a_runner_is_crashed_and_one_with_waiting_loops_waits() {
    let story = ScriptedPlan::diamond(json!({})).starts("1");
    let view = story.view_with(&BTreeMap::new(), Some(false));
    assert_eq!(
        (view.status, view.needs.as_deref()),
        (StatusWord::Crashed, Some("refrain plan resume feature-x"))
    );
    assert_eq!(view.estimate, None);
    let wait = WaitView { kind: WaitKind::Limit, until: at(60) };
    let waits = BTreeMap::from([(id("1"), says(StatusWord::Waiting, Some(wait)))]);
    assert_eq!(story.view_with(&waits, Some(true)).status, StatusWord::Waiting);
}

#[rstest]
// 10 s for complexity 2: 5 s a unit. Wave 2 takes max(25, (15 + 25) / 2), wave 3 takes 5.
#[case::in_waves(json!({}), 30)]
#[case::one_at_a_time(json!({"jobs": 1}), 45)]
#[case::in_a_line(json!({"pipeline": true}), 30)]
fn a_plan_estimates_when_it_will_be_complete(#[case] options: Value, #[case] left: u64) {
    let story = ScriptedPlan::diamond(options).does("1", 10).completes(1, &["1"]);
    let estimate = story.view().estimate.unwrap();
    assert_eq!((estimate.left_ms, estimate.from_tasks), (Millis(left * 1000), 1));
    assert_eq!(estimate.at, Some(at(10 + i64::try_from(left).unwrap())));
    // Finished work is not repeated; and without a runner it comes no nearer.
    let begun = story.starts("3").after(4);
    let less = if left == 45 { 41 } else { 26 };
    assert_eq!(begun.view().estimate.unwrap().left_ms, Millis(less * 1000));
    let crashed = begun.after(1000).view_with(&BTreeMap::new(), Some(false)).estimate.unwrap();
    assert_eq!((crashed.left_ms, crashed.at), (Millis(left * 1000), None));
}

#[test]
fn a_plan_without_a_finished_task_has_no_estimate() {
    assert_eq!(ScriptedPlan::diamond(json!({})).starts("1").after(100).view().estimate, None);
}

#[test]
fn environment_values_of_agents_are_redacted() {
    let story = ScriptedPlan::diamond(json!({}));
    let mut spec = story.state.spec.clone();
    spec.each.agent.env.insert("KEY".to_owned(), crate::spec::Secret::new("hunter2".to_owned()));
    let started = PlanStarted { format: 1, refrain: "0".to_owned(), spec };
    let told = serde_json::to_string(&PlanEvent::Started(Box::new(started)).redacted()).unwrap();
    assert!(told.contains("KEY") && !told.contains("hunter2"), "{told}");
}

#[test]
fn tasks_that_are_tried_again_stay_in_their_wave() {
    let story = ScriptedPlan::of(json!({}), &[("1", 1, "pending", &[])]).starts("1");
    let story = story.ends("1", json!({"stopped": "used-up"}), 3);
    let story =
        story.then("wave.completed", json!({"wave": 1, "commit": null, "tasks": []})).stops("blocked");
    let waves = |story: &ScriptedPlan| -> Vec<_> {
        story.view().waves.iter().map(|wave| (wave.wave, wave.status)).collect()
    };
    assert_eq!(waves(&story), [(1, WaveWord::Blocked)]);
    let limits = json!({"limits": {"per_task": 3, "total": 100}});
    let again = story.then("plan.resumed", limits);
    assert_eq!(waves(&again), [(1, WaveWord::InProgress)]);
    let in_vain = again.starts("1").ends("1", json!({"stopped": "used-up"}), 3);
    assert_eq!(waves(&in_vain), [(1, WaveWord::Blocked)]);
}

#[test]
fn a_returned_task_is_marked_until_it_has_landed() {
    let story = ScriptedPlan::diamond(json!({})).starts("1").proves("1");
    let conflict = json!({"merged": [], "refused": [{"task": "1", "paths": ["src/a.rs"]}]});
    let story = story.then("batch.merged", conflict);
    let said = "tried again: it conflicted with what landed, in src/a.rs";
    assert_eq!(story.view().tasks[0].reason.as_deref(), Some(said));
    let task = story.does("1", 1).view().tasks.swap_remove(0);
    assert_eq!((task.reason, task.rounds, task.iterations), (None, 2, 2));
    assert_eq!(task.id_of_loop.unwrap().as_str(), "feature-x-1-49b1c3ee");
}
