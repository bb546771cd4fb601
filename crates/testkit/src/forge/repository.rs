//! The bare repository of a forge, and changes to it by other users.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::programs::executable;
use crate::write;

/// The repository, and beside it the rules that its hooks go by.
#[derive(Debug)]
pub(super) struct Repository {
    dir: PathBuf,
    rules: PathBuf,
}

impl Repository {
    /// An empty one for `owner/project`, in the folder of a forge.
    pub(super) fn new(forge: &Path) -> Self {
        let (dir, rules) = (forge.join("repos/owner/project.git"), forge.join("rules"));
        for folder in [&dir, &rules] {
            fs::create_dir_all(folder).expect("a folder can be made");
        }
        let it = Self { dir, rules };
        it.git(&["init", "--quiet", "--bare", "--initial-branch", "main"]);
        let rules = it.rules.to_str().expect("it is UTF-8");
        for (name, text) in [
            ("pre-receive", include_str!("pre-receive.sh")),
            ("post-receive", include_str!("post-receive.sh")),
        ] {
            executable(&it.dir.join("hooks").join(name), &text.replace("@RULES@", &format!("'{rules}'")));
        }
        it
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Has a rule hold, or no longer.
    pub(super) fn rule(&self, name: &str, text: Option<&str>) {
        let path = self.rules.join(name);
        match text {
            Some(text) => write(&path, text),
            // It may not be there.
            None => drop(fs::remove_file(path)),
        }
    }

    /// The pushes: `from to reference`.
    pub(super) fn pushes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.rules.join("pushes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn head(&self, branch: &str) -> Option<String> {
        self.try_git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")])
    }

    pub(super) fn delete(&self, branch: &str) {
        self.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
    }

    /// A commit of another user that changes one file of a branch.
    pub(super) fn commit(&self, branch: &str, path: &str, text: &str) -> String {
        let (source, index) = (self.rules.join("text"), self.rules.join("index"));
        write(&source, text);
        let blob = self.git(&["hash-object", "-w", source.to_str().expect("it is UTF-8")]);
        let parent = self.head(branch);
        let with_index = |args: &[&str]| {
            let mut command = self.command(args);
            output(command.env("GIT_INDEX_FILE", &index)).expect("git does it")
        };
        with_index(&["read-tree", parent.as_deref().unwrap_or("--empty")]);
        with_index(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
        let tree = with_index(&["write-tree"]);
        let parents: Vec<&str> = parent.iter().flat_map(|parent| ["-p", parent]).collect();
        let words = ["commit-tree", "-m", "Somebody else's", &tree];
        let commit = self.git(&words.into_iter().chain(parents).collect::<Vec<_>>());
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
        commit
    }

    /// Whether a branch's work goes together with its base; the tree of both.
    pub(super) fn merged(&self, base: &str, head: &str) -> Option<String> {
        self.try_git(&["merge-tree", "--write-tree", base, head])
    }

    /// Whether `head` contains the commit.
    pub(super) fn contains(&self, head: &str, commit: &str) -> bool {
        self.try_git(&["merge-base", "--is-ancestor", commit, head]).is_some()
    }

    /// Merges a head into a branch, as one commit or with a second parent.
    pub(super) fn merge(&self, branch: &str, head: &str, squash: bool, title: &str) -> Option<String> {
        let base = self.head(branch)?;
        let tree = self.merged(&base, head)?;
        let mut words = vec!["commit-tree", "-m", title, "-p", &base, &tree];
        if !squash {
            words.extend(["-p", head]);
        }
        let commit = self.git(&words);
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &commit, &base]);
        Some(commit)
    }

    pub(super) fn has(&self, commit: &str, path: &str) -> bool {
        self.try_git(&["cat-file", "-e", &format!("{commit}:{path}")]).is_some()
    }

    fn git(&self, args: &[&str]) -> String {
        output(&mut self.command(args)).unwrap_or_else(|| panic!("git {args:?} in {}", self.dir.display()))
    }

    fn try_git(&self, args: &[&str]) -> Option<String> {
        output(&mut self.command(args))
    }

    #[expect(clippy::disallowed_methods, reason = "the other end of a push is no process of Refrain's")]
    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new("git");
        let path = std::env::var_os("PATH").expect("there is a PATH");
        command.env_clear().env("PATH", path).env("HOME", &self.rules).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Somebody Else");
            command.env(format!("GIT_{who}_EMAIL"), "somebody@localhost");
        }
        command.args(args).current_dir(&self.dir).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().expect("git can be started");
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    output.status.success().then_some(text)
}
