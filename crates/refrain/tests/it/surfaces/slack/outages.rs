//! Slack is down, slow or faulty, the connection is cut, or `serve` is killed: loops are not affected, nothing is lost,
//! and nothing is posted twice.

use testkit::{CallFault, Slack, eventually};

use super::{ENDLESS, IN_STEPS, id_in, posted, serve, status, working};

#[test]
fn events_during_a_slack_outage_are_reported_afterwards() {
    let slack = Slack::start();
    let sandbox = working(&slack, IN_STEPS);
    let go = sandbox.gate("go");
    let serve = serve(&sandbox, &slack);
    let asked = slack.mention("U1", "C1", None, "start Mend it.");
    let first = status(&slack, "the loop", |said| said.button().is_some());
    let id = id_in(&first);
    slack.set_down(true);
    for _ in 0..3 {
        go.let_one_pass();
    }
    sandbox.wait_for_status(&id, "completed");
    slack.wait_for_turned_away(4);
    slack.set_down(false);
    let end = format!(":large_yellow_circle: Loop `{id}` · [████████░░] · 3/4 · completed");
    let last = status(&slack, "the end", |said| said.text.starts_with(&end));
    assert_eq!(last.ts, first.ts);
    slack.wait_for("the notes", |said| said.text.starts_with(":notebook:"));
    let reactions = slack.message(&asked).reactions;
    assert!(reactions.iter().eq(["large_yellow_circle"]), "{reactions:?}");
    assert_eq!(posted(&slack).len(), 2);
    assert!(
        serve.stderr().contains("Slack: ") && serve.stderr().contains("it is reported later"),
        "{}",
        serve.stderr()
    );
    // It receives events again, too.
    slack.wait_for_listener();
    slack.command("U1", "C1", "list");
    slack.wait_for_told("U1", "No loop is at work.");
}

#[test]
fn a_slack_rate_limit_is_respected_and_the_last_state_is_sent() {
    let slack = Slack::start();
    let sandbox = working(&slack, IN_STEPS);
    let go = sandbox.gate("go");
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Mend it.");
    status(&slack, "the loop", |said| said.button().is_some());
    slack.wait_for("the hourglass", |said| said.reactions.contains("hourglass_flowing_sand"));
    let edits = slack.calls("chat.update").len();
    slack.mood("chat.update", CallFault::Limit(3));
    for _ in 0..3 {
        go.let_one_pass();
    }
    status(&slack, "the end", |said| said.text.contains("· 3/4 · completed"));
    let calls = slack.calls("chat.update");
    let limited = &calls[edits];
    let next = &calls[edits + 1];
    assert!(!limited.ok && next.at.duration_since(limited.at).as_secs_f32() > 2.9, "{calls:#?}");
    assert!(calls.len() <= edits + 3, "edits that would not have been seen are omitted: {calls:#?}");
}

#[test]
fn a_slack_message_with_a_lost_response_is_not_sent_again() {
    let slack = Slack::start();
    let sandbox = working(&slack, "step; echo '<promise>COMPLETE</promise>'");
    slack.mood("chat.postMessage", CallFault::HangUpBehind);
    slack.mood("chat.postMessage", CallFault::HangUpBehind);
    slack.mood("chat.update", CallFault::Broken);
    slack.mood("reactions.add", CallFault::HangUpBehind);
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Mend it.");
    status(&slack, "the end", |said| said.text.contains("· completed"));
    eventually("all is told", || (slack.calls("conversations.replies").len() == 1).then_some(()));
    slack.wait_for("the notes", |said| said.text.starts_with(":notebook:"));
    assert_eq!(posted(&slack).len(), 2, "{:#?}", posted(&slack));
    assert_eq!(slack.calls("chat.postMessage").len(), 2);
}

#[test]
fn a_serve_that_is_killed_is_as_if_it_had_not_been() {
    let slack = Slack::start();
    let sandbox = working(&slack, IN_STEPS);
    let go = sandbox.gate("go");
    let first = serve(&sandbox, &slack);
    // The message is posted, and the answer is lost; then the server is killed.
    slack.mood("chat.postMessage", CallFault::HangUpBehind);
    let asked = slack.mention("U1", "C1", None, "start Mend it.");
    let id = id_in(&status(&slack, "the loop", |_| true));
    first.kill();
    slack.drop_socket();
    go.let_one_pass();
    go.let_one_pass();
    let second = serve(&sandbox, &slack);
    status(&slack, "two of four", |said| said.text.contains("· 2/4 · running") && said.button().is_some());
    second.kill();
    slack.drop_socket();
    go.let_one_pass();
    sandbox.wait_for_status(&id, "completed");
    let third = serve(&sandbox, &slack);
    status(&slack, "the end", |said| said.text.contains("· 3/4 · completed"));
    slack.wait_for("the notes", |said| said.text.starts_with(":notebook:"));
    slack.wait_for("its sign", |said| said.ts == asked && said.reactions.iter().eq(["large_yellow_circle"]));
    assert_eq!(posted(&slack).len(), 2, "{:#?}", posted(&slack));
    third.kill();
    slack.drop_socket();
    // Nothing is owed any more.
    let (edits, posts) = (slack.calls("chat.update").len(), slack.calls("chat.postMessage").len());
    let _fourth = serve(&sandbox, &slack);
    slack.command("U1", "C1", "list");
    slack.wait_for_told("U1", "No loop is at work.");
    assert_eq!((slack.calls("chat.update").len(), slack.calls("chat.postMessage").len()), (edits, posts));
}

#[test]
fn an_acknowledged_slack_command_is_done_once_by_the_next_server() {
    let slack = Slack::start();
    let sandbox = working(&slack, ENDLESS);
    let first = serve(&sandbox, &slack);
    let command = slack.command("U1", "C1", "start Sleep.");
    slack.wait_for_acknowledged(&command, 1);
    first.kill();
    slack.drop_socket();
    let _second = serve(&sandbox, &slack);
    let shown = status(&slack, "the loop", |said| said.button().is_some());
    // Slack has no acknowledgement.
    slack.send_frame(&command.to_string());
    slack.wait_for_acknowledged(&command, 2);
    slack.command("U1", "C1", "list");
    let listed = slack.wait_for_told("U1", "· running ·");
    assert_eq!(listed.lines().count(), 1, "{listed}");
    slack.press("U2", &shown);
    sandbox.wait_for_status(&id_in(&shown), "cancelled");
    assert_eq!(sandbox.refrain(&["list", "--json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_continued_loop_is_reported_in_its_first_message() {
    let slack = Slack::start();
    let sandbox = working(
        &slack,
        "step; echo $REFRAIN_ITERATION > work.txt; [ $REFRAIN_ITERATION = 6 ] && echo '<promise>COMPLETE</promise>'; true",
    );
    let _serve = serve(&sandbox, &slack);
    let asked = slack.mention("U1", "C1", None, "start Mend it.");
    let capped = status(&slack, "the cap", |said| said.text.contains("· 4/4 · iteration-cap"));
    slack.wait_for("its sign", |said| said.ts == asked && said.reactions.contains("warning"));
    slack.wait_for("the notes", |said| said.text.contains("step 4 of"));
    sandbox.refrain(&["resume", &id_in(&capped), "-m", "8", "--detach"]).with_code(0);
    let done = status(&slack, "the end", |said| said.text.contains("· 6/8 · completed"));
    assert_eq!(done.ts, capped.ts);
    slack.wait_for("the notes again", |said| said.text.contains("step 6 of"));
    slack.wait_for("its sign", |said| said.ts == asked && said.reactions.iter().eq(["large_yellow_circle"]));
}
