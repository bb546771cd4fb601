//! Processes that are stopped (SIGSTOP): a loop's supervisor, which must not hold up anything, and its runner, which
//! every surface reports as stopped.

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, Signal, eventually, signal_process};

use crate::proof::red_team::has_programs;
use crate::{CLAIM, sandbox};

/// Starts a loop with this agent and these options.
fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["start", "--command", agent, "--name", "job", "--prompt", "p"], more].concat()
}

/// The supervisor of the loop, which is the oldest: a commit with hooks has one of its own.
fn keeper(sandbox: &Sandbox) -> i32 {
    let found = sandbox.processes_named("refrain-keeper");
    found.into_iter().min().unwrap_or_else(|| panic!("{:#?}", sandbox.survivors()))
}

/// An agent that stops its supervisor as often as that is continued, and heeds no signal. It begins after its start is recorded:
/// a supervisor that is stopped before it reports the start has lost the attempt.
const HOSTILE: &str = r#"trap '' INT TERM
until grep -q attempt.spawned "$REFRAIN_PROJECT/.git/refrain/loops/job/journal.jsonl"; do :; done
echo up > $NOTES/up
while :; do kill -STOP $PPID; done"#;

#[test]
fn an_agent_that_stops_its_supervisor_ends_at_its_time_limit() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "kill -STOP $PPID; sleep 1000");
    sandbox.refrain(&start(&agent, &["--timeout", "300ms", "-m", "1"])).with_code(10);
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    let found = (&status["charged"], &status["iterations"][0]["outcome"]);
    assert_eq!(found, (&json!(1), &json!("time-limit")));
}

#[test]
fn an_agent_that_stops_its_supervisor_again_and_again_is_killed_after_its_stop_sequence() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", HOSTILE);
    let limits = ["--timeout", "300ms", "--timeout-grace", "100ms", "-m", "1"];
    sandbox.refrain(&start(&agent, &limits)).with_code(10);
    sandbox.no_process_is_left();
    let iteration = &sandbox.status("job")["iterations"][0];
    assert_eq!((&iteration["outcome"], &iteration["signal"]), (&json!("time-limit"), &json!(9)));
}

/// The agent's process is the only one that can wait for a supervisor that it traces, even when that is killed. With
/// `PTRACE_O_TRACEEXIT` the supervisor cannot even die before it. Only root may trace a supervisor; another user is refused, and the
/// agent then ends as any other.
#[rstest]
#[case::attached("trace(16, pid, 0, 0)")]
#[case::held_at_its_end("trace(0x4206, pid, 0, ctypes.c_void_p(0x40)); trace(0x4207, pid, 0, 0)")]
fn an_agent_that_traces_its_supervisor_ends_at_its_time_limit(#[case] calls: &str) {
    if !has_programs("ptrace", &["python3"]) {
        return;
    }
    let sandbox = sandbox();
    let script = format!(
        r#"until grep -q attempt.spawned "$REFRAIN_PROJECT/.git/refrain/loops/job/journal.jsonl"; do :; done
exec python3 -c 'import ctypes, os, time
trace, pid = ctypes.CDLL(None).ptrace, os.getppid()
{calls}
time.sleep(1000)'"#
    );
    let agent = sandbox.agent("agent", &script);
    let limits = ["--timeout", "300ms", "--timeout-grace", "100ms", "-m", "1"];
    sandbox.refrain(&start(&agent, &limits)).with_code(10);
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    let found = (&status["charged"], &status["iterations"][0]["outcome"]);
    assert_eq!(found, (&json!(1), &json!("time-limit")));
}

/// To the system such a process looks as dead as one that its parent has not asked for yet, but its other threads go on.
#[test]
fn a_process_whose_first_thread_has_ended_is_ended_with_its_agent() {
    if !has_programs("exit of a thread", &["python3"]) {
        return;
    }
    let sandbox = sandbox();
    let script = format!(
        r#"python3 -c 'import ctypes, os, platform, sys, threading, time
if os.fork(): os._exit(0)
os.setsid()
def stay():
    while " Z " not in open("/proc/self/stat").read(): pass
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(1000)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({{"x86_64": 60, "aarch64": 93}}[platform.machine()], 0)' $NOTES/left
until test -s $NOTES/left; do :; done
{CLAIM}"#
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&start(&agent, &["-m", "1"])).with_code(0);
    let left = std::path::Path::new("/proc").join(sandbox.note("left").trim());
    eventually("it is gone", || (!left.exists()).then_some(()));
    sandbox.no_process_is_left();
}

#[test]
fn a_second_signal_or_cancel_now_kills_it_at_once() {
    for (ask, code) in [("signal", 16), ("cancel", 15)] {
        let sandbox = sandbox();
        let agent = sandbox.agent("agent", HOSTILE);
        let session = sandbox.spawn(&start(&agent, &[]));
        sandbox.wait_for_note("up");
        session.signal(Signal::TERM);
        sandbox.wait_for_event("job", "attempt.stop-requested");
        match ask {
            "signal" => session.signal(Signal::TERM),
            _ => drop(sandbox.refrain(&["cancel", "job", "--now"]).with_code(0)),
        }
        session.wait().with_code(code);
        sandbox.no_process_is_left();
        let iteration = &sandbox.status("job")["iterations"][0];
        assert_eq!((&iteration["outcome"], &iteration["signal"]), (&json!("interrupted"), &json!(9)));
    }
}

#[test]
fn an_agent_that_stops_its_supervisor_and_ends_is_noticed() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("kill -STOP $PPID; {CLAIM}"));
    sandbox.refrain(&start(&agent, &[])).with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_gate_that_stops_its_supervisor_ends_at_its_time_limit() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let gate = "stops=kill -STOP $PPID; sleep 1000; true";
    let run = sandbox.refrain(&start(&agent, &["--gate", gate, "--gate-timeout", "300ms", "-m", "1"]));
    assert_eq!(run.with_code(10).stderr, "");
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    assert_eq!(status["charged"], 1, "{status:#}");
    assert!(status.to_string().contains("it took longer than it may"), "{status:#}");
}

#[test]
fn a_supervisor_that_is_stopped_while_nothing_runs_starts_the_next_agent_and_ends() {
    let sandbox = sandbox();
    let gate = sandbox.gate("hook");
    let hook = sandbox.agent("hook", "echo x >> $NOTES/hook; read -r _ < $GATES/hook");
    std::fs::rename(hook, sandbox.project().join(".git/hooks/pre-commit")).unwrap();
    let agent = sandbox.agent("agent", "echo $REFRAIN_ITERATION > work.txt");
    let session = sandbox.spawn(&start(&agent, &["--auto-commit", "-m", "2"]));
    for commits in ["x\n", "x\nx\n"] {
        testkit::eventually("git commits", || (sandbox.note("hook") == commits).then_some(()));
        signal_process(keeper(&sandbox), Signal::STOP);
        gate.let_one_pass();
    }
    session.wait().with_code(10);
    sandbox.no_process_is_left();
}

#[test]
fn a_stopped_supervisor_does_not_outlive_its_runner() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "kill -STOP $PPID; echo x > $NOTES/up; exec env -i sleep 1000");
    let session = sandbox.spawn(&start(&agent, &[]));
    sandbox.wait_for_note("up");
    assert!(keeper(&sandbox) > 0);
    session.kill();
    sandbox.no_process_is_left();
}

#[test]
fn every_command_reports_a_stopped_runner_and_how_to_continue_it() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("echo x > $NOTES/up; read -r _ < $GATES/go; {CLAIM}"));
    let session = sandbox.spawn(&start(&agent, &[]));
    sandbox.wait_for_note("up");
    assert_eq!(sandbox.status("job")["runner"]["stopped"], json!(null), "only where it is");
    session.signal(Signal::STOP);
    let cure = format!("kill -CONT {}", session.pid());
    let status = testkit::eventually("the runner is stopped", || {
        Some(sandbox.status("job")).filter(|status| status["runner"]["stopped"] == true)
    });
    let found = (&status["status"], &status["runner"]["alive"], &status["needs"]);
    assert_eq!(found, (&json!("running"), &json!(true), &json!(cure)));
    let text = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(
        text.contains("its runner is stopped") && text.contains(", stopped\n") && text.contains(&cure),
        "{text}"
    );

    let asks = [vec!["steer", "job", "Mind the oak."], vec!["pause", "job"], vec!["cancel", "job"]];
    let asks = asks.map(|words| (sandbox.spawn(&words), words));
    for (asker, words) in &asks {
        testkit::eventually(&format!("{words:?} says so"), || asker.stderr().contains(&cure).then_some(()));
        assert!(asker.stderr().contains("is stopped"), "{}", asker.stderr());
    }
    session.signal(Signal::CONT);
    for (asker, _) in asks {
        asker.wait().with_code(0);
    }
    gate.let_one_pass();
    session.wait().with_code(15);
}
