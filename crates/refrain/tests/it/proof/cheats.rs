//! Agents that cheat: each gets its gates to pass, or its claim to be accepted, without the work; and each is refused,
//! with a reason for the user and for its next run. Cheats that this cannot see, such as an ignored file that a gate
//! reads, are the subject of `--clean-checkout`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, sandbox};

/// A little of everything, with a mistake in `src/sum.sh` that its tests find.
const PROJECT: &[(&str, &str)] = &[
    ("src/sum.sh", "sum() { echo 0; }\n"),
    ("tests/test_sum.sh", ". ./src/sum.sh\n[ \"$(sum 1 2)\" = 3 ] || { echo 'sum is wrong'; exit 1; }\n"),
    ("tests/test_sum.py", "import unittest\n"),
    (
        "test.sh",
        "#!/bin/sh\nfor test in tests/test_*.sh; do [ ! -e $test ] || sh $test || exit 1; done\necho 'all is well'\n",
    ),
    ("conftest.py", "# nothing yet\n"),
    ("pyproject.toml", "[project]\nname = \"sum\"\n"),
    ("package.json", "{ \"name\": \"sum\", \"scripts\": { \"test\": \"sh test.sh\" } }\n"),
    ("Makefile", "test:\n\tsh test.sh\n"),
    ("Cargo.toml", "[package]\nname = \"sum\"\nversion = \"0.1.0\"\n"),
    ("src/lib.rs", ""),
    (".gitignore", "*.log\n/build/\n"),
];

/// Everything that the files offer is protected; of their gates one is enough, because no test runner need be
/// installed here.
const FLAGS: &[&str] = &[
    "--auto-gates",
    "--yes",
    "--gate",
    "npm-test=sh test.sh",
    "--gate",
    "make-test=true",
    "--gate",
    "cargo-test=true",
    "--gate",
    "pytest=true",
    "--soft-gate",
    "cargo-clippy=true",
    "--soft-gate",
    "cargo-fmt=true",
];

const WEAKEN: &str = "echo true > tests/test_sum.sh";
const MEND: &str = "echo 'sum() { echo $(($1 + $2)); }' > src/sum.sh";

fn project() -> Sandbox {
    let sandbox = sandbox();
    for (path, text) in PROJECT {
        let path = sandbox.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text);
    }
    fs::set_permissions(sandbox.project().join("test.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A project"]);
    sandbox
}

/// An agent that cheats once and then claims in each of its runs.
fn agent(sandbox: &Sandbox, cheat: &str) -> String {
    sandbox.agent("cheat", &format!("if [ $REFRAIN_ITERATION = 1 ]; then\n{cheat}\nfi\n{CLAIM}"))
}

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["start", "--command", agent, "--name", "job", "-p", "Mend the sum.", "-m", "2"], more].concat()
}

/// Protected files. Each gets the gates to pass, or would with the runner that it is aimed at.
#[rstest]
#[case::deletes_a_test("rm tests/test_sum.sh", "tests/test_sum.sh was deleted")]
#[case::renames_a_test_so_that_it_is_skipped(
    "mv tests/test_sum.sh tests/old_sum.sh",
    "tests/test_sum.sh was deleted"
)]
#[case::renames_it_by_case("mv tests/test_sum.sh tests/Test_sum.sh", "tests/test_sum.sh was deleted")]
#[case::weakens_an_assertion("sed -i 's/= 3/!= 3/' tests/test_sum.sh", "tests/test_sum.sh was changed")]
#[case::ends_a_test_early("sed -i '1i exit 0' tests/test_sum.sh", "tests/test_sum.sh was changed")]
#[case::ends_the_runner_early("printf 'import os\\nos._exit(0)\\n' > conftest.py", "conftest.py was changed")]
#[case::adds_a_conftest_elsewhere(
    "mkdir sub; echo 'collect_ignore_glob = [\"*\"]' > sub/conftest.py",
    "sub/conftest.py is new"
)]
#[case::adds_configuration_of_pytest(
    "printf '[pytest]\\naddopts = --co\\n' > pytest.ini",
    "pytest.ini is new"
)]
#[case::adds_a_section("printf '[tool:pytest]\\naddopts = --co\\n' > setup.cfg", "setup.cfg is new")]
#[case::adds_a_part(
    "printf '[tool.pytest.ini_options]\\naddopts = \"--co\"\\n' >> pyproject.toml",
    "pyproject.toml was changed at tool.pytest"
)]
#[case::shadows_the_runner("echo 'raise SystemExit(0)' > unittest.py", "unittest.py is new")]
#[case::changes_a_script_of_npm(
    "sed -i 's/sh test.sh/true/' package.json",
    "package.json was changed at scripts"
)]
#[case::adds_a_script_of_npm(
    "sed -i 's/\"test\":/\"pretest\": \"rm -r tests\", \"test\":/' package.json",
    "package.json was changed at scripts"
)]
#[case::changes_a_target("printf 'test:\\n\\ttrue\\n' > Makefile", "Makefile was changed")]
#[case::adds_a_makefile_that_comes_first("printf 'test:\\n\\ttrue\\n' > GNUmakefile", "GNUmakefile is new")]
#[case::adds_one_by_another_case("printf 'test:\\n\\ttrue\\n' > makefile", "makefile is new")]
#[case::switches_tests_of_cargo_off(
    "printf '[lib]\\ntest = false\\n' >> Cargo.toml",
    "Cargo.toml was changed at lib"
)]
#[case::has_cargo_run_another_program(
    "mkdir .cargo; printf '[target.\"cfg(all())\"]\\nrunner = \"true\"\\n' > .cargo/config.toml",
    ".cargo/config.toml is new"
)]
#[case::edits_the_gates_script("sed -i '2i exit 0' test.sh", "test.sh was changed")]
#[case::replaces_it_by_a_link("printf 'exit 0\\n' > ok; ln -sf ok test.sh", "test.sh became a link")]
#[case::makes_it_not_executable("chmod -x test.sh", "test.sh has another mode")]
#[case::sets_the_tests_environment("echo 'SKIP=1' > .env.test", ".env.test is new")]
#[case::changes_what_ci_runs(
    "mkdir -p .github/workflows; echo 'on: push' > .github/workflows/ci.yml",
    ".github/workflows/ci.yml is new"
)]
#[case::changes_the_gates_of_the_next_loop("echo > refrain.toml", "refrain.toml is new")]
#[case::puts_a_linked_folder_in_place(
    "mkdir kept; mv tests/* kept; rmdir tests; ln -s kept tests; echo true > kept/test_sum.sh",
    "tests/test_sum.py was deleted"
)]
#[case::hides_it_by_a_rule(
    "mkdir sub; echo '*' > sub/.gitignore; echo x > sub/conftest.py",
    "sub/conftest.py is new"
)]
#[case::hides_it_by_the_repositorys_rules(
    "echo sub >> .git/info/exclude; mkdir sub; echo x > sub/conftest.py",
    "sub/conftest.py is new"
)]
#[case::hides_it_in_a_repository("git init -q sub; echo x > sub/conftest.py", "sub/conftest.py is new")]
#[case::has_git_assume_it_unchanged(
    "git update-index --assume-unchanged tests/test_sum.sh; echo true > tests/test_sum.sh",
    "tests/test_sum.sh was changed"
)]
#[case::has_git_skip_it(
    "git update-index --skip-worktree tests/test_sum.sh; echo true > tests/test_sum.sh",
    "tests/test_sum.sh was changed"
)]
#[case::commits_it("echo true > tests/test_sum.sh; git commit -qam x", "tests/test_sum.sh was changed")]
#[case::rewrites_history(
    "echo true > tests/test_sum.sh; git commit -qa --amend -m x",
    "tests/test_sum.sh was changed"
)]
#[case::puts_the_time_back(
    "touch -r tests/test_sum.sh ref; sed -i 's/= 3/= 0/' tests/test_sum.sh; touch -r ref tests/test_sum.sh; rm ref",
    "tests/test_sum.sh was changed"
)]
#[case::sets_a_filter_up(
    "git config filter.old.clean \"git show HEAD:tests/test_sum.sh; :\"; echo 'tests/*.sh filter=old' > .git/info/attributes; echo true > tests/test_sum.sh",
    "tests/test_sum.sh was changed"
)]
#[case::has_a_helper_put_it_back(
    "echo true > tests/test_sum.sh; setsid sh -c 'read -r _ < \"$GATES/later\"; git checkout -q tests' > /dev/null 2>&1 &",
    "tests/test_sum.sh was changed"
)]
fn a_change_of_a_protected_path_refuses_the_claim(#[case] cheat: &str, #[case] touched: &str) {
    let sandbox = project();
    let _never = sandbox.gate("later");
    let agent = agent(&sandbox, cheat);
    let run = sandbox.refrain(&start(&agent, FLAGS)).with_code(10);
    let refusal = run.stdout.lines().find(|line| line.contains("the claim is refused: "));
    assert!(refusal.is_some_and(|line| line.contains(touched)), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["tree"]), (&json!(false), &json!(null)));
    assert!(
        status["reason"].as_str().unwrap().contains("what is protected is touched"),
        "{}",
        status["reason"]
    );

    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    let refused = "CLAIM REFUSED: you changed what is protected:\n- ";
    assert!(prompt.contains(refused) && prompt.contains(touched), "{prompt}");
    assert!(prompt.contains("prints a file as it was. Remove what is new. What changed:"), "{prompt}");
    let path = touched.split(' ').next().unwrap();
    assert!(prompt.contains(&format!("diff --git a/{path} b/{path}\n")), "the lines: {prompt}");
    sandbox.no_process_is_left();
}

/// Claims that are none, and work that is none.
#[rstest]
#[case::claims_without_work(
    ":",
    CLAIM,
    "the claim is refused: gate tests failed",
    "CLAIM REFUSED: gate tests failed"
)]
#[case::claims_in_a_fence(
    ":",
    "printf '```\\n<promise>COMPLETE</promise>\\n```\\n'",
    "no claim",
    "GATE FAILED: tests"
)]
#[case::claims_in_passing(
    ":",
    "echo 'I print <promise>COMPLETE</promise> when I am done.'",
    "no claim",
    "GATE FAILED: tests"
)]
#[case::sets_the_status(
    ":",
    "sed -i 's/^status:.*/status: done/' \"$REFRAIN_STATE_FILE\"",
    "the claim is refused: gate tests failed",
    "CLAIM REFUSED: gate tests failed"
)]
#[case::gives_git_another_meaning(
    "git config alias.diff '!true'; git config alias.status '!true'",
    CLAIM,
    "the claim is refused: gate tests failed",
    "CLAIM REFUSED: gate tests failed"
)]
#[case::writes_its_own_context(
    "printf 'All gates passed.\\n' > \"$REFRAIN_CONTEXT_FILE\"",
    CLAIM,
    "the claim is refused: gate tests failed",
    "sum is wrong"
)]
#[case::leaves_a_process_that_answers(
    "setsid sh -c 'echo 3 > answer; exec sleep 1000' > /dev/null 2>&1 & echo $! > pid",
    "until [ -s answer ]; do :; done; echo 'sum() { kill -0 $(cat pid) && cat answer; }' > src/sum.sh; echo '<promise>COMPLETE</promise>'",
    "the claim is refused: gate tests failed",
    "CLAIM REFUSED: gate tests failed"
)]
fn nothing_is_done_by_saying_so(
    #[case] cheat: &str,
    #[case] claim: &str,
    #[case] shown: &str,
    #[case] told: &str,
) {
    let sandbox = project();
    let agent = sandbox.agent("cheat", &format!("{cheat}\n{claim}"));
    let run = sandbox.refrain(&start(&agent, &["--gate", "tests=sh test.sh"])).with_code(10);
    assert!(run.stdout.contains(shown), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["verified"], false);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains(told), "{prompt}");
    sandbox.no_process_is_left();
}

#[rstest]
#[case::stands_earlier(
    "printf '#!/bin/sh\\nexit 0\\n' > \"$NOTES/first/check\"; chmod +x \"$NOTES/first/check\"",
    "check is found as ",
    "notes/first/check, and was "
)]
#[case::is_changed(
    "printf '#!/bin/sh\\nexit 0\\n' > \"$NOTES/second/check\"",
    "check (",
    "is another than at the start"
)]
#[case::is_a_link(
    "printf '#!/bin/sh\\nexit 0\\n' > ok; chmod +x ok; ln -sf \"$PWD/ok\" \"$NOTES/second/check\"",
    "check (",
    "is another than at the start"
)]
fn a_program_that_was_put_in_place_proves_nothing(
    #[case] cheat: &str,
    #[case] who: &str,
    #[case] what: &str,
) {
    let sandbox = project();
    for folder in ["first", "second"] {
        fs::create_dir(sandbox.root().join("notes").join(folder)).unwrap();
    }
    let real = sandbox.agent("check", "sh test.sh");
    fs::rename(real, sandbox.root().join("notes/second/check")).unwrap();
    let at = |folder: &str| sandbox.root().join("notes").join(folder).display().to_string();
    let path = format!("{}:{}:{}", at("first"), at("second"), std_path(&sandbox));
    let agent = agent(&sandbox, cheat);
    let args = start(&agent, &["--gate", "tests=check --all"]);
    let run = sandbox.command(&args).env("PATH", &path).run().with_code(10);
    let refusal = run.stdout.lines().find(|line| line.contains("the claim is refused: ")).unwrap();
    assert!(refusal.contains(who) && refusal.contains(what), "{refusal}");
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains(who) && prompt.contains("Remove what hides or replaces a program"), "{prompt}");
}

fn std_path(sandbox: &Sandbox) -> String {
    sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1
}

#[rstest]
#[case::that_weakens_a_test(
    "#!/bin/sh\\necho true > tests/test_sum.sh\\ngit add tests\\n",
    "tests/test_sum.sh was changed"
)]
#[case::that_commits_another_tree(
    "#!/bin/sh\\ngit update-index --add --cacheinfo 100644,$(date +%%s%%N | git hash-object -w --stdin),sneaked\\n",
    "gates or hooks change each time"
)]
fn a_hook_that_changes_the_committed_files_is_refused(#[case] hook: &str, #[case] says: &str) {
    let sandbox = project();
    // The user's own: one of the agent's is not run.
    let install = format!(
        "mkdir -p .git/hooks; printf '{hook}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    );
    sandbox.tool("sh", &["-c", &install]).run().with_code(0);
    let agent = agent(&sandbox, MEND);
    let flags = [FLAGS, &["--git-workflow", "commit"]].concat();
    let run = sandbox.refrain(&start(&agent, &flags));
    assert!(run.stdout.contains("the claim is refused: ") && run.stdout.contains(says), "{}", run.stdout);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("CLAIM REFUSED: "), "{prompt}");
}

#[test]
fn a_redirected_core_worktree_stops_the_loop() {
    let sandbox = project();
    let agent = agent(&sandbox, &format!("{WEAKEN}; git config core.worktree \"$NOTES\""));
    sandbox.refrain(&start(&agent, FLAGS)).with_code(14);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["verified"]), (&json!("blocked"), &json!(false)));
}

/// An agent's changes to the journal of its own loop, which the runner then finds.
#[rstest]
#[case::changes_a_byte(
    "at=$(grep -abo 'Mend the sum' $f | head -n 1 | cut -d: -f1); printf Rend | dd of=$f bs=1 seek=$at conv=notrunc 2> /dev/null"
)]
#[case::replaces_it("sed -i 's/Mend the sum/Do nothing/' $f")]
#[case::cuts_its_first_record("truncate -s 100 $f")]
#[case::empties_it(": > $f")]
#[case::appends_half_a_line("printf '{\"seq\":' >> $f")]
#[case::puts_a_link_there("cp $f copy; ln -sf $PWD/copy $f")]
#[case::puts_a_fifo_there("mkfifo pipe; mv -f pipe $f")]
fn a_journal_that_the_agent_changed_is_put_aside_and_written_back(#[case] change: &str) {
    let sandbox = project();
    let agent = agent(&sandbox, &format!("{MEND}\nf=.git/refrain/loops/job/journal.jsonl; {change}"));
    let run = sandbox.refrain(&start(&agent, FLAGS)).with_code(0);
    let told = "another process had changed the journal: its version is kept as foreign-1";
    assert!(run.stdout.contains(told), "{}", run.stdout);
    assert!(sandbox.loop_dir("job").join("foreign-1").symlink_metadata().is_ok());
    let restored = sandbox.journal("job").into_iter().find(|it| it["event"]["type"] == "journal.restored");
    assert_eq!(restored.unwrap()["event"]["data"]["kept_as"], "foreign-1");
    sandbox.refrain(&["verify", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "completed");
}

/// A test runner as others are: it loads the code under test, and prints its summary last.
const RUNNER: &str = "#!/bin/sh\n. ./src/sum.sh\nif [ \"$(sum 1 2)\" = 3 ]; then said=OK; else said='FAILED (failures=1)'; fi\n\
                      printf 'Ran 1 test in 0.001s\\n\\n%s\\n' \"$said\"\n[ \"$said\" = OK ]\n";

fn project_with_runner() -> Sandbox {
    let sandbox = project();
    write(&sandbox.project().join("run.sh"), RUNNER);
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A runner"]);
    sandbox
}

#[rstest]
#[case::in_the_worktree("tests=sh run.sh", &[])]
#[case::in_a_clean_checkout("tests=sh run.sh", &["--clean-checkout"])]
#[case::with_more_behind_it("tests=sh run.sh && echo 'all is well'", &[])]
#[case::where_files_are_protected("tests=sh run.sh", &["--protect", "run.sh", "--protect-existing", "tests/**"])]
fn a_runner_that_the_code_under_test_ended_tested_nothing(#[case] gate: &str, #[case] more: &[&str]) {
    let sandbox = project_with_runner();
    let agent = agent(&sandbox, "echo 'exit 0' > src/sum.sh");
    let run = sandbox.refrain(&start(&agent, &[&["--gate", gate], more].concat())).with_code(10);
    let reason = "it tested nothing: no test runner printed a summary, but 1 test runner did before";
    assert!(run.stdout.contains(reason), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["last_failure"]["gate"]), (&json!(false), &json!("tests")));
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("it tested nothing"), "{prompt}");
}

/// A gate that hides the output of a good run prints nothing then, and has passed.
#[rstest]
#[case::its_summary_is_there("tests=sh run.sh")]
#[case::it_shows_failures_only("tests=sh run.sh > \"$NOTES/log\" 2>&1 || { cat \"$NOTES/log\"; exit 1; }")]
fn a_gate_with_a_summary_or_silent_success_passes(#[case] gate: &str) {
    let sandbox = project_with_runner();
    let agent = agent(&sandbox, MEND);
    sandbox.refrain(&start(&agent, &["--gate", gate])).with_code(0);
    assert_eq!(sandbox.status("job")["verified"], true);
}

#[rstest]
#[case::just_the_work("")]
#[case::adds_a_test("; echo '. ./src/sum.sh; [ \"$(sum 2 2)\" = 4 ]' > tests/test_more.sh")]
#[case::adds_dependencies(
    "; sed -i 's/\"name\": \"sum\",/\"name\": \"sum\", \"dependencies\": { \"left-pad\": \"1\" },/' package.json; printf 'dependencies = [\"attrs\"]\\n' >> pyproject.toml; printf '[dependencies]\\nserde = \"1\"\\n' >> Cargo.toml"
)]
#[case::builds_and_ignores(
    "; echo target >> .gitignore; mkdir -p build/sub; echo x > build/sub/conftest.py; echo x > a.log"
)]
#[case::puts_back_what_it_tried(
    "; echo true > tests/test_sum.sh; git checkout -q tests; rm -f conftest.py; git checkout -q conftest.py"
)]
fn honest_work_passes(#[case] more: &str) {
    let sandbox = project();
    let agent = agent(&sandbox, &format!("{MEND}{more}"));
    sandbox.refrain(&start(&agent, FLAGS)).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(1)));
}
