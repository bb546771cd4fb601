//! Until when a loop goes on: `--iterations` and `--infinite`.

use serde_json::json;

use crate::sandbox;

#[test]
fn exactly_so_many_iterations_are_done_whatever_is_claimed() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", "echo COMPLETE");
    let start = ["start", "--command", &agent, "--prompt", "p", "--name", "job", "--iterations", "3"];
    sandbox.refrain(&start).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("completed"), &json!(3)));
}

#[test]
fn one_that_goes_on_for_ever_waits_where_there_is_nothing_to_do() {
    let sandbox = sandbox();
    let agent = sandbox.agent("claims", "echo COMPLETE");
    let start = ["start", "--command", &agent, "--prompt", "p", "--name", "job", "--infinite", "--detach"];
    sandbox.refrain(&start).with_code(0);
    let status = sandbox.wait_for_status("job", "waiting");
    assert_eq!(status["reason"], "found nothing to do, and looks again later");
    assert_eq!((&status["charged"], &status["max_iterations"]), (&json!(1), &json!(null)));
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    sandbox.wait_for_status("job", "cancelled");
    sandbox.nobody_survives();
}
