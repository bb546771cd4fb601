//! ntfy: a loop that waits sends a code to a topic, and a reply with that code answers or approves.

use std::fs;

use serde_json::json;
use testkit::{Ntfy, Sandbox, Session, eventually};

use crate::sandbox;

/// A sandbox that notifies one topic of this server and reads replies from another.
fn connected(ntfy: &Ntfy) -> Sandbox {
    let sandbox = sandbox();
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    let (out, back) = (ntfy.topic("out"), ntfy.topic("back"));
    testkit::write(
        &config.join("config.toml"),
        format!("[notify]\nntfy = \"{out}\"\nntfy-replies = \"{back}\"\n"),
    );
    sandbox
}

fn serve(sandbox: &Sandbox, ntfy: &Ntfy) -> Session {
    let session = sandbox.spawn(&["serve", "--port", "0"]);
    ntfy.wait_for_follower();
    session
}

/// The code in a message.
fn code(message: &str) -> String {
    let (_, rest) = message.rsplit_once("send ").unwrap_or_else(|| panic!("{message}"));
    rest.split(' ').next().unwrap().to_owned()
}

#[track_caller]
fn says(serve: &Session, part: &str) {
    eventually(&format!("serve says {part}"), || serve.stderr().contains(part).then_some(()));
}

#[test]
fn a_reply_with_its_code_approves_one_tree_once() {
    let ntfy = Ntfy::start();
    let sandbox = connected(&ntfy);
    let agent = sandbox.agent("agent", "echo line >> work.txt\necho '<promise>COMPLETE</promise>'");
    let gate = ["--require-approval", "--gate", "test -f work.txt"];
    let start = [&["start", "--command", &agent, "--name", "job", "-q"], &gate[..], &["Write it."]].concat();
    sandbox.refrain(&start).with_code(14);
    let first = ntfy.wait_for("out", 1).remove(0);
    assert_eq!(first.title, "job needs you (project)");
    let wrong = code(&first.message);
    let button = format!("http, Approve, {}, method=POST, body={wrong}, clear=true", ntfy.topic("back"));
    assert_eq!(first.actions, button);
    // It waits with another tree by now.
    sandbox.refrain(&["resume", "job", "-q"]).with_code(14);
    let right = code(&ntfy.wait_for("out", 2)[1].message);
    assert_ne!(wrong, right);

    let serve = serve(&sandbox, &ntfy);
    for text in [wrong.as_str(), "yes", "", &format!("x{right}"), &format!("\u{1b}[2J{right}")] {
        ntfy.publish("back", text);
    }
    says(&serve, "no loop waits with the code of");
    ntfy.publish("back", &format!("{right} but with tests"));
    says(&serve, "job waits for approval: accepted: its code alone");
    assert_eq!(sandbox.status("job")["status"], "blocked");
    // A message that came while the connection was down is read, too.
    ntfy.cut();
    ntfy.publish("back", &format!("{right}\n"));
    says(&serve, "ntfy: job has its reply");
    sandbox.wait_for_status("job", "completed");
    let status = sandbox.status("job");
    assert_eq!((&status["approval"]["state"], &status["verified"]), (&json!("given"), &json!(true)));
    ntfy.publish("back", &right);
    says(&serve, &format!("{right:?}"));
    assert!(!serve.stderr().contains('\u{1b}'), "{:?}", serve.stderr());
    serve.kill();
    sandbox.no_process_is_left();
}

#[test]
fn a_reply_with_its_code_answers_a_question() {
    let ntfy = Ntfy::start();
    let sandbox = connected(&ntfy);
    let asks =
        "sed -i '/^question:/d; s/^status:.*/status: blocked\\nquestion: A or B?/' \"$REFRAIN_STATE_FILE\"";
    let script = format!(
        "printf '%s' \"$1\" > $NOTES/told\ngrep -q 'Take B, please' $NOTES/told && echo '<promise>COMPLETE</promise>' && exit\n{asks}"
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-q", "Choose."]).with_code(14);
    let message = ntfy.wait_for("out", 1).remove(0).message;
    assert!(message.contains("A or B?") && message.contains("to answer: send "), "{message}");
    let code = code(&message);
    // Before the server is there.
    ntfy.publish("back", &format!("{code} Take B, please."));
    let serve = serve(&sandbox, &ntfy);
    sandbox.wait_for_status("job", "completed");
    says(&serve, "ntfy: job has its reply");
    assert!(sandbox.note("told").contains("Take B, please."));
}
