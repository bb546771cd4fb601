//! What is refused before anything is touched, and the fleet of one terminal.

use testkit::{Signal, within};

use crate::lab::{LONG, Lab, free_port, script, temporal};

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn what_a_fleet_may_not_have_is_refused_and_nothing_is_touched() {
    let lab = Lab::new();
    let agent = lab.person.agent("job", "true");
    let begins = ["start", "--on", "fleet", "--name", "job", "--command", &agent];
    for (more, said) in [
        (&["--env", "KEY=value"][..], "--env KEY: a fleet gets no values"),
        (&["--no-worktree"], "--no-worktree: a loop has a worktree of its own on a fleet"),
        (&["--git-workflow", "none"], "--git-workflow none: what no commit has is lost"),
    ] {
        let run = lab.person.refrain(&[&begins[..], more, &["Go."]].concat()).with_code(2);
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    assert!(!lab.person.loop_dir("job").exists());
    let nothing = lab.person.refrain(&["worker"]).with_code(2);
    assert!(nothing.stderr.contains("[worker] remotes: it is empty"), "{}", nothing.stderr);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn without_a_server_nothing_is_begun() {
    let mut lab = Lab::new();
    lab.kill_server();
    let agent = lab.person.agent("job", "true");
    let run = lab.person.refrain(&["start", "--on", "fleet", "--name", "job", "--command", &agent, "Go."]);
    assert!(run.code == 1 && run.stderr.contains("cannot be reached"), "{}", run.stderr);
    assert!(!lab.person.loop_dir("job").exists());
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_fleet_of_one_terminal_leaves_no_process_even_when_killed() {
    let lab = Lab::new();
    let machine = lab.machine("unused");
    let home = machine.root().join("home/config/refrain/config.toml");
    std::fs::remove_file(home).unwrap();
    machine.git(&["init", "--quiet"]);
    machine.git(&["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    let port = free_port().to_string();
    let dev =
        || machine.command(&["fleet", "dev", "--port", &port]).env("REFRAIN_TEMPORAL", &temporal()).spawn();
    let mut running = dev();
    within(LONG, "the fleet is ready", || running.stderr().contains("loops at a time").then_some(()));
    let agent = machine.agent("job", &script(2, 0));
    machine.refrain(&["start", "--on", "fleet", "--name", "job", "--command", &agent, "Go."]).with_code(0);
    within(LONG, "the loop completes", || (machine.status("job")["status"] == "completed").then_some(()));
    running.kill();
    machine.no_process_is_left();
    running = dev();
    within(LONG, "it is ready again", || running.stderr().contains("loops at a time").then_some(()));
    running.signal(Signal::INT);
    running.wait().with_code(0);
    machine.no_process_is_left();
}
