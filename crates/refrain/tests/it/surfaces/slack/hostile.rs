//! Users without rights, forged and garbled payloads, and text that tries to be markup.

use serde_json::json;
use testkit::Slack;

use super::{ENDLESS, connected, id_in, posted, serve, status, working};

#[test]
fn an_unlisted_slack_user_can_start_and_see_nothing() {
    let slack = Slack::start();
    let sandbox = connected(&slack, "command = \"true\"");
    let _serve = serve(&sandbox, &slack);
    slack.command("U2", "C1", "start Mend it.");
    slack.wait_for_told("U2", "You may not start loops here");
    for words in ["start Mend it.", "list", "status a", "stop a", "steer a b"] {
        slack.command("U9", "C1", words);
    }
    slack.wait_for_told("U9", "You may not steer loops here");
    slack.wait_for_told("U9", "You may not look at loops here");
    slack.wait_for_told("U9", "You may not stop loops here");
    slack.mention("U1", "C3", None, "start Mend it.");
    slack.wait_for_told("U1", "Refrain takes no commands in this channel");
    // In a channel without the bot, it can still answer a command.
    slack.command("W7", "D1", "help");
    slack.wait_for_told("W7", "Refrain takes no commands in this channel");
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), json!([]));
    assert_eq!(posted(&slack).len(), 0);
    assert!(slack.calls("chat.postEphemeral").pop().is_some_and(|call| !call.ok));
}

#[test]
fn a_slack_command_out_of_bounds_is_refused_in_plain_words() {
    let slack = Slack::start();
    let sandbox = connected(&slack, "command = \"true\"");
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, &format!("start {}", "x".repeat(10_001)));
    slack.wait_for_told("U1", "Refused: goal of 10001 characters: accepted: 1 to 10000 characters");
    slack.command("U1", "C1", "start");
    slack.wait_for_told("U1", "Refused: goal is empty");
    slack.command("U2", "C1", "stop ../../etc");
    slack.wait_for_told("U2", "Refused: loop ../../etc");
    slack.command("U2", "C1", "stop nobody");
    slack.wait_for_told("U2", "Refused: no loop nobody");
    slack.command("U1", "C1", "start in ../.. Mend it.");
    slack.wait_for_told("U1", "Refused: project ../..: accepted: project");
    slack.command("U1", "C1", "<!channel> <https://evil.example|docs> @here");
    let echo = slack.wait_for_told("U1", "nothing that I know");
    assert!(echo.contains("&lt;!channel&gt;") && !echo.contains("://") && !echo.contains("@here"), "{echo}");
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), json!([]));
}

#[test]
fn forged_and_garbled_payloads_do_nothing() {
    let slack = Slack::start();
    let sandbox = working(&slack, ENDLESS);
    let mut serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Sleep.");
    let shown = status(&slack, "the loop", |said| said.button().is_some());
    let (id, elsewhere) = (id_in(&shown), slack.mention("U1", "C2", None, "help"));
    sandbox.wait_for_note("up");
    let action = format!("refrain:loop_stop:{id}");
    // Another value than its name, another message than its own, another channel, a loop that is none.
    let forged = [
        slack.press_as("U2", &shown, &action, "another"),
        slack.press_as("U2", &slack.message(&elsewhere), &action, &id),
        slack.press_as("U2", &shown, "refrain:loop_stop:nobody", "nobody"),
        slack.press_as("U2", &shown, "refrain:loop_stop:../x", "../x"),
        slack.press_as("U2", &shown, "approve", &id),
    ];
    let nothing = json!({"type": "interactive", "envelope_id": "odd", "payload": {"type": "block_actions"}});
    for frame in ["{", "", "null", "[[[[", r#"{"type": "slash_commands", "envelope_id": 7}"#, "\u{202e}\u{0}"]
    {
        slack.send_frame(frame);
    }
    slack.send_frame(&nothing.to_string());
    slack.send_frame(&"x".repeat(2 << 20));
    for envelope in forged.iter().chain([&nothing]) {
        slack.wait_for_acknowledged(envelope, 1);
    }
    slack.wait_for_told("U2", &format!("Refused: this is not the button of {id}"));
    slack.wait_for_told("U2", "Refused: no loop nobody");
    // It still listens, and the loop is at work.
    slack.command("U1", "C1", "list");
    slack.wait_for_told("U1", &format!("`{id}` · running"));
    assert!(serve.is_running() && slack.message(&shown.ts).button().is_some());
    // One start that is delivered again under another envelope is one start.
    let again = slack.command("U1", "C1", "status");
    let mut other = again.clone();
    other["envelope_id"] = json!("another");
    slack.send_frame(&other.to_string());
    slack.wait_for_acknowledged(&other, 1);
}

#[test]
fn agent_text_mentions_no_slack_user_and_contains_no_secret() {
    let slack = Slack::start();
    let script = "step; echo '<!channel> see https://evil.example/x and @here' >> $REFRAIN_STATE_FILE\n\
                  echo 'AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzq1x2y3z4w5v' >> $REFRAIN_STATE_FILE\n\
                  printf '\\033]0;title\\007end\\n' >> $REFRAIN_STATE_FILE\necho '<promise>COMPLETE</promise>'";
    let sandbox = working(&slack, script);
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Mend <!everyone> it.");
    let notes = slack.wait_for("the notes", |said| said.text.starts_with(":notebook:"));
    assert!(
        notes.text.contains("&lt;!channel&gt; see https:\u{2060}//evil.example/x and @\u{2060}here"),
        "{}",
        notes.text
    );
    assert!(!notes.text.contains("wJalrXUtnFEMI") && notes.text.contains("[redacted"), "{}", notes.text);
    assert!(notes.text.ends_with("\nend") && !notes.text.contains('\u{1b}'), "{}", notes.text);
    assert!(posted(&slack).iter().all(|said| said.texts.iter().all(|text| !text.contains("<!"))));
    for call in slack.calls("chat.postMessage") {
        assert_eq!((&call.body["parse"], &call.body["unfurl_links"]), (&json!("none"), &json!(false)));
    }
}
