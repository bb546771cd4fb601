use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn protected(frozen: &[&str], existing: &[&str]) -> ProtectedPaths {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
    ProtectedPaths::new(&owned(frozen), &owned(existing)).unwrap()
}

fn path(text: &str) -> RepoPath {
    RepoPath::from_bytes(text.as_bytes())
}

const NEW: Change = Change::Added(Kind::File);
const EDIT: Change = Change::Modified(Kind::File);
const EVERY: [Change; 9] = [
    NEW,
    Change::Added(Kind::Link),
    Change::Added(Kind::Repository),
    EDIT,
    Change::Modified(Kind::Link),
    Change::Mode,
    Change::Became(Kind::Link),
    Change::Became(Kind::Repository),
    Change::Deleted,
];

#[rstest]
#[case::the_file_itself("scripts/check.sh", "scripts/check.sh", true)]
#[case::another_file("scripts/check.sh", "scripts/check.sh.orig", false)]
#[case::not_at_another_place("scripts/check.sh", "sub/scripts/check.sh", false)]
#[case::a_name_at_the_top("conftest.py", "conftest.py", true)]
#[case::a_name_at_any_depth("conftest.py", "a/b/conftest.py", true)]
#[case::a_name_that_is_bound("/conftest.py", "a/conftest.py", false)]
#[case::a_name_that_is_bound_is_met("/conftest.py", "conftest.py", true)]
#[case::a_dot_slash("./ci/run", "ci/run", true)]
#[case::a_folder_without_wildcards("ci", "ci/deep/run", true)]
#[case::a_folder_anywhere("ci", "tools/ci/run", true)]
#[case::a_folder_by_its_slash("ci/", "ci/run", true)]
#[case::a_folder_by_its_slash_is_no_file("ci/", "ci", false)]
#[case::a_folder_with_a_path("tools/ci", "tools/ci/run", true)]
#[case::a_folder_with_a_path_elsewhere("tools/ci", "x/tools/ci/run", false)]
#[case::everything_below(".github/workflows/**", ".github/workflows/a/b.yml", true)]
#[case::beside_it(".github/workflows/**", ".github/CODEOWNERS", false)]
#[case::any_depth_from_the_top("**/jest.config.*", "jest.config.js", true)]
#[case::any_depth("**/jest.config.*", "packages/web/jest.config.ts", true)]
#[case::a_star_stays_in_its_folder("src/*", "src/a/b.rs", false)]
#[case::a_star_in_its_folder("src/*", "src/b.rs", true)]
#[case::a_star_matches_hidden_ones("**/*rc", "a/.eslintrc", true)]
#[case::no_slash_with_a_star("*.snap", "a/b/c.snap", true)]
#[case::choices("**/*.{spec,test}.ts", "a/b.test.ts", true)]
#[case::classes("**/[Mm]akefile", "sub/makefile", true)]
#[case::escaped(r"a\*b", "a*b", true)]
#[case::escaped_is_no_wildcard(r"a\*b", "axb", false)]
#[case::a_new_line_in_a_name("**/*.py", "a\nb.py", true)]
#[case::everything("**", "any/thing", true)]
fn globs_mean(#[case] glob: &str, #[case] file: &str, #[case] is_meant: bool) {
    for (protected, rule) in
        [(protected(&[glob], &[]), Rule::Frozen), (protected(&[], &[glob]), Rule::Existing)]
    {
        let found = protected.touched(&[(path(file), Change::Deleted)]);
        let expected = Violation { path: path(file), change: Change::Deleted, rule, glob: glob.to_owned() };
        assert_eq!(found, if is_meant { vec![expected] } else { vec![] }, "{glob} {file:?}");
    }
}

#[test]
fn a_frozen_path_knows_no_change_at_all() {
    let frozen = protected(&["**/pytest.ini"], &[]);
    for change in EVERY {
        assert_eq!(frozen.touched(&[(path("sub/pytest.ini"), change)]).len(), 1, "{change:?}");
        assert_eq!(frozen.touched(&[(path("sub/other.ini"), change)]), [], "{change:?}");
    }
}

#[test]
fn an_existing_path_may_be_joined_by_new_ones_and_nothing_else() {
    let existing = protected(&[], &["tests/**"]);
    for change in EVERY {
        let forbidden = !matches!(change, Change::Added(_));
        assert_eq!(!existing.touched(&[(path("tests/a.py"), change)]).is_empty(), forbidden, "{change:?}");
    }
}

#[test]
fn a_rename_is_a_deletion_and_an_addition() {
    let both = protected(&["**/conftest.py"], &["**/test_*.py"]);
    let words = |changes: &[(&str, Change)]| {
        let changes: Vec<_> = changes.iter().map(|(text, change)| (path(text), *change)).collect();
        both.touched(&changes).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // Out of the rule's reach, within it, and into it.
    assert_eq!(
        words(&[("test_a.py", Change::Deleted), ("a.py.off", NEW)]),
        ["test_a.py was deleted, but --protect-existing **/test_*.py keeps it as it was"]
    );
    assert_eq!(
        words(&[("test_a.py", Change::Deleted), ("sub/test_a.py", NEW)]),
        ["test_a.py was deleted, but --protect-existing **/test_*.py keeps it as it was"]
    );
    assert_eq!(
        words(&[("helper.py", Change::Deleted), ("sub/conftest.py", NEW)]),
        ["sub/conftest.py is new, but --protect **/conftest.py keeps it as it was"]
    );
}

#[test]
fn the_stricter_rule_and_the_first_glob_are_named() {
    let both = protected(&["nothing", "tests/conftest.py", "**/conftest.py"], &["tests/**"]);
    let found = both.touched(&[(path("tests/conftest.py"), EDIT), (path("tests/test_a.py"), EDIT)]);
    assert_eq!(found[0].rule, Rule::Frozen);
    assert_eq!(found[0].glob, "tests/conftest.py");
    assert_eq!(found[1].rule, Rule::Existing);
}

#[rstest]
#[case::another_case_is_the_same_frozen_file(&["**/Makefile"], &[], "makefile", NEW, true)]
#[case::of_a_folder_too(&[".github/workflows/**"], &[], ".GitHub/Workflows/x.yml", NEW, true)]
#[case::another_case_is_another_test(&[], &["**/*Test.java"], "src/Latest.java", EDIT, false)]
#[case::the_test_itself(&[], &["**/*Test.java"], "src/LaTest.java", EDIT, true)]
fn case(
    #[case] frozen: &[&str],
    #[case] existing: &[&str],
    #[case] file: &str,
    #[case] change: Change,
    #[case] is_forbidden: bool,
) {
    let found = protected(frozen, existing).touched(&[(path(file), change)]);
    assert_eq!(!found.is_empty(), is_forbidden);
}

#[rstest]
#[case::a_link_for_the_folder(".github/workflows/**", ".github/workflows", Change::Added(Kind::Link), true)]
#[case::a_link_above_it(".github/workflows/**", ".github", Change::Added(Kind::Link), true)]
#[case::a_repository_above_it("ci/run", "ci", Change::Added(Kind::Repository), true)]
#[case::another_commit_of_it("ci/run", "ci", Change::Modified(Kind::Repository), true)]
#[case::a_link_that_points_elsewhere("ci/run", "ci", Change::Modified(Kind::Link), true)]
#[case::a_file_hides_nothing("ci/run", "ci", NEW, false)]
#[case::a_link_beside_it("ci/run", "c", Change::Added(Kind::Link), false)]
#[case::a_link_that_goes("ci/run", "ci", Change::Deleted, false)]
#[case::a_rule_of_any_depth("**/conftest.py", "lib", Change::Added(Kind::Link), false)]
fn a_link_or_repository_in_place_of_a_folder_hides_its_content(
    #[case] glob: &str,
    #[case] file: &str,
    #[case] change: Change,
    #[case] is_forbidden: bool,
) {
    let found = protected(&[glob], &[]).touched(&[(path(file), change)]);
    assert_eq!(!found.is_empty(), is_forbidden);
}

#[rstest]
#[case::empty(
    "",
    "a glob cannot be empty; accepted: a path or a pattern, such as `tests/**`; `**` means every path"
)]
#[case::only_the_top(
    "./",
    "a glob cannot be empty; accepted: a path or a pattern, such as `tests/**`; `**` means every path"
)]
#[case::root(
    "/",
    "a glob cannot be empty; accepted: a path or a pattern, such as `tests/**`; `**` means every path"
)]
#[case::above(
    "../x",
    "\"../x\" lies outside the worktree; a glob is seen from the worktree's top, without `..`"
)]
#[case::exception(
    "!tests/new.py",
    "\"!tests/new.py\" takes nothing back: there are no exceptions; `\\!` stands for a name that begins with !"
)]
#[case::open_class("[a", "\"[a\" is no glob: unclosed character class; missing ']'")]
fn a_glob_that_protects_nothing_is_refused(#[case] glob: &str, #[case] complaint: &str) {
    let error = ProtectedPaths::new(&["a".to_owned(), glob.to_owned()], &[]).unwrap_err();
    assert_eq!(error.to_string(), complaint);
}

#[test]
fn odd_path_bytes_are_escaped_in_messages() {
    let all = protected(&["**/*.py"], &[]);
    let name = RepoPath::from_bytes(b"a\xff\x1b[31m.py");
    let found = all.touched(&[(name, NEW)]);
    assert_eq!(found[0].to_string(), "a%FF.py is new, but --protect **/*.py keeps it as it was");
}

proptest! {
    #[test]
    fn a_protected_path_includes_everything_below_it(name in "[a-zA-Z0-9._ -]{1,8}(/[a-zA-Z0-9_ -]{1,8}){0,3}") {
        prop_assume!(name.split('/').all(|part| !part.trim_matches('.').is_empty()));
        let one = protected(&[&globset::escape(&name)], &[]);
        prop_assert_eq!(one.touched(&[(path(&name), EDIT)]).len(), 1);
        prop_assert_eq!(one.touched(&[(path(&format!("{name}/x")), EDIT)]).len(), 1);
        prop_assert_eq!(one.touched(&[(path(&format!("{name}x")), EDIT)]).len(), 0);
    }

    #[test]
    fn no_text_and_no_path_breaks_it(glob in "\\PC{0,20}", name: Vec<u8>) {
        if let Ok(some) = ProtectedPaths::new(&[glob], &[]) {
            let _ = some.touched(&[(RepoPath::from_bytes(&name), Change::Added(Kind::Link))]);
        }
    }
}

#[rstest]
#[case::the_folder_itself("ci/**", "ci", true)]
#[case::the_folder_above("tools/ci/run", "tools", true)]
#[case::a_folder_in_it("ci/**", "ci/cache", false)]
#[case::another_one("ci/**", "city", false)]
#[case::any_folder("**/conftest.py", "target", false)]
#[case::in_any_case("CI/run", "ci", true)]
fn a_rule_is_bound_to_folders(#[case] glob: &str, #[case] folder: &str, #[case] is: bool) {
    for protected in [protected(&[glob], &[]), protected(&[], &[glob])] {
        assert_eq!(protected.is_bound_to(&path(folder)), is);
    }
}

proptest! {
    #[test]
    fn every_path_that_breaks_a_rule_is_covered(at in 0..EVERY.len(), file in "(ci|src|CI)(/(run|conftest.py|a))?") {
        let protected = protected(&["ci/**", "conftest.py"], &["src/a"]);
        let (file, change) = (path(&file), EVERY[at]);
        let kind = match change {
            Change::Added(kind) | Change::Modified(kind) | Change::Became(kind) => kind,
            Change::Mode | Change::Deleted => Kind::File,
        };
        let breaks = !protected.touched(&[(file.clone(), change)]).is_empty();
        prop_assert!(!breaks || protected.covers(&file, kind));
    }
}
