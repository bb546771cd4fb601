//! The configuration of a worktree: git reads it once, and again when one of its files has changed, because an agent
//! that installs packages may also install hooks.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::{GitPin, GitPins, PushTarget};
use refrain_core::text::printable;
use refrain_files::open_regular;
use refrain_proc::program::in_path;
use refrain_proc::tool::Sweeper;

use crate::error::GitError;
use crate::plumbing::configuration::{GitSettings, PROGRAM, REFERENCE_HOOK, is_no};
use crate::plumbing::disk::seen;
use crate::plumbing::git::{Git, Guard};
use crate::plumbing::git_files;
use crate::plumbing::overrides::{ATTRIBUTES, HOOKS, OWN_ATTRIBUTES, Overrides, Setting, rule};
use crate::repository::Repository;

/// The hooks that `git commit` runs.
const COMMIT_HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", REFERENCE_HOOK];

/// The largest program that is pinned by its content, in bytes; a larger one is pinned by its stamp.
const LARGEST_PROGRAM: u64 = 1 << 20;

/// How many files of the hooks folder are pinned.
const MOST_HOOKS: usize = 256;

/// How many words of a command are examined for programs.
const MOST_WORDS: usize = 16;

impl Repository {
    /// The programs that git runs and the push target of `branch` (empty if the head is detached), as they are now.
    pub fn take_pins(&self, branch: &str) -> Result<GitPins, GitError> {
        let program = self.program.as_ref().map(|path| path.to_string_lossy().into_owned());
        configured(self, self.git(), |it| GitPins {
            program: program.unwrap_or_default(),
            pins: it.pins().cloned().collect(),
            push: it
                .push_target(branch)
                .map(|target| PushTarget { url: self.absolute_url(target.url), ..target }),
        })
    }

    /// The address of a remote. A relative path is one from the main worktree: a worktree of a loop lies elsewhere.
    fn absolute_url(&self, url: String) -> String {
        let main = self.common_dir().parent().unwrap_or(self.common_dir());
        let folder = main.join(&url);
        match folder.is_dir() {
            true => folder.canonicalize_utf8().unwrap_or(folder).into_string(),
            false => url,
        }
    }

    /// The names of the filters that make files from objects.
    pub(crate) fn filters(&self, git: Git<'_>) -> Result<BTreeSet<String>, GitError> {
        let keys = configured(self, git, |it| it.overrides(self.pins()))??.filters;
        let names = keys.iter().filter_map(|key| {
            let (name, what) = key.strip_prefix("filter.")?.rsplit_once('.')?;
            matches!(what, "smudge" | "process").then(|| name.to_owned())
        });
        Ok(names.collect())
    }

    /// The programs and push targets that differ from their pins, by name. Git is asked only if a file of its
    /// configuration has changed.
    pub fn changed_pins(&self) -> Result<Vec<String>, GitError> {
        let Some(pins) = self.pins() else { return Ok(Vec::new()) };
        configured(self, self.git(), |it| pins.changes(it.pins()))
    }
}

impl Guard for Repository {
    fn program(&self) -> Option<&Path> {
        // The pinned program as long as it exists.
        let pinned = self.pins().map(|pins| Path::new(&pins.program));
        pinned.filter(|path| path.is_file()).or(self.program.as_deref())
    }

    fn path(&self) -> Option<&OsString> {
        self.path.as_ref()
    }

    fn sweeper(&self) -> Option<&Sweeper> {
        self.sweeper.as_ref()
    }

    fn git_folders(&self) -> [&Utf8Path; 2] {
        [self.common_dir(), self.git_dir()]
    }

    fn overrides(&self, git: Git<'_>) -> Result<Overrides, GitError> {
        git_files::check(self.git_dir(), self.common_dir())?;
        let link_targets = git_files::link_targets(self.git_dir(), self.common_dir())?;
        let overrides = configured(self, git, |it| it.overrides(self.pins()))??;
        Ok(Overrides { link_targets, ..overrides })
    }
}

impl GitSettings {
    pub(crate) fn read(repository: &Repository, git: Git<'_>) -> Result<Self, GitError> {
        let printed = git.bare().output(["config", "--list", "--show-origin", "-z"], &[])?;
        let mut files: BTreeSet<Utf8PathBuf> = usual_files(repository).collect();
        let (mut is_common, mut settings) = (true, Vec::new());
        let mut fields = printed.split(|byte| *byte == 0);
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            let (origin, lossy) = (String::from_utf8_lossy(origin), String::from_utf8_lossy(entry));
            let (key, value) = lossy.split_once('\n').unwrap_or((lossy.as_ref(), "true"));
            if !entry.starts_with(key.as_bytes()) {
                // No override could name it.
                let [key, origin] = [key, &origin].map(|text| printable(text).into_owned());
                return Err(GitError::UnnamableSetting { key, origin });
            }
            if let Some(file) = origin.strip_prefix("file:") {
                let file = repository.root().join(file);
                files.extend(led_to(repository, &file, (key, value)));
                files.insert(file);
            }
            if key == "extensions.worktreeconfig" {
                is_common &= is_no(value);
            } else {
                is_common &= !key.starts_with("includeif.");
            }
            // What `git init` writes is no pin: loops of earlier versions have none of it.
            let pin = rule(key)
                .filter(|_| (key, value) != ("core.filemode", "true"))
                .map(|_| GitPin { name: key.to_owned(), digest: digest(repository, value, &mut files) });
            settings.push(Setting { key: key.to_owned(), value: value.to_owned(), pin });
        }
        let (pinned_files, has_commit_hooks) = pin_files(repository, &settings, &mut files);
        let files = files.into_iter().map(|file| (file.clone(), seen(&file))).collect();
        Ok(Self { files, settings, pinned_files, has_commit_hooks, is_common })
    }
}

/// Whether a commit may be written directly: `git commit` would run no hook and sign nothing.
pub(crate) fn is_plain(repository: &Repository, git: Git<'_>) -> Result<bool, GitError> {
    configured(repository, git, |configured| configured.is_plain(repository.pins()))?
}

/// The configuration of a worktree, as its files are now.
pub(crate) fn configured<T>(
    repository: &Repository,
    git: Git<'_>,
    ask: impl FnOnce(&mut GitSettings) -> T,
) -> Result<T, GitError> {
    // Every entry is correct or absent, even if a holder of the lock panicked.
    let mut known = repository.configured.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, configured| configured.is_current());
    let own = Some(repository.git_dir().to_owned());
    let mut of = [None, own.clone()].into_iter().find(|of| known.contains_key(of));
    if of.is_none() {
        let read = GitSettings::read(repository, git)?;
        let its = own.filter(|_| !read.is_common);
        known.insert(its.clone(), read);
        of = Some(its);
    }
    let found = of.and_then(|of| known.get_mut(&of));
    found.map(ask).ok_or_else(|| GitError::Answer { command: "config", answer: String::new() })
}

/// The path in a variable of the user's environment.
fn variable(repository: &Repository, name: &str) -> Option<Utf8PathBuf> {
    let found = repository.env().iter().rev().find(|(set, _)| set == OsStr::new(name));
    found.and_then(|(_, value)| value.to_str()).map(Utf8PathBuf::from)
}

/// A path in a setting: relative to the home, or to `from`.
fn path_of(repository: &Repository, value: &str, from: &Utf8Path) -> Utf8PathBuf {
    match (value.strip_prefix("~/"), variable(repository, "HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => from.join(value),
    }
}

/// The files that an entry of `file` includes: also those that git does not read now, because they do not exist yet,
/// or another branch is checked out (git-config(1), INCLUDES).
fn led_to(repository: &Repository, file: &Utf8Path, (key, value): (&str, &str)) -> Vec<Utf8PathBuf> {
    let key = key.to_ascii_lowercase();
    if key != "include.path" && !key.starts_with("includeif.") {
        return Vec::new();
    }
    let included = path_of(repository, value, file.parent().unwrap_or(file));
    let head = key.starts_with("includeif.onbranch:").then(|| repository.git_dir().join("HEAD"));
    [included].into_iter().chain(head).collect()
}

/// The places of configuration files, also if they do not exist yet (git-config(1), FILES).
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

/// The pin of a value: the value itself, and the programs and scripts that it names, as far as they can be found.
fn digest(repository: &Repository, value: &str, files: &mut BTreeSet<Utf8PathBuf>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(value.as_bytes());
    for (at, word) in words_of(value).enumerate() {
        let there = path_of(repository, word, repository.root());
        let found = match fs::metadata(&there) {
            Ok(meta) if meta.is_file() => Some(there),
            _ if at == 0 && !word.is_empty() && !word.contains('/') => {
                in_path(word, repository.env()).and_then(|path| Utf8PathBuf::from_path_buf(path).ok())
            }
            _ => None,
        };
        if let Some(path) = found {
            hasher.update(b"\0").update(content(&path).as_bytes());
            files.insert(path);
        }
    }
    short(&hasher)
}

/// The words of a command in a setting.
fn words_of(value: &str) -> impl Iterator<Item = &str> {
    let words = value.split_whitespace().take(MOST_WORDS);
    words.map(|word| word.trim_start_matches('!').trim_matches(['"', '\'']))
}

/// The pin of a file: constant if only root can write it, otherwise its content, or the stamp of a large one.
fn content(path: &Utf8Path) -> String {
    let Ok(meta) = fs::metadata(path) else { return "none".to_owned() };
    let is_root = rustix::process::geteuid().is_root();
    if meta.uid() == 0 && !is_root && meta.mode() & 0o022 == 0 {
        return "root".to_owned();
    }
    let mut hasher = blake3::Hasher::new();
    if meta.len() > LARGEST_PROGRAM {
        hasher.update(format!("{:?}", seen(path)).as_bytes());
    } else if let Ok(file) = open_regular(path) {
        // An unreadable file adds nothing.
        let _ = hasher.update_reader(file);
    }
    hasher.update(&meta.mode().to_le_bytes());
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The hooks and the attributes, and whether there is a hook that a commit runs.
fn pin_files(
    repository: &Repository,
    settings: &[Setting],
    files: &mut BTreeSet<Utf8PathBuf>,
) -> (Vec<GitPin>, bool) {
    let mut pins = Vec::new();
    let value = |key: &str| settings.iter().rev().find(|it| it.key == key).map(|it| it.value.as_str());
    let common = repository.common_dir();
    let hooks = value("core.hookspath")
        .map_or_else(|| common.join("hooks"), |path| path_of(repository, path, repository.root()));
    let mut has_commit_hooks = settings.iter().any(|it| it.key.starts_with("hook."));
    let mut folders = vec![hooks.clone()];
    while let Some(folder) = folders.pop() {
        files.insert(folder.clone());
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&hooks).unwrap_or(path);
            let Ok(meta) = fs::metadata(path) else { continue };
            if meta.is_dir() && pins.len() < MOST_HOOKS && entry.file_name() != ".git" {
                folders.push(path.to_owned());
            } else if meta.is_file() && path.extension() != Some("sample") && pins.len() < MOST_HOOKS {
                files.insert(path.to_owned());
                has_commit_hooks |=
                    COMMIT_HOOKS.contains(&name.as_str()) && meta.permissions().mode() & 0o111 != 0;
                pins.push(GitPin { name: format!("{HOOKS}{name}"), digest: content(path) });
            }
        }
    }
    let own = variable(repository, "XDG_CONFIG_HOME").map(|folder| folder.join("git/attributes"));
    let own = own.or_else(|| variable(repository, "HOME").map(|home| home.join(".config/git/attributes")));
    let own = value("core.attributesfile").map(|path| path_of(repository, path, repository.root())).or(own);
    let theirs = [(ATTRIBUTES, own), (OWN_ATTRIBUTES, Some(common.join(OWN_ATTRIBUTES)))];
    for (name, path) in theirs {
        let Some(path) = path else { continue };
        if path.is_file() {
            pins.push(GitPin { name: name.to_owned(), digest: content(&path) });
        }
        files.insert(path);
    }
    if let Some(program) = repository.program().and_then(|path| Utf8Path::from_path(path)) {
        let digest = content(program);
        if digest != "root" {
            files.insert(program.to_owned());
            pins.push(GitPin { name: PROGRAM.to_owned(), digest });
        }
    }
    (pins, has_commit_hooks)
}
