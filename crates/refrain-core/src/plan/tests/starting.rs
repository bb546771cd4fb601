use super::*;
use crate::budget::{CapKind, CapUsage};

#[test]
fn the_task_file_is_read_before_the_base_is_taken() {
    let plan = Plan::new(|_| {});
    assert_eq!(plan.next(), PlanStep::TakeTasks);
    let plan = plan.reads(vec![card("1", &[])]);
    assert_eq!(plan.next(), PlanStep::TakeBase);
    let plan = plan.then(PlanEvent::BaseTaken { head: oid(1), branch: None });
    assert_eq!(plan.next(), PlanStep::Start { task: 0, granted: 3, money: None });
}

#[test]
fn a_file_that_cannot_be_read_is_read_once() {
    let mut plan = Plan::new(|_| {}).then(PlanEvent::TasksRefused { error: "a cycle".into() });
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked));
    plan.live.tasks_changed = true;
    assert_eq!(plan.next(), PlanStep::TakeTasks, "a person may have mended it");
    plan.live.tasks_changed = false;
    assert_eq!(plan.ends().resumed(|_| {}).next(), PlanStep::TakeTasks);
}

#[test]
fn as_many_start_as_may_run_and_no_more() {
    let tasks: [(&str, &[&str]); 6] = ["1", "2", "3", "4", "5", "6"].map(|name| (name, &[] as &[&str]));
    let (plan, names) = Plan::of(&tasks, |_| {}).started();
    assert_eq!(names, ["1", "2", "3", "4"]);
    assert_eq!(plan.next(), PlanStep::Await { until: None });
    let (_, names) = plan.stops("3", Stop::UsedUp).started();
    assert_eq!(names, ["5"], "the place of one that is over is taken");
}

#[test]
fn with_one_job_tasks_start_in_file_order() {
    let tasks: [(&str, &[&str]); 3] = [("1", &[]), ("2", &[]), ("3", &["2"])];
    assert_eq!(Plan::of(&tasks, |spec| spec.jobs = 1).started().1, ["1"]);
    assert_eq!(Plan::of(&tasks, |spec| spec.jobs = 2).started().1, ["2", "1"], "more hangs on the second");
}

#[test]
fn a_wave_is_a_barrier() {
    let tasks: [(&str, &[&str]); 3] = [("1", &[]), ("2", &[]), ("3", &["1"])];
    let plan = Plan::of(&tasks, |_| {}).starts().proves("1").merges(&["1"]).verified(1, true).lands(1, 2);
    assert_eq!(plan.next(), PlanStep::Await { until: None }, "the second still runs");
    let plan = plan.stops("2", Stop::Stuck);
    assert_eq!(plan.next(), PlanStep::CompleteWave { wave: WaveNumber(1) });
    let plan = plan.completes(1, 3).hands_over(3);
    assert_eq!(plan.started().1, ["3"]);
}

#[test]
fn a_pipelined_task_begins_once_its_dependency_has_landed() {
    let tasks: [(&str, &[&str]); 3] = [("1", &[]), ("2", &[]), ("3", &["1"])];
    let plan = Plan::of(&tasks, |spec| spec.pipeline = true).starts().proves("1");
    let mut plan = plan.merges(&["1"]).verified(1, true);
    plan.live.working = true;
    assert_eq!(plan.next(), PlanStep::Await { until: None }, "what is proven has not landed");
    assert_eq!(plan.lands(1, 2).started().1, ["3"]);
}

#[test]
fn a_task_whose_dependency_is_done_need_not_wait() {
    for (status, waits) in [
        (TaskStatus::Done, false),
        (TaskStatus::Review, false),
        (TaskStatus::Expanded, false),
        (TaskStatus::Cancelled, true),
        (TaskStatus::Deferred, true),
        (TaskStatus::Blocked, true),
        (TaskStatus::Failed, true),
        (TaskStatus::AwaitingTune, true),
    ] {
        let before = Card { status, ..card("1", &[]) };
        let plan = Plan::new(|_| {}).reads(vec![before, card("2", &["1"])]);
        assert_eq!(plan.task("2").is_hopeless, waits, "{status}");
        assert_eq!(plan.state.ready.is_empty(), waits, "{status}");
    }
}

#[test]
fn returned_tasks_start_first_and_one_at_a_time() {
    let tasks: [(&str, &[&str]); 5] = ["1", "2", "3", "4", "5"].map(|name| (name, &[] as &[&str]));
    let plan = Plan::of(&tasks, |_| {}).starts().proves("2").proves("3").conflicts("2").conflicts("3");
    let (plan, names) = plan.started();
    assert_eq!(names, ["2", "5"], "the third waits for the second; who is fresh does not");
    let plan = plan.stops("1", Stop::Stuck).proves("2").merges(&["2"]);
    assert!(plan.clone().started().1.is_empty(), "up to its landing");
    assert_eq!(plan.verified(1, true).lands(1, 2).started().1, ["3"]);
}

#[test]
fn a_resting_task_does_not_block_the_others() {
    let plan = Plan::of(&[("1", &[]), ("2", &[])], |_| {}).starts().proves("1").proves("2");
    let plan = plan.conflicts("1").conflicts("2").starts().end("1", TaskEnd::Rests, 0, None);
    assert_eq!(plan.started().1, ["2"]);
}

#[test]
fn in_its_last_round_nothing_lands_but_a_task() {
    let tasks: [(&str, &[&str]); 4] = ["1", "2", "3", "4"].map(|name| (name, &[] as &[&str]));
    let mut plan = Plan::of(&tasks, |spec| spec.jobs = 3).start("1", 3, None);
    for _ in 0..MAX_RETURNS - 1 {
        plan = plan.proves("1").conflicts("1").start("1", 3, None);
    }
    let plan = plan.starts().proves("2").proves("1").conflicts("1");
    assert!(plan.clone().started().1.is_empty(), "first the second lands");
    let (plan, names) = plan.merges(&["2"]).verified(1, true).lands(1, 2).started();
    assert_eq!(names, ["1", "4"]);
    let plan = plan.proves("3");
    assert_eq!(plan.next(), PlanStep::Await { until: None }, "what landed now would send it back for good");
    let (first, third) = (plan.place("1"), plan.place("3"));
    assert_eq!(plan.clone().proves("1").next(), PlanStep::Merge { tasks: vec![first, third] });
    let plan = plan.end("1", TaskEnd::Rests, 0, None);
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![third] });
}

#[test]
fn all_rounds_together_get_what_there_is() {
    let tasks: [(&str, &[&str]); 3] = [("1", &[]), ("2", &[]), ("3", &[])];
    let plan = Plan::of(&tasks, |spec| spec.limits.total = 5);
    let granted = |plan: &Plan| match plan.next() {
        PlanStep::Start { granted, .. } => granted,
        step => panic!("{step:?}"),
    };
    assert_eq!(granted(&plan), 3);
    let plan = plan.start("1", 3, None);
    assert_eq!(granted(&plan), 2, "what is left");
    let plan = plan.start("2", 2, None);
    assert_eq!(plan.next(), PlanStep::Await { until: None }, "nothing is left");
    let plan = plan.end("1", TaskEnd::Stopped(Stop::Stuck), 1, None);
    assert_eq!(granted(&plan), 2, "what was granted and not used");
    let plan =
        plan.start("3", 2, None).stops("2", Stop::Stuck).end("3", TaskEnd::Stopped(Stop::Stuck), 2, None);
    assert_eq!(plan.state.used, 4);
}

#[test]
fn money_is_shared_by_those_that_may_run() {
    let tasks: [(&str, &[&str]); 2] = [("1", &[]), ("2", &[])];
    let plan = Plan::of(&tasks, |spec| spec.limits.max_cost = Some(Usd(1_000)));
    assert_eq!(plan.state.slice(), Some(Usd(250)));
    let plan = plan.start("1", 3, Some(Usd(250)));
    assert_eq!(plan.state.slice(), Some(Usd(250)), "a third of the rest");
    let plan = plan.end("1", TaskEnd::OutOfMoney, 1, Some(Usd(300)));
    let Stage::Running(running) = &plan.task("1").stage else { panic!("it continues") };
    assert_eq!(running.money, Some(Usd(300 + 233)), "what it spent, and another share");
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 });
}

#[test]
fn a_cap_on_money_counts_what_is_assumed_of_agents_that_were_cut_off() {
    let plan = Plan::of(&[("1", &[])], |spec| (spec.jobs, spec.limits.max_cost) = (1, Some(Usd(1_000))));
    let ended = |end| TaskEnded { cost_at_least: true, assumed_cost: Some(Usd(600)), ..task_ended("1", end) };
    let running = plan.start("1", 3, Some(Usd(600)));
    let out = running.clone().over(ended(TaskEnd::OutOfMoney));
    let Stage::Running(task) = &out.task("1").stage else { panic!("it continues") };
    assert_eq!(task.money, Some(Usd(1_000)), "the rest, and no more");
    let over = running.over(ended(TaskEnd::Stopped(Stop::Stuck)));
    assert_eq!((over.state.spent, over.state.slice()), (None, Some(Usd(400))));
}

#[test]
fn a_loop_without_money_waits_until_there_is_some() {
    let tasks: [(&str, &[&str]); 2] = [("1", &[]), ("2", &[])];
    let plan = Plan::of(&tasks, |spec| (spec.jobs, spec.limits.max_cost) = (2, Some(Usd(1_000))));
    let plan = plan.start("1", 3, Some(Usd(500))).start("2", 3, Some(Usd(500)));
    let plan = plan.end("1", TaskEnd::OutOfMoney, 1, Some(Usd(500)));
    assert_eq!(plan.next(), PlanStep::Await { until: None }, "the other one has the rest");
    let spent = plan.clone().end("2", TaskEnd::Stopped(Stop::Stuck), 1, Some(Usd(500)));
    assert_eq!(spent.next(), PlanStep::Finish(PlanEnd::BudgetExceeded));
    let more = spent.ends().resumed(|limits| limits.max_cost = Some(Usd(2_000)));
    assert_eq!(more.next(), PlanStep::Drive { task: 0 });
    let left = plan.end("2", TaskEnd::Stopped(Stop::Stuck), 1, Some(Usd(100)));
    assert_eq!(left.next(), PlanStep::Drive { task: 0 }, "the other one did not need it all");
}

#[test]
fn a_loop_that_meets_a_shared_cap_keeps_others_from_starting_until_one_that_works_ends() {
    let by = CapUsage {
        which: CapKind::Day,
        day: jiff::civil::date(2026, 1, 1),
        cap: Usd(300),
        spent: Usd(100),
        reserved: Usd(200),
    };
    let tasks: [(&str, &[&str]); 3] = [("1", &[]), ("2", &[]), ("3", &[])];
    let plan = Plan::of(&tasks, |spec| spec.jobs = 3).start("1", 3, None).start("2", 3, None);
    let plan = plan.end("1", TaskEnd::CapReached { by }, 0, None);
    assert_eq!(plan.next(), PlanStep::Await { until: None });
    let mut plan = plan.proves("2");
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 }, "what the other had reserved may be free");
    plan = plan.end("1", TaskEnd::CapReached { by }, 0, None);
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![1] }, "what is proven lands");
    let plan = plan.merges(&["2"]).verified(1, true).lands(1, 7);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::BudgetExceeded));
    let plan = plan.ends().resumed(|_| {}).then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 });
}

#[test]
fn money_that_was_granted_is_not_gone() {
    let mut plan = Plan::of(&[("1", &[])], |spec| (spec.jobs, spec.limits.max_cost) = (1, Some(Usd(1_000))));
    plan = plan.start("1", 3, Some(Usd(1_000)));
    plan.live = PlanLive::default();
    let plan = plan.then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 }, "after a crash it continues with what it has");
}

#[test]
fn a_resting_task_continues_with_the_next_runner() {
    let plan = Plan::of(&[("1", &[])], |_| {}).starts().end("1", TaskEnd::Rests, 0, None);
    assert_eq!(
        plan.next(),
        PlanStep::Finish(PlanEnd::Paused),
        "a person paused it, and nothing else is to be done"
    );
    let plan = plan.ends().resumed(|_| {}).then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 });
}
