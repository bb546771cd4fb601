//! Whether `git commit` would do no more than its parts: no hook, no signature, nothing else that the person set up.
//!
//! The configuration is read by git, once, and again when one of its files has changed: an agent that installs packages may
//! well install hooks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};

use crate::committer::Last;
use crate::configuration::Configured;
use crate::disk::seen;
use crate::error::GitError;
use crate::git::Git;
use crate::repository::Repository;

/// The hooks that `git commit` runs, and the one that sees every change of a branch.
const HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];

/// How the keys begin that say how objects are written.
const WRITING: &[&str] =
    &["core.fsync", "core.sharedrepository", "core.createobject", "i18n.", "extensions."];

impl Configured {
    /// Asks git.
    fn read(repository: &Repository, git: Git<'_>) -> Result<Self, GitError> {
        let printed = git.output(["config", "--list", "--show-origin", "-z"], &[])?;
        let mut files: BTreeSet<Utf8PathBuf> = usual_files(repository).collect();
        let (mut has_hooks, mut is_unsigned, mut is_usual, mut is_common) = (false, true, true, true);
        let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry.as_ref(), "true"));
            if let Some(file) = origin.strip_prefix("file:") {
                let file = repository.root().join(file);
                files.extend(led_to(repository, &file, (key, value)));
                files.insert(file);
            }
            let is_no = matches!(value, "false" | "no" | "off" | "0");
            match key.to_ascii_lowercase().as_str() {
                "commit.gpgsign" => is_unsigned &= is_no,
                "core.hookspath" => has_hooks = true,
                "extensions.worktreeconfig" => is_common &= is_no,
                key => {
                    has_hooks |= key.starts_with("hook.");
                    is_common &= !key.starts_with("includeif.");
                    is_usual &= !WRITING.iter().any(|about| key.starts_with(about));
                }
            }
        }
        let files = files.into_iter().map(|file| (file.clone(), seen(&file))).collect();
        let (is_plain, last) = (is_unsigned && !has_hooks, Last::default());
        Ok(Self { files, is_plain, is_unsigned, is_usual, is_common, last })
    }
}

/// The path that a variable of the person's names.
fn variable(repository: &Repository, name: &str) -> Option<Utf8PathBuf> {
    let found = repository.env().iter().rev().find(|(set, _)| set == OsStr::new(name));
    found.and_then(|(_, value)| value.to_str()).map(Utf8PathBuf::from)
}

/// What decides about more configuration, where an entry of `file` leads to some: also what git does not read now, as it is not
/// there yet, or as another branch is checked out (git-config(1), INCLUDES).
fn led_to(repository: &Repository, file: &Utf8Path, (key, value): (&str, &str)) -> Vec<Utf8PathBuf> {
    let key = key.to_ascii_lowercase();
    if key != "include.path" && !key.starts_with("includeif.") {
        return Vec::new();
    }
    let included = match (value.strip_prefix("~/"), variable(repository, "HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => file.parent().unwrap_or(file).join(value),
    };
    let head = key.starts_with("includeif.onbranch:").then(|| repository.git_dir().join("HEAD"));
    [included].into_iter().chain(head).collect()
}

/// Where configuration lies, also where there is none yet (git-config(1), FILES).
fn usual_files(repository: &Repository) -> impl Iterator<Item = Utf8PathBuf> {
    let variable = |name: &str| variable(repository, name);
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
    let is_plain = configured(repository, git, |configured| configured.is_plain)?;
    Ok(is_plain && !has_hooks(&repository.common_dir().join("hooks")))
}

/// What a worktree is configured to do, as its files are now.
pub(crate) fn configured<T>(
    repository: &Repository,
    git: Git<'_>,
    ask: impl FnOnce(&mut Configured) -> T,
) -> Result<T, GitError> {
    // What is in it is right or not there, whoever was disturbed while holding it.
    let mut known = repository.configured.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, configured| configured.is_current());
    let own = Some(repository.git_dir().to_owned());
    let mut of = [None, own.clone()].into_iter().find(|of| known.contains_key(of));
    if of.is_none() {
        let read = Configured::read(repository, git)?;
        let its = own.filter(|_| !read.is_common);
        known.insert(its.clone(), read);
        of = Some(its);
    }
    let found = of.and_then(|of| known.get_mut(&of));
    found.map(ask).ok_or_else(|| GitError::Answer { command: "config", answer: String::new() })
}

fn has_hooks(folder: &Utf8Path) -> bool {
    let is_hook = |name: &&str| {
        let meta = folder.join(name).metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    HOOKS.iter().any(is_hook)
}
