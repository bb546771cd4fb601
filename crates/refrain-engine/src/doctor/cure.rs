//! What can be mended without a person's judgement: it loses nothing that a user could still want.

use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_core::view::checkup::{Finding, Fix, Grade, Subject};
use refrain_git::{Removal, Repository};
use refrain_proc::sweep::{Mark, sweep};
use refrain_store::disk::fs_probe;
use refrain_store::project::checkout;
use refrain_store::project::layout::LoopDir;
use refrain_store::project::pool as slots;
use refrain_store::{Project, RunnerLock};

use super::data_folders::size;
use crate::Host;
use crate::chain;
use crate::git_steps::pool;
use crate::git_steps::pool::Cleanup;

/// A finding, and how it could be mended.
#[derive(Debug)]
pub(super) struct Diagnosis {
    finding: Finding,
    cure: Option<Cure>,
}

impl Diagnosis {
    pub(super) fn is_of_processes(&self) -> bool {
        self.finding.subject == Subject::Processes
    }
}

#[derive(Debug)]
pub(super) enum Cure {
    /// Ends the processes that bear this variable, `NAME=value`, unless a runner drives their loop by now.
    EndProcesses {
        /// What marks them, `NAME=value`.
        variable: String,
        dir: LoopDir,
    },
    /// Lets only its owner look into a folder.
    MakePrivate(Utf8PathBuf),
    /// Removes a file, or an empty folder, that only hinders.
    Remove(Utf8PathBuf),
    /// Removes what is in the way of a loop's doorbell, unless a runner drives it by now.
    FreeDoorbell(LoopDir),
    /// Removes the clean checkouts of a project that is gone, unless a loop has one by now.
    RemoveCheckouts(Utf8PathBuf),
    /// Removes the worktrees for tasks of a project that is gone, unless one is used or held by now.
    RemovePool(Utf8PathBuf),
    /// Makes room among the worktrees for tasks.
    TidyPool {
        project: Project,
        host: Host,
        repository: Arc<Repository>,
        /// How much room they may take, in bytes.
        budget: u64,
    },
    /// Gives a worktree that was held back to tasks.
    GiveBack { project: Project, host: Host, repository: Arc<Repository>, number: u32 },
    /// Has git forget a worktree whose folder is gone.
    Forget(Arc<Repository>, Utf8PathBuf),
}

impl From<Finding> for Diagnosis {
    fn from(finding: Finding) -> Self {
        Self { finding, cure: None }
    }
}

impl Diagnosis {
    pub(super) fn with(finding: Finding, cure: Cure) -> Self {
        Self { finding: Finding { fix: Some(Fix::Possible), ..finding }, cure: Some(cure) }
    }

    pub(super) fn told(self) -> Finding {
        self.finding
    }

    /// The finding as it is once it was mended, if it can be.
    pub(super) fn mended(self) -> Finding {
        let Self { finding, cure: Some(cure) } = self else { return self.finding };
        match cure.take() {
            Ok(did) => {
                let found = format!("{}; {did}", finding.found);
                Finding { grade: Grade::Ok, found, advice: None, fix: Some(Fix::Done), ..finding }
            }
            Err(why) => {
                let found = format!("{}; it could not be mended: {why}", finding.found);
                Finding { found, fix: Some(Fix::Failed), ..finding }
            }
        }
    }
}

impl Cure {
    /// Mends it; returns what was done, or why it could not be.
    fn take(self) -> Result<String, String> {
        match self {
            Self::EndProcesses { variable, dir } => {
                if !RunnerLock::is_free(&dir) {
                    return Err("a runner drives their loop by now".to_owned());
                }
                let ended = sweep(&Mark { variables: vec![variable], session: None, keeper: None });
                Ok(format!("{ended} ended"))
            }
            Self::MakePrivate(path) => {
                fs_probe::make_private(&path).map_err(|error| chain(&error))?;
                Ok("made private".to_owned())
            }
            Self::Remove(path) => remove(&path),
            Self::FreeDoorbell(dir) => {
                if !RunnerLock::is_free(&dir) {
                    return Err("a runner drives the loop by now".to_owned());
                }
                remove(&dir.doorbell())
            }
            Self::RemoveCheckouts(home) => {
                checkout::remove_all(&home).map_err(|error| chain(&error))?;
                Ok("removed".to_owned())
            }
            Self::RemovePool(home) => {
                slots::remove_all(&home).map_err(|error| chain(&error))?;
                Ok("removed".to_owned())
            }
            Self::TidyPool { project, host, repository, budget } => {
                let tidied = pool::tidy(&project, &host, &repository, budget);
                let Cleanup { freed, cleared, removed } = tidied.map_err(|error| chain(&error))?;
                match freed {
                    0 => Err("all that lies in them may be nowhere else".to_owned()),
                    _ => Ok(format!("{} freed: {cleared} emptied of caches, {removed} removed", size(freed))),
                }
            }
            Self::GiveBack { project, host, repository, number } => {
                let left = pool::give_back(&project, &host, &repository, number);
                match left.map_err(|error| chain(&error))?.into_iter().next() {
                    None => Ok("given back".to_owned()),
                    Some(reason) => Err(reason),
                }
            }
            Self::Forget(repository, path) => {
                match repository.forget_worktree(&path).map_err(|error| chain(&error))? {
                    Removal::Kept(why) => Err(why),
                    Removal::Removed | Removal::BranchKept => Ok("git has forgotten it".to_owned()),
                }
            }
        }
    }
}

fn remove(path: &Utf8PathBuf) -> Result<String, String> {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let removed = if is_folder { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
    removed.map(|()| "removed".to_owned()).map_err(|error| error.to_string())
}
