//! `--clean-checkout` with loops at work, forged objects and links. All else is in `scenarios/checkouts`.

use std::fs;

use rstest::rstest;
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

/// A project that ignores the files of its tools, and an agent that adds a file and claims.
fn project() -> (Sandbox, String) {
    let sandbox = sandbox();
    write(&sandbox.project().join(".gitignore"), "/target\nnode_modules\n*.gen\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Ignore"]);
    let agent = sandbox.agent("agent", &format!("echo good > work.txt\n{CLAIM}"));
    (sandbox, agent)
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["start", "--command", agent, "--name", "job", "-p", "Work.", "-m", "1"];
    words.extend(more);
    words
}

#[test]
fn a_checkout_that_hangs_can_be_cancelled() {
    let (sandbox, agent) = project();
    let _gate = sandbox.gate("filter");
    sandbox.git(&[
        "config",
        "filter.slow.smudge",
        "echo x > \"$NOTES/hangs\"; read -r _ < \"$GATES/filter\"; cat",
    ]);
    write(&sandbox.project().join(".git/info/attributes"), "README.md filter=slow\n");
    let session = sandbox.spawn(&start(&agent, &["--gate", "true", "--clean-checkout"]));
    sandbox.wait_for_note("hangs");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    sandbox.no_process_is_left();
}

#[test]
fn two_loops_at_a_time_have_one_each_and_one_is_kept() {
    let (sandbox, _) = project();
    let work = sandbox.agent("work", CLAIM);
    let gate = sandbox.gate("first");
    let waits = "hold=pwd > \"$NOTES/first\"; read -r _ < \"$GATES/first\"";
    let first = sandbox.spawn(&start(&work, &["--gate", waits, "--clean-checkout"]));
    sandbox.wait_for_note("first");
    let other = ["start", "--command", &work, "--name", "other", "-p", "Work.", "-m", "1", "--worktree"];
    let second = ["--gate", "pwd > \"$NOTES/second\"", "--clean-checkout"];
    sandbox.refrain(&[&other[..], &second].concat()).with_code(0);
    assert!(sandbox.note("second").ends_with("/2/tree/project\n"), "{}", sandbox.note("second"));
    assert!(!std::path::Path::new(sandbox.note("second").trim()).exists(), "it is not needed any more");
    gate.let_one_pass();
    gate.let_one_pass();
    first.wait().with_code(0);
    assert!(std::path::Path::new(sandbox.note("first").trim()).exists());
}

#[test]
fn the_prompt_names_the_clean_checkout_and_doctor_removes_old_ones() {
    let (sandbox, agent) = project();
    sandbox.refrain(&start(&agent, &["--gate", "true", "--clean-checkout"])).with_code(0);
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(
        prompt.contains("- Run these gates before you finish (Refrain: in a clean checkout):\n"),
        "{prompt}"
    );
    let checkouts = sandbox.root().join("home/state/refrain/checkouts");
    let here = fs::read_dir(&checkouts).unwrap().next().unwrap().unwrap().path();
    let gone = checkouts.join("gone-01234567");
    fs::create_dir_all(gone.join("1/tree/gone")).unwrap();
    write(&gone.join("project"), sandbox.root().join("gone").to_str().unwrap());
    let told = sandbox.refrain(&["doctor"]).stdout;
    assert!(told.contains("/gone, which is gone") && gone.exists(), "{told}");
    let machine = crate::setup::doctor::machine();
    machine.lock_shared().unwrap();
    sandbox.refrain(&["doctor", "--fix"]);
    assert!(!gone.exists() && here.exists());
}

/// Writes a loose object of the repository anew, under the name that it has.
fn forge(kind: &str, object: &str, content: &str) -> String {
    format!(
        "old=$(git rev-parse {object}); new=$({content} | git hash-object -w -t {kind} --stdin --literally)
file() {{ echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }}
chmod +w $(file $old); cat $(file $new) > $(file $old)"
    )
}

/// Git does not compare an object with its name when it checks it out.
#[rstest]
#[case::blob("blob", "HEAD:tests/sum.sh", "echo exit 0", "tests/sum.sh")]
#[case::tree("tree", "HEAD:tests", "git cat-file tree HEAD:other", "object of tests is")]
fn an_object_with_a_forged_content_proves_nothing(
    #[case] kind: &str,
    #[case] object: &str,
    #[case] content: &str,
    #[case] named: &str,
) {
    let (sandbox, _) = project();
    for (path, text) in [
        ("tests/sum.sh", "grep -q right work.txt\n"),
        ("other/sum.sh", "exit 0\n"),
        ("work.txt", "wrong\n"),
        ("run.sh", "sh work.sh; sh tests/sum.sh\n"),
        ("work.sh", "echo 0\n"),
    ] {
        let path = sandbox.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text);
    }
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Tests"]);
    // The test is written anew for the second verification only if something removed it.
    let forge = forge(kind, object, content);
    let cheat = format!(
        "if [ \"$REFRAIN_ITERATION\" = 1 ]; then {forge}; echo 'rm -rf tests' > work.sh; else git checkout -q work.sh; fi\n{CLAIM}"
    );
    let cheat = sandbox.agent("cheat", &cheat);
    let words = ["start", "--command", &cheat, "--name", "job", "-p", "Work.", "-m", "2"];
    let gates = ["--gate", "tests=sh run.sh", "--protect", "run.sh", "--protect-existing", "tests/**"];
    let run = sandbox.refrain(&[&words[..], &gates, &["--clean-checkout"]].concat());
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("is not what its name says") && said.contains(named), "{said}");
    assert_eq!(sandbox.status("job")["verified"], false, "{said}");
}

/// Nor does it when protection reads how things were.
#[test]
fn a_forged_list_of_protected_files_proves_nothing() {
    let (sandbox, _) = project();
    write(&sandbox.project().join("run.sh"), "exit 1\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Run"]);
    let objects = "for old in $(git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | \
sed -n 's/ tree$//p'); do case $(git ls-tree $old) in *.refrain*run.sh*)";
    let forge = forge(
        "tree",
        "$old",
        "git ls-tree $old | sed \"s/blob [0-9a-f]*\\(.run.sh\\)/blob $cheat\\1/\" | git mktree | xargs git cat-file tree",
    );
    let cheat = format!(
        "echo exit 0 > run.sh; cheat=$(git hash-object -w run.sh); {objects} echo x > \"$NOTES/forged\"; {forge};; esac; done\n{CLAIM}"
    );
    let cheat = sandbox.agent("cheat", &cheat);
    let run = sandbox.refrain(&start(&cheat, &["--gate", "tests=sh run.sh", "--protect", "run.sh"]));
    let said = format!("{}{}", run.stdout, run.stderr);
    assert_eq!(sandbox.note("forged"), "x\n");
    assert!(said.contains("is not what its name says"), "{said}");
    assert_eq!(sandbox.status("job")["verified"], false, "{said}");
}

/// The target of such a link is in no tree.
#[rstest]
#[case::absolute("ln -sf \"$HOME/sum.sh\" sum.sh", "sum.sh", &[])]
#[case::absolute_there("ln -sf \"$HOME/sum.sh\" sum.sh", "sum.sh", &["--clean-checkout"])]
#[case::above("mkdir -p src; ln -s ../../home/sum.sh src/sum.sh; ln -sf src/sum.sh sum.sh", "src/sum.sh", &[])]
#[case::by_way_of_an_ignored_one("ln -s \"$HOME\" home.gen; ln -sf home.gen/sum.sh sum.sh", "sum.sh", &[])]
#[case::committed("ln -sf \"$HOME/sum.sh\" sum.sh; git add .; git commit -qm Work", "sum.sh", &["--clean-checkout"])]
fn a_link_out_of_the_worktree_proves_nothing(#[case] cheat: &str, #[case] path: &str, #[case] more: &[&str]) {
    let (sandbox, _) = project();
    write(&sandbox.project().join("sum.sh"), "wrong\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Sum"]);
    let cheat =
        format!("[ $REFRAIN_ITERATION != 1 ] || {{ echo right > \"$HOME/sum.sh\"; {cheat}; }}\n{CLAIM}");
    let cheat = sandbox.agent("cheat", &cheat);
    let words = [
        "start",
        "--command",
        &cheat,
        "--name",
        "job",
        "-p",
        "Work.",
        "-m",
        "2",
        "--gate",
        "grep -q right sum.sh",
    ];
    let run = sandbox.refrain(&[&words[..], more].concat()).with_code(10);
    let said = format!("{path} is a symbolic link out of the worktree, to ");
    assert!(run.stdout.contains(&said), "{}", run.stdout);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    let told = "CLAIM REFUSED: links lead out of the worktree:\n- ";
    assert!(prompt.contains(told) && prompt.contains(&said), "{prompt}");
    assert!(prompt.contains("Replace such links by files"), "{prompt}");
    assert_eq!(sandbox.status("job")["verified"], false);
}

#[test]
fn links_inside_the_worktree_and_the_users_own_are_no_hindrance() {
    let (sandbox, _) = project();
    std::os::unix::fs::symlink("/etc/hostname", sandbox.project().join("own")).unwrap();
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Link"]);
    let work = sandbox
        .agent("work", &format!("mkdir a b; echo right > b/c; ln -s ../b/c a/d; ln -s nowhere e\n{CLAIM}"));
    for (name, more) in [("job", &[][..]), ("clean", &["--clean-checkout"])] {
        let words = [
            "start",
            "--command",
            &work,
            "--name",
            name,
            "-p",
            "Work.",
            "-m",
            "1",
            "--worktree",
            "--gate",
            "grep -q right a/d",
        ];
        sandbox.refrain(&[&words[..], more].concat()).with_code(0);
    }
}
