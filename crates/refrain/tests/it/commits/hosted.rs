//! Two loops driven by one process, through the library: one does not affect the other.

use std::path::Path;
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_core::event::{End, Urgency};
use refrain_core::r#loop::{Grant, Outcome};
use refrain_core::promise::{MatchMode, Promise};
use refrain_core::spec::{AgentKind, AgentSpec, Limits};
use refrain_core::{LoopState, Spec};
use refrain_engine::{Host, Runner, Service, Signals};
use testkit::{Sandbox, Signal, signal_process};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

use crate::{CLAIM, sandbox};

pub(crate) fn utf8(path: &Path) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(path.to_owned()).unwrap()
}

pub(crate) fn host(sandbox: &Sandbox) -> Host {
    Host {
        program: env!("CARGO_BIN_EXE_refrain").into(),
        env: sandbox.env().into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        data_home: utf8(sandbox.root()).join("data"),
        // That of the command line, so that it knows the key that ends are signed with.
        state_home: utf8(sandbox.root()).join("home/state/refrain"),
        config_home: utf8(sandbox.root()).join("data"),
        version: "test".into(),
    }
}

pub(crate) fn spec(sandbox: &Sandbox, id: &str, program: String) -> Spec {
    let project = utf8(&sandbox.project()).canonicalize_utf8().unwrap();
    Spec {
        promise: Some(Promise { text: "COMPLETE".parse().unwrap(), mode: MatchMode::Plain }),
        limits: Limits { max_iterations: Some(5), ..Limits::default() },
        ..Spec::new(id.parse().unwrap(), AgentSpec::new(AgentKind::Generic, program), "p", project.clone())
    }
}

fn service(sandbox: &Sandbox) -> Service {
    Service::open(&utf8(&sandbox.project()), host(sandbox)).unwrap()
}

fn start(sandbox: &Sandbox, agents: [String; 2]) -> [Runner; 2] {
    let service = service(sandbox);
    ["a", "b"].map(|id| {
        let agent = agents[usize::from(id == "b")].clone();
        service.start(spec(sandbox, id, agent), Some(id.parse().unwrap())).unwrap()
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a future to its end; fails the test if that takes too long.
fn through<T>(driven: impl Future<Output = T>) -> T {
    let bounded = async { tokio::time::timeout(Duration::from_secs(60), driven).await };
    runtime().block_on(bounded).expect("they stop")
}

/// Drives both loops until they stop, on one thread, each with its own wishes.
fn drive_given([a, b]: [Runner; 2], host: &Host, signals: [Signals; 2]) -> [LoopState; 2] {
    let [of_a, of_b] = signals;
    let (a, b) = through(async { tokio::join!(a.drive(host, of_a, || {}), b.drive(host, of_b, || {})) });
    [a.unwrap(), b.unwrap()]
}

/// Drives both loops to their ends on one thread.
fn drive(sandbox: &Sandbox, agents: [String; 2]) -> [LoopState; 2] {
    drive_given(start(sandbox, agents), &host(sandbox), [Signals::None, Signals::None])
}

#[test]
fn a_keeper_that_is_killed_takes_only_its_own_loop_down() {
    let sandbox = sandbox();
    let gate = sandbox.gate("b");
    // The first attempt of `a` leaves a child without its environment in a session of its own, and notes its keeper's
    // pid.
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
    sandbox.no_process_is_left();
    let orphan = sandbox.note("orphan");
    // The command line of a zombie is empty.
    let words = std::fs::read(format!("/proc/{}/cmdline", orphan.trim())).unwrap_or_default();
    assert!(words.is_empty(), "the one without a mark is gone too: {}", String::from_utf8_lossy(&words));
}

#[test]
fn a_request_to_one_hosted_loop_does_not_affect_the_other() {
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
    sandbox.no_process_is_left();
}

fn end(state: &LoopState) -> Option<End> {
    state.ended.map(|ended| ended.end)
}

#[test]
fn one_loop_pauses_as_its_host_wishes_and_the_other_continues() {
    let sandbox = sandbox();
    let gates = ["a", "b"].map(|name| sandbox.gate(name));
    let waits = |id: &str, then: &str| {
        let says = format!("echo $$ > $NOTES/{id}.$REFRAIN_ITERATION");
        sandbox.agent(id, &format!("{says}\nread -r _ < \"$GATES/{id}\"\n{then}"))
    };
    let runners = start(&sandbox, [waits("a", "true"), waits("b", CLAIM)]);
    let (wish, wishes) = watch::channel(None);
    let [a, b] = std::thread::scope(|scope| {
        let host = host(&sandbox);
        let signals = [Signals::Given(wishes), Signals::None];
        let driven = scope.spawn(move || drive_given(runners, &host, signals));
        sandbox.wait_for_note("a.1");
        sandbox.wait_for_note("b.1");
        wish.send_replace(Some(Urgency::AfterIteration));
        sandbox.wait_for_event("a", "asked");
        gates[0].let_one_pass();
        sandbox.wait_for_status("a", "paused");
        gates[1].let_one_pass();
        driven.join().unwrap()
    });
    assert_eq!((end(&a), a.charged), (Some(End::Paused), 1), "its iteration was finished");
    assert!(matches!(end(&b), Some(End::Completed { .. })), "{:?}", b.ended);

    // A request from before a loop is driven counts for it.
    let (service, host, id) = (service(&sandbox), host(&sandbox), "a".parse().unwrap());
    let again = || service.resume(&id, &Grant::default(), false).unwrap();
    let drive = |a: Runner, wishes| through(a.drive(&host, Signals::Given(wishes), || {})).unwrap();
    let a = drive(again(), wish.subscribe());
    assert_eq!((end(&a), a.attempts.len()), (Some(End::Paused), 1), "nothing was begun");

    wish.send_replace(None);
    let a = std::thread::scope(|scope| {
        let driven = scope.spawn(|| drive(again(), wish.subscribe()));
        sandbox.wait_for_note("a.2");
        wish.send_replace(Some(Urgency::Now));
        driven.join().unwrap()
    });
    assert_eq!((end(&a), a.charged, a.attempts.len()), (Some(End::Paused), 1, 2), "its agent was ended");
    sandbox.no_process_is_left();
}

#[test]
fn a_host_that_lets_go_leaves_no_process_and_can_continue() {
    let sandbox = sandbox();
    let gate = sandbox.gate("a");
    let waits = |id| sandbox.agent(id, &format!("echo x >> $NOTES/{id}\nread -r _ < \"$GATES/a\"\n{CLAIM}"));
    let runners = start(&sandbox, [waits("a"), waits("b")]);
    let host = host(&sandbox);
    let runtime = runtime();
    let (say, at_work) = oneshot::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sandbox.wait_for_note("a");
            sandbox.wait_for_note("b");
            say.send(())
        });
        runtime.block_on(async {
            let [a, b] = runners;
            let drive = |runner: Runner| runner.drive(&host, Signals::None, || {});
            tokio::select! {
                _ = async { tokio::join!(drive(a), drive(b)) } => panic!("they have stopped"),
                at_work = at_work => at_work.unwrap(),
            }
        });
    });
    // Waits for its tasks.
    drop(runtime);
    sandbox.no_process_is_left();
    let service = service(&sandbox);
    for id in ["a", "b"] {
        assert_eq!(sandbox.status(id)["status"], "crashed");
        let runner = service.resume(&id.parse().unwrap(), &Grant::default(), false).unwrap();
        gate.let_one_pass();
        let state = through(runner.drive(&host, Signals::None, || {})).unwrap();
        assert!(matches!(end(&state), Some(End::Completed { .. })), "{:?}", state.ended);
        assert_eq!((state.charged, state.attempts.len()), (1, 2), "the first was refunded");
    }
    sandbox.no_process_is_left();
}
