//! Which files are protected and which of them changed, against every trick of an agent with git.

use std::fs;
use std::os::unix::fs::symlink;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{Part, ProtectedPaths};
use refrain_git::{ProtectRequest, Touches};
use rstest::rstest;

use crate::place::TestRepository;

/// A place with tests, their configuration, a manifest, and an ignored file.
fn place() -> TestRepository {
    let place = TestRepository::new();
    place.write("tests/test_a.py", "assert True\n");
    place.write("conftest.py", "# nothing\n");
    place.write("package.json", "{\"scripts\": {\"test\": \"jest\"}}\n");
    place.write(".gitignore", "node_modules/\n*.log\n__pycache__\n");
    place.write("node_modules/a/conftest.py", "# theirs\n");
    place.write("ci/run", "#!/bin/sh\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Tests"]);
    place
}

struct Guard(ProtectedPaths, Vec<Part>);

impl Guard {
    fn new() -> Self {
        let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        let paths =
            ProtectedPaths::new(&globs(&["conftest.py", "pytest.ini", "/ci/**"]), &globs(&["/tests/**"]))
                .unwrap();
        let part = Part {
            path: RepoPath::from_bytes(b"package.json"),
            frozen: globs(&["scripts"]),
            may_gain: Vec::new(),
        };
        Self(paths, vec![part])
    }

    fn base(&self, place: &TestRepository) -> Oid {
        let index = place.git_path("protected-index");
        let request =
            ProtectRequest { paths: &self.0, parts: &self.1, index: &index, checkout: None, cancel: None };
        place.repository().protected(request).unwrap()
    }

    fn touched(&self, place: &TestRepository, base: &Oid) -> Touches {
        let index = place.git_path("protected-index");
        let request =
            ProtectRequest { paths: &self.0, parts: &self.1, index: &index, checkout: None, cancel: None };
        place.repository().touched(request, base).unwrap()
    }
}

/// The reported change of each touched path, as `path change`.
fn words(touches: &Touches) -> Vec<String> {
    let paths = touches.paths.iter().map(|it| it.to_string().split(',').next().unwrap().to_owned());
    paths.chain(touches.parts.iter().map(|it| it.to_string().split(',').next().unwrap().to_owned())).collect()
}

fn append(place: &TestRepository, path: &str) {
    place.write(path, format!("{}pass\n", place.read(path)));
}

#[rstest]
#[case::nothing(|_: &TestRepository| {}, &[])]
#[case::honest_work(|p: &TestRepository| { p.write("src/a.rs", "x"); p.write("tests/test_b.py", "new"); p.write("package.json", "{\"scripts\": {\"test\": \"jest\"}, \"dependencies\": {\"a\": \"1\"}}"); }, &[])]
#[case::what_runners_leave(|p: &TestRepository| { p.write("ci/__pycache__/x.pyc", "1"); p.write("tests/.pytest_cache/x", "1"); }, &[])]
#[case::what_was_ignored_before(|p: &TestRepository| { p.write("node_modules/b/conftest.py", "x"); p.write("node_modules/a/conftest.py", "y"); }, &[])]
#[case::a_test_is_changed(|p: &TestRepository| append(p, "tests/test_a.py"), &["tests/test_a.py was changed"])]
#[case::a_test_is_gone(|p: &TestRepository| fs::remove_file(p.path("tests/test_a.py")).unwrap(), &["tests/test_a.py was deleted"])]
#[case::a_test_is_renamed(|p: &TestRepository| fs::rename(p.path("tests/test_a.py"), p.path("tests/skip_a.py")).unwrap(), &["tests/test_a.py was deleted"])]
#[case::another_case(|p: &TestRepository| fs::rename(p.path("tests/test_a.py"), p.path("tests/Test_a.py")).unwrap(), &["tests/test_a.py was deleted"])]
#[case::a_mode(|p: &TestRepository| p.make_executable("ci/run"), &["ci/run has another mode"])]
#[case::a_link(|p: &TestRepository| { p.write("other", "x"); fs::remove_file(p.path("ci/run")).unwrap(); symlink("../other", p.path("ci/run")).unwrap(); }, &["ci/run became a link"])]
#[case::a_linked_folder(|p: &TestRepository| { fs::rename(p.path("tests"), p.path("kept")).unwrap(); symlink("kept", p.path("tests")).unwrap(); }, &["tests/test_a.py was deleted"])]
#[case::a_link_for_a_frozen_folder(|p: &TestRepository| { fs::rename(p.path("ci"), p.path("kept")).unwrap(); symlink("kept", p.path("ci")).unwrap(); }, &["ci is a new link", "ci/run was deleted"])]
#[case::new_configuration(|p: &TestRepository| p.write("sub/pytest.ini", "[pytest]\n"), &["sub/pytest.ini is new"])]
#[case::hidden_by_a_new_rule(|p: &TestRepository| { p.write("sub/.gitignore", "*\n"); p.write("sub/conftest.py", "x"); }, &["sub/conftest.py is new"])]
#[case::a_folder_hidden_by_a_new_rule(|p: &TestRepository| { append(p, ".gitignore"); p.write(".gitignore", "node_modules/\nsub/\n"); p.write("sub/conftest.py", "x"); }, &["sub/conftest.py is new"])]
#[case::hidden_by_the_repositorys_rules(|p: &TestRepository| { p.write_at(p.git_path("info/exclude"), "sub\n"); p.write("sub/conftest.py", "x"); }, &["sub/conftest.py is new"])]
#[case::hidden_in_a_repository(|p: &TestRepository| { p.write("sub/conftest.py", "x"); p.git(&["init", "-q", "sub"]); }, &["sub/conftest.py is new"])]
#[case::assumed_unchanged(|p: &TestRepository| { p.git(&["update-index", "--assume-unchanged", "tests/test_a.py"]); append(p, "tests/test_a.py"); }, &["tests/test_a.py was changed"])]
#[case::skipped(|p: &TestRepository| { p.git(&["update-index", "--skip-worktree", "tests/test_a.py"]); append(p, "tests/test_a.py"); }, &["tests/test_a.py was changed"])]
#[case::committed(|p: &TestRepository| { append(p, "tests/test_a.py"); p.git(&["commit", "-qam", "x"]); }, &["tests/test_a.py was changed"])]
#[case::filtered(|p: &TestRepository| { p.git(&["config", "filter.x.clean", "echo assert True; :"]); p.write(".gitattributes", "*.py filter=x\n"); append(p, "tests/test_a.py"); }, &["tests/test_a.py was changed"])]
#[case::a_script(|p: &TestRepository| p.write("package.json", "{\"scripts\": {\"test\": \"true\"}}"), &["package.json was changed at scripts"])]
fn touched_protected_paths_are_named(#[case] agent: fn(&TestRepository), #[case] expected: &[&str]) {
    let (place, guard) = (place(), Guard::new());
    let base = guard.base(&place);
    let before = place.status();
    assert_eq!(words(&guard.touched(&place, &base)), Vec::<String>::new());
    assert_eq!(place.status(), before);
    agent(&place);
    let touched = guard.touched(&place, &base);
    assert_eq!(words(&touched), expected);
}

#[test]
fn uncommitted_protected_files_are_part_of_the_baseline() {
    let (place, guard) = (place(), Guard::new());
    append(&place, "tests/test_a.py");
    place.write("tests/test_new.py", "assert 1\n");
    place.write("conftest.log/conftest.py", "theirs\n");
    let base = guard.base(&place);
    assert_eq!(guard.touched(&place, &base), Touches::default());
    place.git(&["checkout", "-q", "tests/test_a.py"]);
    let touched = guard.touched(&place, &base);
    assert_eq!(words(&touched), ["tests/test_a.py was changed"]);
    let lines = String::from_utf8(touched.lines).unwrap();
    assert!(lines.contains("-pass\n") && lines.contains("--- a/tests/test_a.py"), "{lines}");
    assert_eq!(place.git(&["cat-file", "blob", &format!("{base}:tests/test_a.py")]), "assert True\npass");
}

#[test]
fn a_replaced_git_object_is_not_believed() {
    let (place, guard) = (place(), Guard::new());
    let base = guard.base(&place);
    append(&place, "tests/test_a.py");
    place.write("tests/it\"s \\ odd\n.py", "odd\n");
    let now = guard.base(&place);
    place.git(&["replace", base.as_str(), now.as_str()]);
    assert_eq!(words(&guard.touched(&place, &base)), ["tests/test_a.py was changed"]);
}
