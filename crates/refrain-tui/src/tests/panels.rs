//! The gates of a loop, and its changes, at four sizes.

use refrain_core::view::Gate;

use super::*;

fn gate(name: &str, passed: bool, of: u32) -> Gate {
    Gate {
        name: name.into(),
        hard: name != "docs",
        passed,
        exit_code: Some(i32::from(!passed)),
        duration_ms: 61_300,
        command: format!("cargo {name}"),
        why: (!passed).then(|| "exit code 1".to_owned()),
        flaky: name == "lint",
        failed_before: Some(name == "test"),
        own_tests: None,
        preview: match (name, passed) {
            ("test", false) => "test dates::leap_years ... FAILED, expected 29 days, got 28\u{1b}[2J".into(),
            ("docs", false) => "src/dates.rs is not documented".into(),
            _ => "ok".into(),
        },
        ran: (AttemptId { iteration: of, attempt: 1 }, 1),
    }
}

/// The loop `job`, whose required gate `test` and advisory gate `docs` failed after each of two iterations.
fn gated() -> Model {
    let mut model = opened(ART);
    let mut told = told();
    let status = told.status.as_mut().unwrap();
    let of = |n: u32| {
        vec![gate("build", true, n), gate("test", false, n), gate("lint", true, n), gate("docs", false, n)]
    };
    status.gates = of(2);
    let iterations = status.iterations.as_mut().unwrap();
    (iterations[0].gates, iterations[1].gates) = (of(1), of(2));
    update(&mut model, Message::Told(Box::new(told)));
    model
}

#[rstest]
#[case(60, 15)]
#[case(80, 24)]
#[case(110, 30)]
#[case(300, 80)]
fn the_gates_of_a_loop_fit_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("gates_{width}x{height}"), screen(&mut gated(), width, height));
}

const CHANGES: &str = "What iterations 1 and 2 changed, not yet committed.
 src/dates.rs | 4 ++--
 src/a/very/long/path/that/leads/to/the/tests/of/the/parser/of/dates_of_all_kinds.rs | 2 +-

\u{1b}[1mdiff --git a/src/dates.rs b/src/dates.rs\u{1b}[0m
\u{1b}[36m@@ -1,4 +1,4 @@\u{1b}[0m
 fn days(year: u16) -> u16 {
\u{1b}[31m-\tif year % 4 == 0 { 366 } else { 365 }\u{1b}[0m
\u{1b}[32m+\tif year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 } // 閏年は三百六十六日です\u{1b}[0m
 }
";

fn changed() -> Model {
    let mut model = opened(ART);
    press(&mut model, "d");
    let lines: String = (1..=90).map(|n| format!(" // line {n}\n")).collect();
    update(&mut model, Message::Printed(key("job"), LoopText::Changes, Ok(format!("{CHANGES}{lines}"))));
    model
}

#[rstest]
#[case(60, 15)]
#[case(80, 24)]
#[case(110, 30)]
#[case(300, 80)]
fn the_changes_of_a_loop_fit_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("changes_{width}x{height}"), screen(&mut changed(), width, height));
}
