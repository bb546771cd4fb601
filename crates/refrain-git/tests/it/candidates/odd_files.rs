//! Files, links, modes and names of every kind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use refrain_git::ExactnessRequest;
use rstest::rstest;

use crate::place::{TestRepository, left_out, made, skipped};

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACD1\n\
    -----END OPENSSH PRIVATE KEY-----\n";

#[test]
fn files_become_folders_and_folders_files_and_links() {
    let place = TestRepository::new();
    let base = place.survey();
    fs::remove_file(place.path("README.md")).unwrap();
    place.write("README.md/one.md", "one\n");
    let first = place.commit(&base, 1);
    assert_eq!(place.committed(made(&first).as_str()), ["D README.md", "A README.md/one.md"]);
    fs::remove_dir_all(place.path("README.md")).unwrap();
    place.write("README.md", "back\n");
    fs::rename(place.path("src"), place.path("lib")).unwrap();
    std::os::unix::fs::symlink("lib", place.path("src")).unwrap();
    let second = place.commit_since(&base, first.head.as_ref(), 2).unwrap();
    assert_eq!(
        place.committed(made(&second).as_str()),
        [
            "A README.md",
            "D README.md/one.md",
            "A lib/a.rs",
            "A lib/b.rs",
            "A src",
            "D src/a.rs",
            "D src/b.rs"
        ]
    );
    assert_eq!(place.git(&["ls-tree", "HEAD", "src"]).split(' ').next(), Some("120000"));
    assert!(place.status().is_empty());
}

#[test]
fn modes_are_committed_and_links_are_not_followed() {
    let place = TestRepository::new();
    let outside = place.top().join("outside");
    place.write_at(&outside, "not ours\n");
    let base = place.survey();
    place.make_executable("src/a.rs");
    std::os::unix::fs::symlink(&outside, place.path("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("dangling")).unwrap();
    made(&place.commit(&base, 1));
    assert_eq!(place.git(&["show", "HEAD:link"]), outside.as_str());
    assert!(place.git(&["ls-tree", "HEAD", "src/a.rs"]).starts_with("100755"));
    assert!(place.status().is_empty());
}

#[test]
fn names_of_every_kind_are_committed() {
    let place = TestRepository::new();
    place.write(OsStr::from_bytes(b"mine \xff"), "mine\n");
    let base = place.survey();
    let names: [&[u8]; 9] =
        [b"-rf", b"a b", b"new\nline", b"\xfe\xff", b":(top)x", b"*.rs", b"quote\"'", b"tab\tx", b"%41"];
    for name in names {
        place.write(OsStr::from_bytes(name), name);
    }
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(place.git(&["ls-tree", "-r", "--name-only", "HEAD"]).lines().count(), names.len() + 3);
    assert_eq!(place.git(&["ls-files", "--others"]), "\"mine \\377\"");
    assert!(report.left_out.is_empty());
}

#[test]
fn secrets_large_files_and_repositories_stay_behind_with_a_reason() {
    let place = TestRepository::new();
    let old = format!("gh{}_{}", "p", "Zk3".repeat(12));
    place.write("src/b.rs", format!("// {old}\n"));
    place.git(&["commit", "-qam", "One that is there already"]);
    let base = place.survey();
    place.write("src/b.rs", format!("// {old}\n// more\n"));
    place.write("src/a.rs", format!("fn a() {{}}\nlet token = \"gh{}_{}\";\n", "p", "aB3dE5gH7".repeat(4)));
    place.write("big.bin", vec![b'x'; (1 << 20) + 1]);
    place.write(".env", "A=1\n");
    place.git(&["add", ".env"]);
    place.git(&["init", "-q", "nested"]);
    place.write("nested/file", "theirs\n");
    place.write("fine.rs", "fine\n");
    std::os::unix::fs::symlink(format!("https://x:{}@host/", "aB3dE5gH7k"), place.path("link")).unwrap();
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["A fine.rs", "M src/b.rs"]);
    assert_eq!(
        left_out(&report),
        [
            ".env: it looks like a file of secrets for an environment",
            "src/a.rs: line 2 looks like a GitHub token",
            "link: line 1 looks like a password in an address",
            "nested/: it is a repository of its own",
            "big.bin: it is 2 MiB large",
        ]
    );
    assert_eq!(place.status()[..2], ["A  .env", " M src/a.rs"], "what the agent staged stays staged");
    let all = place.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
    for object in all.lines().filter(|line| line.ends_with("blob")) {
        let text = place.git(&["cat-file", "blob", object.split(' ').next().unwrap()]);
        assert!(!text.contains("aB3dE5gH7"), "not even as an object");
    }
}

#[test]
fn ignored_files_and_files_of_refrain_are_not_committed() {
    let place = TestRepository::new();
    place.write(".gitignore", "*.log\n");
    place.git(&["add", ".gitignore"]);
    place.git(&["commit", "-qm", "Ignore"]);
    let base = place.survey();
    place.write("x.log", "x\n");
    place.write(".refrain/the-loop/state.md", "state\n");
    assert_eq!(place.survey(), base);
    assert_eq!(skipped(&place.commit(&base, 1)), refrain_core::git::SkipReason::Nothing);
}

#[test]
fn a_path_that_is_neither_file_nor_link_is_not_committed() {
    let place = TestRepository::new();
    let base = place.survey();
    fs::remove_file(place.path("src/a.rs")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, place.path("src/a.rs"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let report = place.commit(&base, 1);
    assert_eq!(left_out(&report), ["src/a.rs: it is no file that can be read"]);
    skipped(&report);
}

#[test]
fn a_submodule_is_committed_by_its_commit_alone() {
    let place = TestRepository::new();
    place.git(&["clone", "-q", ".", "../other"]);
    place.git(&["submodule", "--quiet", "add", "../other", "sub"]);
    place.git(&["commit", "-qm", "Add a submodule"]);
    let base = place.survey();
    place.write("sub/README.md", "inside\n");
    let report = place.commit(&base, 1);
    assert_eq!(left_out(&report), ["sub: it is a repository of its own"]);
    place.git(&["-C", "sub", "commit", "-qam", "Inside"]);
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["M sub"]);
    assert!(place.status().is_empty());
}

/// Git shows nothing in its folder.
#[test]
fn files_in_the_folder_of_a_submodule_that_is_not_cloned_are_seen() {
    let place = TestRepository::new();
    place.git(&["clone", "-q", ".", "../other"]);
    place.git(&["submodule", "--quiet", "add", "../other", "sub"]);
    place.git(&["commit", "-qm", "Add a submodule"]);
    place.git(&["submodule", "--quiet", "deinit", "--force", "sub"]);
    let base = place.survey();
    assert_eq!(base.dirty, []);
    place.write("sub/new.c", "int answer;\n");
    place.write("src/a.rs", "fn a() {}\n");
    let report = place.commit(&base, 1);
    assert_eq!(left_out(&report), ["sub: it is a repository of its own"]);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"]);
}

/// No setting of Refrain's could replace one whose name is not UTF-8.
#[test]
fn a_filter_in_a_submodule_with_a_name_of_other_bytes_is_refused_and_not_run() {
    let place = TestRepository::new();
    place.git(&["clone", "-q", ".", "../other"]);
    place.git(&["submodule", "--quiet", "add", "../other", "sub"]);
    place.git(&["commit", "-qm", "Add a submodule"]);
    let base = place.survey();
    let config = place.git_path("modules/sub/config");
    let ran = place.path("ran");
    let filter =
        [b"[filter \"\xff\"]\n\tclean = \"touch ".as_slice(), ran.as_os_str().as_bytes(), b"; cat\"\n"];
    place.write_at(&config, [fs::read(&config).unwrap(), filter.concat()].concat());
    place.write_at(place.git_path("modules/sub/info/attributes"), b"* filter=\xff\n");
    place.write("sub/README.md", "inside\n");
    let error = place.try_commit(&base, 1).unwrap_err().to_string();
    assert!(error.contains("is not UTF-8; rename or remove it"), "{error}");
    assert!(!ran.exists());
}

#[test]
fn files_outside_a_sparse_checkout_are_not_taken_as_deleted() {
    let place = TestRepository::new();
    place.git(&["sparse-checkout", "set", "--no-cone", "/README.md"]);
    place.git(&["update-index", "--assume-unchanged", "README.md"]);
    let base = place.survey();
    place.write("README.md", "unseen, as the person wants it\n");
    place.write("new.md", "new\n");
    let flags = place.git(&["ls-files", "-v"]);
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["A new.md"]);
    assert_eq!(
        place.git(&["ls-files", "-v"]),
        format!("{}\nS src/a.rs\nS src/b.rs", "h README.md\nH new.md")
    );
    assert!(flags.starts_with("h README.md"));
}

#[test]
fn an_intent_to_add_stays_one() {
    let place = TestRepository::new();
    place.write("planned.rs", "soon\n");
    place.git(&["add", "--intent-to-add", "planned.rs"]);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let before = place.snapshot(&["planned.rs"]);
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"]);
    assert_eq!((place.snapshot(&["planned.rs"]), place.status()), (before, vec![" A planned.rs".to_owned()]));
}

#[rstest]
#[case::autocrlf("core.autocrlf", "true")]
#[case::input("core.autocrlf", "input")]
fn line_ends_are_gits_affair(#[case] key: &str, #[case] value: &str) {
    let place = TestRepository::new();
    place.git(&["config", key, value]);
    let base = place.survey();
    place.write("src/a.rs", "one\r\ntwo\r\n");
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(place.git(&["cat-file", "-s", "HEAD:src/a.rs"]), "8");
    assert_eq!((place.read("src/a.rs"), place.status()), ("one\r\ntwo\r\n".to_owned(), vec![]));
}

#[test]
fn a_clean_filter_makes_large_files_small() {
    let place = TestRepository::new();
    place.git(&["config", "filter.small.clean", "wc -c"]);
    place.git(&["config", "filter.small.smudge", "cat"]);
    place.write(".gitattributes", "*.bin filter=small\n");
    place.git(&["add", ".gitattributes"]);
    place.git(&["commit", "-qm", "Filter"]);
    let base = place.survey();
    place.write("big.bin", vec![b'x'; 2 << 20]);
    place.write("big.dat", vec![b'x'; 2 << 20]);
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["A big.bin"]);
    assert_eq!(place.git(&["show", "HEAD:big.bin"]), "2097152");
    assert_eq!(left_out(&report), ["big.dat: it is 2 MiB large"]);
}

#[test]
fn a_path_that_collides_with_a_staged_file_is_not_committed() {
    let place = TestRepository::new();
    place.write("notes", "mine\n");
    place.git(&["add", "notes"]);
    let base = place.survey();
    fs::remove_file(place.path("notes")).unwrap();
    place.write("notes/one.md", "the agent's\n");
    place.write("src/a.rs", "changed\n");
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"]);
    assert_eq!(
        place.git(&["ls-files", "--stage", "notes"]).lines().count(),
        1,
        "what was staged is still there"
    );
}

#[test]
fn a_secret_in_place_of_a_submodule_is_omitted() {
    for staged in [false, true] {
        let place = TestRepository::new();
        let head = place.head();
        place.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor")]);
        place.git(&["commit", "-qm", "Vendor"]);
        fs::create_dir(place.path("vendor")).unwrap();
        let base = place.survey();
        fs::remove_dir(place.path("vendor")).unwrap();
        place.write("vendor", KEY);
        if staged {
            place.git(&["add", "vendor"]);
        }
        place.write("src/a.rs", "changed\n");
        let report = place.commit(&base, 1);
        assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"], "{staged}");
        let left = left_out(&report);
        assert!(left.len() == 1 && left[0].starts_with("vendor: "), "{staged}: {left:?}");
    }
}

#[test]
fn a_file_where_a_submodule_was_is_committed() {
    let place = TestRepository::new();
    let head = place.head();
    place.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor")]);
    place.git(&["commit", "-qm", "Vendor"]);
    fs::create_dir(place.path("vendor")).unwrap();
    let base = place.survey();
    fs::remove_dir(place.path("vendor")).unwrap();
    place.write("vendor", "no secret\n");
    made(&place.commit(&base, 1));
    assert_eq!(place.git(&["show", "HEAD:vendor"]), "no secret");
    assert!(place.status().is_empty());
}

/// The filter simulates an agent that writes between our scan and git's read.
#[test]
fn a_secret_written_after_the_screening_is_omitted_whatever_its_name() {
    for name in ["late", "0:late"] {
        let place = TestRepository::new();
        place.write(".gitattributes", format!("{name} filter=late\n"));
        place.write_at(place.top().join("key"), KEY);
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", "Filter"]);
        let path = place.path(name);
        let (path, key) = (path.display(), place.top().join("key"));
        place.git(&["config", "filter.late.clean", &format!("cat > /dev/null; cp {key} {path}; cat {key}")]);
        let base = place.survey();
        place.write(name, "nothing\n");
        let report = place.commit(&base, 1);
        let left = left_out(&report);
        assert!(left.len() == 1 && left[0].starts_with(&format!("{name}: ")), "{left:?}");
        assert_eq!(place.git(&["ls-tree", "--name-only", "HEAD", "--", name]), "");
    }
}

/// As if all happened in the same clock tick: for a file as old as the index, git must not trust the cached
/// attributes in the index.
#[test]
fn a_change_in_the_same_tick_as_the_index_is_seen() {
    let place = TestRepository::new();
    place.git(&["config", "core.trustctime", "false"]);
    let tick = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000);
    let set = |path: &std::path::Path| fs::File::open(path).unwrap().set_modified(tick).unwrap();
    let file = place.path("src/a.rs");
    place.write("src/a.rs", "one\n");
    set(&file);
    place.git(&["commit", "-qam", "One"]);
    let base = place.survey();
    place.write("src/a.rs", "two\n");
    set(&file);
    set(place.git_path("index").as_std_path());
    let report = place.commit(&base, 1);
    assert_eq!(place.committed(made(&report).as_str()), ["M src/a.rs"]);
}

#[test]
fn a_file_whose_checkout_is_large_is_compared_with_it() {
    let place = TestRepository::new();
    let latin = "f working-tree-encoding=ISO-8859-1\n";
    place.write(".gitattributes", latin);
    place.write("f", [b"\xe9".as_slice(), &b"\n".repeat(9 << 20)].concat());
    place.git(&["add", "f"]);
    place.write(".gitattributes", "f text eol=crlf working-tree-encoding=UTF-32LE\n");
    place.git(&["add", ".gitattributes"]);
    place.write(".gitattributes", latin);
    let repository = place.repository();
    let tree = place.git(&["write-tree"]).parse().unwrap();
    let entries = repository.new_entries(None, &tree).unwrap();
    let request = ExactnessRequest { entries: &entries, since: None, omitted: &[], dirty: &[], cancel: None };
    let unlike = repository.unlike_checkout(request).unwrap();
    let unlike: Vec<_> = unlike.iter().map(ToString::to_string).collect();
    assert_eq!(unlike, [".gitattributes", "f"], "one of them has another content than the tree has");
}
