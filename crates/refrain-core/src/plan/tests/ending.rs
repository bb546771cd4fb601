use super::*;
use crate::spec::Millis;

const PAIR: [(&str, &[&str]); 2] = [("1", &[]), ("2", &["1"])];

#[test]
fn an_empty_plan_is_complete() {
    assert_eq!(Plan::of(&[], |_| {}).next(), PlanStep::Finish(PlanEnd::Completed));
}

#[test]
fn tasks_without_work_do_not_keep_a_plan_from_completing() {
    use TaskStatus::*;
    for status in TaskStatus::ALL {
        let only = Card { status, ..card("1", &[]) };
        let plan =
            Plan::new(|_| {}).reads(vec![only]).then(PlanEvent::BaseTaken { head: oid(1), branch: None });
        let expected = match status {
            Pending | InProgress => PlanStep::Start { task: 0, granted: 3, money: None },
            Done | Review | Deferred | Cancelled | Expanded | Blocked | Failed | AwaitingTune => {
                PlanStep::Finish(PlanEnd::Completed)
            }
        };
        assert_eq!(plan.next(), expected, "{status}");
    }
}

#[test]
fn a_blocked_task_blocks_only_its_dependents() {
    let tasks: [(&str, &[&str]); 4] = [("1", &[]), ("2", &["1"]), ("3", &["2"]), ("4", &[])];
    let plan = Plan::of(&tasks, |_| {}).starts().stops("1", Stop::UsedUp);
    assert!(plan.task("2").is_hopeless && plan.task("3").is_hopeless && !plan.task("4").is_hopeless);
    let plan = plan.proves("4").merges(&["4"]).verified(1, true).lands(1, 2).completes(1, 3).hands_over(3);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked));
    let plan = plan.ends().resumed(|_| {});
    assert_eq!(plan.task("1").again, Some(Return::Resumed("not proven in 1 iteration".into())));
    assert!(!plan.task("3").is_hopeless);
    assert_eq!(plan.state.waves[1].tasks, [0], "what is left of a complete wave comes with the next");
    assert_eq!(plan.started().1, ["1"]);
}

#[test]
fn a_plan_without_iterations_stops_and_continues_with_more() {
    let plan = Plan::of(&PAIR, |spec| spec.limits.total = 1).does("1", 2).completes(1, 3).hands_over(3);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::IterationCap));
    let plan = plan.ends().resumed(|limits| limits.total = 2);
    assert_eq!(plan.next(), PlanStep::Start { task: 1, granted: 1, money: None });
}

#[test]
fn a_stop_request_ends_the_plan_at_its_urgency() {
    let running = || Plan::of(&PAIR, |_| {}).starts();
    for (ask, urgency, for_good, end) in [
        (Ask::Pause(Urgency::AfterIteration), Urgency::AfterIteration, false, PlanEnd::Paused),
        (Ask::Pause(Urgency::Now), Urgency::Now, false, PlanEnd::Paused),
        (Ask::Cancel(Urgency::AfterIteration), Urgency::AfterIteration, true, PlanEnd::Cancelled),
        (Ask::Cancel(Urgency::Now), Urgency::Now, true, PlanEnd::Cancelled),
    ] {
        let mut plan = running().asked(ask);
        assert_eq!(plan.next(), PlanStep::Quiet { urgency, for_good });
        plan.live.told = Some(urgency);
        assert_eq!(plan.next(), PlanStep::Await { until: None });
        plan.live.working = true;
        let is_abandoned = plan.next() == PlanStep::Abandon;
        assert_eq!(is_abandoned, urgency == Urgency::Now, "what git is doing");
        plan.live.working = false;
        let plan = plan.end("1", TaskEnd::Rests, 0, None);
        assert_eq!(plan.next(), PlanStep::Finish(end));
    }
}

#[test]
fn a_more_urgent_stop_request_is_passed_on() {
    let mut plan = Plan::of(&PAIR, |_| {}).starts().asked(Ask::Pause(Urgency::AfterIteration));
    plan.live.told = Some(Urgency::AfterIteration);
    let plan = plan.asked(Ask::Pause(Urgency::Now));
    assert_eq!(plan.next(), PlanStep::Quiet { urgency: Urgency::Now, for_good: false });
}

#[test]
fn a_resting_task_continues_after_a_resume() {
    let mut plan = Plan::of(&PAIR, |_| {}).starts().asked(Ask::Pause(Urgency::Now));
    plan.live.told = Some(Urgency::Now);
    let mut plan = plan.end("1", TaskEnd::Rests, 0, None).ends();
    plan.live = PlanLive::default();
    let plan = plan.resumed(|_| {}).then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 });
}

#[test]
fn a_fault_that_every_task_would_meet_stops_the_plan() {
    let hindered = TaskEnd::Hindered { error: "not logged in".into() };
    let plan = Plan::of(&[("1", &[]), ("2", &[])], |_| {}).starts().end("1", hindered, 0, None);
    assert!(matches!(plan.next(), PlanStep::Quiet { urgency: Urgency::AfterIteration, for_good: false }));
    let plan = plan.end("2", TaskEnd::Rests, 1, None);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked));
    let mut plan = plan.ends().resumed(|_| {}).then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.next(), PlanStep::Drive { task: 0 });
    let first = plan.state.spec.loop_of(&"1".parse().unwrap(), 1);
    plan.live.driven.insert(first);
    assert_eq!(plan.next(), PlanStep::Drive { task: 1 });
}

#[test]
fn a_fault_before_the_runner_died_is_tried_anew_by_a_resume() {
    let plan = Plan::of(&[("1", &[])], |_| {}).then(PlanEvent::Hindered { error: "no space left".into() });
    let resumed = plan.state.resume(&PlanGrant::default()).unwrap().expect("it forgets the fault");
    let plan = plan.then(resumed).then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert!(matches!(plan.next(), PlanStep::Start { task: 0, .. }));
    let dead = Plan::of(&[("1", &[])], |_| {});
    assert_eq!(dead.state.resume(&PlanGrant::default()), Ok(None), "nothing is in its way");
}

#[test]
fn the_time_is_over_when_it_is_over() {
    let mut plan = Plan::of(&PAIR, |spec| spec.limits.max_duration = Some(Millis(1_000))).starts();
    assert_eq!(plan.next(), PlanStep::Await { until: Some(time(1_000)) });
    plan.at = 1_000;
    assert_eq!(plan.next(), PlanStep::Quiet { urgency: Urgency::Now, for_good: false });
    let plan = plan.end("1", TaskEnd::Rests, 0, None);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::TimedOut));
}

#[test]
fn the_time_that_it_stood_still_is_not_its_own() {
    let mut plan = Plan::of(&PAIR, |_| {}).starts().stops("1", Stop::UsedUp);
    plan.at = 1_000;
    let mut plan = plan.ends();
    plan.at = 50_000;
    let mut plan = plan.then(PlanEvent::TaskTuned { task: id("1"), words: "otherwise".into() });
    plan.at = 90_000;
    let mut plan = plan.resumed(|_| {});
    plan.at = 99_000;
    let plan = plan.then(PlanEvent::RunnerStarted { runner: runner(2) });
    assert_eq!(plan.state.active.as_millis(), 1_000);
}

#[test]
fn a_plan_that_stands_still_can_be_cancelled() {
    let plan = Plan::of(&PAIR, |_| {}).starts().stops("1", Stop::UsedUp).ends();
    assert_eq!(plan.next(), PlanStep::Rest);
    let plan = plan.asked(Ask::Cancel(Urgency::Now));
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Cancelled));
    let plan = plan.ends();
    assert_eq!(plan.next(), PlanStep::Rest);
    let limits = PlanLimits::default();
    assert_eq!(plan.refuses(PlanEvent::Resumed { limits }), "a plan that is over does not go on");
}

#[test]
fn an_event_that_cannot_follow_is_refused_and_changes_nothing() {
    let merged = |name: &str| PlanEvent::BatchMerged {
        merged: vec![MergedTask { task: id(name), tree: oid(7) }],
        refused: Vec::new(),
    };
    let landed = |count: usize| PlanEvent::BatchLanded {
        commits: vec![None; count],
        refused: None,
        tip: oid(9),
        line_was: None,
    };
    let plan = Plan::of(&PAIR, |_| {});
    let proven = plan.clone().starts().proves("1");
    let batch = proven.clone().merges(&["1"]);
    let ended = plan.clone().then(PlanEvent::Ended(PlanEnd::Paused));
    let resumed_first = "a plan that has stopped is resumed before it is driven";
    for (plan, event, why) in [
        (&plan, merged("1"), "only what is proven is merged"),
        (&plan, merged("9"), "there is no such task"),
        (&proven, PlanEvent::BatchMerged { merged: vec![], refused: vec![] }, "a batch has something in it"),
        (&batch, merged("1"), "one batch lands after the other"),
        (&batch, landed(1), "it is not known to be well"),
        (&proven, landed(1), "no batch lands"),
        (&batch, PlanEvent::BatchVerified { upto: 2, failed: None }, "that was not asked"),
        (
            &plan,
            PlanEvent::WaveCompleted {
                wave: WaveNumber(2),
                commit: None,
                tasks: vec![],
                rest: vec![],
                commits: vec![],
            },
            "waves are completed one after the other",
        ),
        (
            &plan,
            PlanEvent::HandedOver { head: None, rest: vec![], waves: vec![], refused: None },
            "no reason is recorded for what was not handed over",
        ),
        (
            &plan,
            PlanEvent::Asked { request: None, ask: Ask::Proceed, by: Default::default() },
            "a plan is not steered, its tasks are",
        ),
        (&ended, PlanEvent::RunnerStarted { runner: runner(2) }, resumed_first),
        (&ended, PlanEvent::Hindered { error: String::new() }, resumed_first),
    ] {
        assert_eq!(plan.refuses(event), why);
    }
}

#[test]
fn agents_that_all_fail_in_one_way_before_any_work_stop_the_plan() {
    let tasks: [(&str, &[&str]); 5] = ["1", "2", "3", "4", "5"].map(|name| (name, &[] as &[&str]));
    let plan = || Plan::of(&tasks, |_| {}).starts();
    let (boom, bang) = ("ended with exit code 1: boom", "ended with exit code 1: bang");
    let two = || plan().fails("1", boom, None).fails("2", boom, Some(oid(1)));
    let three = two().fails("3", boom, None);
    let said = "of 3 tasks in a row the agent ended with exit code 1: boom; nothing was changed";
    assert_eq!(three.state.hindered.as_deref(), Some(said));
    for (other, why) in [
        (two().fails("3", bang, None), "another failure"),
        (two().fails("3", boom, Some(oid(7))), "there is work"),
        (two().proves("3").fails("4", boom, None), "one was proven"),
        (two().stops("3", Stop::UsedUp).fails("4", boom, None), "one did not fail"),
        (
            two()
                .asked(Ask::Pause(Urgency::Now))
                .then(PlanEvent::Ended(PlanEnd::Paused))
                .resumed(|_| {})
                .starts()
                .fails("1", boom, None),
            "a person looked at it",
        ),
    ] {
        assert_eq!(other.state.hindered, None, "{why}");
    }
}
