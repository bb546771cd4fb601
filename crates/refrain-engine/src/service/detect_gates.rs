//! The gates of this project, as far as its files show them (`--auto-gates`): the files are listed and read here, and
//! judged in `refrain_formats::detect`.

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::gate::Check;
use refrain_core::gate::Offer;
use refrain_core::glob::PathGlob;
use refrain_files::read_regular;
use refrain_formats::detect::{Listing, READ_AT_MOST, new_tests, offer, wanted};
use refrain_git::{GitError, Repository};

use crate::{EngineError, Service};

/// How many files of a folder without a repository are listed: enough for any project, not for a home.
const MOST: usize = 50_000;

/// Folders that are skipped in a plain folder: what was installed or built.
const PASSED_OVER: [&str; 4] = [".refrain", "node_modules", "target", "__pycache__"];

/// What a form offers for a new loop in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOffer {
    pub folder: Utf8PathBuf,
    /// The agents in `PATH`.
    pub agents: Vec<String>,
    /// The gates that the project offers as `NAME=CMD`, and whether they are required.
    pub gates: Vec<(String, bool)>,
    pub is_repository: bool,
}

impl Service {
    pub fn start_offer(&self, folder: Utf8PathBuf) -> StartOffer {
        let gates = self.offer(&folder).map(|offer| offer.gates).unwrap_or_default();
        let commands = gates.into_iter().filter_map(|gate| match gate.check {
            Check::Command(command) => Some((format!("{}={command}", gate.name), gate.hard)),
            Check::Review(_) => None,
        });
        StartOffer {
            agents: self.installed_agents().iter().map(ToString::to_string).collect(),
            gates: commands.collect(),
            is_repository: self.project.worktree.join(".git").exists(),
            folder,
        }
    }

    /// The gates and protections that the project offers, for a loop that works in `working_dir`.
    /// Errors: [`EngineError`] if git cannot be asked, or a folder without a repository holds more than 50,000 files.
    pub fn offer(&self, working_dir: &Utf8Path) -> Result<Offer, EngineError> {
        let worktree = &self.project.worktree;
        let (paths, is_repository) = self.files()?;
        let text = |path: &str| Some((path.to_owned(), read(&worktree.join(path))?));
        let mut texts: Vec<_> =
            wanted(paths.iter().map(String::as_str)).into_iter().filter_map(text).collect();
        // Scripts name scripts.
        let mut offer = loop {
            let offer = offer(&Listing::new(&paths, texts.iter().cloned()));
            let more: Vec<_> = offer.unread.iter().filter_map(|path| text(path)).collect();
            if more.is_empty() {
                break offer;
            }
            texts.extend(more);
        };
        if !is_repository {
            let note = "nothing is protected, as only a git repository tells what was touched".to_owned();
            offer = Offer { gates: offer.gates, notes: offer.notes, ..Offer::default() };
            offer.notes.push(note);
        }
        // Commands are seen from the worktree's top, and gates are run where the agent is.
        let depth = working_dir.strip_prefix(worktree).map_or(0, |inside| inside.components().count());
        if depth > 0 {
            let up = vec![".."; depth].join("/");
            for gate in &mut offer.gates {
                if let Check::Command(command) = &mut gate.check {
                    *command = format!("cd {up} && {command}");
                }
            }
        }
        Ok(offer)
    }

    /// The globs that cover no file of the worktree, as git lists them; a path without wildcards may also be one that git
    /// ignores.
    pub fn globs_without_files<'g>(
        &self,
        globs: impl IntoIterator<Item = &'g String>,
    ) -> Result<Vec<&'g str>, EngineError> {
        let globs: Vec<_> = globs.into_iter().map(String::as_str).collect();
        if globs.is_empty() {
            return Ok(globs);
        }
        let (paths, _) = self.files()?;
        let covers = |glob: &PathGlob| glob.matches_any(paths.iter().map(String::as_bytes));
        let is_there = |glob: &str| {
            let path = self.project.worktree.join(glob.trim_matches('/'));
            path.symlink_metadata().is_ok() || glob.parse::<PathGlob>().is_ok_and(|glob| covers(&glob))
        };
        Ok(globs.into_iter().filter(|glob| !is_there(glob)).collect())
    }

    /// The command that runs the tests that a loop makes in a folder, and none that are there now.
    pub fn new_tests(&self, folder: &Utf8Path) -> Result<String, EngineError> {
        let inside = folder.strip_prefix(&self.project.worktree).unwrap_or(Utf8Path::new(""));
        let in_it = |path: &String| Some(Utf8Path::new(path).strip_prefix(inside).ok()?.to_string());
        let files = self.files()?.0.iter().filter_map(in_it).collect();
        Ok(new_tests(&files, read(&folder.join("package.json")).as_deref()))
    }

    /// The files of the worktree, and whether git listed them.
    fn files(&self) -> Result<(BTreeSet<String>, bool), EngineError> {
        let worktree = &self.project.worktree;
        let env = environment::of_person(self.host.env.iter().cloned());
        match Repository::open(worktree, &env) {
            Ok(repository) => Ok((repository.files()?, true)),
            Err(GitError::NotARepository(_) | GitError::Missing(_)) => Ok((walk(worktree)?, false)),
            Err(error) => Err(error.into()),
        }
    }
}

/// The text of a file; none of what is no file, is long, or is no text.
fn read(path: &Utf8Path) -> Option<String> {
    String::from_utf8(read_regular(path, READ_AT_MOST).ok()?).ok()
}

/// The files below a folder; links are not followed, and names that are no UTF-8 are no manifest's.
fn walk(top: &Utf8Path) -> Result<BTreeSet<String>, EngineError> {
    let mut found = BTreeSet::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (Ok(kind), Some(name)) = (entry.file_type(), entry.file_name().to_str().map(str::to_owned))
            else {
                continue;
            };
            let path = folder.join(&name);
            if kind.is_dir() {
                if !PASSED_OVER.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(top) {
                found.insert(inside.to_string());
            }
            if found.len() + folders.len() > MOST {
                return Err(EngineError::TooLarge { folder: top.to_owned(), most: MOST });
            }
        }
    }
    Ok(found)
}
