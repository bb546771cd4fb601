//! The worktrees of tasks: how `doctor` reports them and cleans up.

use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use refrain_engine::Project;
use testkit::{Sandbox, write};

use crate::sandbox;

/// A pool of two worktrees, each with caches in it.
struct Pool {
    sandbox: Sandbox,
    home: PathBuf,
}

impl Pool {
    fn new() -> Self {
        let sandbox = sandbox();
        write(&sandbox.project().join(".gitignore"), "/target\n");
        sandbox.git(&["add", "."]);
        sandbox.git(&["commit", "-qm", "Ignore"]);
        let project = Project::find(Utf8Path::from_path(&sandbox.project()).unwrap()).unwrap();
        let state = sandbox.root().join("home/state/refrain");
        let home = project.pool(Utf8Path::from_path(&state).unwrap()).into_std_path_buf();
        let pool = Self { sandbox, home };
        make(&pool.home);
        write(&pool.home.join("project"), project.root.as_str());
        for number in 1..=2 {
            let folder = pool.folder(number);
            make(folder.parent().unwrap());
            pool.sandbox.git(&["worktree", "add", "-q", "--detach", folder.to_str().unwrap()]);
            make(&folder.join("target"));
            write(&folder.join("target/app"), "built\n".repeat(100_000));
        }
        pool
    }

    fn folder(&self, number: u32) -> PathBuf {
        self.home.join(number.to_string()).join(self.sandbox.project().file_name().unwrap())
    }

    fn budget(&self, text: &str) {
        let config = self.sandbox.root().join("home/config/refrain/config.toml");
        make(config.parent().unwrap());
        write(&config, format!("[worktrees]\ndisk-budget = \"{text}\"\n"));
    }

    /// The findings of `doctor` about worktrees.
    fn told(&self, args: &[&str]) -> Vec<String> {
        let machine = crate::setup::doctor::machine();
        machine.lock_shared().unwrap();
        let printed = self.sandbox.refrain(&[&["doctor", "--json"], args].concat()).json();
        let findings = printed["findings"].as_array().unwrap().iter();
        let findings = findings.filter(|finding| finding["subject"] == "worktrees");
        findings
            .map(|it| format!("{} {}", it["grade"].as_str().unwrap(), it["found"].as_str().unwrap()))
            .collect()
    }

    fn has_caches(&self) -> [bool; 2] {
        [1, 2].map(|number| self.folder(number).join("target").exists())
    }
}

fn make(path: &Path) {
    fs::create_dir_all(path).unwrap();
}

#[test]
fn caches_go_first_and_work_that_is_nowhere_else_never() {
    let pool = Pool::new();
    let told = pool.told(&[]);
    assert_eq!(told[0], "ok 2 for tasks, 0 used now; the others take 1 MiB");
    assert!(
        told[1].starts_with("ok refrain gc frees 1.") && told[1].ends_with(": 2 × task worktree 1.1 MiB"),
        "{told:?}"
    );
    write(&pool.folder(2).join("work.rs"), "not committed\n");
    pool.budget("1MiB");
    assert!(pool.told(&[])[0].ends_with("more than 1 MiB ([worktrees] disk-budget)"), "{told:?}");
    assert_eq!(pool.has_caches(), [true, true], "it only looks");
    let told = pool.told(&["--fix"]);
    assert!(told[0].ends_with("1 emptied of caches, 0 removed"), "{told:?}");
    assert_eq!(pool.has_caches(), [false, true]);
    pool.budget("1KiB");
    let told = pool.told(&["--fix"]);
    assert!(told[0].ends_with("1 emptied of caches, 1 removed"), "{told:?}");
    assert!(!pool.folder(1).exists() && pool.folder(2).join("work.rs").exists());
    let told = pool.told(&["--fix"]);
    assert!(told[0].contains("could not be mended: all that lies in them may be nowhere else"), "{told:?}");
    assert_eq!(pool.sandbox.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_held_worktree_is_reported_and_given_back_once_it_is_clean() {
    let pool = Pool::new();
    let key = pool.folder(1).join("key.pem");
    write(&key, "secret\n");
    write(&pool.home.join("1.held"), "key.pem: it looks like a private key");
    let expected = "warning no task is given it: key.pem: it looks like a private key";
    assert_eq!(pool.told(&["--fix"])[0], expected, "it is still there");
    fs::remove_file(key).unwrap();
    assert_eq!(pool.told(&[])[0], expected);
    assert_eq!(pool.told(&["--fix"])[0], format!("ok {}; given back", &expected["warning ".len()..]));
    assert_eq!(pool.told(&[]).len(), 2);
}

#[test]
fn worktrees_of_a_deleted_project_are_removed() {
    let pool = Pool::new();
    let gone = pool.home.parent().unwrap().with_file_name("gone-01234567").join("_pool");
    make(&gone.join("1/gone"));
    write(&gone.join("project"), pool.sandbox.root().join("gone").to_str().unwrap());
    assert!(pool.told(&[])[0].ends_with("/gone, which is gone"));
    write(&gone.join("1.held"), "a reason");
    assert!(pool.told(&["--fix"])[0].contains("could not be mended"));
    fs::remove_file(gone.join("1.held")).unwrap();
    assert!(pool.told(&["--fix"])[0].ends_with("; removed"));
    assert!(!gone.exists() && pool.folder(1).exists());
}
