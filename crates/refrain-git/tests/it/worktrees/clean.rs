//! A checkout for gates: exactly a tree, with caches kept, and nothing else of the worktree.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use refrain_core::git::{Base, Oid, RepoPath};
use refrain_git::{Bounds, CleanRequest, FolderSnapshot, GitError, PreparedCheckout, TreeRequest};
use refrain_proc::tool::Tool;
use rstest::rstest;

use crate::place::TestRepository;

struct Clean<'a> {
    place: &'a TestRepository,
    folder: Utf8PathBuf,
}

impl<'a> Clean<'a> {
    fn of(place: &'a TestRepository) -> Self {
        Self { folder: place.top().join("state/1/project"), place }
    }

    fn candidate(&self) -> Oid {
        let base = Base::default();
        let index = self.place.top().join("loop/index");
        let request = TreeRequest {
            base: &base,
            index: &index,
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
        };
        self.place.repository().tree(request).unwrap().0
    }

    fn try_make(&self, over: &[PreparedCheckout]) -> Result<(), GitError> {
        let tree = self.candidate();
        self.place.repository().check_out_clean(CleanRequest {
            tree: &tree,
            over,
            folder: &self.folder,
            kept: &FolderSnapshot::list(&self.folder).unwrap(),
            index: &self.place.top().join("state/1/.index"),
            cancel: None,
        })
    }

    #[track_caller]
    fn make(&self) {
        self.try_make(&[]).unwrap_or_else(|error| panic!("{error}"));
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.as_std_path().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| format!("{error}"))
    }

    fn write(&self, path: &str, text: &str) {
        self.place.write_at(self.path(path), text);
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// The answer to a tool that runs git there.
    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let tool = Tool::new("git", self.folder.as_std_path()).env(&self.place.env).args(args);
        let printed = tool.output().unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned()
    }
}

/// A repository that ignores the caches of tools.
fn place() -> TestRepository {
    let place = TestRepository::new();
    place.write(".gitignore", "/target\nnode_modules\n*.gen\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Ignore"]);
    place
}

#[test]
fn a_clean_checkout_holds_the_candidate_and_nothing_else() {
    let place = place();
    place.write("node_modules/x/index.js", "x\n");
    place.write("version.gen", "1\n");
    place.write("src/a.rs", "fn a() { changed() }\n");
    place.write("src/new.rs", "new\n");
    fs::remove_file(place.path("src/b.rs")).unwrap();
    let before = (place.snapshot(&[]), place.status(), place.git(&["for-each-ref"]));
    let clean = Clean::of(&place);
    clean.make();
    assert_eq!(clean.read("src/a.rs"), "fn a() { changed() }\n");
    assert_eq!(clean.read("src/new.rs"), "new\n");
    for gone in ["node_modules", "version.gen", "src/b.rs", ".refrain"] {
        assert!(!clean.has(gone), "{gone}");
    }
    assert_eq!((place.snapshot(&[]), place.status(), place.git(&["for-each-ref"])), before);
    assert_eq!(place.git(&["worktree", "list"]).lines().count(), 1, "git knows no worktree");
}

#[test]
fn changes_in_a_clean_checkout_are_undone_except_ignored_files() {
    let place = place();
    let clean = Clean::of(&place);
    clean.make();
    let modified = |path: &str| clean.path(path).metadata().unwrap().modified().unwrap();
    let untouched = modified("README.md");
    clean.write("target/debug/app", "built\n");
    clean.write("leftover/deep/file", "x\n");
    clean.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    clean.write("src/a.rs", "fn a() {}!");
    fs::remove_file(clean.path("src/b.rs")).unwrap();
    fs::create_dir(clean.path("src/b.rs")).unwrap();
    clean.write("src/b.rs/inside", "x\n");
    clean.make();
    assert_eq!(clean.read("target/debug/app"), "built\n");
    assert_eq!(
        (clean.read("src/a.rs"), clean.read("src/b.rs")),
        ("fn a() {}\n".into(), "fn b() {}\n".into())
    );
    assert!(!clean.has("leftover") && !clean.has("nested"));
    assert_eq!(modified("README.md"), untouched, "what is right is not written again");
}

#[test]
fn a_file_with_a_reset_time_is_detected_as_changed() {
    let place = place();
    // A comparison of fewer file attributes would not notice it.
    for setting in [["core.trustctime", "false"], ["core.checkStat", "minimal"]] {
        place.git(&["config", setting[0], setting[1]]);
    }
    let clean = Clean::of(&place);
    clean.make();
    let path = clean.path("src/a.rs");
    let then = path.metadata().unwrap().modified().unwrap();
    clean.write("src/a.rs", "fn x() {}\n");
    fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    clean.git(&["update-index", "--assume-unchanged", "src/a.rs"]);
    clean.make();
    assert_eq!(clean.read("src/a.rs"), "fn a() {}\n");
}

#[test]
fn tools_find_a_repository_of_their_own_and_none_of_the_persons() {
    let place = place();
    place.git(&["tag", "-am", "One", "v1"]);
    place.git(&["remote", "add", "origin", "https://example.org/x"]);
    place.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    place.write("src/a.rs", "changed\n");
    let clean = Clean::of(&place);
    clean.make();
    assert_eq!(clean.git(&["rev-parse", "--show-toplevel"]), clean.folder.as_str());
    assert_eq!(clean.git(&["describe", "--dirty"]), "v1-dirty");
    assert_eq!(clean.git(&["branch", "--show-current"]), "main");
    assert_eq!(clean.git(&["diff", "--cached", "--name-only", "origin/main"]), "src/a.rs");
    assert_eq!(clean.git(&["status", "--short"]), "M  src/a.rs");
    assert_eq!(clean.git(&["config", "remote.origin.url"]), "https://example.org/x");
    assert_eq!(clean.git(&["ls-files"]), place.git(&["ls-files"]));

    let head = clean.folder.join(".git/HEAD").metadata().unwrap().modified().unwrap();
    let refs = place.git(&["for-each-ref"]);
    clean.git(&["commit", "-qam", "Not yours"]);
    clean.git(&["tag", "mine"]);
    clean.write(".git/hooks/pre-commit", "exit 1\n");
    assert_eq!(place.git(&["for-each-ref"]), refs);
    clean.make();
    assert_eq!(clean.git(&["rev-parse", "HEAD"]), place.head().as_str());
    assert_eq!(clean.git(&["tag"]), "v1");
    assert!(!clean.has(".git/hooks"));
    assert_eq!(clean.folder.join(".git/HEAD").metadata().unwrap().modified().unwrap(), head);
}

#[test]
fn a_link_in_a_clean_checkout_leads_to_no_foreign_file() {
    let place = place();
    let clean = Clean::of(&place);
    clean.make();
    let before = (place.snapshot(&[]), place.git(&["for-each-ref"]));
    place.write("mine.txt", "not committed\n");
    fs::remove_dir_all(clean.path(".git")).unwrap();
    std::os::unix::fs::symlink(place.path(".git"), clean.path(".git")).unwrap();
    fs::remove_dir_all(clean.path("src")).unwrap();
    std::os::unix::fs::symlink(place.path("src"), clean.path("src")).unwrap();
    clean.make();
    fs::remove_file(place.path("mine.txt")).unwrap();
    assert_eq!((place.snapshot(&[]), place.git(&["for-each-ref"])), before);
    assert!(clean.path("src").symlink_metadata().unwrap().is_dir());

    fs::remove_dir_all(&clean.folder).unwrap();
    std::os::unix::fs::symlink(place.root(), &clean.folder).unwrap();
    place.write("mine.txt", "not committed\n");
    clean.make();
    assert_eq!(place.read("mine.txt"), "not committed\n");
    assert!(clean.folder.symlink_metadata().unwrap().is_dir());
}

#[test]
fn the_persons_filters_and_line_ends_are_used() {
    let place = place();
    place.write(".git/info/attributes", "*.txt text eol=crlf\n");
    place.git(&["config", "filter.shout.smudge", "tr a-z A-Z"]);
    place.git(&["config", "filter.shout.clean", "tr A-Z a-z"]);
    place.git(&["config", "filter.shout.required", "true"]);
    place.write(".gitattributes", "*.loud filter=shout\n");
    place.write("one.loud", "WORD\n");
    place.write("two.txt", "line\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Filters"]);
    let clean = Clean::of(&place);
    clean.make();
    assert_eq!((clean.read("one.loud").as_str(), clean.read("two.txt").as_str()), ("WORD\n", "line\r\n"));
    assert_eq!(clean.git(&["status", "--short"]), "");
    place.git(&["config", "filter.shout.smudge", "false"]);
    clean.write("one.loud", "else");
    let error = clean.try_make(&[]).unwrap_err();
    assert!(error.to_string().contains("shout"), "what is not as it should be is no checkout: {error}");
}

#[test]
fn hooks_and_sparse_checkouts_are_the_worktrees() {
    let place = place();
    for hook in ["post-checkout", "post-index-change"] {
        place.hook(hook, "touch \"$HOME/ran\"");
    }
    place.git(&["sparse-checkout", "set", "--no-cone", "/README.md"]);
    let _ = fs::remove_file(place.top().join("home/ran"));
    assert!(!place.path("src/a.rs").exists());
    let clean = Clean::of(&place);
    clean.make();
    assert!(clean.has("src/a.rs") && !place.top().join("home/ran").exists());
    assert_eq!(clean.git(&["status", "--short"]), "");
}

#[test]
fn prepared_files_replace_those_of_the_loop() {
    let place = place();
    place.write("ci/run.sh", "test\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "CI"]);
    let blob: Oid = place.git(&["rev-parse", "HEAD:ci/run.sh"]).parse().unwrap();
    fs::remove_dir_all(place.path("ci")).unwrap();
    place.write("ci", "true\n");
    place.write("conftest.py", "skip\n");
    let over = [
        PreparedCheckout {
            path: RepoPath::from_bytes(b"ci/run.sh"),
            file: Some(("100755".to_owned(), blob)),
        },
        PreparedCheckout { path: RepoPath::from_bytes(b"conftest.py"), file: None },
    ];
    let clean = Clean::of(&place);
    clean.try_make(&over).unwrap();
    assert_eq!(clean.read("ci/run.sh"), "test\n");
    assert!(clean.path("ci/run.sh").metadata().unwrap().permissions().mode() & 0o111 != 0);
    assert!(!clean.has("conftest.py"));
    assert_eq!(place.read("ci"), "true\n");
}

#[test]
fn repositories_in_it_are_filled_from_those_of_the_worktree() {
    let place = place();
    let other = place.top().join("other");
    place.git(&["init", "-q", other.as_str()]);
    place.write_at(other.join("lib.rs"), "lib\n");
    for args in [&["add", "."][..], &["commit", "-qm", "Lib"]] {
        place.git(&[&["-C", other.as_str()], args].concat());
    }
    place.git(&["submodule", "add", "-q", other.as_str(), "vendor/lib"]);
    place.git(&["commit", "-qm", "Vendor"]);
    let clean = Clean::of(&place);
    clean.make();
    assert_eq!(clean.read("vendor/lib/lib.rs"), "lib\n");
    assert_eq!(clean.git(&["-C", "vendor/lib", "log", "--format=%s"]), "Lib");
    assert_eq!(clean.git(&["status", "--short"]), "");
    clean.write("vendor/lib/lib.rs", "changed\n");
    clean.make();
    assert_eq!(clean.read("vendor/lib/lib.rs"), "lib\n");

    place.git(&["submodule", "deinit", "-q", "vendor/lib"]);
    fs::remove_dir_all(&clean.folder).unwrap();
    clean.make();
    assert!(clean.has("vendor/lib") && !clean.has("vendor/lib/lib.rs"), "as it is in the worktree");
}

#[rstest]
#[case::sha1(&[])]
#[case::sha256(&["--object-format=sha256"])]
fn a_branch_without_a_commit_can_be_proven_too(#[case] init: &[&str]) {
    let place = TestRepository::unborn(init);
    place.write("a.rs", "first\n");
    let clean = Clean::of(&place);
    clean.make();
    assert_eq!((clean.read("a.rs").as_str(), clean.git(&["ls-files"]).as_str()), ("first\n", "a.rs"));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "First"]);
    clean.make();
    assert_eq!(clean.git(&["status", "--short"]), "");
}

#[test]
fn a_linked_worktree_has_its_own_head() {
    let place = place();
    let side = place.top().join("side");
    place.git(&["worktree", "add", "-q", "-b", "side", side.as_str()]);
    let there = TestRepository::new_at(&place, side);
    there.write("src/a.rs", "side\n");
    let clean = Clean::of(&there);
    clean.make();
    assert_eq!(
        (clean.read("src/a.rs").as_str(), clean.git(&["branch", "--show-current"]).as_str()),
        ("side\n", "side")
    );
}

#[test]
fn a_damaged_clean_checkout_is_made_again() {
    let place = place();
    let clean = Clean::of(&place);
    clean.make();
    place.write_at(place.top().join("state/1/.index"), "no index");
    place.write_at(place.top().join("state/1/.index.lock"), "");
    fs::remove_dir_all(&clean.folder).unwrap();
    place.write_at(&clean.folder, "no folder");
    clean.make();
    assert_eq!(clean.read("src/a.rs"), "fn a() {}\n");
}

/// Git reads the content of an object's file without checking it against its name.
#[rstest]
#[case::blob("blob", "HEAD:src/a.rs", "src/a.rs")]
#[case::tree("tree", "HEAD:src", "src")]
fn a_forged_object_is_found_out_and_leaves_nothing(
    #[case] kind: &str,
    #[case] object: &str,
    #[case] named: &str,
) {
    let place = place();
    place.write("other/a.rs", "fn other() {}\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Other"]);
    let clean = Clean::of(&place);
    let file = |object: &str| {
        let name = place.git(&["rev-parse", object]);
        place.path(format!(".git/objects/{}/{}", &name[..2], &name[2..]))
    };
    let other = if kind == "blob" { "HEAD:other/a.rs" } else { "HEAD:other" };
    let (real, forged) = (fs::read(file(object)).unwrap(), fs::read(file(other)).unwrap());
    let put = |content: &[u8]| {
        fs::remove_file(file(object)).unwrap();
        File::create(file(object)).unwrap().write_all(content).unwrap();
    };
    put(&forged);
    let error = clean.try_make(&[]).unwrap_err();
    assert!(matches!(&error, GitError::ForgedObject(path) if path == named), "{error:?}");
    // With the original object, the other file is not taken for it.
    put(&real);
    clean.make();
    assert_eq!(clean.read("src/a.rs"), "fn a() {}\n");
    assert!(clean.has("src/b.rs"));
}

#[rstest]
#[case::blob("HEAD:src/b.rs", "HEAD:other/src/b.rs", "src/b.rs")]
#[case::tree("HEAD:src", "HEAD:other/src", "src")]
#[case::tree_of_the_commit("HEAD^{tree}", "HEAD:other", "")]
fn a_forged_object_in_a_tree_is_named(
    #[values("sha1", "sha256")] format: &str,
    #[case] object: &str,
    #[case] other: &str,
    #[case] named: &str,
) {
    let place = TestRepository::unborn(&["--object-format", format]);
    for file in ["src/a.rs", "src/b.rs", "other/src/b.rs"] {
        place.write(file, format!("// {file}\n"));
    }
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Files"]);
    let commit = place.git(&["rev-parse", "HEAD"]).parse().unwrap();
    let repository = place.repository();
    repository.verify_tree(&commit, None).unwrap();
    let file = |object: &str| {
        let name = place.git(&["rev-parse", object]);
        place.path(format!(".git/objects/{}/{}", &name[..2], &name[2..]))
    };
    let (forged, path) = (fs::read(file(other)).unwrap(), file(object));
    fs::remove_file(&path).unwrap();
    place.write_at(&path, &forged);
    let error = repository.verify_tree(&commit, None).unwrap_err();
    let named = if named.is_empty() { commit.as_str() } else { named };
    assert!(matches!(&error, GitError::ForgedObject(path) if path == named), "{error:?}");
}

#[test]
fn valid_objects_are_checked_out_unchanged() {
    let place = place();
    place.write("dos.txt", "one\r\ntwo\n");
    place.write("a.b/c", "1\n");
    place.write("a/b", "2\n");
    place.write("a-b", "3\n");
    std::os::unix::fs::symlink("a/b", place.path("link")).unwrap();
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Files"]);
    // Git's conversion changes the content in both directions.
    place.write(".git/info/attributes", "*.txt text eol=crlf\n");
    Clean::of(&place).make();

    // Modes of old gits.
    let old = place.git(&["ls-tree", "HEAD"]).replacen("100644 blob", "100664 blob", 1);
    let (top, old) = (place.path(""), tree_object(&old));
    let tree = Tool::new("git", top.as_path())
        .env(&place.env)
        .args(["hash-object", "-w", "-t", "tree", "--stdin", "--literally"])
        .input(&old);
    let tree = String::from_utf8(tree.output().unwrap()).unwrap();
    let clean = Clean::of(&place);
    let request = CleanRequest {
        tree: &tree.trim().parse().unwrap(),
        over: &[],
        folder: &clean.folder,
        kept: &FolderSnapshot::default(),
        index: &place.top().join("state/1/.index"),
        cancel: None,
    };
    place.repository().check_out_clean(request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(clean.read("dos.txt"), "one\r\ntwo\r\n");
}

/// The content of a tree from the output of `git ls-tree`, with the same modes.
fn tree_object(listed: &str) -> Vec<u8> {
    let mut object = Vec::new();
    for line in listed.lines() {
        let (about, name) = line.split_once('\t').unwrap();
        let words: Vec<_> = about.split(' ').collect();
        object.extend(format!("{} {name}\0", words[0].trim_start_matches('0')).into_bytes());
        object.extend((0..40).step_by(2).map(|at| u8::from_str_radix(&words[2][at..at + 2], 16).unwrap()));
    }
    object
}
