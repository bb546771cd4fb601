//! Works that do not overlap are merged as git would merge them one by one; other cases are left to git.

use std::os::unix::fs::symlink;

use refrain_core::git::{Oid, RepoPath};
use refrain_git::{MergeRequest, Merged};
use rstest::rstest;

use crate::place::TestRepository;

/// A work's change of a path.
#[derive(Clone, Copy)]
enum Do {
    Write(&'static str),
    Link(&'static str),
    Remove,
    Execute,
}

use Do::{Execute, Link, Remove, Write};

/// A commit on top of another.
fn work(place: &TestRepository, begin: &Oid, changes: &[(&str, Do)]) -> Oid {
    place.git(&["checkout", "-q", "--detach", begin.as_str()]);
    for (path, what) in changes {
        match what {
            Write(text) => place.write(path, text),
            Link(to) => symlink(to, place.path(path)).unwrap(),
            Remove => std::fs::remove_file(place.path(path)).unwrap(),
            Execute => place.make_executable(path),
        }
    }
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "Work", "--allow-empty"]);
    let commit = place.head();
    place.git(&["checkout", "-q", "main"]);
    commit
}

/// Git's merge of them, each onto the one before it.
fn by_git(place: &TestRepository, base: &Oid, tip: &Oid, works: &[&Oid]) -> Vec<Oid> {
    let (repository, index) = (place.repository(), place.top().join("loop/index"));
    let mut onto = tip.clone();
    let merge = |work: &&Oid| {
        let request = MergeRequest { base, tip: &onto, work, except: &[], index: &index, cancel: None };
        let Merged::Clean { tree } = repository.merge(request).unwrap() else { panic!("a conflict") };
        onto = repository.conflict_commit(&onto, &tree, "Merged", &[], None).unwrap();
        tree
    };
    works.iter().map(merge).collect()
}

fn place() -> (TestRepository, Oid) {
    let place = TestRepository::new();
    for path in ["a/b/c.txt", "a/b.txt", "a/deep/er/file", "zz"] {
        place.write(path, format!("{path}\n"));
    }
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "More"]);
    let head = place.head();
    (place, head)
}

#[test]
fn they_come_to_what_git_merges_of_them() {
    let (place, base) = place();
    let tip = work(&place, &base, &[("landed/before.txt", Write("before\n")), ("zz", Write("landed\n"))]);
    let works = [
        work(&place, &base, &[("src/a.rs", Write("one\n")), ("src/new.rs", Write("new\n"))]),
        work(
            &place,
            &base,
            &[("a/b/c.txt", Write("two\n")), ("a/b.d/new", Write("new\n")), ("a/b0", Write("0\n"))],
        ),
        work(&place, &base, &[("src/b.rs", Execute), ("link", Link("src/b.rs"))]),
        work(&place, &base, &[("a/deep/er/than/that/file", Write("four\n")), ("umlaut-ü é", Write("4\n"))]),
        work(&place, &base, &[]),
        work(&place, &base, &[("README.md", Write("# Six\n"))]),
    ];
    let works: Vec<&Oid> = works.iter().collect();
    for tip in [&tip, &base] {
        let apart = place.repository().merge_apart((&base, tip), &works, &[], None).unwrap().unwrap();
        assert_eq!(apart, by_git(&place, &base, tip, &works));
        for tree in &apart {
            place.git(&["fsck", "--strict", "--no-dangling", tree.as_str()]);
        }
    }
}

#[rstest]
#[case::the_same_file(&[("zz", Write("one\n"))], &[("zz", Write("two\n"))])]
#[case::the_same_new_file(&[("new", Write("one\n"))], &[("new", Write("one\n"))])]
#[case::a_file_where_another_has_a_folder(&[("new", Write("one\n"))], &[("new/file", Write("two\n"))])]
#[case::something_deleted(&[("zz", Remove)], &[("src/a.rs", Write("two\n"))])]
#[case::something_renamed(&[("zz", Remove), ("renamed", Write("zz\n"))], &[("src/a.rs", Write("two\n"))])]
#[case::a_file_that_became_a_link(&[("README.md", Write("x\n"))], &[("zz", Remove), ("link", Link("a"))])]
#[case::a_path_over_two_lines(&[("two\nlines/file", Write("one\n"))], &[("src/a.rs", Write("two\n"))])]
fn what_is_not_as_plain_as_that_is_left_to_git(#[case] one: &[(&str, Do)], #[case] two: &[(&str, Do)]) {
    let (place, base) = place();
    let works = [work(&place, &base, one), work(&place, &base, two)];
    let (repository, other) = (place.repository(), work(&place, &base, &[("other", Write("other\n"))]));
    let apart = |tip: &Oid, works: &[&Oid]| repository.merge_apart((&base, tip), works, &[], None).unwrap();
    assert_eq!(apart(&base, &[&works[0], &works[1]]), None);
    assert_eq!(apart(&base, &[&works[1], &works[0]]), None);
    // Also if it is the one that has landed.
    assert_eq!(apart(&works[0], &[&works[1], &other]), None);
}

#[test]
fn who_touched_what_is_no_part_of_a_work_is_left_to_git_and_so_is_one_alone() {
    let (place, base) = place();
    let works = [("zz", "src/a.rs"), ("a/b.txt", "README.md")]
        .map(|(one, two)| work(&place, &base, &[(one, Write("mine\n")), (two, Write("mine\n"))]));
    let apart = |works: &[&Oid], except: &[&[u8]]| {
        let except: Vec<_> = except.iter().map(|path| RepoPath::from_bytes(path)).collect();
        place.repository().merge_apart((&base, &base), works, &except, None).unwrap()
    };
    let both = [&works[0], &works[1]];
    assert!(apart(&both, &[]).is_some() && apart(&both, &[b"src/b.rs"]).is_some());
    assert_eq!(apart(&both, &[b"a/b.txt"]), None);
    assert_eq!(apart(&both[..1], &[]), None);
}
