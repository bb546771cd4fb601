//! A runner that dies between its agent's last event and its agent's exit: paid work is not repeated.

use serde_json::json;
use testkit::{Agent, Signal, Turn, eventually};

use crate::bench::{Bench, CLAIM, attempts, used};

const fn last_event(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude | Agent::Gemini => "\"type\":\"result\"",
        Agent::Codex => "turn.completed",
        Agent::OpenCode => "step_finish",
    }
}

/// A loop that was killed when its agent had claimed, but was not yet seen to end; resumed to its completion.
fn killed_after_the_claim(agent: Agent) -> (Bench, serde_json::Value) {
    let mut bench = Bench::new(agent, [Turn::say(CLAIM), Turn::say(CLAIM)]);
    let gate = bench.sandbox.gate("end");
    let over = bench.sandbox.root().join("notes/over");
    // The program itself leaves as soon as it has spoken, so its end is held up by a script of its name around it.
    let (program, over, end) = (bench.real.program.display(), over.display(), gate.path().display());
    let script = format!("\"{program}\" \"$@\"\ncode=$?\necho over >> {over}\nread -r _ < {end}\nexit $code");
    let held = bench.sandbox.agent(agent.name(), &script);
    let folder = held.strip_suffix(&format!("/{}", agent.name())).expect("it lies in a folder");
    let path = bench.real.env.iter().find(|(name, _)| name == "PATH").expect("there is a PATH");
    let path = format!("{folder}:{}", path.1);
    bench.real = bench.real.with("PATH", &path);

    let session = bench.start(&[]).spawn();
    bench.sandbox.wait_for_note("over");
    eventually("the agent's last word is kept", || {
        let kept = bench.sandbox.kept_text("job", "0001", "stream.jsonl");
        (kept.contains(last_event(agent)) && kept.ends_with('\n')).then_some(())
    });
    session.signal_group(Signal::KILL);
    session.wait().with_code(128 + 9);
    bench.sandbox.no_process_is_left();
    assert_eq!(bench.status()["status"], "crashed");
    gate.let_one_pass();
    let status = bench.completed(bench.refrain(&["resume", "job"]).spawn());
    (bench, status)
}

/// Its last event completes it: the result is taken as it was, and no agent is started again.
#[track_caller]
fn is_adopted(agent: Agent) {
    let (bench, status) = killed_after_the_claim(agent);
    assert_eq!(attempts(&status), [json!([1, 1, true, "claimed"])], "{status:#}");
    bench.asked_exactly(1);
    used(&status, agent, 1);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_is_adopted() {
    is_adopted(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_is_adopted() {
    is_adopted(Agent::Codex);
}

/// It has no last event, its end is its exit: if that was not observed, the attempt is lost, refunded and made again.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_is_not_adopted() {
    let (bench, status) = killed_after_the_claim(Agent::OpenCode);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, false, "lost"]), json!([1, 2, true, "claimed"])],
        "{status:#}"
    );
    bench.asked_exactly(2);
    assert_eq!(status["usage"]["at_least"], true, "{status:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_is_adopted() {
    is_adopted(Agent::Gemini);
}
