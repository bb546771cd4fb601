//! What is merged, verified and landed; what comes back; waves and their handover.

use super::*;

const FREE: [(&str, &[&str]); 4] = [("1", &[]), ("2", &[]), ("3", &[]), ("4", &[])];

fn merged(plan: &Plan) -> Batch {
    plan.state.batch.clone().unwrap()
}

#[test]
fn proven_tasks_land_together() {
    let plan = Plan::of(&FREE, |_| {}).starts().proves("2").proves("1");
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![0, 1] });
    let plan = plan.merges(&["1", "2"]).proves("3");
    assert_eq!(plan.next(), PlanStep::Verify { upto: 2 }, "the verification runs once");
    let plan = plan.verified(2, true);
    assert_eq!(plan.next(), PlanStep::Land { upto: 2 });
    let plan = plan.lands(2, 3);
    assert_eq!(plan.state.tip, Some(oid(3)));
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![2] }, "what came meanwhile is next");
}

#[test]
fn a_plan_waits_while_git_is_working() {
    let mut plan = Plan::of(&FREE, |_| {}).starts().proves("1");
    plan.live.working = true;
    assert_eq!(plan.next(), PlanStep::Await { until: None });
}

#[test]
fn a_tree_that_a_task_proved_is_not_verified_again() {
    let proven = |tree| TaskEnd::Proven { tree: Some(oid(tree)) };
    let plan = Plan::of(&FREE, |_| {}).starts().end("1", proven(101), 1, None).end("2", proven(7), 1, None);
    assert_eq!(merged(&plan.clone().merges(&["1"])).question(), None);
    assert_eq!(
        merged(&plan.clone().merges(&["1", "2"])).question(),
        Some(2),
        "they were not verified together"
    );
    assert_eq!(merged(&plan.merges(&["2", "1"])).question(), Some(2));
}

#[test]
fn without_gates_merged_tasks_land_unverified() {
    let plan = Plan::of(&FREE, |spec| spec.each.gates.clear()).starts().proves("1").proves("2");
    assert_eq!(plan.merges(&["1", "2"]).next(), PlanStep::Land { upto: 2 });
}

#[test]
fn without_gates_a_plan_is_verified_if_what_landed_is_what_gates_of_tasks_passed_on() {
    let proven = |tree| TaskEnd::Proven { tree: Some(oid(tree)) };
    let plan = Plan::of(&FREE, |spec| spec.each.gates.clear()).starts();
    assert!(!plan.state.is_verified(), "nothing has landed");
    let plan = plan.end("1", proven(101), 1, None).merges(&["1"]).lands(1, 2);
    assert!(plan.state.is_verified());
    let plan = plan.end("2", proven(7), 1, None).merges(&["2"]).lands(1, 3);
    assert!(!plan.state.is_verified(), "no gate passed on the two together");
    assert!(!plan.proves("3").merges(&["3"]).lands(1, 4).state.is_verified());
}

#[test]
fn the_culprit_is_found_by_halves() {
    for count in 1..=16_usize {
        for culprit in 1..=count {
            let parts: Vec<_> =
                (0..count).map(|n| MergedTask { task: id(&n.to_string()), tree: oid(7) }).collect();
            let mut batch = Batch { merged: parts, good: 0, bad: None };
            let mut questions = 0;
            while let Some(upto) = batch.question() {
                questions += 1;
                match upto >= culprit {
                    true => batch.bad = Some((upto, failed())),
                    false => batch.good = upto,
                }
            }
            assert_eq!(batch.good, culprit - 1, "{culprit} of {count}");
            let most = count.next_power_of_two().ilog2() + 1;
            assert!(questions <= most, "{questions} questions for {culprit} of {count}");
        }
    }
}

#[test]
fn the_culprit_goes_back_and_the_rest_stays() {
    let plan = Plan::of(&FREE, |_| {}).starts().proves("1").proves("2").proves("3");
    let plan = plan.merges(&["1", "2", "3"]).verified(3, false).verified(1, true).verified(2, false);
    assert_eq!(plan.next(), PlanStep::Land { upto: 1 });
    let plan = plan.lands(1, 2);
    assert!(matches!(plan.task("1").stage, Stage::Landed { .. }));
    assert_eq!(plan.task("2").again, Some(Return::Failed(failed())));
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![2] }, "the others are merged again without it");
    let mut plan = plan.merges(&["3"]);
    plan.live.working = true;
    assert_eq!(plan.started().1, ["2"], "it begins while they are verified");
}

#[test]
fn a_proven_task_that_may_not_land_is_taken_out() {
    let plan = Plan::of(&FREE, |_| {}).starts().proves("1").proves("2").proves("3");
    let plan = plan.merges(&["1", "2", "3"]).verified(3, true);
    let refused = Some("it looks like a secret".to_owned());
    let event = PlanEvent::BatchLanded { commits: vec![None], refused, tip: oid(1), line_was: None };
    let plan = plan.then(event);
    let reason = "it looks like a secret".to_owned();
    assert_eq!(plan.task("2").stage, Stage::Stopped(Stop::Other { reason }));
    assert_eq!(plan.next(), PlanStep::Merge { tasks: vec![2] });
}

#[test]
fn a_conflict_goes_back_twice_and_then_a_person_is_needed() {
    let mut plan = Plan::of(&FREE, |_| {}).start("1", 3, None);
    for round in 1..=MAX_RETURNS {
        plan = plan.proves("1").conflicts("1");
        assert_eq!(plan.task("1").stage, Stage::Waiting(0), "after round {round}");
        plan = plan.start("1", 3, None);
    }
    let plan = plan.proves("1").conflicts("1");
    assert_eq!(plan.task("1").stage, Stage::Stopped(Stop::Unfit));
    let why = plan.state.blocked_because(plan.task("1"));
    assert_eq!(why.as_deref(), Some("it still conflicts with what landed, in a.rs"));
    let plan = plan.resumed(|_| {}).start("1", 3, None).proves("1").conflicts("1");
    assert_eq!(plan.task("1").stage, Stage::Waiting(0), "who lets it go on lets it come back as often again");
}

#[test]
fn a_returned_task_waits_for_dependencies_added_since() {
    let plan = Plan::of(&[("1", &[]), ("2", &[])], |_| {}).start("1", 3, None);
    let plan = plan.reads(vec![card("1", &["2"]), card("2", &[])]).proves("1").conflicts("1");
    assert_eq!(plan.task("1").stage, Stage::Waiting(1));
    assert_eq!(plan.started().1, ["2"]);
}

#[test]
fn a_wave_is_one_commit_and_is_handed_over() {
    let plan = Plan::of(&[("1", &[]), ("2", &["1"])], |_| {}).does("1", 2);
    assert_eq!(plan.next(), PlanStep::CompleteWave { wave: WaveNumber(1) });
    let plan = plan.completes(1, 3);
    assert_eq!((&plan.state.tip, &plan.state.trunk), (&Some(oid(3)), &Some(oid(3))));
    assert_eq!(plan.next(), PlanStep::HandOver);
    let plan = plan.hands_over(4);
    assert_eq!((&plan.state.tip, &plan.state.trunk), (&Some(oid(4)), &Some(oid(4))));
    let plan = plan.does("2", 5).completes(2, 6).hands_over(6);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Completed));
}

#[test]
fn a_refused_handover_is_retried_with_the_next_wave() {
    let refused = || PlanEvent::HandedOver {
        head: None,
        rest: vec![],
        waves: vec![],
        refused: Some("a.rs would be overwritten".into()),
    };
    let plan = Plan::of(&[("1", &[]), ("2", &["1"])], |_| {}).does("1", 2).completes(1, 3).then(refused());
    assert_eq!(plan.clone().started().1, ["2"], "the plan continues working");
    let plan = plan.does("2", 4).completes(2, 5);
    assert_eq!(plan.next(), PlanStep::HandOver);
    let plan = plan.then(refused());
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked));
    assert_eq!(plan.ends().resumed(|_| {}).next(), PlanStep::HandOver);
}

#[test]
fn a_task_landed_ahead_of_its_wave_is_rebuilt_on_top_of_it() {
    let tasks: [(&str, &[&str]); 4] = [("1", &[]), ("2", &[]), ("3", &["1"]), ("4", &["3"])];
    let plan = Plan::of(&tasks, |spec| spec.pipeline = true).does("1", 2).does("3", 3).does("2", 4);
    let plan = plan.completes(1, 5);
    assert_eq!((&plan.state.tip, &plan.state.trunk), (&Some(oid(50)), &Some(oid(5))), "3 is in no wave yet");
    let plan = plan.hands_over(6);
    assert_eq!((&plan.state.tip, &plan.state.trunk), (&Some(oid(60)), &Some(oid(6))));
    assert_eq!(plan.completes(2, 7).state.tip, Some(oid(7)), "all that landed is complete");
}

#[test]
fn tasks_omitted_from_a_wave_form_its_rest() {
    let tasks: [(&str, &[&str]); 5] = [("1", &[]), ("2", &[]), ("3", &["1"]), ("4", &["2"]), ("5", &["4"])];
    let plan = Plan::of(&tasks, |_| {}).does("2", 2).start("1", 3, None).stops("1", Stop::UsedUp);
    let left = |plan: &Plan, wave| -> Vec<String> {
        plan.state.left_out(WaveNumber(wave)).map(|task| task.card.id.to_string()).collect()
    };
    assert_eq!(
        (plan.state.wave_name(WaveNumber(1)).as_str(), left(&plan, 1)),
        ("wave 1", vec!["1".to_owned()])
    );
    assert_eq!(plan.state.wave_subject(WaveNumber(1), 1), "wave 1: 1 of 2 tasks");
    let plan = plan.lands_wave(1, 3).does("4", 4);
    assert_eq!(
        (plan.state.wave_name(WaveNumber(2)).as_str(), left(&plan, 2)),
        ("wave 2", vec!["3".to_owned()])
    );
    let plan = plan.lands_wave(2, 5).does("5", 6).lands_wave(3, 7).ends().resumed(|_| {}).does("1", 8);
    assert_eq!(plan.state.wave_name(WaveNumber(4)), "the rest of wave 1");
    assert_eq!(plan.state.wave_subject(WaveNumber(4), 1), "complete the rest of wave 1");
    let plan = plan.lands_wave(4, 9).does("3", 10);
    assert_eq!(plan.state.wave_name(WaveNumber(5)), "the rest of wave 2");
    assert_eq!(left(&plan, 5), Vec::<String>::new());
}

#[test]
fn a_task_that_is_new_in_a_wave_while_its_commit_is_made_comes_with_the_next() {
    let plan = Plan::of(&[("1", &[])], |_| {}).does("1", 2);
    assert_eq!(plan.next(), PlanStep::CompleteWave { wave: WaveNumber(1) });
    let plan = plan.reads(vec![card("1", &[]), card("2", &[])]).completes(1, 3).hands_over(3);
    assert_eq!(plan.started().1, ["2"]);
}

#[test]
fn a_wave_in_which_nothing_landed_is_left_open_for_when_it_is_resumed() {
    let plan = Plan::of(&[("1", &[]), ("2", &["1"])], |_| {}).starts().stops("1", Stop::UsedUp);
    assert_eq!(plan.next(), PlanStep::Finish(PlanEnd::Blocked));
    let plan = plan.ends().resumed(|_| {}).does("1", 2);
    assert_eq!(plan.next(), PlanStep::CompleteWave { wave: WaveNumber(1) });
}
