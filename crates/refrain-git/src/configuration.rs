//! What git is configured to do: the settings of all scopes with their includes, the hooks, the attributes outside of the work,
//! and what the files of all that looked like.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::{GitPin, GitPins};
use refrain_proc::program::in_path;

use crate::committer::Last;
use crate::disk::{Seen, seen};
use crate::error::GitError;
use crate::git::Git;
use crate::overrides::{ATTRIBUTES, HOOKS, OWN_ATTRIBUTES, Overrides, Setting, rule};
use crate::repository::Repository;

/// How the keys begin that say how objects are written.
const WRITING: &[&str] =
    &["core.fsync", "core.sharedrepository", "core.createobject", "i18n.", "extensions."];

/// The hooks that `git commit` runs, and the one that sees every change of a branch.
const COMMIT_HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];

/// The largest program that is pinned by its content, in bytes; of a larger one by how it looks.
const LARGEST_PROGRAM: u64 = 1 << 20;

/// How many files of the hooks folder are pinned.
const MOST_HOOKS: usize = 256;

/// How many words of a command are looked at for programs.
const MOST_WORDS: usize = 16;

/// What the configuration said, and how its files looked then.
#[derive(Debug)]
pub(crate) struct Configured {
    files: Vec<(Utf8PathBuf, Seen)>,
    pub(crate) settings: Vec<Setting>,
    /// The files of the hooks folder, and of attributes outside of the work.
    pub(crate) pinned_files: Vec<GitPin>,
    /// Whether there is a hook that a commit runs.
    has_commit_hooks: bool,
    /// Objects are written as git does where nobody says how.
    pub(crate) is_usual: bool,
    /// It is the same in every worktree of the repository.
    pub(crate) is_common: bool,
    /// Who made the last commit that git made here.
    pub(crate) last: Last,
}

/// The configurations that were read: by the git folder of a worktree, or without one where all have the same.
pub(crate) type Configurations = BTreeMap<Option<Utf8PathBuf>, Configured>;

impl Configured {
    /// Asks git.
    pub(crate) fn read(repository: &Repository, git: Git<'_>) -> Result<Self, GitError> {
        let printed = git.bare().output(["config", "--list", "--show-origin", "-z"], &[])?;
        let mut files: BTreeSet<Utf8PathBuf> = usual_files(repository).collect();
        let (mut is_usual, mut is_common, mut settings) = (true, true, Vec::new());
        let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry.as_ref(), "true"));
            if let Some(file) = origin.strip_prefix("file:") {
                let file = repository.root().join(file);
                files.extend(led_to(repository, &file, (key, value)));
                files.insert(file);
            }
            if key == "extensions.worktreeconfig" {
                is_common &= is_no(value);
            } else {
                is_common &= !key.starts_with("includeif.");
                is_usual &= !WRITING.iter().any(|about| key.starts_with(about));
            }
            let pin = rule(key)
                .map(|_| GitPin { name: key.to_owned(), digest: digest(repository, value, &mut files) });
            settings.push(Setting { key: key.to_owned(), value: value.to_owned(), pin });
        }
        let (pinned_files, has_commit_hooks) = pin_files(repository, &settings, &mut files);
        let files = files.into_iter().map(|file| (file.clone(), seen(&file))).collect();
        let last = Last::default();
        Ok(Self { files, settings, pinned_files, has_commit_hooks, is_usual, is_common, last })
    }

    /// Of these settings alone.
    #[cfg(test)]
    pub(crate) fn of(settings: &[(&str, &str)]) -> Self {
        let setting =
            |(key, value): &(&str, &str)| Setting { key: (*key).into(), value: (*value).into(), pin: None };
        Self {
            files: Vec::new(),
            settings: settings.iter().map(setting).collect(),
            pinned_files: Vec::new(),
            has_commit_hooks: false,
            is_usual: true,
            is_common: true,
            last: Last::default(),
        }
    }

    /// Whether its files look as they did.
    pub(crate) fn is_current(&self) -> bool {
        self.files.iter().all(|(file, then)| seen(file) == *then)
    }

    /// What is told to git, or that the git program is another than the one that was pinned.
    pub(crate) fn overrides(&self, pins: Option<&GitPins>) -> Result<Overrides, GitError> {
        let is_other = |pin: &&GitPin| {
            pin.name == PROGRAM && pins.is_some_and(|pins| !pins.program.is_empty() && !pins.has(pin))
        };
        match (self.pinned_files.iter().find(is_other), pins) {
            (Some(_), Some(pins)) => Err(GitError::OtherProgram(pins.program.clone().into())),
            _ => {
                let told = Overrides::of(&self.settings, &self.pinned_files, pins);
                let is_program = |setting: &Setting| {
                    let is_filter = setting.key.starts_with("filter.") && !setting.key.ends_with(".required");
                    let is_driver = setting.key.starts_with("merge.") && setting.key.ends_with(".driver");
                    (is_filter || is_driver) && !self.used(&setting.key, &told).is_empty()
                };
                let has_filters = self.settings.iter().any(is_program);
                let has_hooks = self.pinned_files.iter().any(|pin| pin.name.starts_with(HOOKS));
                let has_programs = has_hooks || !is_no(self.used("commit.gpgsign", &told));
                Ok(Overrides { has_filters, has_programs, ..told })
            }
        }
    }

    /// All that is pinned.
    pub(crate) fn pins(&self) -> impl Iterator<Item = &GitPin> {
        self.settings.iter().filter_map(|setting| setting.pin.as_ref()).chain(&self.pinned_files)
    }

    /// The value of a key that counts; nothing where it has none.
    pub(crate) fn value(&self, key: &str) -> &str {
        self.values(key).last().copied().unwrap_or_default()
    }

    /// All values of a key that may have several.
    pub(crate) fn values(&self, key: &str) -> Vec<&str> {
        self.settings.iter().filter(|it| it.key == key).map(|it| it.value.as_str()).collect()
    }

    /// The value of a key that a git uses which is told these overrides.
    fn used<'a>(&'a self, key: &str, overrides: &'a Overrides) -> &'a str {
        let told = overrides.settings.iter().rev().find(|(known, _)| known == key);
        told.map_or_else(|| self.value(key), |(_, value)| value)
    }

    /// How ssh is started.
    pub(crate) fn ssh_command(&self, pins: Option<&GitPins>) -> Result<String, GitError> {
        Ok(self.used("core.sshcommand", &self.overrides(pins)?).to_owned())
    }

    /// Whether no commit is to be signed.
    pub(crate) fn is_unsigned(&self) -> bool {
        is_no(self.value("commit.gpgsign"))
    }

    /// Whether `git commit` would run no hook and sign nothing.
    pub(crate) fn is_plain(&self, pins: Option<&GitPins>) -> Result<bool, GitError> {
        let overrides = self.overrides(pins)?;
        let is_unsigned = is_no(self.used("commit.gpgsign", &overrides));
        Ok(is_unsigned && !(overrides.allows_hooks && self.has_commit_hooks))
    }

    /// The names of the filters that make something else of a file, as far as they are used.
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

/// Whether a value that is a yes or a no says no.
fn is_no(value: &str) -> bool {
    matches!(value, "false" | "no" | "off" | "0" | "")
}

/// The path that a variable of the person's names.
fn variable(repository: &Repository, name: &str) -> Option<Utf8PathBuf> {
    let found = repository.env().iter().rev().find(|(set, _)| set == OsStr::new(name));
    found.and_then(|(_, value)| value.to_str()).map(Utf8PathBuf::from)
}

/// A path as a setting says it: below the home, or below `from`.
fn path_of(repository: &Repository, value: &str, from: &Utf8Path) -> Utf8PathBuf {
    match (value.strip_prefix("~/"), variable(repository, "HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => from.join(value),
    }
}

/// What decides about more configuration, where an entry of `file` leads to some: also what git does not read now, as it is not
/// there yet, or as another branch is checked out (git-config(1), INCLUDES).
fn led_to(repository: &Repository, file: &Utf8Path, (key, value): (&str, &str)) -> Vec<Utf8PathBuf> {
    let key = key.to_ascii_lowercase();
    if key != "include.path" && !key.starts_with("includeif.") {
        return Vec::new();
    }
    let included = path_of(repository, value, file.parent().unwrap_or(file));
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

/// What is pinned of a value: itself, and the programs and scripts that it names, as far as they can be found.
fn digest(repository: &Repository, value: &str, files: &mut BTreeSet<Utf8PathBuf>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(value.as_bytes());
    for (at, word) in value.split_whitespace().take(MOST_WORDS).enumerate() {
        let word = word.trim_start_matches('!').trim_matches(['"', '\'']);
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

/// What is pinned of a file: nothing of one that only root can write, else its content, or of a large one how it looks.
fn content(path: &Utf8Path) -> String {
    let Ok(meta) = fs::metadata(path) else { return "none".to_owned() };
    let is_root = rustix::process::geteuid().is_root();
    if meta.uid() == 0 && !is_root && meta.mode() & 0o022 == 0 {
        return "root".to_owned();
    }
    let mut hasher = blake3::Hasher::new();
    if meta.len() > LARGEST_PROGRAM {
        hasher.update(format!("{:?}", seen(path)).as_bytes());
    } else if let Ok(file) = File::open(path) {
        // What cannot be read says nothing.
        let _ = hasher.update_reader(file);
    }
    hasher.update(&meta.mode().to_le_bytes());
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The git program, as it is pinned.
const PROGRAM: &str = "git";

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
