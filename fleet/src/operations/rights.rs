//! Whether a git remote lets workers do what they do there, and the keys that machines leave for each other.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::signature::PublicKey;
use refrain_engine::tool::{Tool, ToolError};
use refrain_engine::{chain, now};

/// How long one push may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Where machines leave their public keys. No name of a loop has this sign.
const SIGNERS: &str = "refs/refrain/@signers";

/// What a git remote does not do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    pub(crate) found: String,
    pub(crate) advice: String,
}

/// A repository for a moment, from which is pushed.
pub(crate) struct Bench {
    folder: Utf8PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    pub(crate) fn new(data_home: &Utf8Path) -> Result<Self, String> {
        let folder = data_home.join("fleet").join(format!("try-{}", std::process::id()));
        let bench = Self { folder };
        std::fs::create_dir_all(&bench.folder).map_err(|error| format!("{}: {error}", bench.folder))?;
        bench.git(&["init", "--quiet", "--bare"], &[]).map_err(|error| chain(&error))?;
        Ok(bench)
    }

    fn git(&self, words: &[&str], input: &[u8]) -> Result<String, ToolError> {
        let tool = Tool::new("git", self.folder.as_std_path()).args(words).input(input);
        Ok(String::from_utf8_lossy(&tool.limit(LIMIT).output()?).trim().to_owned())
    }

    /// A commit with one file.
    fn commit(&self, text: &str) -> Result<String, ToolError> {
        let blob = self.git(&["hash-object", "-w", "--stdin"], text.as_bytes())?;
        let tree = self.git(&["mktree"], format!("100644 blob {blob}\ttext\n").as_bytes())?;
        let own = ["-c", "user.name=refrain", "-c", "user.email=refrain@localhost"];
        self.git(&[&own[..], &["commit-tree", &tree, "-m", "Tried by refrain"]].concat(), &[])
    }

    /// Does what a take-over does: two references are made, moved together, not moved by who knows an old state, and removed.
    /// Returns how long one push took.
    pub(crate) fn try_remote(&self, remote: &str) -> Result<Duration, Lacking> {
        let lacking = |found: String, advice: &str| Lacking { found, advice: advice.to_owned() };
        let own = |error: ToolError| lacking(chain(&error), "git, and room on disk, are needed here");
        if let Err(error) = self.git(&["ls-remote", "--refs", remote, &format!("{SIGNERS}/*")], &[]) {
            let advice = format!("git ls-remote {remote} has to work here, without a question");
            return Err(Lacking { found: format!("it cannot be read: {}", chain(&error)), advice });
        }
        let (old, new) = (self.commit("old").map_err(own)?, self.commit("new").map_err(own)?);
        let names = ["a", "b"].map(|name| format!("refs/refrain/@try/{:x}-{name}", now().as_nanosecond()));
        let push = |expected: &str, to: &str| {
            let leases = names.each_ref().map(|name| format!("--force-with-lease={name}:{expected}"));
            let moves = names.each_ref().map(|name| format!("{to}:{name}"));
            let words = ["push", "--quiet", "--atomic", &leases[0], &leases[1], remote, &moves[0], &moves[1]];
            self.git(&words, &[])
        };
        let begun = Instant::now();
        if let Err(error) = push("", &old) {
            return Err(self.refusal(remote, &old, &chain(&error)));
        }
        let took = begun.elapsed();
        let advice = "another git remote is needed: refrain fleet init ssh://HOST/PATH.git, where git init --bare made one";
        let moved = push(&old, &new).map_err(|error| chain(&error));
        let stale = push(&old, &old).is_ok();
        let removed = push(if stale { &old } else { &new }, "");
        moved.map_err(|why| lacking(format!("two references cannot be moved at once: {why}"), advice))?;
        if stale {
            return Err(lacking("it moves a reference for a worker that lost its loop".to_owned(), advice));
        }
        let advice =
            "references that hold texts are removed once they are read: the remote has to allow that";
        removed
            .map_err(|error| lacking(format!("references cannot be removed: {}", chain(&error)), advice))?;
        Ok(took)
    }

    /// Why nothing can be made below `refs/refrain`: is it that place, or every one?
    fn refusal(&self, remote: &str, commit: &str, why: &str) -> Lacking {
        let branch = format!("refs/heads/refrain-try-{:x}", now().as_nanosecond());
        let elsewhere = self.git(&["push", "--quiet", remote, &format!("{commit}:{branch}")], &[]);
        if elsewhere.is_err() {
            let advice = "the user here needs the right to push there".to_owned();
            return Lacking { found: format!("nothing can be pushed: {why}"), advice };
        }
        let _ = self.git(&["push", "--quiet", remote, &format!(":{branch}")], &[]);
        Lacking {
            found: format!("it takes branches, and nothing below refs/refrain: {why}"),
            advice: "a repository of its own has the loops: git init --bare on a host that all machines reach, then \
                     refrain fleet init ssh://HOST/PATH.git"
                .to_owned(),
        }
    }

    /// Leaves the key of this machine.
    pub(crate) fn leave_key(&self, remote: &str, key: &PublicKey, machine: &str) -> Result<(), String> {
        let commit = self.commit(&format!("{key} {machine}\n")).map_err(|error| chain(&error))?;
        let push = ["push", "--quiet", "--force", remote, &format!("{commit}:{SIGNERS}/{key}")];
        self.git(&push, &[]).map(drop).map_err(|error| chain(&error))
    }

    /// The keys that machines left, and how these call themselves. Everyone who can push can leave one.
    pub(crate) fn keys(&self, remote: &str) -> Result<Vec<(PublicKey, String)>, String> {
        let fetch =
            ["fetch", "--quiet", "--no-tags", "--depth", "1", remote, &format!("+{SIGNERS}/*:{SIGNERS}/*")];
        self.git(&fetch, &[]).map_err(|error| chain(&error))?;
        let names = self.git(&["for-each-ref", "--format=%(refname)", SIGNERS], &[]);
        let names = names.map_err(|error| chain(&error))?;
        let read = |name: &str| self.git(&["cat-file", "blob", &format!("{name}:text")], &[]).ok();
        Ok(names.lines().filter_map(|name| left(name, &read(name)?)).collect())
    }
}

/// What a machine left under the name of its own key.
fn left(reference: &str, text: &str) -> Option<(PublicKey, String)> {
    let (key, machine) = text.trim().split_once(' ')?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_own = reference.rsplit('/').next() == Some(key);
    (is_own && machine.len() <= 64 && machine.chars().all(is_word))
        .then(|| Some((key.parse().ok()?, machine.to_owned())))?
}

/// What is known of the limits of the host: pushes and references.
pub(crate) fn rates(remote: &str) -> Option<&'static str> {
    let rest = remote.split_once("://").map_or(remote, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    match host {
        "github.com" | "ssh.github.com" => {
            Some("GitHub recommends at most 6 pushes a minute for a repository")
        }
        "gitlab.com" => Some("GitLab takes 600 pushes a minute of a user"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench() -> (testkit::Sandbox, Bench, String) {
        let sandbox = testkit::Sandbox::without_git("true");
        let remote = sandbox.root().join("state.git").to_string_lossy().into_owned();
        sandbox.git(&["init", "--quiet", "--bare", &remote]);
        let bench = Bench::new(sandbox.root().to_str().unwrap().into()).unwrap();
        (sandbox, bench, remote)
    }

    #[test]
    fn a_bare_repository_can_have_loops_and_nothing_stays_there() {
        let (sandbox, bench, remote) = bench();
        bench.try_remote(&remote).unwrap();
        assert_eq!(sandbox.git(&["-C", &remote, "for-each-ref"]), "");
    }

    #[test]
    fn a_remote_that_takes_only_branches_is_told_from_one_that_takes_nothing() {
        let (sandbox, bench, remote) = bench();
        let hook = std::path::Path::new(&remote).join("hooks/update");
        let refuses = |test: &str| {
            testkit::write(&hook, format!("#!/bin/sh\n{test}"));
            std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        refuses("case $1 in refs/heads/*) exit 0 ;; esac; exit 1");
        let lacking = bench.try_remote(&remote).unwrap_err();
        assert!(lacking.found.contains("nothing below refs/refrain"), "{lacking:?}");
        assert!(lacking.advice.contains("git init --bare"), "{lacking:?}");
        assert_eq!(sandbox.git(&["-C", &remote, "for-each-ref"]), "");
        refuses("exit 1");
        assert!(bench.try_remote(&remote).unwrap_err().found.contains("nothing can be pushed"));
        let missing = bench.try_remote("/there/is/nothing.git").unwrap_err();
        assert!(missing.found.contains("cannot be read"), "{missing:?}");
    }

    #[test]
    fn a_key_is_taken_under_its_own_name_only() {
        let key = "ab".repeat(32);
        let reference = format!("{SIGNERS}/{key}");
        let found = left(&reference, &format!("{key} build-1\n"));
        assert_eq!(found, Some((key.parse().unwrap(), "build-1".to_owned())));
        for text in [format!("{key} a b"), format!("{} build-1", "cd".repeat(32)), key.clone()] {
            assert_eq!(left(&reference, &text), None, "{text}");
        }
    }

    #[test]
    fn hosts_with_known_limits_are_found_by_their_name() {
        for remote in ["git@github.com:a/b.git", "https://github.com/a/b", "ssh://git@gitlab.com/a.git"] {
            assert!(rates(remote).is_some(), "{remote}");
        }
        for remote in ["/srv/github.com/a", "git@host:github.com.git", "ssh://git@host/a.git"] {
            assert_eq!(rates(remote), None, "{remote}");
        }
    }
}
