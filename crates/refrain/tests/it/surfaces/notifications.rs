//! Notifications that a loop ended or needs a person: on a terminal, on a desktop, by a command; and that none of them
//! can affect the loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testkit::{Sandbox, eventually};

use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, sandbox};

/// A command that notes the notification.
fn teller(sandbox: &Sandbox) -> String {
    sandbox.agent("tell", "{ echo \"$REFRAIN_NOTIFY_ID $REFRAIN_NOTIFY_STATUS\"; cat; } > $NOTES/.told; mv $NOTES/.told $NOTES/told")
}

/// A desktop: a folder with a program that shows notifications, in front of the usual path.
fn desktop(sandbox: &Sandbox, script: &str) -> String {
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("notify-send");
    testkit::write(&program, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    format!("{}:{usual}", bin.display())
}

#[test]
fn a_notify_command_runs_when_a_loop_ends_or_needs_a_person() {
    let sandbox = sandbox();
    let tell = teller(&sandbox);
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "job", "-q", "--notify-command", &tell, "p"];
    sandbox.refrain(&start).with_code(0);
    assert_eq!(
        sandbox.note("told"),
        "job completed\nRefrain loop job: ◐ unverified\nthe agent made its promise; unverified, as no gate checks it\n"
    );
    let fails = sandbox.agent("fails", "exit 1");
    sandbox
        .refrain(&["start", "--command", &fails, "--name", "weak", "-q", "--notify-command", &tell, "p"])
        .with_code(14);
    let told = sandbox.note("told");
    assert!(
        told.starts_with("weak blocked\n") && told.contains("next: ") && told.contains("refrain resume weak"),
        "{told}"
    );
}

#[test]
fn a_runner_of_its_own_tells_by_command_or_on_the_desktop() {
    let sandbox = sandbox();
    let tell = format!("{} 'two words'", teller(&sandbox));
    let path = desktop(&sandbox, "printf '%s\\n' \"$@\" > $NOTES/.shown; mv $NOTES/.shown $NOTES/shown");
    let agent = sandbox.agent("agent", CLAIM);
    let start = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "--detach",
        "--notify",
        "--notify-command",
        &tell,
        "p",
    ];
    let run = sandbox.command(&start).env("PATH", &path).run().with_code(0);
    assert!(!run.stderr.contains("notify-send"), "{}", run.stderr);
    eventually("the command was told", || sandbox.note("told").starts_with("job completed\n").then_some(()));
    assert_eq!(
        sandbox.wait_for_note("shown").lines().collect::<Vec<_>>(),
        [
            "--app-name=Refrain",
            "--",
            "Refrain loop job: ◐ unverified",
            "the agent made its promise; unverified, as no gate checks it"
        ]
    );
}

#[test]
fn a_stop_by_the_user_sends_no_notification() {
    let sandbox = sandbox();
    let tell = teller(&sandbox);
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; exec sleep 1000");
    let session =
        sandbox.spawn(&["start", "--command", &agent, "--name", "job", "-q", "--notify-command", &tell, "p"]);
    sandbox.wait_for_note("up");
    session.signal(testkit::Signal::TERM);
    session.wait().with_code(16);
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert_eq!(sandbox.note("told"), "");
}

#[test]
fn a_failing_notify_command_is_reported_once_and_changes_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    for (name, command, says) in [
        ("missing", "/no/such/program".to_owned(), "/no/such/program"),
        ("failing", sandbox.agent("failing", "printf 'no \\033[2Jroute\\n' >&2; exit 7"), "7: no route"),
    ] {
        let start = ["start", "--command", &agent, "--name", name, "--notify-command", &command, "p"];
        let run = sandbox.refrain(&start).with_code(0);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("notification") && run.stderr.contains(says), "{}", run.stderr);
        assert_eq!(sandbox.status(name)["status"], "completed");
    }
    let without = ["start", "--command", &agent, "--name", "bare", "--detach", "--notify=desktop", "p"];
    // Git is not in that PATH either, which a repository needs.
    let plain = Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"));
    let run = plain.command(&without).env("PATH", "/nowhere").run().with_code(0);
    assert!(run.stderr.contains("note: notify-send is not installed"), "{}", run.stderr);
    plain.wait_for_status("bare", "completed");
}

#[test]
fn a_terminal_shows_it_and_rings() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "job", "--notify", "p"];
    let (code, shown) = Terminal::open(&sandbox, &start, &[]).wait();
    assert_eq!(code, 0, "{shown}");
    let said = "\u{1b}]9;Refrain loop job: ◐ unverified: the agent made its promise; unverified, as no gate checks it\u{7}\u{7}";
    // The terminal that is closed echoes a line break.
    assert!(shown.trim_end().ends_with(said), "{shown:?}");
    // A log gets only the printed text.
    let run = sandbox.refrain(&["start", "--command", &agent, "--notify=terminal", "p"]).with_code(0);
    assert!(!run.stdout.contains('\u{7}') && !run.stderr.contains('\u{7}'), "{run:?}");
}
