//! Agents that replace a folder of Refrain's by a symbolic link: nothing is written, replaced or removed in the link's
//! target. The folder is restored, or the step that needs it fails with its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

/// The names of Refrain's own files.
const NAMES: &[&str] = &[
    "context.md",
    "state.md",
    ".gitignore",
    "prompt.md",
    "output.log",
    "stderr.log",
    "runner.log",
    "index",
    "journal.jsonl",
    "runner.lock",
    "append.lock",
    "touched.diff",
    "tests.log",
];

/// A folder of the user's outside of the project, with files that are called as Refrain's are. Agents find it as `$NOTES/own`.
fn own_folder(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.root().join("notes/own");
    for inner in ["", "job", "inbox", "gates", "0002", "0003", "loops/job"] {
        fs::create_dir_all(folder.join(inner)).unwrap();
        for name in NAMES {
            write(&folder.join(inner).join(name), format!("the user's own {inner}/{name}\n"));
        }
    }
    folder
}

fn files(folder: &PathBuf) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// An agent that does this in its first run, and the work in its third.
fn agent(sandbox: &Sandbox, plants: &str) -> String {
    let script = format!(
        "echo began\ncase $REFRAIN_ITERATION in\n1) set -e\nl=.git/refrain/loops/job; test -d $l || l=.refrain/data/loops/job\n{plants};;\n\
         3) echo x > done\n{CLAIM};;\nesac\necho worked"
    );
    sandbox.agent("agent", &script)
}

fn start(agent: &str) -> Vec<&str> {
    let words = ["start", "--command", agent, "--name", "job", "--prompt", "Work.", "-m", "3"];
    [&words[..], &["--gate", "tests=test -e done", "--protect", "ci"]].concat()
}

#[rstest]
#[case::of_the_loop_in_the_worktree("rm -rf .refrain/job; ln -s \"$NOTES/own\" .refrain/job")]
#[case::of_the_loop_that_was_moved(
    "mv .refrain/job/state.md \"$NOTES/kept\"; rm -rf .refrain/job; mkdir \"$NOTES/other\"; mv \"$NOTES/kept\" \"$NOTES/other/state.md\"; ln -s \"$NOTES/other\" .refrain/job"
)]
#[case::of_all_loops_in_the_worktree("rm -rf .refrain; ln -s \"$NOTES/own\" .refrain")]
#[case::the_notes(
    "ln -sf \"$NOTES/own/state.md\" .refrain/job/state.md; ln -sf \"$NOTES/own/context.md\" .refrain/job/context.md"
)]
#[case::the_notes_by_another_name("ln -f \"$NOTES/own/state.md\" .refrain/job/state.md")]
#[case::of_its_requests("rm -rf $l/inbox; ln -s \"$NOTES/own/inbox\" $l/inbox")]
#[case::of_its_attempts(
    "until [ -s $l/iterations/0001/output.log ]; do :; done; mv $l/iterations \"$NOTES/moved\"; ln -s \"$NOTES/own\" $l/iterations"
)]
#[case::of_the_next_attempt(
    "ln -s \"$NOTES/own\" $l/iterations/0002; ln -s \"$NOTES/own\" $l/iterations/0003"
)]
#[case::of_this_attempt("rm -rf $l/iterations/0001; ln -s \"$NOTES/own\" $l/iterations/0001")]
#[case::of_the_gates_logs(
    "ln -s \"$NOTES/own/gates\" $l/iterations/0001/gates; mkdir $l/iterations/0002; ln -s \"$NOTES/own/gates\" $l/iterations/0002/gates"
)]
#[case::the_next_attempts_files(
    "mkdir $l/iterations/0002; for f in prompt.md output.log; do ln -s \"$NOTES/own/$f\" $l/iterations/0002/$f; done"
)]
#[case::the_next_attempts_files_by_other_names(
    "mkdir $l/iterations/0002; for f in prompt.md output.log; do ln \"$NOTES/own/$f\" $l/iterations/0002/$f; done"
)]
#[case::of_the_loop("mv $l \"$NOTES/moved\"; ln -s \"$NOTES/own/job\" $l")]
#[case::the_index("ln -sf \"$NOTES/own/index\" $l/index; ln -sf \"$NOTES/own/index\" $l/index.protected")]
#[case::the_locks(
    "for f in runner.lock append.lock doorbell; do rm -f $l/$f; ln -s \"$NOTES/own/index\" $l/$f; done"
)]
fn a_folder_or_file_that_became_a_link_is_put_back(#[case] plants: &str) {
    let sandbox = sandbox();
    let own = own_folder(&sandbox);
    let before = files(&own);
    let agent = agent(&sandbox, plants);
    sandbox.refrain(&start(&agent)).with_code(0);
    assert_eq!(files(&own), before);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["charged"]), (&json!(true), &json!(3)));
    for folder in [sandbox.loop_dir("job"), sandbox.project().join(".refrain/job")] {
        assert!(fs::symlink_metadata(&folder).unwrap().is_dir(), "{}", folder.display());
        assert!(fs::read_dir(folder).unwrap().all(|entry| !entry.unwrap().path().is_symlink()));
    }
    assert!(sandbox.kept_text("job", "0003", "output.log").contains("worked"));
    sandbox.refrain(&["verify", "job"]);
    assert_eq!(files(&own), before);
    sandbox.no_process_is_left();
}

/// An agent that has printed nothing yet has no log, and loses the run.
#[test]
fn output_is_not_written_through_a_link() {
    let sandbox = sandbox();
    let own = own_folder(&sandbox);
    let before = files(&own);
    let agent = sandbox.agent(
        "agent",
        &format!(
            "l=.git/refrain/loops/job; test -e $NOTES/once || {{ touch $NOTES/once; mv $l/iterations $NOTES/moved; \
             ln -s $NOTES/own $l/iterations; }}\necho x > done\n{CLAIM}"
        ),
    );
    let run = sandbox.refrain(&start(&agent)).with_code(14);
    let said = "job/iterations is a symbolic link, and Refrain follows none here; remove it";
    assert!(run.stdout.contains(said), "{}", run.stdout);
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(files(&own), before);
}

#[test]
fn a_link_in_a_plain_folder_is_put_back_too() {
    let sandbox = plain_folder();
    let own = own_folder(&sandbox);
    let before = files(&own);
    let agent = agent(
        &sandbox,
        "rm -rf .refrain/job; ln -s \"$NOTES/own\" .refrain/job; rm -rf $l/inbox; ln -s \"$NOTES/own\" $l/inbox",
    );
    let words = ["start", "--command", &agent, "--name", "job", "--prompt", "Work.", "-m", "3"];
    sandbox.refrain(&[&words[..], &["--gate", "test -e done"]].concat()).with_code(0);
    assert_eq!(files(&own), before);
}

/// The folders of all loops are not removed for one: a user may have put the link there. The runner may write the journal back
/// between the two commands; they are repeated then.
#[rstest]
#[case::of_all_loops(
    "until rm -rf \"$NOTES/own/moved\"; mv .git/refrain/loops \"$NOTES/own/moved\"; ln -sT \"$NOTES/own/moved\" .git/refrain/loops; do :; done",
    "loops"
)]
#[case::of_all_data(
    "until rm -rf \"$NOTES/own/moved\"; mv .git/refrain \"$NOTES/own/moved\"; ln -sT \"$NOTES/own/moved\" .git/refrain; do :; done",
    ".git/refrain"
)]
fn a_link_in_the_place_of_the_folder_of_all_loops_is_refused(#[case] plants: &str, #[case] named: &str) {
    let sandbox = sandbox();
    let own = own_folder(&sandbox);
    let agent = agent(&sandbox, plants);
    let run = sandbox.refrain(&start(&agent));
    assert_ne!(run.code, 0, "{}", run.stdout);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains(&format!("{named} is a symbolic link, and Refrain follows none here")), "{said}");
    let kept = own.join("moved/loops/job");
    let kept = if kept.exists() { kept } else { own.join("moved/job") };
    assert!(!kept.join("iterations/0002").exists(), "nothing more is written there");
    let other = sandbox.agent("other", CLAIM);
    let run = sandbox.refrain(&["start", "--command", &other, "--name", "other", "p"]);
    assert!(run.code != 0 && run.stderr.contains("is a symbolic link"), "{}", run.stderr);
}

#[test]
fn a_request_is_not_put_where_a_link_leads_and_is_heard() {
    let sandbox = sandbox();
    let own = own_folder(&sandbox);
    let before = files(&own);
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "agent",
        "l=.git/refrain/loops/job; rm -rf $l/inbox; ln -s \"$NOTES/own\" $l/inbox
rm $l/doorbell; ln -s \"$NOTES/own/index\" $l/doorbell\necho x > $NOTES/planted\nread -r _ < $GATES/go",
    );
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "--prompt", "p"]);
    sandbox.wait_for_note("planted");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    gate.let_one_pass();
    session.wait().with_code(16);
    assert_eq!(files(&own), before);
}

/// An attempt's output goes into the next prompt: it is never read through a link.
#[test]
fn a_log_that_became_a_link_is_not_quoted() {
    let sandbox = sandbox();
    write(&sandbox.root().join("private"), "the user's own words\n");
    let link = format!("ln -sf {}/private", sandbox.root().display());
    let script = format!(
        "echo one\nl=.git/refrain/loops/job/iterations/0001\n{link} $l/output.log\n{link} $l/final.md"
    );
    let agent = sandbox.agent("agent", &script);
    let words =
        ["start", "--command", &agent, "--name", "job", "--prompt", "Work.", "-m", "2", "--gate", "false"];
    sandbox.refrain(&words).with_code(10);
    assert!(!sandbox.kept_text("job", "0002", "prompt.md").contains("own words"));
    let shown = sandbox.refrain(&["logs", "job", "--iteration", "1"]);
    assert!(!shown.stdout.contains("own words"), "{}", shown.stdout);
}
