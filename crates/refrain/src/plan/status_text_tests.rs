//! The status of a plan on terminals of several widths, and without a terminal.

use rstest::rstest;

use super::*;
use crate::plan::scripted_plan::ScriptedPlan;

fn shown(width: Option<usize>, blocks: bool) -> String {
    let story = ScriptedPlan::feature();
    let text = text(&story.view(), Art { width, blocks }, story.now());
    let text = anstream::adapter::strip_str(&text).to_string();
    // Times of day are those of the machine.
    let is_same = |line: &&str| !["started", "last event", "likely"].iter().any(|it| line.starts_with(it));
    text.lines().filter(is_same).map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_wave_view_is_seed_001s() {
    insta::assert_snapshot!(shown(Some(80), true), @r#"
    plan         feature-x
    status       running: wave 2 of 4: 1 task at work
    verified     not yet
    tasks        /home/you/project/.scud/tasks/feature-x.json
    runs         claude (claude), 2 at a time
    proof        cargo check && cargo test
    in           /home/you/project
    git          branch main, 1 wave commit
    used         5/100 iterations, $1.00
    runner       pid 7 on h, alive; quiet for 10s

    ┌──────────────────────────────────────────────────────────────────────────────┐
    │ Plan: feature-x                                                              │
    ├──────────────────────────────────────────────────────────────────────────────┤
    │ Wave 2 of 4                                                                  │
    │ Tasks: 2/7 completed                                                         │
    │                                                                              │
    │ Wave 1: ████████████████ Complete (2 tasks) aaaaaaaaaa                       │
    │ Wave 2: ░░░░░░░░░░░░░░░░ In Progress (0/2 tasks)                             │
    │ Wave 3: ░░░░░░░░░░░░░░░░ Pending (2 tasks)                                   │
    │ Wave 4: ░░░░░░░░░░░░░░░░ Blocked (0/1 task)                                  │
    │                                                                              │
    │ Current Tasks: 1                                                             │
    │   - Task 4: Implement auth middleware                                        │
    │     Complexity: 5, iteration 2/3 for 10s: gate verify is running after       │
    │     attempt 2                                                                │
    │                                                                              │
    │ Blocked Tasks: 1                                                             │
    │   - Task 3: "Setup database" (not proven in 3 iterations)                    │
    │ Waiting on Blocked: 5, 7                                                     │
    └──────────────────────────────────────────────────────────────────────────────┘

    TASK  STATUS              WAVE  COMPLEXITY  ITERATIONS  TITLE
    1     done                   1           2           1  Describe the schema
    2     done                   1           1           1  Set up the router
    3     blocked                2           3           3  Setup database
    4     in-progress            2           5           0  Implement auth middlewa…
    5     waiting-on-blocked     3           3           0  Store sessions
    6     pending                3           2           0  Rate limits
    7     waiting-on-blocked     4           1           0  Write the guide to sess…
    "#);
}

#[test]
fn without_a_terminal_nothing_is_drawn_around_it_nor_cut_off() {
    insta::assert_snapshot!(shown(None, false), @r#"
    plan         feature-x
    status       running: wave 2 of 4: 1 task at work
    verified     not yet
    tasks        /home/you/project/.scud/tasks/feature-x.json
    runs         claude (claude), 2 at a time
    proof        cargo check && cargo test
    in           /home/you/project
    git          branch main, 1 wave commit
    used         5/100 iterations, $1.00
    runner       pid 7 on h, alive; quiet for 10s

    Wave 2 of 4
    Tasks: 2/7 completed

    Wave 1: ################ Complete (2 tasks) aaaaaaaaaa
    Wave 2: ................ In Progress (0/2 tasks)
    Wave 3: ................ Pending (2 tasks)
    Wave 4: ................ Blocked (0/1 task)

    Current Tasks: 1
      - Task 4: Implement auth middleware
        Complexity: 5, iteration 2/3 for 10s: gate verify is running after attempt 2

    Blocked Tasks: 1
      - Task 3: "Setup database" (not proven in 3 iterations)
    Waiting on Blocked: 5, 7

    TASK  STATUS              WAVE  COMPLEXITY  ITERATIONS  TITLE                                                                     NOTE
    1     done                   1           2           1  Describe the schema                                                       5555555555
    2     done                   1           1           1  Set up the router                                                         5555555555
    3     blocked                2           3           3  Setup database                                                            not proven in 3 iterations
    4     in-progress            2           5           0  Implement auth middleware
    5     waiting-on-blocked     3           3           0  Store sessions                                                            after 3, 4
    6     pending                3           2           0  Rate limits                                                               after 4
    7     waiting-on-blocked     4           1           0  Write the guide to sessions, for everybody who has never seen one before  after 5, 6
    "#);
}

#[rstest]
fn the_status_text_fits_the_width(#[values(20, 30, 39, 40, 60, 80, 100, 200)] width: usize) {
    let text = shown(Some(width), true);
    // Text to copy is never cut, however narrow the terminal is.
    let is_exact = |line: &str| {
        ["tasks ", "next ", "in ", "proof ", "plan ", "started ", "last event "]
            .iter()
            .any(|name| line.starts_with(name))
    };
    for line in text.lines().filter(|line| !is_exact(line)) {
        assert!(display_width(line) <= width.max(30), "{width}: {line}\n{text}");
    }
}

#[rstest]
fn nothing_that_matters_is_lost_on_a_narrow_terminal(#[values(60, 80, 120)] width: usize) {
    let story = ScriptedPlan::feature();
    let text = text(&story.view(), Art { width: Some(width), blocks: true }, story.now());
    let text = anstream::adapter::strip_str(&text).to_string();
    for part in [
        "\nlikely ",
        "Wave 2: ░",
        "Complexity: 5, iteration 2/3",
        "Task 3: \"Setup database\" (not proven in 3",
        "Waiting on Blocked: 5, 7",
        "COMPLEXITY",
        "TITLE",
        "Describe the sc",
    ] {
        assert!(text.contains(part), "{width}: {part}\n{text}");
    }
}

#[rstest]
#[case(StatusWord::Cancelled, "Cancelled Tasks: 1\n")]
#[case(StatusWord::Paused, "Paused Tasks: 1\n")]
fn what_was_at_work_when_a_plan_ended_says_how_it_ended(#[case] status: StatusWord, #[case] heading: &str) {
    let view = ScriptedPlan::feature().view();
    let view = PlanStatus { status, ended_at: Some(view.updated_at), ..view };
    let text = text(&view, Art { width: None, blocks: false }, view.updated_at);
    assert!(anstream::adapter::strip_str(&text).to_string().contains(heading), "{text}");
}

#[test]
fn of_very_many_the_ones_that_matter_are_shown() {
    let mut view = ScriptedPlan::feature().view();
    let wave = view.waves[2].clone();
    view.waves.extend((5..200).map(|n| WaveView { wave: n, ..wave.clone() }));
    let task = view.tasks[4].clone();
    view.tasks.extend(std::iter::repeat_n(task, 500));
    let art = Art { width: Some(80), blocks: true };
    let text = text(&view, art, ScriptedPlan::feature().now());
    assert!(text.lines().count() < 100, "{text}");
    assert!(text.contains("more waves") && text.contains("more; refrain plan status"), "{text}");
}
