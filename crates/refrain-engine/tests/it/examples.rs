//! The examples of starting loops from Rust.

use std::rc::Rc;

use camino::Utf8PathBuf;
use refrain_core::event::End;
use refrain_core::r#loop::Grant;
use refrain_engine::{Host, Service, Signals};
use testkit::Sandbox;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::example;

#[test]
fn a_loop_is_started_and_followed_from_rust() {
    let sandbox = Sandbox::new(&example("start_and_follow"));
    let agent = sandbox.agent(
        "agent",
        "echo \"at work: $2\"; test $REFRAIN_ITERATION = 1 || echo '<promise>COMPLETE</promise>'",
    );
    let run = sandbox.refrain(&[".", "Mend it.", &agent, "--fast"]).with_code(0);
    let lines: Vec<_> = run.stdout.lines().collect();
    for line in ["iteration 1 begins", "it ended with Code(0)", "iteration 2 begins"] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    assert!(run.stdout.contains("it prints \"at work: Mend it."), "{lines:#?}");
    let last = lines.last().unwrap();
    assert!(last.contains(": completed after 2 iterations: the agent made its promise"), "{last}");
    sandbox.no_process_is_left();
}

#[test]
fn a_killed_host_leaves_no_process_and_all_its_loops_continue() {
    let program = example("hosts");
    let sandbox = Sandbox::new(&program);
    let gate = sandbox.gate("all");
    let agent = sandbox.agent(
        "agent",
        "ulimit -Sn > $NOTES/$REFRAIN_LOOP_ID\nread -r _ < \"$GATES/all\"\necho '<promise>COMPLETE</promise>'",
    );
    let tasks = ["task-0", "task-1"];
    let host =
        sandbox.tool("sh", &["-c", &format!("ulimit -Sn 500; exec {program} . 2 5 0 {agent}")]).spawn();
    for task in tasks {
        assert_eq!(sandbox.wait_for_note(task), "500\n", "agents have what the host was started with");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", host.pid())).unwrap();
    assert!(!limits.contains(" 500 "), "the host has more: {limits}");
    host.kill();
    sandbox.no_process_is_left();

    let project = Utf8PathBuf::from_path_buf(sandbox.project()).unwrap();
    let home = project.join("home");
    let host = Rc::new(Host {
        program: program.into(),
        env: sandbox.env().into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        data_home: home.clone(),
        state_home: home.clone(),
        config_home: home,
        version: "test".into(),
    });
    let service = Service::open(&project.join("project"), (*host).clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_wish, wishes) = watch::channel(None);
    let all = LocalSet::new();
    let driven = tasks.map(|task| {
        gate.let_one_pass();
        let runner = service.resume(&task.parse().unwrap(), &Grant::default(), false).unwrap();
        let (host, signals) = (Rc::clone(&host), Signals::Given(wishes.clone()));
        all.spawn_local(async move { runner.drive(&host, signals, || {}).await.unwrap() })
    });
    runtime.block_on(all.run_until(async {
        for driven in driven {
            let state = driven.await.unwrap();
            let end = state.ended.map(|ended| ended.end);
            assert!(matches!(end, Some(End::Completed { .. })), "{end:?}");
            assert_eq!((state.charged, state.attempts.len()), (1, 2), "the first was refunded");
        }
    }));
    sandbox.no_process_is_left();
}
