//! Loops that an agent's own session drives: `tick` for any agent that can run a command, `hook` for those that have hooks.

use serde_json::json;
use testkit::{Sandbox, Session};

use crate::sandbox;

/// A loop in its first turn. Its gate waits in `$GATES/slow` once there is a file `claimed`, which is there.
fn begin(sandbox: &Sandbox, slow: &std::path::Path) {
    let gate = format!("slow=test ! -e claimed || read -r _ < {}", slow.display());
    let words = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "job"];
    sandbox.refrain(&[&words[..], &["--args", "Make it.", "--gate", &gate]].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    testkit::write(&sandbox.project().join("claimed"), "");
}

/// The hook at the end of a turn with a claim, which records that and then waits for the gate.
fn claim(sandbox: &Sandbox) -> Session {
    let input = json!({
        "session_id": "s", "cwd": sandbox.project(), "hook_event_name": "Stop",
        "last_assistant_message": "<promise>COMPLETE</promise>",
    });
    let asked = sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(input.to_string()).spawn();
    sandbox.wait_for_event("job", "attempt.finished");
    asked
}

/// The session may stop, and its message names how the loop ended.
#[track_caller]
fn is_released(asked: Session) {
    let answer = asked.wait().with_code(0).json();
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["systemMessage"]);
    assert!(answer["systemMessage"].is_string(), "{answer}");
}

#[test]
fn a_proof_that_takes_long_is_held_for() {
    let sandbox = sandbox();
    let gate = sandbox.gate("slow");
    begin(&sandbox, gate.path());
    let asked = claim(&sandbox);
    let held = sandbox.spawn(&["tick", "hold", "job"]);
    gate.let_one_pass();
    let held = held.wait();
    assert!(held.with_code(0).stdout.starts_with("completed: "), "it is over, and proven");
    is_released(asked);
    sandbox.refrain(&["tick", "hold", "job"]).with_code(3);
    let logs = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    assert!(logs.contains("== iteration 1\n<promise>COMPLETE</promise>\n"), "{logs}");
}

#[test]
fn a_call_starts_no_thread_and_so_no_runtime() {
    let sandbox = sandbox();
    let gate = sandbox.gate("slow");
    begin(&sandbox, gate.path());
    // The hook itself records the end of the turn, without another process.
    let asked = claim(&sandbox);
    let threads = std::fs::read_dir(format!("/proc/{}/task", asked.pid())).unwrap().count();
    gate.let_one_pass();
    assert_eq!(threads, 1);
    is_released(asked);
}

#[test]
fn a_loop_that_a_runner_drove_has_no_turn_that_tick_could_end() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up\nread -r _ < $GATES/go");
    let runner = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    let told = || ["advance", "hold"].map(|verb| sandbox.refrain(&["tick", verb, "job"]).code);
    assert_eq!(told(), [3, 3], "it is a runner's");
    runner.kill();
    sandbox.wait_for_status("job", "crashed");
    assert_eq!(told(), [3, 3], "and stands still");
    sandbox.refrain(&["tick", "finish", "job", "completed"]).with_code(3);
    assert_eq!(sandbox.status("job")["charged"], 0, "nothing was counted");
    drop(gate);
}
#[test]
fn each_of_two_calls_at_once_gets_an_answer() {
    let sandbox = sandbox();
    let words = ["--name", "job", "--args", "Make it.", "--max", "60", "--stuck-threshold", "50"];
    sandbox.refrain(&[&["tick", "begin", "/refrain:loop"][..], &words].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let mut counted = 1;
    for _ in 0..5 {
        let calls: Vec<_> = (0..4).map(|_| sandbox.spawn(&["tick", "advance", "job"])).collect();
        for call in calls {
            let run = call.wait();
            match run.code {
                0 => {
                    counted += 1;
                    assert!(run.stdout.starts_with("[loop job iteration "), "{run:?}");
                }
                _ => {
                    let refused = run.with_code(1);
                    assert_eq!(refused.stdout, "");
                    let told = "another call ended this turn of job first; its next is under way: [loop job";
                    assert!(refused.stderr.contains(told), "{refused:?}");
                }
            }
        }
    }
    assert_eq!(sandbox.status("job")["iteration"], counted);
    sandbox.refrain(&["tick", "finish", "job", "cancelled"]).with_code(0);
}
