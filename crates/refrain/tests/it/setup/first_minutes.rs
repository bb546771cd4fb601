//! A newcomer's way: from a project with a failing test to verified work that is merged, as the quick start has it.

use std::os::unix::fs::symlink;

use testkit::{Sandbox, write};

use crate::adapters::agents::claude;
use crate::sandbox;

/// A `PATH` on which Claude Code is this script.
fn path(sandbox: &Sandbox, script: &str) -> String {
    let bin = sandbox.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(claude(sandbox, script), bin.join("claude")).unwrap();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    format!("{}:{usual}", bin.display())
}

#[test]
fn a_newcomer_comes_from_the_quick_start_to_merged_work() {
    let sandbox = sandbox();
    write(
        &sandbox.project().join("test.sh"),
        "#!/bin/sh\ntest \"$(sh greet.sh)\" = hello && echo '1 passed'\n",
    );
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "A test"]);
    let script = "test $REFRAIN_ITERATION = 1 && echo 'echo hullo' > greet.sh || echo 'echo hello' > greet.sh
        says '<promise>COMPLETE</promise>'";
    let path = path(&sandbox, script);
    let refrain = |words: &[&str]| sandbox.command(words).env("PATH", &path).run();

    // Nothing is there yet: the first lines say what to type.
    let said = refrain(&[]);
    assert!(said.stdout.contains("refrain demo") || said.stderr.contains("refrain demo"), "{said:?}");
    let written = refrain(&["init", "--yes"]).with_code(0).stdout;
    assert!(
        written.contains("refrain.toml: written\n") && written.contains("next: refrain start"),
        "{written}"
    );
    let run = refrain(&["start", "--name", "fix", "--max-cost", "5", "Make the test pass."]).with_code(0);
    assert!(run.stdout.contains("the claim is refused: gate test failed"), "{}", run.stdout);
    assert!(run.stdout.contains("✔ verified after 2 iterations"), "{}", run.stdout);
    assert!(
        run.stdout.contains("next: refrain diff fix, refrain merge fix, refrain report fix"),
        "{}",
        run.stdout
    );
    assert!(refrain(&["diff", "fix"]).with_code(0).stdout.contains("+echo hello"));
    assert!(refrain(&["report", "fix"]).with_code(0).stdout.contains("sh test.sh"));
    refrain(&["merge", "fix"]).with_code(0);
    sandbox.tool("sh", &["test.sh"]).run().with_code(0);
    assert_eq!(sandbox.git(&["show", "HEAD:greet.sh"]), "echo hello\n");
}
