//! The documented example does what it says.

use testkit::Sandbox;

#[test]
fn a_loop_is_started_and_followed_from_rust() {
    // Built beside this test by `cargo test`, which says no more of where.
    let here = std::env::current_exe().unwrap();
    let example = here.ancestors().nth(2).unwrap().join("examples/start_and_follow");
    assert!(example.is_file(), "{}: `cargo test -p refrain-engine` builds it", example.display());
    let sandbox = Sandbox::new(example.to_str().unwrap());
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
    sandbox.nobody_survives();
}
