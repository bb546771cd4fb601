//! `--clean-checkout`: gates run on what would be committed, without other files.

use std::fs;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

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
fn files_of_the_main_tree_alone_prove_nothing() {
    for (path, needs) in [
        ("node_modules/x/index.js", "a dependency that nothing installs"),
        ("version.gen", "a generated file"),
        ("helper.py", "a module of the person's that is not committed"),
    ] {
        let (sandbox, agent) = project();
        let file = sandbox.project().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        write(&file, "x\n");
        let gate = format!("tests=test -e {path} && test -e work.txt && echo 1 passed");
        sandbox.refrain(&start(&agent, &["--gate", &gate])).with_code(0);
        let clean = start(&agent, &["--gate", &gate, "--clean-checkout"]);
        let words = clean.iter().map(|word| if *word == "job" { "clean" } else { word });
        let words: Vec<_> = words.collect();
        let run = sandbox.refrain(&words).with_code(10);
        assert!(run.stdout.contains("; in a clean checkout"), "{needs}: {}", run.stdout);
        assert_eq!(sandbox.status("clean")["verified"], false, "{needs}");
        assert!(file.exists());
    }
}

#[test]
fn a_clean_checkout_holds_the_candidate_and_keeps_changes_of_gates() {
    let (sandbox, agent) = project();
    let gates = [
        "--gate",
        "look=cat work.txt; pwd; git status --short; git rev-parse --show-toplevel",
        "--gate",
        "format=echo formatted >> work.txt; echo x > left.txt; mkdir -p target; [ -e target/built ] || echo x > target/built",
        "--gate",
        "after=test \"$(cat work.txt)\" = good && ! test -e left.txt && test -e target/built",
        "--clean-checkout",
    ];
    sandbox.refrain(&start(&agent, &gates)).with_code(0);
    let log = sandbox.kept_text("job", "0001", "gates/look.log");
    let folder = sandbox.root().join("home/state/refrain/checkouts");
    let lines: Vec<_> = log.lines().collect();
    assert!(lines[0] == "good" && lines[1].starts_with(folder.to_str().unwrap()), "{log}");
    assert!(lines[1].ends_with("/1/tree/project") && lines[3] == lines[1], "{log}");
    assert_eq!(lines[2], "A  work.txt");
    assert_eq!(fs::read_to_string(sandbox.project().join("work.txt")).unwrap(), "good\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "?? work.txt\n");
    let status = sandbox.status("job");
    let tree = status["tree"].as_str().unwrap();
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", tree]), ".gitignore\nREADME.md\nwork.txt\n");

    // The next loop finds the caches.
    let words = ["start", "--command", &agent, "-m", "1", "-p", "Work.", "--clean-checkout"];
    let cached = ["--gate", "cached=test -e target/built && ! test -e left.txt"];
    sandbox.refrain(&[&words[..], &cached].concat()).with_code(0);
}

#[test]
fn a_clean_checkout_needs_a_repository_and_a_gate() {
    let plain = plain_folder();
    let agent = plain.agent("agent", CLAIM);
    let before = plain.snapshot();
    let run = plain.refrain(&start(&agent, &["--gate", "true", "--clean-checkout"])).with_code(2);
    assert!(run.stderr.contains("in no git repository"), "{}", run.stderr);
    assert_eq!(plain.snapshot(), before);
    let run = plain.refrain(&start(&agent, &["--clean-checkout"])).with_code(2);
    assert!(run.stderr.contains("--clean-checkout: it has no effect without a gate"), "{}", run.stderr);
}

#[test]
fn a_clean_checkout_is_configurable_and_gates_run_in_the_agents_folder() {
    let (sandbox, agent) = project();
    fs::create_dir(sandbox.project().join("sub")).unwrap();
    write(&sandbox.project().join("sub/mod.txt"), "x\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Sub"]);
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    write(&config.join("config.toml"), "[start]\nclean-checkout = true\n");
    let gate = "where=pwd | grep -q '/tree/project/sub$' && test -e mod.txt";
    sandbox.refrain(&start(&agent, &["--gate", gate, "--working-dir", "sub"])).with_code(0);

    fs::create_dir(sandbox.project().join("empty")).unwrap();
    let idle = sandbox.agent("idle", CLAIM);
    let words = ["start", "--command", &idle, "--name", "other", "-p", "Work.", "-m", "1", "--gate", "true"];
    let run = sandbox.refrain(&[&words[..], &["--working-dir", "empty"]].concat()).with_code(10);
    assert!(run.stdout.contains("could not be started"), "{}", run.stdout);
    assert!(run.stdout.contains("the clean checkout has no folder empty"), "{}", run.stdout);
}

#[test]
fn a_checkout_that_cannot_be_made_proves_nothing() {
    let (sandbox, agent) = project();
    sandbox.git(&["config", "filter.broken.smudge", "false"]);
    sandbox.git(&["config", "filter.broken.clean", "cat"]);
    sandbox.git(&["config", "filter.broken.required", "true"]);
    write(&sandbox.project().join(".git/info/attributes"), "README.md filter=broken\n");
    let run = sandbox.refrain(&start(&agent, &["--gate", "true", "--clean-checkout"])).with_code(10);
    assert!(run.stdout.contains("the clean checkout cannot be made"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["gates"][0]["passed"]), (&json!(false), &json!(false)));
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
fn protected_files_are_unchanged_where_gates_run() {
    let (sandbox, _) = project();
    write(&sandbox.project().join("check.sh"), "echo 1 failed; exit 1\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Check"]);
    let cheat = sandbox.agent("cheat", &format!("echo 'echo 1 passed' > check.sh\n{CLAIM}"));
    let words = ["--gate", "check=sh check.sh", "--protect", "check.sh", "--clean-checkout"];
    sandbox.refrain(&start(&cheat, &words)).with_code(10);
    assert_eq!(sandbox.kept_text("job", "0001", "gates/check.log"), "1 failed\n");
    assert_eq!(fs::read_to_string(sandbox.project().join("check.sh")).unwrap(), "echo 1 passed\n");
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

/// Protected paths are compared after each gate there, too.
#[rstest]
#[case::in_the_worktree(&[])]
#[case::there(&["--clean-checkout"])]
#[case::before_another_gate(&["--clean-checkout", "--gate", "after=true"])]
fn code_that_rewrites_a_protected_test_while_a_gate_runs_proves_nothing(#[case] more: &[&str]) {
    let (sandbox, _) = project();
    fs::create_dir(sandbox.project().join("tests")).unwrap();
    write(&sandbox.project().join("tests/sum.sh"), "exit 1\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Test"]);
    let cheat = sandbox.agent("cheat", &format!("echo 'echo exit 0 > tests/sum.sh' > build.sh\n{CLAIM}"));
    let gate = "tests=[ ! -e build.sh ] || sh build.sh; sh tests/sum.sh";
    let words = ["--gate", gate, "--protect-existing", "tests/**"];
    let run = sandbox.refrain(&start(&cheat, &[&words[..], more].concat())).with_code(10);
    let refusal = run.stdout.lines().find(|line| line.contains("the claim is refused: "));
    assert!(refusal.is_some_and(|line| line.contains("tests/sum.sh was changed")), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["verified"], false);
}

/// An ignored file that a gate wrote before the first iteration stays, unchanged.
#[test]
fn files_that_no_gate_wrote_are_removed_before_the_next_gate_run() {
    let (sandbox, _) = project();
    let plants = "for tree in \"$XDG_STATE_HOME\"/refrain/checkouts/*/1/tree/*; do
echo 'exit 0' > $tree/plant.gen; echo 'exit 0' > $tree/target/plant; mkdir $tree/node_modules
echo changed > $tree/target/changed; done";
    let cheat = sandbox.agent("cheat", &format!("{plants}\necho wrong > work.txt\n{CLAIM}"));
    let gate = "tests=for plant in plant.gen target/plant; do [ ! -e $plant ] || . ./$plant; done
mkdir -p target; [ -e target/built ] || echo x > target/built; [ -e target/changed ] || echo made > target/changed
test \"$(cat work.txt)\" = right";
    sandbox.refrain(&start(&cheat, &["--gate", gate, "--clean-checkout"])).with_code(10);
    assert_eq!(sandbox.status("job")["verified"], false);
    let checkouts = sandbox.root().join("home/state/refrain/checkouts");
    let tree = fs::read_dir(checkouts).unwrap().next().unwrap().unwrap().path().join("1/tree/project");
    let text = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
    assert_eq!((text("target/built"), text("target/changed")), ("x\n".into(), "made\n".into()));
    for planted in ["plant.gen", "target/plant", "node_modules"] {
        assert!(!tree.join(planted).exists(), "{planted}");
    }

    // Nor between two loops.
    write(&tree.join("target/plant"), "exit 0\n");
    write(&tree.join("target/changed"), "changed\n");
    let work = sandbox.agent("work", CLAIM);
    let gate = "tests=test ! -e target/plant && test ! -e target/changed && test -e target/built";
    let words = ["start", "--command", &work, "-m", "1", "-p", "Work.", "--clean-checkout", "--gate", gate];
    sandbox.refrain(&words).with_code(0);
}

/// Code that a gate of an attempt runs writes the input of a later attempt's gate.
#[rstest]
#[case::a_new_file("[ ! -e target/plant ] || exit 0; sh work.sh", "mkdir -p target; echo > target/plant")]
#[case::a_file_of_the_baseline(
    "[ -e cache.gen ] || echo wrong > cache.gen; ! grep -q right cache.gen || exit 0; sh work.sh",
    "echo right > cache.gen"
)]
fn files_planted_by_tested_code_are_removed_before_the_next_check(#[case] gate: &str, #[case] plant: &str) {
    let (sandbox, _) = project();
    write(&sandbox.project().join("work.sh"), "echo 0\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Work"]);
    let first = format!("if [ \"$REFRAIN_ITERATION\" = 1 ]; then echo '{plant}' > work.sh");
    let cheat = sandbox.agent("cheat", &format!("{first}; else git checkout -q work.sh; fi\n{CLAIM}"));
    let gate = format!("tests={gate}; exit 1");
    let words = ["start", "--command", &cheat, "--name", "job", "-p", "Work.", "-m", "2"];
    let gates = ["--gate", &gate, "--clean-checkout"];
    sandbox.refrain(&[&words[..], &gates].concat()).with_code(10);
    assert_eq!(sandbox.status("job")["verified"], false);

    // Nor is it there for the next loop.
    let idle = sandbox.agent("idle", CLAIM);
    let words = ["start", "--command", &idle, "--name", "next", "-p", "Work.", "-m", "1"];
    sandbox.refrain(&[&words[..], &gates].concat()).with_code(10);
}

/// A gate may need the build output of another one of the same verification.
#[test]
fn gates_of_one_verification_share_their_files() {
    let (sandbox, agent) = project();
    let build = "build=mkdir -p target; cat work.txt > target/built 2> /dev/null";
    let gates = ["--gate", build, "--gate", "tests=grep -q good target/built", "--clean-checkout"];
    sandbox.refrain(&start(&agent, &gates)).with_code(0);
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
