//! A typed option without effect is refused, and nothing is changed; a configured value may have no effect.

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::sandbox;

/// A loop that stopped at its cap of one iteration.
fn capped(sandbox: &Sandbox) -> String {
    let agent = sandbox.agent("agent", "echo \"$0\" >> $NOTES/ran");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-m", "1", "p"]).with_code(10);
    agent
}

/// The finding: each was accepted, and the loop ran its old agent without a word.
#[rstest]
#[case(&["--command", "other"])]
#[case(&["--agent", "claude"])]
#[case(&["--prompt-file", "P.md"])]
#[case(&["--gate", "true"])]
#[case(&["--worktree"])]
#[case(&["--exact", "3"])]
#[case(&["--mode", "research"])]
fn a_loop_that_continues_takes_no_option_of_its_start(#[case] more: &[&str]) {
    let sandbox = sandbox();
    capped(&sandbox);
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&[&["resume", "job", "-m", "2"], more].concat()).with_code(2);
    let said = format!("{}: it has no effect without --from FILE", more[0]);
    assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    assert_eq!(sandbox.snapshot(), before, "nothing was run");
    assert_eq!(sandbox.status("job")["charged"], 1);
}

/// A loop without a provider and without a sandbox continues as before, and says so.
#[test]
fn a_resume_notes_what_has_no_effect() {
    let sandbox = sandbox();
    capped(&sandbox);
    let run =
        sandbox.refrain(&["resume", "job", "-m", "2", "--retry-for", "1h", "--no-sandbox"]).with_code(10);
    for said in [
        "--retry-for has no effect: the provider of this loop's command is not known",
        "--no-sandbox has no effect: this loop has no sandbox",
    ] {
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}

#[rstest]
#[case(&["--args", "--resume job --gate true"], "--gate")]
#[case(&["--args", "--resume job --loop-shared"], "--loop-shared")]
#[case(&["--args", "--resume-last --exact 3"], "--exact")]
#[case(&["--resume", "job", "--protect", "tests/**"], "--protect")]
#[case(&["--resume", "job", "--args", "--name other"], "--name")]
fn a_session_that_continues_a_loop_takes_none_either(#[case] more: &[&str], #[case] option: &str) {
    let sandbox = sandbox();
    let begin = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s"];
    sandbox
        .refrain(&[&begin[..], &["--name", "job", "--args", "--loop-isolated Mend it."]].concat())
        .with_code(0);
    let before = sandbox.journal("job");
    let refused = sandbox.refrain(&[&begin[..], more].concat()).with_code(1);
    let said = format!("{option}: it has no effect on a loop that continues");
    assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    assert_eq!(sandbox.journal("job"), before);
    sandbox.refrain(&[&begin[..], &["--args", "--resume job --max-iterations 30"]].concat()).with_code(0);
    assert_eq!(sandbox.status("job")["max_iterations"], 30);
}

#[rstest]
#[case::gates(&["--gate-retries", "2"], "without a gate; add --gate CMD")]
#[case::gates_in_time(&["--gate-timeout", "9s"], "without a gate")]
#[case::gates_at_claims(&["--gate-when", "claim"], "without a gate")]
#[case::a_variable_of_gates(&["--gate-env", "A=1"], "without a gate")]
#[case::a_clean_place(&["--clean-checkout"], "without a gate")]
#[case::a_critic(&["--critic", "codex"], "without a critique; add --critique-every N")]
#[case::a_reviewer(&["--reviewer", "codex"], "without a specification; add --spec-gate FILE")]
#[case::commits(&["--commit-template", "x"], "unless the loop commits; add --git-workflow commit")]
#[case::checkpoints(&["--commit-when", "verified"], "unless the loop commits and has required gates")]
#[case::branches(&["--branch-template", "x"], "without a new branch; add --create-branch or --worktree")]
#[case::bases(&["--base", "main"], "without a worktree of its own; add --worktree")]
#[case::the_old_branch(&["--worktree", "--no-create-branch"], "in a worktree of its own, which is always on a new branch")]
#[case::stuck(&["--exact", "2", "--stuck-threshold", "4"], "with --exact, whose loops are never stuck")]
#[case::stuck_and_asked(&["--exact", "2", "--on-stuck", "ask"], "with --exact")]
#[case::a_grace(&["--timeout-grace", "9s"], "without a time limit; add --timeout DUR")]
#[case::a_provider(&["--retry-for", "1h"], "with a command whose provider is not known")]
#[case::a_plan(&["--jobs", "2"], "without a plan; add --scud-tag TAG")]
fn start_options_without_effect_are_refused(#[case] more: &[&str], #[case] why: &str) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "touch $NOTES/ran");
    let before = sandbox.snapshot();
    let words = ["start", "--command", &agent, "--name", "job", "--prompt", "p"];
    let refused = sandbox.refrain(&[&words[..], more].concat()).with_code(2);
    let said = refused.stderr.lines().find(|line| line.contains("it has no effect")).unwrap_or_default();
    assert!(said.contains(why), "{}", refused.stderr);
    assert!(more.iter().any(|word| said.contains(&format!("{word}: "))), "it is named: {said}");
    assert_eq!(sandbox.snapshot(), before, "nothing was begun");
}

#[test]
fn a_configured_value_may_have_no_effect() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x >> made");
    write(
        &sandbox.project().join("refrain.toml"),
        "[start]\nstuck-threshold = 4\nclean-checkout = true\ntimeout-grace = '9s'\nretry-for = '1h'\n\
         [git]\ncommit-template = 'x'\nbranch-template = 'y'\nbase = 'main'\n[critique]\ncritic = 'codex'\n",
    );
    sandbox.trust();
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--exact", "1", "p"]).with_code(0);
    assert_eq!(sandbox.status("job")["charged"], json!(1));
}
