//! `refrain init` makes a project ready for loops. Existing files stay byte for byte: new files are made, or text is
//! appended to existing ones if that is safe; for everything else a note says what to add. All files are checked
//! before anything is written.

mod texts;

use std::fs;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_files::IfThere;
use refrain_git::{GitError, Repository};
use refrain_store::{append, create};

use crate::{EngineError, Service};

/// The optional files, beside the configuration and the section for agents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    pub make: bool,
    pub vscode: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Which agent loops run; none leaves it to each start.
    pub agent: Option<String>,
    /// Whether loops take the gates that the project offers.
    pub gates: bool,
    pub git: GitUse,
    /// Whether agents run in a sandbox if the machine can make one.
    pub sandbox: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GitUse {
    /// They work and commit in a worktree and on a branch of their own.
    Worktree,
    /// They commit where the user works.
    Commit,
    #[default]
    None,
}

/// A file, and what `init` does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedFile {
    pub path: Utf8PathBuf,
    pub fate: FileAction,
}

impl PreparedFile {
    /// Whether it is a configuration file that was not there.
    pub fn is_new_configuration(&self) -> bool {
        self.path == "refrain.toml" && matches!(self.fate, FileAction::Made(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// It was not there, and holds this.
    Made(String),
    Added(String),
    Left,
    /// It cannot be added to safely.
    ByHand {
        why: &'static str,
        text: String,
    },
}

enum ExistingFile {
    Nothing,
    Text(String),
    /// Nothing that text could be appended to.
    Other(&'static str),
}

impl Service {
    /// Makes the project ready for loops, or only says what would change.
    /// Errors: [`EngineError`] if the project's files cannot be looked at, and nothing was touched; or if one cannot be
    /// written: those before it are, and a second try continues from there.
    pub fn init(
        &self,
        extras: Extras,
        choices: &Choices,
        is_rehearsal: bool,
    ) -> Result<Vec<PreparedFile>, EngineError> {
        let top = &self.project.worktree;
        let mut files = vec![self.configuration(top, choices)?, section(top)?];
        if extras.make {
            files.extend(targets(top)?);
        }
        if extras.vscode {
            files.push(tasks(top)?);
        }
        if !is_rehearsal {
            for at in 0..files.len() {
                let (before, rest) = files.split_at_mut(at);
                let Some(file) = rest.first_mut() else { break };
                carry(top, file).map_err(|error| partly(before, &file.path, error))?;
            }
        }
        Ok(files)
    }

    /// What loops can do with git here: a worktree begins at a commit.
    pub fn best_git_use(&self) -> Result<GitUse, EngineError> {
        let env = environment::of_person(self.host.env.iter().cloned());
        match Repository::open(&self.project.worktree, &env) {
            Ok(repository) if repository.head_at(0)?.is_some() => Ok(GitUse::Worktree),
            Ok(_) => Ok(GitUse::Commit),
            Err(GitError::Missing(_)) if self.project.is_repository() => Err(GitError::MissingHere.into()),
            Err(GitError::NotARepository(_) | GitError::Missing(_)) => Ok(GitUse::None),
            Err(error) => Err(error.into()),
        }
    }

    fn configuration(&self, top: &Utf8Path, choices: &Choices) -> Result<PreparedFile, EngineError> {
        let path = Utf8PathBuf::from("refrain.toml");
        let fate = match look(&top.join(&path))? {
            ExistingFile::Nothing => FileAction::Made(texts::configuration(choices, &self.offer(top)?)),
            ExistingFile::Other(_) if top.join(&path).is_dir() => {
                return Err(EngineError::ConfigurationFolder(top.join(&path)));
            }
            ExistingFile::Text(_) | ExistingFile::Other(_) => FileAction::Left,
        };
        Ok(PreparedFile { path, fate })
    }
}

/// The section for agents, in the file that they read: the one that has it, else the one that is there.
fn section(top: &Utf8Path) -> Result<PreparedFile, EngineError> {
    let found: Vec<_> = ["AGENTS.md", "CLAUDE.md"]
        .into_iter()
        .map(|name| Ok((Utf8PathBuf::from(name), look(&top.join(name))?)))
        .collect::<Result<_, EngineError>>()?;
    let has_it = |(_, found): &&(Utf8PathBuf, ExistingFile)| matches!(found, ExistingFile::Text(text) if text.contains(texts::SECTION_BEGINS));
    if let Some((path, _)) = found.iter().find(has_it) {
        return Ok(PreparedFile { path: path.clone(), fate: FileAction::Left });
    }
    let is_text = |(_, found): &&(Utf8PathBuf, ExistingFile)| matches!(found, ExistingFile::Text(_));
    let is_there = |(_, found): &&(Utf8PathBuf, ExistingFile)| !matches!(found, ExistingFile::Nothing);
    let chosen = found.iter().find(is_text).or_else(|| found.iter().find(is_there)).or(found.first());
    let (path, found) = chosen
        .map_or((Utf8PathBuf::from("AGENTS.md"), &ExistingFile::Nothing), |(path, it)| (path.clone(), it));
    let section = texts::SECTION.to_owned();
    let fate = match found {
        ExistingFile::Nothing => FileAction::Made(section),
        ExistingFile::Text(text) => FileAction::Added(behind(text, &section)),
        ExistingFile::Other(why) => FileAction::ByHand { why, text: section },
    };
    Ok(PreparedFile { path, fate })
}

/// The targets: in the Makefile if there is none, else in a file that it includes.
fn targets(top: &Utf8Path) -> Result<Vec<PreparedFile>, EngineError> {
    let made =
        |path: &str| PreparedFile { path: path.into(), fate: FileAction::Made(texts::TARGETS.to_owned()) };
    let left = |path: &str| PreparedFile { path: path.into(), fate: FileAction::Left };
    // In the order in which Make looks for them.
    for name in ["GNUmakefile", "makefile", "Makefile"] {
        let (included, line) = ("refrain.mk", "include refrain.mk\n");
        let fate = match look(&top.join(name))? {
            ExistingFile::Nothing => continue,
            // A target of the person's is not to be made another by one of ours.
            ExistingFile::Text(text) if text.lines().any(is_target) => {
                return Ok(vec![left(name)]);
            }
            ExistingFile::Text(text) if text.lines().any(includes) => FileAction::Left,
            ExistingFile::Text(text) if text.trim_end_matches(['\n', '\r']).ends_with('\\') => {
                FileAction::ByHand { why: "its last line continues", text: line.to_owned() }
            }
            ExistingFile::Text(text) => FileAction::Added(behind(&text, line)),
            ExistingFile::Other(why) => FileAction::ByHand { why, text: line.to_owned() },
        };
        let own = match look(&top.join(included))? {
            ExistingFile::Nothing => made(included),
            ExistingFile::Text(_) | ExistingFile::Other(_) => left(included),
        };
        return Ok(vec![own, PreparedFile { path: name.into(), fate }]);
    }
    Ok(vec![made("Makefile")])
}

/// Whether a line of a Makefile begins a target of our names.
fn is_target(line: &str) -> bool {
    ["loops:", "loop-research:", "loop-implement:"].iter().any(|name| line.starts_with(name))
}

/// Whether a line of a Makefile includes the file of ours, by its name or with all others of its kind.
fn includes(line: &str) -> bool {
    let words = ["include ", "-include ", "sinclude "];
    words.iter().any(|word| line.starts_with(word)) && (line.contains("refrain.mk") || line.contains("*.mk"))
}

fn tasks(top: &Utf8Path) -> Result<PreparedFile, EngineError> {
    let (folder, path) = (top.join(".vscode"), Utf8PathBuf::from(".vscode/tasks.json"));
    let text = texts::TASKS.to_owned();
    // The target of a link is not the project's.
    let there = fs::symlink_metadata(&folder).if_there().map_err(unread)?;
    let is_folder = there.is_none_or(|meta| meta.is_dir());
    let found = if is_folder { look(&top.join(&path))? } else { ExistingFile::Other("its folder is none") };
    let fate = match found {
        ExistingFile::Nothing => FileAction::Made(text),
        ExistingFile::Text(own) if own.contains(texts::TASK_BEGINS) => FileAction::Left,
        ExistingFile::Text(_) => FileAction::ByHand { why: "it has tasks of its own", text },
        ExistingFile::Other(why) => FileAction::ByHand { why, text },
    };
    Ok(PreparedFile { path, fate })
}

fn unread(error: io::Error) -> EngineError {
    EngineError::Process("a file of the project cannot be looked at", error)
}

fn look(path: &Utf8Path) -> Result<ExistingFile, EngineError> {
    match fs::symlink_metadata(path).if_there().map_err(unread)? {
        None => Ok(ExistingFile::Nothing),
        Some(meta) if meta.is_symlink() => Ok(ExistingFile::Other("it is a symbolic link")),
        Some(meta) if !meta.is_file() => Ok(ExistingFile::Other("it is no file")),
        Some(_) => match String::from_utf8(fs::read(path).map_err(unread)?) {
            Ok(text) => Ok(ExistingFile::Text(text)),
            Err(_) => Ok(ExistingFile::Other("it is no UTF-8 text")),
        },
    }
}

/// What is to be appended to a text so that `more` is apart from it.
fn behind(text: &str, more: &str) -> String {
    let apart = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{apart}{more}")
}

fn partly(before: &[PreparedFile], failed: &Utf8Path, source: EngineError) -> EngineError {
    let is_written = |file: &&PreparedFile| matches!(file.fate, FileAction::Made(_) | FileAction::Added(_));
    let written: Vec<_> = before.iter().filter(is_written).map(|file| file.path.as_str()).collect();
    match written.is_empty() {
        true => source,
        false => EngineError::Partly {
            failed: failed.to_owned(),
            written: written.join(", "),
            source: Box::new(source),
        },
    }
}

/// Writes a file; one that was created meanwhile is left as it is.
fn carry(top: &Utf8Path, file: &mut PreparedFile) -> Result<(), EngineError> {
    let path = top.join(&file.path);
    match &file.fate {
        FileAction::Made(text) => {
            if let Some(folder) = path.parent().filter(|folder| *folder != top) {
                match fs::create_dir(folder) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        return Err(EngineError::Process("a folder cannot be made in the project", error));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            if !create(&path, text.as_bytes())? {
                file.fate = FileAction::Left;
            }
        }
        FileAction::Added(text) => append(&path, text.as_bytes())?,
        FileAction::Left | FileAction::ByHand { .. } => {}
    }
    Ok(())
}
