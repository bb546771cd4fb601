//! A remote that has what no Refrain puts there: it is refused, and nothing is written.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::Sandbox;

use super::{Machines, key, worktree};

const NAME: &str = "refs/refrain/job/journal";

/// The remote, by git.
struct Remote<'a> {
    machine: &'a Sandbox,
    path: &'a str,
}

impl Remote<'_> {
    fn git(&self, args: &[&str], input: impl AsRef<[u8]>) -> String {
        let run = self.machine.tool("git", &[&["-C", self.path], args].concat()).stdin(input).run();
        run.with_code(0).stdout.trim_end().to_owned()
    }

    fn blob(&self, content: impl AsRef<[u8]>) -> String {
        self.git(&["hash-object", "-w", "--stdin"], content)
    }

    /// A tree with the entries of another and one more, or one instead.
    fn with(&self, tree: &str, mode: &str, name: &str, object: &str) -> String {
        let kind = if mode == "40000" { "tree" } else { "blob" };
        let listed = self.git(&["ls-tree", tree], "");
        let others = listed.lines().filter(|line| line.split_once('\t').unwrap().1 != name);
        let entries: String = others.map(|line| format!("{line}\n")).collect();
        self.git(&["mktree"], format!("{entries}{mode} {kind} {object}\t{name}\n"))
    }

    /// A commit like the honest one, with another folder of files, or another message.
    fn commit(&self, files: Option<&str>, message: Option<&str>) -> String {
        let tree = self.git(&["rev-parse", &format!("{NAME}^{{tree}}")], "");
        let tree = files.map_or(tree.clone(), |files| self.with(&tree, "40000", "files", files));
        let honest = self.git(&["show", "--no-patch", "--format=%B", NAME], "");
        self.git(&["commit-tree", &tree, "-p", NAME, "-m", message.unwrap_or(&honest)], "")
    }
}

/// Every file and link below a folder, but for the objects of git and what names the last copies.
fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_left_out =
                ["objects", "mirrors", "moving", "sessions"].iter().any(|name| path.ends_with(name));
            match path.symlink_metadata().unwrap().is_dir() {
                true if !is_left_out => folders.push(path),
                true => {}
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

type Forge = fn(&Remote<'_>) -> String;

fn files(remote: &Remote<'_>) -> String {
    remote.git(&["rev-parse", &format!("{NAME}:files")], "")
}

fn message(remote: &Remote<'_>, from: &str, to: &str) -> String {
    let honest = remote.git(&["show", "--no-patch", "--format=%B", NAME], "");
    assert!(honest.contains(from), "{honest}");
    remote.commit(None, Some(&honest.replace(from, to)))
}

/// The journal of another loop, which left from the same machine.
fn of_another_loop(remote: &Remote<'_>) -> String {
    let journal = remote.git(&["rev-parse", "refs/refrain/other/journal:files/journal.jsonl"], "");
    remote.commit(Some(&remote.with(&files(remote), "100644", "journal.jsonl", &journal)), None)
}

/// What is put in the place of the reference of a loop.
const FORGED: [(&str, Forge); 13] = [
    ("journal is a link", |remote| {
        let link = remote.blob("/etc/passwd");
        remote.commit(Some(&remote.with(&files(remote), "120000", "journal.jsonl", &link)), None)
    }),
    ("log is a link", |remote| {
        let link = remote.blob("/etc/passwd");
        let folder = remote.git(&["mktree"], format!("120000 blob {link}\toutput.log\n"));
        remote.commit(Some(&remote.with(&files(remote), "40000", "iterations", &folder)), None)
    }),
    ("path leads out", |remote| {
        let blob = remote.blob("out\n");
        let folder = remote.git(&["mktree"], format!("100644 blob {blob}\tevil\n"));
        let above = remote.git(&["mktree"], format!("040000 tree {folder}\t..\n"));
        remote.commit(Some(&remote.with(&files(remote), "40000", "iterations", &above)), None)
    }),
    ("path is a git folder", |remote| {
        let blob = remote.blob("#!/bin/sh\n");
        let folder = remote.git(&["mktree"], format!("100755 blob {blob}\tpre-commit\n"));
        remote.commit(Some(&remote.with(&files(remote), "40000", ".git", &folder)), None)
    }),
    ("path has control characters", |remote| {
        let blob = remote.blob("x");
        remote.commit(Some(&remote.with(&files(remote), "100644", "\u{1b}[2J", &blob)), None)
    }),
    ("huge journal", |remote| {
        let blob = remote.blob(vec![b'x'; (64 << 20) + 1]);
        remote.commit(Some(&remote.with(&files(remote), "100644", "journal.jsonl", &blob)), None)
    }),
    ("no journal", |remote| {
        let empty = remote.git(&["mktree"], "");
        remote.commit(Some(&empty), None)
    }),
    ("journal is no journal", |remote| {
        let blob = remote.blob(vec![0_u8; 4096]);
        remote.commit(Some(&remote.with(&files(remote), "100644", "journal.jsonl", &blob)), None)
    }),
    ("journal of another loop", of_another_loop),
    ("trailer of another loop", |remote| message(remote, "Refrain-Loop: job", "Refrain-Loop: other")),
    ("largest fence", |remote| message(remote, "Refrain-Fence: 1", &format!("Refrain-Fence: {}", u64::MAX))),
    ("no fence", |remote| message(remote, "Refrain-Fence: 1", "Refrain-Fence: -1")),
    ("no commit", |remote| remote.blob("a blob")),
];

#[test]
fn forged_loop_data_at_a_remote_is_refused() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    let agent = one.agent("other", "exit 0");
    let other = ["--name", "other", "--worktree", "--gate", "false", "-m", "1", "-q", "-p", "Work."];
    one.refrain(&[&["start", "--command", &agent], &other[..]].concat()).with_code(10);
    one.refrain(&["move", "other", "--to", remote]).with_code(0);
    machines.leave(&["--with-changes"]).with_code(0);
    let signer = key(one);
    let at = Remote { machine: one, path: remote };
    let honest = at.git(&["rev-parse", NAME], "");
    let before = (all(two.root()), two.git(&["for-each-ref"]));
    for (case, forge) in FORGED {
        let forged = forge(&at);
        at.git(&["update-ref", NAME, &forged], "");
        for words in [
            &["move", "job", "--from", remote, "--signer", &signer][..],
            &["status", "job", "--at", remote],
            &["show", "job", "--at", remote],
        ] {
            let refused = two.refrain(words);
            assert_eq!(refused.code, 1, "{case}, {words:?}: {}", refused.stderr);
            assert!(!refused.stderr.contains('\u{1b}'), "{case}, {words:?}: {}", refused.stderr);
        }
        // It hides nothing else there.
        let listed = two.refrain(&["list", "--at", remote, "--json"]).with_code(0).json();
        let ids: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&"other") && ids.contains(&"job"), "{case}: {listed}");
        assert_eq!((all(two.root()), two.git(&["for-each-ref"])), before, "{case}");
        assert!(!two.project().join(".git/refrain/mirrors/loops/job/journal.jsonl").exists(), "{case}");
        // The machine that it left shows it as it left, and takes nothing back.
        let status = one.refrain(&["status", "job", "--json"]).with_code(0);
        assert_eq!(status.json()["status"], "moved", "{case}");
        assert!(status.stderr.contains("as it left this machine"), "{case}: {}", status.stderr);
        assert_ne!(machines.take(one, &[]).code, 0, "{case}");
        at.git(&["update-ref", NAME, &honest], "");
    }
    machines.take_accepted().with_code(0);
}

#[test]
fn other_names_at_a_remote_are_no_loops() {
    let machines = Machines::paused();
    let Machines { two, remote, one } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let at = Remote { machine: one, path: remote };
    for name in ["a/b/journal", "-x/journal", "a b/journal", "plans/x/line", "job/journal/journal"] {
        let _ = one.tool("git", &["-C", remote, "update-ref", &format!("refs/refrain/{name}"), NAME]).run();
    }
    let long = format!("refs/refrain/{}/journal", "x".repeat(200));
    at.git(&["update-ref", &long, NAME], "");
    let listed = two.refrain(&["list", "--at", remote, "--json"]).with_code(0).json();
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["job"]);
}

#[test]
fn a_link_in_the_work_of_a_loop_leads_nowhere() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    let outside = two.root().join("outside");
    fs::create_dir_all(&outside).unwrap();
    let place = worktree(one);
    fs::remove_dir_all(place.join(".refrain")).unwrap();
    std::os::unix::fs::symlink(&outside, place.join(".refrain")).unwrap();
    let git = |args: &[&str]| one.git(&[&["-C", place.to_str().unwrap()], args].concat());
    git(&["add", "--force", ".refrain"]);
    git(&["commit", "--quiet", "--message", "A link"]);
    fs::create_dir_all(outside.join("job")).unwrap();
    testkit::write(&outside.join("job/state.md"), "status: in-progress\n");
    machines.leave(&["--with-changes"]).with_code(0);
    testkit::write(&outside.join("job/state.md"), "mine\n");
    machines.take_accepted();
    two.refrain(&["resume", "job", "-q"]);
    assert_eq!(fs::read_to_string(outside.join("job/state.md")).unwrap(), "mine\n");
    assert_eq!(all(&outside).len(), 1, "{:?}", all(&outside));
    assert!(Path::new(remote).exists());
}
