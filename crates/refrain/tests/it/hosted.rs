//! Two loops driven by one process, through the library: what happens to one of them is nothing to the other.

use std::path::Path;

use camino::Utf8PathBuf;
use refrain_core::r#loop::Outcome;
use refrain_core::promise::{MatchMode, Promise, PromiseText};
use refrain_core::spec::{AgentKind, AgentSpec, Limits, PromptMode};
use refrain_core::{LoopState, Spec};
use refrain_engine::{Host, Service, Signals};
use testkit::{Sandbox, Signal, signal_process};

use crate::{CLAIM, sandbox};

pub(crate) fn utf8(path: &Path) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(path.to_owned()).unwrap()
}

pub(crate) fn host(sandbox: &Sandbox) -> Host {
    Host {
        program: env!("CARGO_BIN_EXE_refrain").into(),
        env: sandbox.env().into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        data_home: utf8(sandbox.root()).join("data"),
        state_home: utf8(sandbox.root()).join("data"),
        config_home: utf8(sandbox.root()).join("data"),
        version: "test".into(),
    }
}

pub(crate) fn spec(sandbox: &Sandbox, id: &str, program: String) -> Spec {
    let project = utf8(&sandbox.project()).canonicalize_utf8().unwrap();
    Spec {
        id: id.parse().unwrap(),
        agent: AgentSpec {
            kind: AgentKind::Generic,
            program,
            args: vec![],
            prompt_mode: PromptMode::Auto,
            env: Default::default(),
            clean_env: false,
            model: None,
            permissions: Default::default(),
            output_format: Default::default(),
            price: None,
        },
        prompt: "p".into(),
        iteration_context: true,
        promise: Some(Promise { text: PromiseText::try_new("COMPLETE").unwrap(), mode: MatchMode::Plain }),
        limits: Limits {
            max_iterations: Some(5),
            max_duration: None,
            timeout: None,
            idle_timeout: None,
            pause: None,
            max_cost: None,
            max_tokens: None,
            retry_for: None,
        },
        project: project.clone(),
        worktree: project.clone(),
        working_dir: project,
        git: Default::default(),
        gates: Vec::new(),
        protect: Default::default(),
        clean_checkout: false,
        stuck: Default::default(),
        critique: None,
        caps: Default::default(),
        keep_failed: false,
        mirrors: Vec::new(),
        task: None,
        depth: 0,
        output_cap: Spec::OUTPUT_CAP,
    }
}

/// Drives both loops to their ends on one thread.
fn drive(sandbox: &Sandbox, agents: [String; 2]) -> [LoopState; 2] {
    let host = host(sandbox);
    let service = Service::open(&utf8(&sandbox.project()), host.clone()).unwrap();
    let [a, b] = ["a", "b"].map(|id| {
        let agent = agents[usize::from(id == "b")].clone();
        service.start(spec(sandbox, id, agent), Some(id.parse().unwrap())).unwrap()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (a, b) = runtime.block_on(async {
        tokio::join!(a.drive(&host, Signals::None, || {}), b.drive(&host, Signals::None, || {}))
    });
    [a.unwrap(), b.unwrap()]
}

#[test]
fn a_keeper_that_is_killed_takes_only_its_own_loop_down() {
    let sandbox = sandbox();
    let gate = sandbox.gate("b");
    // The first attempt of `a` leaves a child without its environment in a session of its own, and tells its keeper's pid.
    let a = format!(
        "if [ \"$REFRAIN_ATTEMPT\" = 1 ]; then\n\
         setsid env -i PATH=\"$PATH\" sleep 4711 & echo $! > $NOTES/orphan\n\
         echo $PPID > $NOTES/keeper\nsleep 4711\nfi\n{CLAIM}"
    );
    let b = format!("echo $$ > $NOTES/b\nread -r _ < \"$GATES/b\"\n{CLAIM}");
    let agents = [sandbox.agent("a", &a), sandbox.agent("b", &b)];
    let [a, b] = std::thread::scope(|scope| {
        let driven = scope.spawn(|| drive(&sandbox, agents));
        sandbox.wait_for_note("b");
        sandbox.wait_for_note("orphan");
        let keeper: i32 = sandbox.wait_for_note("keeper").trim().parse().unwrap();
        signal_process(keeper, Signal::KILL);
        sandbox.wait_for_status("a", "completed");
        gate.let_one_pass();
        driven.join().unwrap()
    });
    let outcomes =
        |state: &LoopState| state.attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>();
    assert_eq!(outcomes(&a), [Outcome::Lost, Outcome::Claimed], "refunded, and tried again");
    assert_eq!(outcomes(&b), [Outcome::Claimed], "not disturbed");
    sandbox.nobody_survives();
    let orphan = sandbox.note("orphan");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", orphan.trim()));
    assert!(stat.is_err(), "the one without a mark is gone too: {stat:?}");
}

#[test]
fn what_is_asked_of_one_is_not_asked_of_the_other() {
    let sandbox = sandbox();
    let gate = sandbox.gate("b");
    let a = sandbox.agent("a", "echo $$ > $NOTES/a\nsleep 4711");
    let b = sandbox.agent("b", &format!("echo $$ > $NOTES/b\nread -r _ < \"$GATES/b\"\n{CLAIM}"));
    let [a, b] = std::thread::scope(|scope| {
        let driven = scope.spawn(|| drive(&sandbox, [a, b]));
        sandbox.wait_for_note("a");
        sandbox.wait_for_note("b");
        sandbox.refrain(&["cancel", "a", "--now"]).with_code(0);
        sandbox.wait_for_status("a", "cancelled");
        gate.let_one_pass();
        driven.join().unwrap()
    });
    assert_eq!(a.attempts[0].outcome, Outcome::Cancelled);
    assert_eq!((b.charged, b.cancel), (1, None));
    sandbox.nobody_survives();
}
