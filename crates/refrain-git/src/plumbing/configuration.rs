//! Git's configuration: the settings of all scopes with their includes, the hooks, the attributes outside of the
//! work, and the stamps of all these files.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use refrain_core::git::{GitPin, GitPins};

use crate::error::GitError;
use crate::plumbing::disk::{FileStamp, seen};
use crate::plumbing::overrides::{HOOKS, Overrides, Setting};

pub(crate) const PROGRAM: &str = "git";

/// The settings, and the stamps of their files.
#[derive(Debug)]
pub(crate) struct GitSettings {
    pub(crate) files: Vec<(Utf8PathBuf, FileStamp)>,
    pub(crate) settings: Vec<Setting>,
    /// The files of the hooks folder, and of attributes outside of the work.
    pub(crate) pinned_files: Vec<GitPin>,
    /// Whether there is a hook that a commit runs.
    pub(crate) has_commit_hooks: bool,
    /// It is the same in every worktree of the repository.
    pub(crate) is_common: bool,
}

/// The configurations that were read: by the git folder of a worktree, or without one if all have the same.
pub(crate) type Configurations = BTreeMap<Option<Utf8PathBuf>, GitSettings>;

/// The hook that runs on every change of a reference.
pub(crate) const REFERENCE_HOOK: &str = "reference-transaction";

impl GitSettings {
    #[cfg(test)]
    pub(crate) fn of(settings: &[(&str, &str)]) -> Self {
        let setting =
            |(key, value): &(&str, &str)| Setting { key: (*key).into(), value: (*value).into(), pin: None };
        Self {
            files: Vec::new(),
            settings: settings.iter().map(setting).collect(),
            pinned_files: Vec::new(),
            has_commit_hooks: false,
            is_common: true,
        }
    }

    pub(crate) fn is_current(&self) -> bool {
        self.files.iter().all(|(file, then)| seen(file) == *then)
    }

    /// The overrides for a git command; fails if the git program differs from the pinned one.
    pub(crate) fn overrides(&self, pins: Option<&GitPins>) -> Result<Overrides, GitError> {
        let is_other = |pin: &&GitPin| {
            pin.name == PROGRAM && pins.is_some_and(|pins| !pins.program.is_empty() && !pins.has(pin))
        };
        match (self.pinned_files.iter().find(is_other), pins) {
            (Some(_), Some(pins)) => Err(GitError::OtherProgram(pins.program.clone().into())),
            _ => {
                let told = Overrides::of(&self.settings, &self.pinned_files, pins);
                let is_program = |setting: &Setting| {
                    is_of_filter(&setting.key) && !self.used(&setting.key, &told).is_empty()
                };
                let filters =
                    self.settings.iter().filter(|it| is_program(it)).map(|it| it.key.clone()).collect();
                let has_own_hooks = self.settings.iter().any(|setting| setting.key.starts_with("hook."));
                let has_hooks =
                    has_own_hooks || self.pinned_files.iter().any(|pin| pin.name.starts_with(HOOKS));
                let has_programs = has_hooks || !is_no(self.used("commit.gpgsign", &told));
                let is_of_references = |pin: &GitPin| pin.name.strip_prefix(HOOKS) == Some(REFERENCE_HOOK);
                let has_reference_hook = has_own_hooks || self.pinned_files.iter().any(is_of_references);
                let fetches = self.settings.iter().any(|setting| {
                    let key = &setting.key;
                    key == "extensions.partialclone"
                        || key.starts_with("remote.") && key.ends_with(".promisor")
                });
                Ok(Overrides { filters, has_programs, has_reference_hook, fetches, ..told })
            }
        }
    }

    pub(crate) fn pins(&self) -> impl Iterator<Item = &GitPin> {
        self.settings.iter().filter_map(|setting| setting.pin.as_ref()).chain(&self.pinned_files)
    }

    /// The effective value of a key; empty if it has none.
    pub(crate) fn value(&self, key: &str) -> &str {
        self.values(key).last().copied().unwrap_or_default()
    }

    pub(crate) fn values(&self, key: &str) -> Vec<&str> {
        self.settings.iter().filter(|it| it.key == key).map(|it| it.value.as_str()).collect()
    }

    /// The value of a key for a git run with these overrides.
    fn used<'a>(&'a self, key: &str, overrides: &'a Overrides) -> &'a str {
        let told = overrides.settings.iter().rev().find(|(known, _)| known == key);
        told.map_or_else(|| self.value(key), |(_, value)| value)
    }

    pub(crate) fn ssh_command(&self, pins: Option<&GitPins>) -> Result<String, GitError> {
        Ok(self.used("core.sshcommand", &self.overrides(pins)?).to_owned())
    }

    /// Whether commits are not signed.
    pub(crate) fn is_unsigned(&self) -> bool {
        is_no(self.value("commit.gpgsign"))
    }

    /// Whether `git commit` would run no hook and sign nothing.
    pub(crate) fn is_plain(&self, pins: Option<&GitPins>) -> Result<bool, GitError> {
        let overrides = self.overrides(pins)?;
        let is_unsigned = is_no(self.used("commit.gpgsign", &overrides));
        Ok(is_unsigned && !(overrides.allows_hooks && self.has_commit_hooks))
    }

    /// The names of the filters that change a file, as far as they are used.
    pub(crate) fn filters(&self, pins: Option<&GitPins>) -> Result<BTreeSet<String>, GitError> {
        let overrides = self.overrides(pins)?;
        let name = |key: &str| {
            let (name, what) = key.strip_prefix("filter.")?.rsplit_once('.')?;
            matches!(what, "clean" | "process").then(|| name.to_owned())
        };
        let is_used = |key: &str| !self.used(key, &overrides).is_empty();
        let keys = self.settings.iter().map(|setting| setting.key.as_str());
        Ok(keys.filter(|key| is_used(key)).filter_map(name).collect())
    }
}

/// Whether a setting names a program that git runs for the content of files.
pub(crate) fn is_of_filter(key: &str) -> bool {
    let is_filter = key.starts_with("filter.") && !key.ends_with(".required");
    is_filter || key.starts_with("merge.") && key.ends_with(".driver")
}

pub(crate) fn is_no(value: &str) -> bool {
    matches!(value, "false" | "no" | "off" | "0" | "")
}
