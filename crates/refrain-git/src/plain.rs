//! Whether `git commit` would do no more than its parts: no hook, no signature, nothing else that the person set up.
//!
//! The configuration is read by git, once, and again when one of its files has changed: an agent that installs packages may
//! well install hooks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::GitError;
use crate::git::Git;
use crate::index::{Seen, seen};
use crate::repository::Repository;

/// The hooks that `git commit` runs, and the one that sees every change of a branch.
const HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];

/// What the configuration said, and how its files looked then.
#[derive(Debug)]
pub(crate) struct Configured {
    files: Vec<(Utf8PathBuf, Seen)>,
    /// Neither a signature nor hooks anywhere else than in the hooks' folder.
    is_plain: bool,
}

impl Configured {
    /// Asks git.
    fn read(repository: &Repository, git: Git<'_>) -> Result<Self, GitError> {
        let printed = git.output(["config", "--list", "--show-origin", "-z"], &[])?;
        let mut files: BTreeSet<Utf8PathBuf> = usual_files(repository).collect();
        let mut is_plain = true;
        let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            if let Some(file) = origin.strip_prefix("file:") {
                files.insert(repository.root().join(file));
            }
            let (key, value) = entry.split_once('\n').unwrap_or((entry.as_ref(), "true"));
            is_plain &= match key.to_ascii_lowercase().as_str() {
                "commit.gpgsign" => matches!(value, "false" | "no" | "off" | "0"),
                "core.hookspath" => false,
                key => !key.starts_with("hook."),
            };
        }
        let files = files.into_iter().map(|file| (file.clone(), seen(&file))).collect();
        Ok(Self { files, is_plain })
    }

    fn is_current(&self) -> bool {
        self.files.iter().all(|(file, then)| seen(file) == *then)
    }
}

/// Where configuration lies, also where there is none yet (git-config(1), FILES).
fn usual_files(repository: &Repository) -> impl Iterator<Item = Utf8PathBuf> {
    let variable = |name: &str| {
        let found = repository.env().iter().rev().find(|(set, _)| set == OsStr::new(name));
        found.and_then(|(_, value)| value.to_str()).map(Utf8PathBuf::from)
    };
    let home = variable("HOME");
    let of_home = |file: &str| home.as_ref().map(|home| home.join(file));
    let user = variable("XDG_CONFIG_HOME").map(|folder| folder.join("git/config"));
    let common = repository.common_dir();
    [
        variable("GIT_CONFIG_GLOBAL"),
        variable("GIT_CONFIG_SYSTEM"),
        Some("/etc/gitconfig".into()),
        of_home(".gitconfig"),
        user.or_else(|| of_home(".config/git/config")),
        Some(common.join("config")),
        Some(repository.git_dir().join("config.worktree")),
    ]
    .into_iter()
    .flatten()
}

/// Whether a commit may be made of its parts.
pub(crate) fn is_plain(repository: &Repository, git: Git<'_>) -> Result<bool, GitError> {
    // What is in it is right or not there, whoever was disturbed while holding it.
    let mut known = repository.configured.lock().unwrap_or_else(PoisonError::into_inner);
    let is_plain = match &*known {
        Some(configured) if configured.is_current() => configured.is_plain,
        Some(_) | None => known.insert(Configured::read(repository, git)?).is_plain,
    };
    Ok(is_plain && !has_hooks(&repository.common_dir().join("hooks")))
}

fn has_hooks(folder: &Utf8Path) -> bool {
    let is_hook = |name: &&str| {
        let meta = folder.join(name).metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    HOOKS.iter().any(is_hook)
}
