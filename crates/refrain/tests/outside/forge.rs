//! From commit to merged with the real `gh`, as Debian ships it, against a forge on loopback.

use serde_json::Value;
use testkit::{Forge, Run, Sandbox};

const GREEN: &[(&str, &str)] = &[("build", "success")];
const RED: &[(&str, &str)] = &[("build", "failure")];

/// A project whose `origin` is a forge that is asked only through the real program.
struct ForgeProject {
    forge: Forge,
    sandbox: Sandbox,
}

impl ForgeProject {
    fn new() -> Self {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_refrain"));
        let forge = Forge::for_real_gh(sandbox.root());
        sandbox.git(&["remote", "add", "origin", &forge.url()]);
        let place = Self { forge, sandbox };
        place.run(&["push", "--quiet", "origin", "main"], "git").with_code(0);
        place
    }

    fn run(&self, args: &[&str], program: &str) -> Run {
        let command = match program {
            "refrain" => self.sandbox.command(args),
            other => self.sandbox.tool(other, args),
        };
        self.forge.env().into_iter().fold(command, |command, (name, value)| command.env(name, &value)).run()
    }

    /// A loop that writes one file an iteration, and claims in its second.
    fn start(&self, workflow: &str) -> Run {
        let writer = self.sandbox.agent(
            "writer",
            "echo \"part $REFRAIN_ITERATION\" > \"part-$REFRAIN_ITERATION.txt\"\n\
             printf '%s' \"$*\" > \"$NOTES/prompt-$REFRAIN_ITERATION\"\n\
             [ \"$REFRAIN_ITERATION\" = 1 ] || echo '<promise>COMPLETE</promise>'",
        );
        let words = ["start", "Do all parts.", "--command", &writer, "--name", "job", "-m", "4"];
        self.run(&[&words[..], &["--gate", "true", "--git-workflow", workflow]].concat(), "refrain")
    }

    fn status(&self) -> Value {
        self.sandbox.status("job")
    }
}

#[test]
#[ignore = "it needs gh: cargo xtask e2e forge"]
fn main_job_is_opened_checked_and_merged_once() {
    let place = ForgeProject::new();
    place.forge.change(|world| {
        world.workflows = vec!["ci".to_owned()];
        world.add_checks(&[GREEN]);
    });
    let run = place.start("pr-merge").with_code(0);
    let counts = ["open", "ready", "merge"].map(|name| place.forge.done(name));
    assert_eq!(counts, [1, 1, 1], "{run:?}");
    assert_eq!(place.status()["publication"]["merged"], true, "{:#}", place.status());
}

#[test]
#[ignore = "it needs gh: cargo xtask e2e forge"]
fn red_checks_reach_the_next_prompt_with_the_jobs_log() {
    let place = ForgeProject::new();
    place.forge.change(|world| {
        world.workflows = vec!["ci".to_owned()];
        world.log = "compiling\nerror: part two is wrong\n".to_owned();
        world.add_checks(&[RED]);
        world.add_checks(&[GREEN]);
    });
    place.start("pr-merge").with_code(0);
    let prompt = place.sandbox.note("prompt-3");
    assert!(prompt.contains("error: part two is wrong"), "{prompt}");
    assert_eq!(["open", "merge"].map(|name| place.forge.done(name)), [1, 1]);
}

#[test]
#[ignore = "it needs gh: cargo xtask e2e forge"]
fn without_a_login_nothing_is_begun() {
    let place = ForgeProject::new();
    std::fs::remove_file(place.sandbox.root().join("forge/gh/hosts.yml")).unwrap();
    let run = place.start("pr").with_code(1);
    assert!(run.stderr.contains("none of them is for git@github.localhost:owner/project.git"), "{run:?}");
    assert_eq!(place.forge.asked("find"), 0);
    assert!(!place.sandbox.loop_dir("job").exists());
}
