//! Loops that are about a plan's task, driven through the library: what ends them besides the promise, and the first
//! part of their agents' prompt.

use refrain_core::event::{BlockReason, ClaimSource, End};
use refrain_core::plan::{TaskRef, task_loop};
use refrain_core::{LoopId, LoopState};
use refrain_engine::{Service, Signals};
use testkit::Sandbox;

use crate::commits::hosted::{host, spec, utf8};
use crate::sandbox;

/// Drives the loop of task 2 to its end; its agent runs this script, and `gate` decides.
fn drive(sandbox: &Sandbox, script: &str, prompt: &str, gate: &str) -> LoopState {
    let host = host(sandbox);
    let common = spec(sandbox, "common", sandbox.agent("worker", script));
    let title = "Lay the floor".to_owned();
    let (plan, id) = (LoopId::derived("house", 0), "2".parse().unwrap());
    let task = TaskRef { plan, tag: "house".into(), id, title, round: 1 };
    let spec = task_loop(common, task, prompt.to_owned(), &[gate.to_owned()]);
    let id = spec.id.clone();
    let service = Service::open(&utf8(&sandbox.project()), host.clone()).unwrap();
    let runner = service.start(spec, Some(id)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(runner.drive(&host, Signals::None, || {})).unwrap()
}

fn end(state: &LoopState) -> Option<End> {
    state.ended.map(|ended| ended.end)
}

#[test]
fn an_agent_that_gives_up_ends_its_loop_and_its_work_is_kept() {
    let sandbox = sandbox();
    let script = "echo half > floor\necho 'I tried.'\necho 'TASK_BLOCKED: there is no oak'";
    let state = drive(&sandbox, script, "Lay it.", "test -f done");
    assert_eq!(end(&state), Some(End::Blocked { why: BlockReason::GaveUp }));
    assert_eq!((state.attempts.len(), state.given_up.as_deref()), (1, Some("there is no oak")));
    let id = state.spec.id.as_str();
    let status = sandbox.status(id);
    assert_eq!((status["kind"].as_str(), status["status"].as_str()), (Some("task"), Some("blocked")));
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the agent gave the task up: there is no oak; its work is on branch "),
        "{reason}"
    );
    let branch = reason.rsplit(' ').next().unwrap();
    assert_eq!(sandbox.git(&["show", &format!("{branch}:floor")]), "half\n");
    sandbox.refrain(&["verify", id]).with_code(0);
}

#[test]
fn work_of_a_silent_agent_is_done_once_the_gates_pass() {
    let sandbox = sandbox();
    // Once it does nothing, once too little, then enough.
    let script =
        "case $REFRAIN_ITERATION in 1) ;; 2) echo half > floor;; *) echo whole > floor;; esac\necho ok";
    let state = drive(&sandbox, script, "Lay it.", "grep -q whole floor");
    assert_eq!(end(&state), Some(End::Completed { claim: ClaimSource::Result }));
    let claims: Vec<_> = state.attempts.iter().map(|attempt| attempt.claim).collect();
    assert_eq!(claims, [None, Some(ClaimSource::Result), Some(ClaimSource::Result)]);
    assert_eq!(sandbox.git(&["show", "HEAD:floor"]), "whole\n");
    let status = sandbox.status(state.spec.id.as_str());
    assert_eq!(
        (status["verified"].as_bool(), status["claim"]["source"].as_str()),
        (Some(true), Some("result"))
    );
}
