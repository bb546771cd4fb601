//! What the file says, what people change in it, and what the plan writes there.

use rstest::rstest;

use super::*;
use TaskStatus::{
    AwaitingTune, Blocked, Cancelled, Deferred, Done, Expanded, Failed, InProgress, Pending, Review,
};

const PAIR: [(&str, &[&str]); 2] = [("1", &[]), ("2", &["1"])];

fn waiting() -> Plan {
    Plan::of(&PAIR, |_| {})
}

fn running() -> Plan {
    waiting().start("1", 3, None)
}

fn stopped() -> Plan {
    running().stops("1", Stop::UsedUp)
}

#[test]
fn each_stage_has_its_status_in_the_file() {
    let status = |plan: &Plan| plan.state.status_of(plan.task("1"));
    let tuned = || Plan::of(&PAIR, |spec| spec.tune = true).start("1", 3, None);
    let gave_up = || Stop::GaveUp { reason: "there is no such thing".into() };
    for (plan, expected) in [
        (waiting(), Pending),
        (running(), InProgress),
        (running().proves("1"), InProgress),
        (waiting().does("1", 2), Done),
        (stopped(), Blocked),
        (tuned().stops("1", Stop::UsedUp), AwaitingTune),
        (tuned().stops("1", Stop::Stuck), AwaitingTune),
        (tuned().stops("1", gave_up()), Blocked),
        (running().then(PlanEvent::Ended(PlanEnd::Paused)), InProgress),
        (running().then(PlanEvent::Ended(PlanEnd::Cancelled)), Pending),
        (waiting().sets("1", Deferred), Deferred),
    ] {
        assert_eq!(status(&plan), expected, "{:?}", plan.task("1").stage);
        assert_eq!(plan.state.status_of(plan.task("2")), Pending);
    }
}

#[test]
fn why_it_is_blocked_is_written_too() {
    let because = |stop: Stop| {
        let plan = running().stops("1", stop);
        plan.state.blocked_because(plan.task("1")).unwrap()
    };
    let reason = || "there is no such thing".to_owned();
    for (stop, expected) in [
        (Stop::UsedUp, "not proven in 1 iteration"),
        (Stop::Stuck, "stuck after 1 iteration"),
        (Stop::TimedOut, "it took too long"),
        (Stop::GaveUp { reason: reason() }, "there is no such thing"),
        (Stop::Other { reason: reason() }, "there is no such thing"),
        (Stop::Cancelled, "its loop was cancelled"),
        (Stop::Unfit, "it does not fit what landed"),
    ] {
        assert_eq!(because(stop), expected);
    }
    assert_eq!(running().state.blocked_because(running().task("1")), None);
}

#[test]
fn the_blocked_reason_states_the_iterations_and_the_failure() {
    let because = |plan: &Plan| plan.state.blocked_because(plan.task("1")).unwrap();
    let failed = running().fails("1", "ended with exit code 1: boom", None);
    assert_eq!(because(&failed), "not proven in 3 iterations; its agent ended with exit code 1: boom");
    let refused = running().refused("1", "gate verify failed: FAIL test_db: no database");
    assert_eq!(
        because(&refused),
        "not proven in 3 iterations; gate verify failed: FAIL test_db: no database"
    );
    let again = running().proves("1").conflicts("1").start("1", 3, None);
    let used_up = again.end("1", TaskEnd::Stopped(Stop::UsedUp), 3, None);
    assert_eq!(because(&used_up), "not proven in 3 iterations of round 2, 4 in all");
    let resumed = failed.ends().resumed(|_| {}).start("1", 3, None).stops("1", Stop::Stuck);
    assert_eq!(because(&resumed), "stuck after 1 iteration of round 2, 4 in all", "it failed before");
}

/// The effect of a status that a person writes: out of the plan, in it again, or unchanged.
#[test]
fn a_status_set_by_a_person_is_obeyed() {
    let is_out = |plan: &Plan| plan.task("1").stage == Stage::Out;
    let is_waiting = |plan: &Plan| plan.task("1").stage == Stage::Waiting(0);
    for word in [Done, Review, Deferred, Cancelled, Expanded, Failed, AwaitingTune, Blocked] {
        assert!(is_out(&waiting().sets("1", word)), "{word} of a task that waits");
        let was_said = word == Blocked;
        assert_eq!(is_out(&stopped().sets("1", word)), !was_said, "{word} of a task that is blocked");
        let plan = waiting().does("1", 2).sets("1", word);
        assert!(matches!(plan.task("1").stage, Stage::Landed { .. }), "{word} of a task that has landed");
    }
    assert!(is_waiting(&stopped().sets("1", Pending)), "again");
    assert!(!is_waiting(&stopped().sets("1", InProgress)), "that is the plan's own word");
    assert!(is_waiting(&waiting().sets("1", Deferred).sets("1", Pending)), "after all");
}

#[test]
fn a_task_done_by_a_person_is_done() {
    let plan = waiting().sets("1", Done);
    assert_eq!(plan.started().1, ["2"]);
    assert!(waiting().sets("1", Cancelled).task("2").is_hopeless, "what waits for it will not be done");
}

#[test]
fn a_task_cancelled_while_it_runs_does_not_land() {
    let taken_off = running().sets("1", Cancelled);
    assert!(matches!(taken_off.task("1").stage, Stage::Running(_)), "its loop is let go on");
    assert_eq!(taken_off.state.status_of(taken_off.task("1")), Cancelled, "the person's word stays");
    for plan in [taken_off.clone().proves("1"), taken_off.clone().stops("1", Stop::UsedUp)] {
        assert_eq!(plan.task("1").stage, Stage::Out);
        assert!(plan.task("2").is_hopeless);
    }
    let again = taken_off.sets("1", Pending).proves("1");
    assert!(matches!(again.task("1").stage, Stage::Proven { .. }), "they thought better of it");
    let done = running().sets("1", Done).proves("1");
    assert_eq!(done.started().1, ["2"], "they did it themselves");
}

#[test]
fn a_task_cancelled_while_it_waits_to_land_does_not_land() {
    let three =
        || Plan::of(&[("1", &[]), ("2", &[]), ("3", &["1"])], |_| {}).starts().proves("1").proves("2");
    let taken_off = three().sets("1", Cancelled);
    assert_eq!(taken_off.task("1").stage, Stage::Out);
    assert_eq!(taken_off.state.status_of(taken_off.task("1")), Cancelled, "the person's word stays");
    assert!(taken_off.task("3").is_hopeless);
    assert_eq!(taken_off.next(), PlanStep::Merge { tasks: vec![1] });
    let gone = three().reads(vec![card("2", &[])]);
    assert_eq!(gone.next(), PlanStep::Merge { tasks: vec![0] });
    // It was merged meanwhile: what was merged on top of it is merged again, what was not is not.
    for off in [taken_off, gone] {
        let again = off.clone().merges(&["1", "2"]);
        assert_eq!((again.state.batch.clone(), again.next()), (None, off.next()));
        assert_eq!(merged_names(&off.merges(&["2", "1"])), ["2"]);
    }
    let lands = three().merges(&["1", "2"]).sets("2", Cancelled);
    assert!(matches!(lands.task("2").stage, Stage::Proven { .. }), "it is on its way onto the line");
    let taken_out = lands.verified(2, false).verified(1, false).lands(0, 1);
    assert_eq!(taken_out.task("2").stage, Stage::Out, "it had to wait after all");
}

fn merged_names(plan: &Plan) -> Vec<String> {
    plan.state.batch.iter().flat_map(|it| &it.merged).map(|one| one.task.to_string()).collect()
}

#[test]
fn a_task_removed_from_the_file_is_dropped_unless_it_runs() {
    let plan = running().reads(vec![card("2", &[])]);
    assert!(plan.state.task(&id("1")).is_some(), "its loop runs");
    let plan = plan.proves("1").reads(vec![card("2", &[])]);
    assert!(plan.state.task(&id("1")).is_none());
    let plan = plan.reads(vec![card("1", &[]), card("2", &[])]);
    assert_eq!(plan.task("1").rounds, 1, "its next loop has a name of its own");
}

#[test]
fn a_file_that_became_invalid_leaves_everything_as_it_was() {
    let plan = waiting().then(PlanEvent::TasksRefused { error: "a cycle: 1, 2, 1".into() });
    let plan = plan.does("1", 2).completes(1, 3).hands_over(3).does("2", 4).completes(2, 5).hands_over(5);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked), "the editor is informed");
    assert_eq!(plan.sets("1", Done).next(), PlanStep::Finish(PlanEnd::Completed));
}

/// The event for the content of a file.
fn reads(cards: &[Card]) -> PlanEvent {
    let tasks: Vec<_> = cards.iter().map(Card::task).collect();
    PlanEvent::of_tasks(&tasks)
}

#[test]
fn an_edit_that_makes_the_file_invalid_is_refused_with_the_reason() {
    let same = [card("1", &[]), card("2", &["1"])];
    assert_eq!(reads(&same), PlanEvent::TasksTaken { tasks: same.to_vec() });
    for (cards, expected) in [
        (vec![card("1", &[]), card("2", &["1"]), card("1", &[])], "more than one task is called 1"),
        (vec![card("1", &["2"]), card("2", &["1"])], "tasks wait for each other in a cycle: 1 -> 2 -> 1"),
        (vec![card("1", &["1"])], "task 1 depends on itself"),
        (vec![card("10", &[]), card("2", &["1"])], "task 2 depends on 1, which is not there"),
        (
            vec![card("1", &["8"]), card("2", &["9"]), card("2", &[])],
            "more than one task is called 2; and 2 more, see refrain plan check",
        ),
    ] {
        assert_eq!(reads(&cards), PlanEvent::TasksRefused { error: expected.to_owned() });
    }
}

/// Statuses that old journals took unchanged are folded all the same, and nothing that is under way gets lost.
#[test]
fn a_running_or_landed_task_is_never_lost_from_the_plan() {
    let twice = waiting().reads(vec![card("1", &[]), card("2", &["1"]), card("1", &[])]);
    assert_eq!(twice.state.tasks.len(), 2);
    let cycle = || vec![card("1", &["2"]), card("2", &["1"])];
    let of_whole = |status| {
        let part = Card { parent: Some(id("2")), ..card("1", &[]) };
        vec![part, Card { status, ..card("2", &[]) }]
    };
    for cards in [cycle(), of_whole(Cancelled), of_whole(Done)] {
        let runs = running().reads(cards.clone());
        assert_eq!(runs.state.running().count(), 1, "{cards:?}");
        let proven = runs.proves("1");
        let proven = proven.reads(cards.clone());
        assert_eq!(proven.next(), PlanStep::Merge { tasks: vec![0] }, "{cards:?}");
        let landed = proven.merges(&["1"]).verified(1, true).lands(1, 2).reads(cards);
        assert_eq!(landed.next(), PlanStep::CompleteWave { wave: WaveNumber(1) });
    }
}

#[test]
fn a_stopped_task_continues_after_a_resume_or_tune() {
    let used_up = || Plan::of(&PAIR, |spec| spec.tune = true).starts().stops("1", Stop::UsedUp);
    assert_eq!(used_up().next(), PlanStep::Finish(PlanEnd::Blocked));
    let plan = used_up().ends().resumed(|_| {});
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked), "it waits for words, not for another try");
    let tuned = PlanEvent::TaskTuned { task: id("1"), words: "with less".into() };
    let plan = plan.ends().then(tuned.clone()).resumed(|_| {});
    assert_eq!(plan.task("1").again, Some(Return::Tuned("with less".into())));
    assert_eq!(plan.started().1, ["1"]);
    assert_eq!(waiting().refuses(tuned), "only a task that has stopped is tuned");
}

/// Retrying and blocking: what the task file gets, which the plan obeys.
#[rstest]
#[case::a_task_to_be_done(|plan: Plan| plan, Err("is pending already"), Ok("blocked"))]
#[case::at_work(
    Plan::starts,
    Err("has begun; refrain cancel LOOP with the id of its loop ends it"),
    Err("has begun; refrain cancel LOOP with the id of its loop ends it")
)]
#[case::given_up(|plan: Plan| plan.starts().stops("1", Stop::Stuck), Ok("pending"), Err("has stopped already"))]
#[case::about_to_land(|plan: Plan| plan.starts().proves("1"), Err("is done, and about to land"), Err("is done, and about to land"))]
#[case::landed(|plan: Plan| plan.does("1", 2), Err("has landed"), Err("has landed"))]
#[case::left_out(|plan: Plan| plan.sets("1", TaskStatus::Blocked), Ok("pending"), Err("is blocked or cancelled already"))]
#[case::done_before(|plan: Plan| plan.sets("1", TaskStatus::Done), Err("is done, or done in parts"), Err("is done, or done in parts"))]
fn a_task_is_retried_or_blocked_in_its_file(
    #[case] so_far: fn(Plan) -> Plan,
    #[case] retry: Result<&str, &'static str>,
    #[case] block: Result<&str, &'static str>,
) {
    let plan = so_far(Plan::of(&[("1", &[])], |_| ()));
    for (edit, expected) in [(TaskEdit::Retry, retry), (TaskEdit::Block, block)] {
        let found = plan.state.edit(&id("1"), edit);
        match expected {
            Ok(word) => {
                let change = found.unwrap();
                assert_eq!((change.status.word(), change.from), (word, plan.state.status_of(plan.task("1"))));
                let plan = plan.clone().sets("1", change.status);
                assert_eq!(matches!(plan.task("1").stage, Stage::Waiting(_)), word == "pending");
            }
            Err(why) => assert_eq!(found, Err(TaskRefusal::Unfit(id("1"), why))),
        }
    }
    assert_eq!(plan.state.edit(&id("7"), TaskEdit::Retry), Err(TaskRefusal::NoTask(id("7"))));
}
