//! Teams that wait for the same workers.

use std::time::Duration;

use serde_json::Value;
use testkit::{within, write};

use crate::lab::Lab;

const MANY: u32 = 90;
const FEW: u32 = 9;
/// As `refrain fleet dev` has it.
const FAIR: [&str; 8] = [
    "--dynamic-config-value",
    "matching.useNewMatcher=true",
    "--dynamic-config-value",
    "matching.enableFairness=true",
    "--dynamic-config-value",
    "matching.numTaskqueueReadPartitions=1",
    "--dynamic-config-value",
    "matching.numTaskqueueWritePartitions=1",
];
/// How long a quarter of all loops may take, on a machine that other tests need.
const LIMIT: Duration = Duration::from_secs(300);

/// From now on, loops are of this team.
fn join(lab: &Lab, team: &str) {
    let config = lab.person.root().join("home/config/refrain/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let others = text.lines().filter(|line| !line.starts_with("team = ")).collect::<Vec<_>>().join("\n");
    write(&config, others.replacen("[fleet]", &format!("[fleet]\nteam = \"{team}\""), 1));
}

/// What the doctor finds about the team.
fn look(lab: &Lab) -> Value {
    let seen = lab.person.refrain(&["doctor", "--fleet", "--json"]).json();
    let is_of_team = |finding: &&Value| finding["found"].as_str().unwrap().contains("team ");
    seen["findings"].as_array().unwrap().iter().find(is_of_team).cloned().unwrap_or_default()
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_team_with_few_loops_does_not_wait_for_one_with_many() {
    let lab = Lab::with_server(&FAIR);
    let (machine, elsewhere) = (lab.machine("w1"), lab.machine("w2"));
    // It takes none of them, and has them wait in their queue.
    let _other = lab.work(&elsewhere, &["--pool", "other"]);
    let notes = "echo $REFRAIN_LOOP_ID >> $NOTES/order; echo '<promise>COMPLETE</promise>'";
    join(&lab, "many");
    (1..=MANY).for_each(|number| lab.start(&format!("many{number}"), notes, &[]));
    join(&lab, "few");
    (1..=FEW).for_each(|number| lab.start(&format!("few{number}"), notes, &[]));
    let _worker = lab.work(&machine, &[]);
    let few = |order: &str| order.lines().filter(|name| name.starts_with("few")).count();
    let order = within(LIMIT, "the few are done", || {
        let order = machine.note("order");
        (few(&order) >= FEW as usize).then_some(order)
    });
    let all = order.lines().count();
    println!("the last of {FEW} loops behind {MANY} was the {all}th that was begun");
    assert!(all <= (MANY + FEW) as usize / 4, "{order}");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_doctor_tells_a_server_that_ignores_teams() {
    let lab = Lab::new();
    assert_eq!(look(&lab), Value::Null, "without a team it is of no consequence");
    join(&lab, "web");
    let ignores = look(&lab);
    assert_eq!(ignores["grade"], "problem", "{ignores:#}");
    assert!(ignores["advice"].as_str().unwrap().contains("matching.enableFairness"), "{ignores:#}");
    // With several partitions of a queue, and with one.
    let lab = Lab::with_server(&FAIR[..4]);
    join(&lab, "web");
    let heeds = look(&lab);
    assert_eq!(heeds["grade"], "ok", "{heeds:#}");
    let lab = Lab::with_server(&FAIR);
    join(&lab, "web");
    let heeds = look(&lab);
    assert_eq!(heeds["grade"], "ok", "{heeds:#}");
    let longest = "x".repeat(65);
    join(&lab, &longest);
    let refused = lab.person.refrain(&["doctor", "--fleet"]).with_code(2);
    assert!(refused.stderr.contains("accepted: up to 64 of"), "{}", refused.stderr);
}
