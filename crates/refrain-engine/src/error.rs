//! Why the engine could not do something. Which exit code it is, is the binary's business.

use std::error::Error;
use std::{fmt, io};

use camino::Utf8PathBuf;
use refrain_agents::generic::NoProgram;
use refrain_agents::plugin::settings::SettingsError;
use refrain_core::git::{Operation, TemplateError};
use refrain_core::plan::TaskId;
use refrain_core::signature::Objection;
use refrain_core::spec::AgentKind;
use refrain_core::{LoopId, Refusal};
use refrain_git::GitError;
use refrain_store::catalog::CatalogError;
use refrain_store::config::ConfigError;
use refrain_store::tasks::TasksError;
use refrain_store::{DiskError, JournalError, LedgerError};

use crate::move_error::MoveError;

/// What failed and why, down to its first cause, in one line.
pub fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopRequest {
    Resume,
    Answer,
    /// To finish with what waits for a person.
    Approve,
    Pause,
    Cancel,
    /// To send the agent a message.
    Steer,
    /// To forget an earlier request.
    TakeBack,
    /// To let its sandbox reach one more host.
    AllowHost,
    Hurry,
    /// To make room for another of its name.
    BeginAnew,
    /// To go to another machine.
    Move,
    Merge,
    Discard,
}

impl fmt::Display for LoopRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resume => "be resumed",
            Self::Answer => "be answered",
            Self::Approve => "be approved",
            Self::Pause => "be paused",
            Self::Cancel => "be cancelled",
            Self::Steer => "be steered",
            Self::TakeBack => "take that back",
            Self::AllowHost => "be allowed a host",
            Self::Hurry => "be retried now",
            Self::BeginAnew => "be started again",
            Self::Move => "be moved",
            Self::Merge => "be merged",
            Self::Discard => "be discarded",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("no loop {id} in {project}")]
    NoLoop {
        id: LoopId,
        project: Utf8PathBuf,
        /// The loop of that project that was probably meant.
        nearest: Option<LoopId>,
        /// The remote of which there is a copy of the loop.
        copy: Option<String>,
    },
    #[error("no plan {id} in {project}")]
    NoPlan {
        id: LoopId,
        project: Utf8PathBuf,
        /// The plan of that project that was probably meant.
        nearest: Option<LoopId>,
    },
    #[error("{0} is a plan; accepted: loops, such as those of its tasks")]
    IsPlan(LoopId),
    #[error("{0} is a loop; accepted: plans")]
    IsLoop(LoopId),
    #[error("{0} is archived already")]
    Archived(LoopId),
    #[error("{id} exists already")]
    NameTaken { id: LoopId, is_plan: bool },
    #[error("{0} is a folder; accepted: a file, or nothing there")]
    ConfigurationFolder(Utf8PathBuf),
    #[error("the name {0} is taken by a loop that is damaged")]
    NameDamaged(LoopId),
    /// One of several files could not be written.
    #[error(
        "{failed} could not be written; written before it: {written}; the same command continues from there"
    )]
    Partly { failed: Utf8PathBuf, written: String, source: Box<EngineError> },
    #[error("nothing could be published: {0}")]
    Unpublishable(String),
    #[error("another runner{} drives {id}", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Driven { id: LoopId, pid: Option<i32> },
    #[error("{id} was not started with a key that you trust: {why}")]
    Foreign { id: LoopId, why: Objection },
    #[error("a loop may be started inside a loop, but not inside that one again")]
    TooDeep,
    #[error("{id} cannot {what}: {why}")]
    Refused { id: LoopId, what: LoopRequest, why: Refusal },
    #[error("{id} was not moved: {why}")]
    Move { id: LoopId, why: MoveError },
    #[error("{id} cannot be read at a remote: {why}")]
    Copy { id: LoopId, why: MoveError },
    #[error("{url}: {refusal}")]
    Remote { url: String, refusal: refrain_git::Refusal },
    #[error("the fleet did not take its loop: {0}")]
    Fleet(String),
    #[error("the money that machines share cannot be asked for: {0}")]
    SharedMoney(String),
    #[error("loop {0} has not stopped")]
    NotStopped(LoopId),
    #[error("{} in {worktree}, and {}", at_work(.by), if *.needs_alone { "a loop that commits or has gates needs its worktree for itself" } else { "it needs that for itself" })]
    WorktreeTaken {
        worktree: Utf8PathBuf,
        /// The loops that work there, as far as known.
        by: Vec<String>,
        /// Whether it is the new loop that needs it for itself.
        needs_alone: bool,
    },
    #[error("{0} is no folder: the notes of agents have their place there, and it would be removed")]
    NotesPlaceTaken(Utf8PathBuf),
    /// The person is in the middle of something in the checkout that a plan would bring forward.
    #[error(
        "a {operation} is in progress in {worktree}; finish it, or give it up with `git {operation} --abort`"
    )]
    InProgress { operation: Operation, worktree: Utf8PathBuf },
    /// Another plan works on the same tasks.
    #[error(
        "plan {by} works on the tasks of {tag}; {}, or end it with `refrain plan cancel {by}`",
        if *.is_driven {
            format!("it runs: see it with `refrain watch {by}`, stop it with `refrain plan pause {by}`")
        } else {
            format!("continue it with `refrain plan resume {by}`")
        }
    )]
    TasksTaken { tag: String, by: LoopId, is_driven: bool },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("what --protect names can only be told from what it was in a git repository")]
    Unprotected(#[source] GitError),
    /// A name in a template has no meaning.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// No gates can be looked for in so many files.
    #[error(
        "more than {most} files lie in {folder}, too many to look for gates; give them with --gate CMD, or run `git init`"
    )]
    TooLarge { folder: Utf8PathBuf, most: usize },
    /// The agent's program cannot be started.
    #[error(transparent)]
    NoProgram(#[from] NoProgram),
    /// A gate's program cannot be run.
    #[error(transparent)]
    GateProgram(#[from] GateProgramError),
    #[error("{0}")]
    Process(&'static str, #[source] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The ledger of the money that loops share.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("task {0} does not stand in its file any more")]
    TaskGone(TaskId),
    /// The task file names a command that it did not name when the plan was started.
    #[error(
        "its verification {0:?} is new in the task file and is not trusted: refrain trust shows it and asks, then refrain plan resume; or plan resume --yes"
    )]
    UntrustedCommand(String),
    #[error("{0} is used by another plan; resume this one when that has ended")]
    SlotTaken(Utf8PathBuf),
    #[error("{0} holds files that another process left in it: {1}; look there, and take that away")]
    SlotHeld(Utf8PathBuf, String),
    /// The worktree of a task is gone, or was used by another loop, before the agent's work in it was examined.
    #[error(
        "what its agent made in {folder} was taken out of there before it could be inspected; look for it in the branches \
         wip/slot-…, then refrain cancel {id}, and let the plan go on"
    )]
    WorkGone { id: LoopId, folder: Utf8PathBuf },
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Tasks(#[from] TasksError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Without a key no end of a loop is signed, and what is not signed is not verified.
    #[error("the key that signs loops cannot be made")]
    NoSigningKey(#[source] DiskError),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

fn at_work(by: &[String]) -> String {
    match by {
        [] => "another loop works".to_owned(),
        [one] => format!("loop {one} works"),
        many => format!("loops {} work", many.join(", ")),
    }
}

/// A gate, or a critic, with a program that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner}: {fault}{}", nearest.as_ref().map(|it| format!("; did you mean {it}?")).unwrap_or_default())]
pub struct GateProgramError {
    /// `gate NAME`, or `the critic`.
    pub owner: String,
    pub program: String,
    pub fault: GateProgramFault,
    pub nearest: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateProgramFault {
    /// No folder of `PATH` has it.
    #[error("command not found: {0}")]
    NotFound(String),
    #[error("no such file: {0}")]
    NoFile(String),
    #[error("{0} is not an executable file")]
    NotExecutable(String),
    #[error("{0} is a folder, not a program")]
    Folder(String),
    /// What the shell says of the command.
    #[error("a shell cannot read it: {0}")]
    Syntax(String),
}

/// Why a plugin cannot be installed or removed. Nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("HOME is not set, so there is no place for the plugin of {0}")]
    NoHome(AgentKind),
    #[error("a shell cannot run {program} --version: {why}")]
    NotCallable { program: String, why: String },
    #[error("{0} is there already, and refrain did not write it")]
    Taken(Utf8PathBuf),
    #[error("{path} cannot be changed: {why}")]
    Misfit { path: Utf8PathBuf, why: SettingsError },
    /// A file of the person's cannot be read.
    #[error(transparent)]
    Unread(DiskError),
}
