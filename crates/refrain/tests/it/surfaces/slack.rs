//! Loops in Slack: a real `refrain serve` talks with a Slack on loopback, as users would.

mod hostile;
mod outages;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::{CallFault, Sandbox, Session, Slack, SlackMessage};

use crate::sandbox;
use crate::surfaces::mcp;

/// A sandbox whose user listens to this Slack: U1 may start loops, U2 may stop them.
fn connected(slack: &Slack, more: &str) -> Sandbox {
    let sandbox = sandbox();
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    let settings = format!(
        "[start]\nmax-iterations = 4\n{more}\n[slack]\nchannels = [\"C1\", \"C2\"]\nmay-start = [\"U1\"]\n\
         may-stop = [\"U2\"]\nprojects = [\"{}\"]\napi-url = \"{}\"\n",
        sandbox.project().display(),
        slack.url(),
    );
    testkit::write(&config.join("config.toml"), settings);
    for (name, token) in [("slack-bot-token", Slack::BOT), ("slack-app-token", Slack::APP)] {
        let path = config.join(name);
        testkit::write(&path, format!("{token}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    sandbox
}

/// The same, with this agent; `$STEP` writes its work into its notes.
fn working(slack: &Slack, script: &str) -> Sandbox {
    let sandbox = connected(slack, "");
    let step = "step() { printf -- '---\\nloop_id: %s\\nstatus: in-progress\\n---\\n## Progress\\nstep %s of <all>\\n' \
                \"$REFRAIN_LOOP_ID\" \"$REFRAIN_ITERATION\" > \"$REFRAIN_STATE_FILE\"; }";
    let agent = sandbox.agent("agent", &format!("{step}\n{script}"));
    let path = sandbox.root().join("home/config/refrain/config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    testkit::write(&path, settings.replace("[start]\n", &format!("[start]\ncommand = \"{agent}\"\n")));
    sandbox
}

/// An agent that waits to be let on in each iteration, and is done in the third.
const IN_STEPS: &str =
    "read -r _ < $GATES/go\nstep\n[ $REFRAIN_ITERATION = 3 ] && echo '<promise>COMPLETE</promise>'\ntrue";
/// An agent that never ends by itself.
const ENDLESS: &str = "echo up > $NOTES/up; exec sleep 1000";

fn serve(sandbox: &Sandbox, slack: &Slack) -> Session {
    let session = sandbox.spawn(&["serve", "--port", "0"]);
    slack.wait_for_listener();
    session
}

/// The status message of the only loop.
fn status(slack: &Slack, what: &str, is_it: impl Fn(&SlackMessage) -> bool) -> SlackMessage {
    slack.wait_for(what, |said| said.text.contains(": Loop `slack-") && is_it(said))
}

fn id_in(said: &SlackMessage) -> String {
    said.text.split('`').nth(1).unwrap().to_owned()
}

/// The bot's public messages.
fn posted(slack: &Slack) -> Vec<SlackMessage> {
    slack.said().into_iter().filter(|said| !said.text.contains("<@U0BOT>")).collect()
}

/// Slack refused no call.
#[track_caller]
fn nothing_was_refused(slack: &Slack) {
    for method in ["chat.postMessage", "chat.update", "reactions.add", "chat.postEphemeral"] {
        let refused: Vec<_> = slack.calls(method).into_iter().filter(|call| !call.ok).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn a_mention_starts_a_loop_that_is_reported_to_its_end() {
    let slack = Slack::start();
    let sandbox = working(&slack, IN_STEPS);
    let go = sandbox.gate("go");
    let _serve = serve(&sandbox, &slack);
    let asked = slack.mention("U1", "C1", None, "start Mend the &lt;parser&gt; &amp; go.");
    let first = status(&slack, "the loop with its button", |said| said.button().is_some());
    let id = id_in(&first);
    let announced = format!(":repeat: Loop `{id}` · up to 4 iterations\n> Mend the &lt;parser&gt; &amp; go.");
    assert_eq!((first.texts[0].as_str(), first.text.as_str()), (announced.as_str(), announced.as_str()));
    assert_eq!((first.channel.as_str(), first.thread.as_deref()), ("C1", None));
    assert_eq!(first.button().unwrap(), (format!("refrain:loop_stop:{id}"), id.clone()));
    slack.wait_for("the hourglass", |said| {
        said.ts == asked && said.reactions.contains("hourglass_flowing_sand")
    });
    assert!(sandbox.kept_text(&id, "0001", "prompt.md").starts_with("Mend the <parser> & go."));
    go.let_one_pass();
    status(&slack, "one of four", |said| {
        said.text.contains("[███░░░░░░░] · 1/4 · running") && said.button().is_some()
    });
    slack.wait_for("the arrows", |said| {
        said.ts == asked && said.reactions.iter().eq(["arrows_counterclockwise"])
    });
    go.let_one_pass();
    status(&slack, "two of four", |said| {
        said.text.contains("[█████░░░░░] · 2/4 · running") && said.button().is_some()
    });
    go.let_one_pass();
    let end = format!(":large_yellow_circle: Loop `{id}` · [████████░░] · 3/4 · completed, ◐ unverified\n");
    let last = status(&slack, "the end", |said| said.text.starts_with(&end));
    assert_eq!((last.ts.as_str(), last.blocks.len()), (first.ts.as_str(), 0), "it is one message");
    let notes = slack.wait_for("the notes", |said| said.text.starts_with(":notebook:"));
    assert_eq!(notes.text, format!(":notebook: State of loop `{id}`\n## Progress\nstep 3 of &lt;all&gt;"));
    assert_eq!(notes.thread.as_deref(), Some(last.ts.as_str()));
    let ladder = slack.message(&asked);
    assert_eq!(ladder.ladder, ["hourglass_flowing_sand", "arrows_counterclockwise", "large_yellow_circle"]);
    assert!(ladder.reactions.iter().eq(["large_yellow_circle"]));
    assert_eq!(posted(&slack).len(), 2);
    nothing_was_refused(&slack);
    sandbox.refrain(&["verify", &id]).with_code(0);
}

#[test]
fn a_slack_button_stops_a_loop_for_permitted_users() {
    let slack = Slack::start();
    let sandbox = working(&slack, ENDLESS);
    let _serve = serve(&sandbox, &slack);
    let command = slack.command("U1", "C2", "start in project Sleep well.");
    slack.wait_for_acknowledged(&command, 1);
    let first = status(&slack, "the loop with its button", |said| said.button().is_some());
    let id = id_in(&first);
    assert_eq!(first.channel, "C2");
    sandbox.wait_for_note("up");
    let refused = slack.press("U1", &first);
    slack.wait_for_acknowledged(&refused, 1);
    slack.wait_for_told("U1", "You may not stop loops here");
    assert_eq!(sandbox.status(&id)["status"], "running", "nothing was done");
    // A command has no message, so the loop's own message gets the reactions.
    slack.wait_for("the hourglass", |said| said.reactions.contains("hourglass_flowing_sand"));
    let pressed = slack.press("U2", &first);
    slack.wait_for_acknowledged(&pressed, 1);
    let end = format!(":octagonal_sign: Loop `{id}` · [░░░░░░░░░░] · 0/4 · cancelled\n");
    let last = status(&slack, "the end", |said| said.text.starts_with(&end));
    assert_eq!(sandbox.status(&id)["status"], "cancelled");
    slack.wait_for("its sign", |said| said.ts == last.ts && said.reactions.iter().eq(["octagonal_sign"]));
    // Pressed again, and sent again: it had stopped.
    slack.press("U2", &first);
    slack.send_frame(&pressed.to_string());
    slack.wait_for_acknowledged(&pressed, 2);
    let asked = sandbox.event_names(&id).iter().filter(|name| *name == "asked").count();
    assert_eq!(asked, 1);
    nothing_was_refused(&slack);
    sandbox.wait_for_status(&id, "cancelled");
}

#[test]
fn slack_commands_are_answered_to_their_author() {
    let slack = Slack::start();
    let sandbox = working(&slack, ENDLESS);
    let _serve = serve(&sandbox, &slack);
    slack.command("U1", "C1", "list");
    slack.wait_for_told("U1", "No loop is at work.");
    slack.mention("U1", "C1", None, "start Sleep *well*.");
    let first = status(&slack, "the loop", |said| said.button().is_some());
    let id = id_in(&first);
    sandbox.wait_for_note("up");
    slack.command("U2", "C1", "list");
    slack.wait_for_told("U2", &format!("`{id}` · running · 0/4 · Sleep *well*."));
    slack.command("U2", "C1", &format!("status `{id}`"));
    slack.wait_for_told("U2", "\n");
    slack.command("U1", "C1", &format!("steer {id} use rstest"));
    slack.wait_for_told("U1", "gets it with its next iteration");
    slack.command("U9", "C1", "help");
    slack.wait_for_told("U9", "`start [in PROJECT] GOAL`");
    slack.command("U1", "C1", "dance");
    slack.wait_for_told("U1", "`dance` is nothing that I know.");
    slack.command("U1", "C1", "start in elsewhere Mend it.");
    slack.wait_for_told("U1", "project elsewhere: accepted: project");
    for (words, refused) in [
        ("status gone", "no loop gone in "),
        ("status gone", "; `list` shows which there are"),
        (&format!("answer {id} Take B."), "; `status ID` says how it stands"),
        ("status Bad", "Refused: loop Bad: "),
    ] {
        slack.command("U1", "C1", words);
        slack.wait_for_told("U1", refused);
    }
    for told in slack.told("U1") {
        assert!(!told.contains("loop_list") && !told.contains("refrain "), "{told}");
    }
    slack.command("U2", "C1", &format!("stop {id}"));
    slack.wait_for_told("U2", "is asked to stop");
    sandbox.wait_for_status(&id, "cancelled");
    slack.command("U2", "C1", &format!("stop {id}"));
    slack.wait_for_told("U2", "had stopped already: cancelled");
    nothing_was_refused(&slack);
}

#[test]
fn a_question_is_answered_in_slack() {
    let slack = Slack::start();
    let asks =
        "sed -i '/^question:/d; s/^status:.*/status: blocked\\nquestion: A or B?/' \"$REFRAIN_STATE_FILE\"";
    let script = format!(
        "echo \"$*\" | grep -q 'Take B, please' && echo '<promise>COMPLETE</promise>' && exit\n{asks}"
    );
    let sandbox = working(&slack, &script);
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Choose.");
    let asked = status(&slack, "the question", |said| said.text.contains("A or B?"));
    let id = id_in(&asked);
    slack.command("U2", "C1", &format!("answer {id} Take A."));
    slack.wait_for_told("U2", "You may not answer loops here");
    slack.command("U1", "C1", &format!("answer {id} Take B, please."));
    slack.wait_for_told("U1", "continues with your answer");
    sandbox.wait_for_status(&id, "completed");
    nothing_was_refused(&slack);
}

#[test]
fn work_is_approved_in_slack_by_its_tree_alone() {
    let slack = Slack::start();
    let sandbox = working(&slack, "echo line >> work.txt\necho '<promise>COMPLETE</promise>'");
    let path = sandbox.root().join("home/config/refrain/config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    testkit::write(&path, settings.replace("[start]\n", "[start]\nrequire-approval = true\n"));
    let _serve = serve(&sandbox, &slack);
    slack.mention("U1", "C1", None, "start Write it.");
    let waits = status(&slack, "what waits", |said| said.text.contains("here: approve slack-"));
    let id = id_in(&waits);
    let tree = sandbox.status(&id)["approval"]["tree"].as_str().unwrap()[..10].to_owned();
    assert!(waits.text.contains(&format!("here: approve {id} {tree}")), "{}", waits.text);
    for (user, words, refused) in [
        ("U2", format!("approve {id} {tree}"), "You may not approve work here".to_owned()),
        ("U9", format!("approve {id} {tree}"), "You may not approve work here".to_owned()),
        ("U1", format!("approve {id} 0123456789"), "Refused:".to_owned()),
        ("U1", format!("approve {id} ../x"), "accepted: a tree's name".to_owned()),
        ("U1", format!("approve {id}"), "nothing that I know".to_owned()),
    ] {
        slack.command(user, "C1", &words);
        slack.wait_for_told(user, &refused);
    }
    assert_eq!(sandbox.status(&id)["status"], "blocked", "nothing was done");
    slack.command("U1", "C1", &format!("approve {id} {tree}"));
    slack.wait_for_told("U1", &format!("Approved: loop `{id}` finishes."));
    sandbox.wait_for_status(&id, "completed");
    assert_eq!(sandbox.status(&id)["approval"]["state"], "given");
    nothing_was_refused(&slack);
}

#[test]
fn long_notes_become_a_file_or_are_cut_where_there_can_be_none() {
    let slack = Slack::start();
    let long = "step; i=0; while [ $i -lt 300 ]; do echo 'a line & another' >> $REFRAIN_STATE_FILE; i=$((i+1)); done\n\
                echo '<promise>COMPLETE</promise>'";
    let sandbox = working(&slack, long);
    let _serve = serve(&sandbox, &slack);
    let first = slack.mention("U1", "C1", None, "go away");
    slack.wait_for_told("U1", "nothing that I know");
    slack.mention("U1", "C1", Some(&first), "start Write a lot.");
    let file = slack.wait_for("a file", |said| !said.files.is_empty());
    let (name, content) = &file.files[0];
    assert!(name.starts_with("slack-") && name.ends_with(".md"), "{name}");
    assert!(
        content.starts_with("## Progress\nstep 1 of <all>\n") && content.lines().count() == 302,
        "{content}"
    );
    assert!(
        file.text.starts_with(":notebook: State of loop `slack-") && file.text.len() < 400,
        "{}",
        file.text
    );
    assert_eq!(file.thread.as_deref(), Some(first.as_str()), "it is the thread that it was asked for in");
    // After any number of tries.
    for _ in 0..3 {
        slack.mood("files.getUploadURLExternal", CallFault::Refuse("missing_scope"));
    }
    slack.mention("U1", "C2", None, "start Write a lot.");
    let cut =
        slack.wait_for("the beginning", |said| said.text.starts_with(":notebook:") && said.channel == "C2");
    assert!(cut.files.is_empty() && cut.text.ends_with('…') && cut.text.contains("a line &amp; another"));
    nothing_was_refused(&slack);
}

#[test]
fn ends_of_loops_from_elsewhere_are_reported_on_request() {
    let slack = Slack::start();
    let sandbox = working(&slack, "echo '<promise>COMPLETE</promise>'");
    let before = ["start", "--name", "before", "--quiet", "p"];
    sandbox.refrain(&before).with_code(0);
    let path = sandbox.root().join("home/config/refrain/config.toml");
    testkit::write(&path, fs::read_to_string(&path).unwrap() + "notify = true\n");
    let _serve = serve(&sandbox, &slack);
    sandbox.refrain(&["start", "--name", "done", "--quiet", "p"]).with_code(0);
    let fails = sandbox.agent("fails", "exit 1");
    sandbox.refrain(&["start", "--command", &fails, "--name", "weak", "-q", "p"]).with_code(14);
    slack.wait_for("the end", |said| said.text.starts_with(":large_yellow_circle: Loop `done`"));
    let weak = slack.wait_for("what is needed", |said| said.text.contains("· blocked\n"));
    assert!(
        weak.text.contains("\n:raised_hand: ") && weak.text.contains("refrain resume weak"),
        "{}",
        weak.text
    );
    assert!(posted(&slack).iter().all(|said| said.channel == "C1" && !said.text.contains("`before`")));
}

#[test]
fn a_loop_that_an_agent_starts_is_shown_where_its_call_says() {
    let slack = Slack::start();
    let sandbox = working(&slack, "echo '<promise>COMPLETE</promise>'");
    let _serve = serve(&sandbox, &slack);
    let asked = slack.mention("U1", "C2", None, "help");
    let more = json!({ "goal": "Mend it.", "name": "job", "channel_id": "C2", "conversation_id": asked, "trigger_message_ts": asked });
    mcp::does(&sandbox, "loop_start", more);
    let end = slack.wait_for("the end", |said| said.text.starts_with(":large_yellow_circle: Loop `job`"));
    assert_eq!((end.channel.as_str(), end.thread.as_deref()), ("C2", Some(asked.as_str())));
    slack.wait_for("the reaction", |said| said.ts == asked && said.reactions.contains("large_yellow_circle"));
    let elsewhere = json!({ "goal": "Mend it.", "channel_id": "C9" });
    let refused = mcp::refuses(&sandbox, "loop_start", elsewhere);
    assert!(refused.contains("channel_id C9: accepted: those of [slack] channels: C1, C2"), "{refused}");
}

#[test]
fn a_slack_setup_error_is_reported_and_the_server_runs() {
    let slack = Slack::start();
    let sandbox = connected(&slack, "");
    let token = sandbox.root().join("home/config/refrain/slack-app-token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let says = |part: &str| {
        let session = sandbox.spawn(&["serve", "--port", "0"]);
        testkit::eventually(&format!("serve says {part:?}"), || {
            session.stderr().contains(part).then_some(())
        });
        session.kill();
    };
    says("can be read by others");
    fs::remove_file(&token).unwrap();
    says("REFRAIN_SLACK_APP_TOKEN or the file");
    let doctor = sandbox.refrain(&["doctor"]).stdout;
    assert!(doctor.contains("REFRAIN_SLACK_APP_TOKEN or the file"), "{doctor}");
    testkit::write(&token, "xoxb-exchanged");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    says("slack-app-token holds no token that begins with xapp-");
    testkit::write(&token, Slack::APP);
    let _first = serve(&sandbox, &slack);
    says("another process of this user speaks with Slack already");
    let project = sandbox.project().join("refrain.toml");
    testkit::write(&project, "[slack]\nmay-start = [\"U9\"]\n");
    sandbox.trust();
    let refused = sandbox.refrain(&["start", "--command", "true", "p"]).with_code(2);
    assert!(refused.stderr.contains("slack: it says who commands your loops"), "{}", refused.stderr);
    assert!(refused.stderr.contains("accepted only in your own /"), "{}", refused.stderr);
    assert_eq!(json!(slack.said().len()), json!(0));
}
