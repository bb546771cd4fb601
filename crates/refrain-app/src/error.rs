//! The error of every request: what failed, why, and what to do next; and the exit code that scripts rely on
//! (contract.md).

mod command_line;
mod message;
mod move_error;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use camino::Utf8Path;
use refrain_core::signature::Remedy;
use refrain_core::view::StatusWord;
use refrain_engine::config::{ConfigError, Origin};
use refrain_engine::tasks::TasksError;
use refrain_engine::{
    EngineError, EvolutionError, GateProgramFault, GitError, JournalError, LoopRequest, MemoryError,
    MoveError, NoProgram, PluginError, RememberError, chain,
};

pub use self::message::Message;

/// The documented exit codes. Public API: contract.md says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Completed, or the command did what it was asked.
    Done = 0,
    Failed = 1,
    /// A request that cannot be taken; nothing was touched.
    Usage = 2,
    /// There is nothing of that name.
    NotFound = 3,
    IterationCap = 10,
    /// All money or tokens are used.
    BudgetExceeded = 11,
    TimedOut = 12,
    Stuck = 13,
    /// The loop waits for a person.
    Blocked = 14,
    Cancelled = 15,
    Paused = 16,
    /// Its state, or the caller, does not allow it.
    Refused = 17,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        ExitCode::from(code as u8)
    }
}

impl From<StatusWord> for Code {
    /// What a loop's end means to the script that ran it.
    fn from(status: StatusWord) -> Self {
        match status {
            StatusWord::Completed => Self::Done,
            StatusWord::IterationCap => Self::IterationCap,
            StatusWord::BudgetExceeded => Self::BudgetExceeded,
            StatusWord::TimedOut => Self::TimedOut,
            StatusWord::Stuck => Self::Stuck,
            StatusWord::Blocked => Self::Blocked,
            StatusWord::Cancelled => Self::Cancelled,
            StatusWord::Paused => Self::Paused,
            // A runner that lets go of a loop that has not stopped has failed.
            StatusWord::Moved => Self::Refused,
            StatusWord::Failed | StatusWord::Crashed | StatusWord::Running | StatusWord::Waiting => {
                Self::Failed
            }
        }
    }
}

#[derive(Debug)]
pub struct RequestError {
    code: Code,
    message: Message,
    hints: Vec<Message>,
    choices: Vec<String>,
    lacks: Option<Box<(String, String)>>,
    is_fault: bool,
}

impl RequestError {
    pub fn new(code: Code, message: impl Into<Message>) -> Self {
        Self {
            code,
            message: message.into(),
            hints: Vec::new(),
            choices: Vec::new(),
            lacks: None,
            is_fault: false,
        }
    }

    /// Something on the command line that cannot be taken: names the value, and what is accepted.
    pub fn usage(message: impl Into<Message>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// What to do next; never a part of the message.
    pub fn hint(mut self, hint: impl Into<Message>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// One of the command lines that may be meant; these are a list, a line each.
    pub fn choice(mut self, choice: String) -> Self {
        self.choices.push(choice);
        self
    }

    /// Names the limit that is used up, and the options that would raise it.
    pub fn lacking(self, used: &str, flags: &str) -> Self {
        Self { lacks: Some(Box::new((used.to_owned(), flags.to_owned()))), ..self }
    }

    /// What is used up, if the error is about that.
    pub fn lacks(&self) -> Option<&(String, String)> {
        self.lacks.as_deref()
    }

    pub fn line(&self) -> String {
        self.line_with(|_| None)
    }

    /// The same for callers that have other names for options.
    pub fn line_with(&self, name: impl Fn(&str) -> Option<&'static str>) -> String {
        let (message, hints) = self.parts_with(name);
        hints.iter().fold(message, |line, hint| {
            let between = if line.ends_with('?') { " " } else { "; " };
            line + between + hint
        })
    }

    /// The same in its parts: what failed, and what to do next.
    pub fn parts_with(&self, name: impl Fn(&str) -> Option<&'static str>) -> (String, Vec<String>) {
        (self.message.with(&name), self.hints.iter().map(|hint| hint.with(&name)).collect())
    }

    /// The options that it names; it is about the first.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.message).chain(&self.hints).flat_map(Message::options)
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// Whether the machine, or Refrain, failed, and not the request.
    pub fn is_fault(&self) -> bool {
        self.is_fault
    }

    pub fn message(&self) -> String {
        self.message.to_string()
    }

    pub fn choices(&self) -> &[String] {
        &self.choices
    }

    pub fn hints(&self) -> impl Iterator<Item = String> {
        self.hints.iter().map(ToString::to_string)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

impl Error for RequestError {}

impl From<EngineError> for RequestError {
    fn from(error: EngineError) -> Self {
        if let EngineError::Tasks(error) = error {
            return error.into();
        }
        let text = |text: String| Some(Message::from(text));
        let words = |text: &'static str| Some(Message::from(text));
        let (code, hint) = match &error {
            EngineError::NoLoop { id, copy: Some(remote), .. } => (
                Code::NotFound,
                Some(Message::own(&format!(
                    "it is at {remote}: refrain status {id} --at {remote} shows it, refrain move {id} --from {remote} takes it over"
                ))),
            ),
            EngineError::NoLoop { nearest, copy: None, .. } => {
                let meant = nearest.as_ref().map(|nearest| format!("did you mean {nearest}? "));
                let list = "refrain list shows what there is; refrain list --all-projects, everywhere";
                (Code::NotFound, text(format!("{}{list}", meant.unwrap_or_default())))
            }
            EngineError::NoPlan { nearest, .. } => (
                Code::NotFound,
                match nearest {
                    Some(nearest) => text(format!("did you mean {nearest}?")),
                    None => words("refrain list shows what there is"),
                },
            ),
            EngineError::IsPlan(id) => {
                (Code::Usage, text(format!("refrain list --plan {id} shows the loops of its tasks")))
            }
            EngineError::Archived(id) => {
                (Code::Refused, text(format!("its name is free; refrain status {id} shows it")))
            }
            EngineError::IsLoop(id) => (Code::Usage, text(format!("refrain status {id} shows it"))),
            EngineError::NameTaken { id, is_plan } => (
                Code::Refused,
                Some(Message::from("take another --name; ").then(match is_plan {
                    true => format!("refrain discard {id} frees the name of a stopped plan"),
                    false => format!("refrain archive {id} frees the name of a stopped loop"),
                })),
            ),
            EngineError::NameDamaged(id) => (
                Code::Refused,
                Some(
                    Message::from("take another --name; ")
                        .then(format!("refrain verify {id} says what is wrong with that loop")),
                ),
            ),
            EngineError::Driven { id, .. } => {
                (Code::Refused, text(format!("refrain watch {id} shows it; refrain pause {id} stops it")))
            }
            EngineError::TooDeep => {
                (Code::Refused, words("start it from outside: an agent in a loop in a loop is a runaway"))
            }
            EngineError::Refused { why: refrain_core::Refusal::NothingGranted { flag, .. }, id, what } => {
                let verb = if *what == LoopRequest::Approve { "approve" } else { "resume" };
                (Code::Refused, Some(Message::own(&format!("refrain {verb} {id} {flag}"))))
            }
            EngineError::Refused { why: refrain_core::Refusal::NotAsked(_), id, .. } => {
                (Code::Refused, text(format!("refrain status {id} says how it stands, and how it continues")))
            }
            EngineError::Refused { why: refrain_core::Refusal::TextQueued(_), id, .. } => (
                Code::Refused,
                text(format!(
                    "refrain resume {id} sends it back with the text; refrain take-back {id} removes the text"
                )),
            ),
            EngineError::Refused { why: refrain_core::Refusal::AnotherTree { .. }, id, .. } => {
                (Code::Refused, text(format!("refrain status {id} says how to see what waits")))
            }
            EngineError::Refused {
                why:
                    refrain_core::Refusal::TooMany { .. }
                    | refrain_core::Refusal::TooLong { .. }
                    | refrain_core::Refusal::SteeringTooLong { .. },
                ..
            } => (Code::Usage, None),
            EngineError::Refused { why: refrain_core::Refusal::Unreported { .. }, .. } => (
                Code::Usage,
                words("accepted: --max-iterations and --max-duration; --max-tokens with known agents"),
            ),
            EngineError::Refused { why: refrain_core::Refusal::Moved { to }, id, .. } => {
                let back = format!("refrain move {id} --from {to} takes it back");
                let unless = "unless another machine has taken it over";
                let away = format!("refrain archive {id} removes it from the list here");
                (Code::Refused, Some(Message::own(&format!("{back}, {unless}; {away}"))))
            }
            EngineError::Refused { why: refrain_core::Refusal::Immovable(_), .. } => (Code::Usage, None),
            EngineError::Foreign { id, why } => {
                let would = "its agent and its gates would run here";
                let next = match why.remedy() {
                    Remedy::TrustKey => format!(
                        "{would}: if that key is the one that refrain doctor prints on its machine, add it to signers in [trust] of \
                         your own config.toml"
                    ),
                    Remedy::SetAside | Remedy::StartAnew => {
                        format!("{would}; refrain diff {id} shows its work; start another loop")
                    }
                };
                (Code::Refused, Some(Message::own(&next)))
            }
            EngineError::Move { id, why } => move_error::next(id, why),
            EngineError::Copy { id, why: MoveError::NotTaken { url, .. } } => (
                Code::NotFound,
                Some(Message::own(&format!(
                    "refrain list --at {url} shows its loops; {id} may have another name"
                ))),
            ),
            EngineError::Copy { .. }
            | EngineError::Remote { .. }
            | EngineError::Fleet(_)
            | EngineError::SharedMoney(_) => (Code::Failed, None),
            EngineError::Refused { why: refrain_core::Refusal::Stopped(_), id, .. } => {
                (Code::Refused, text(format!("refrain status {id} says why, and how it continues")))
            }
            EngineError::Refused {
                why: refrain_core::Refusal::Final(_),
                id,
                what:
                    LoopRequest::Answer
                    | LoopRequest::Approve
                    | LoopRequest::Move
                    | LoopRequest::Pause
                    | LoopRequest::Steer
                    | LoopRequest::TakeBack
                    | LoopRequest::AllowHost,
            } => {
                (Code::Refused, text(format!("nothing was changed; refrain status {id} shows how it ended")))
            }
            EngineError::Refused { why: refrain_core::Refusal::Final(_), id, .. } => {
                (Code::Refused, text(format!("start another; refrain archive {id} frees its name")))
            }
            EngineError::NotStopped(id) => {
                (Code::Refused, text(format!("refrain cancel {id}, or refrain pause {id}, stops it")))
            }
            EngineError::WorktreeTaken { .. } => (
                Code::Refused,
                words(
                    "wait until it has stopped; a start with --worktree gives a loop one of its own, and --share-worktree at both starts allows it",
                ),
            ),
            EngineError::NotesPlaceTaken(_) => {
                (Code::Refused, words("move it away, or start with --worktree; nothing was changed"))
            }
            EngineError::Git(GitError::FolderGone(_)) => (
                Code::Refused,
                words("move it back: a loop without --worktree continues where it was started"),
            ),
            EngineError::Git(GitError::BranchTaken(_)) => {
                (Code::Refused, words("--branch-template names another, as in loop/{loop}-2"))
            }
            EngineError::Git(
                GitError::NotARepository(_)
                | GitError::MissingHere
                | GitError::Bare(_)
                | GitError::BadBranch(_)
                | GitError::NoCommit(_)
                | GitError::NoFolder { .. }
                | GitError::LineBreak(_),
            )
            | EngineError::Template(_) => (Code::Usage, None),
            EngineError::Unprotected(_) => {
                (Code::Usage, words("without --protect and --protect-existing a plain folder will do"))
            }
            EngineError::Unpublishable(_) => {
                (Code::Failed, words("nothing was begun; --git-workflow commit keeps the work here"))
            }
            EngineError::TooLarge { .. } => (Code::Usage, None),
            EngineError::Git(GitError::LostLink { .. }) => (Code::Refused, words("the loop is as it was")),
            EngineError::Git(GitError::BranchGone { .. } | GitError::BranchInUse { .. }) => {
                (Code::Refused, words("the loop is as it was; refrain cancel ends it for good"))
            }
            EngineError::NoProgram(NoProgram::NotExecutable(program)) => {
                (Code::Failed, text(format!("chmod +x {program}; nothing was begun")))
            }
            EngineError::NoProgram(
                NoProgram::Missing(_) | NoProgram::NotInPath(_) | NoProgram::NoFile(_),
            ) => (Code::Failed, words("install it, or give its path; nothing was begun")),
            EngineError::GateProgram(error) => {
                let next = match &error.fault {
                    GateProgramFault::NotExecutable(program) => format!("chmod +x {program}; "),
                    GateProgramFault::Syntax(_) => {
                        return Self::usage(error.to_string())
                            .hint("nothing was started; correct the command");
                    }
                    GateProgramFault::NotFound(_)
                    | GateProgramFault::NoFile(_)
                    | GateProgramFault::Folder(_) => String::new(),
                };
                let anyway = "--allow-missing-gates starts anyway, if the agent is to create it: until then the gate fails";
                (Code::Usage, Some(Message::from(format!("{next}nothing was started; ")).then(anyway)))
            }
            EngineError::Journal(JournalError::Damaged { path, .. }) => {
                let id = path.parent().and_then(Utf8Path::file_name).unwrap_or("ID");
                let next = format!(
                    "nothing was changed; refrain verify {id} checks it, refrain doctor looks at \
                     all loops; what its agent did is in your files"
                );
                (Code::Failed, text(next))
            }
            EngineError::Journal(JournalError::Disk(_)) => (
                Code::Failed,
                words(
                    "nothing was changed; correct the rights of the file or the disk, then refrain doctor looks at all loops",
                ),
            ),
            EngineError::Config(_) => (Code::Usage, None),
            EngineError::ConfigurationFolder(_) => {
                (Code::Usage, words("nothing was changed; move that folder away, then refrain init"))
            }
            EngineError::Plugin(PluginError::Taken(_)) => {
                (Code::Usage, words("nothing was changed; move it away first"))
            }
            EngineError::Plugin(PluginError::NoHome(_)) => (Code::Usage, None),
            EngineError::Plugin(PluginError::NotCallable { .. }) => (
                Code::Failed,
                Some("put refrain where agents may run it, and install again".to_owned().into()),
            ),
            EngineError::Plugin(PluginError::Misfit { .. } | PluginError::Unread(_)) => {
                (Code::Usage, words("nothing was changed; correct that file, and try again"))
            }
            EngineError::Git(GitError::Unborn(_))
            | EngineError::InProgress { .. }
            | EngineError::TasksTaken { .. } => (Code::Refused, None),
            // The id is one of a plan where a loop is meant: as IsPlan.
            EngineError::Refused { why: refrain_core::Refusal::NotALoop, .. } => (Code::Usage, None),
            EngineError::Refused { why: refrain_core::Refusal::NotQueued, id, .. } => {
                (Code::Refused, text(format!("refrain status {id} lists what can be taken back as queued")))
            }
            EngineError::Refused { why: refrain_core::Refusal::NoSandbox, .. } => {
                (Code::Refused, words("it reaches every host that you reach"))
            }
            EngineError::Git(_) => (Code::Failed, None),
            EngineError::TaskGone(_) => (Code::NotFound, None),
            EngineError::UntrustedCommand(_) => (Code::Refused, None),
            EngineError::NoSigningKey(_) => {
                (Code::Failed, words("set XDG_STATE_HOME to a folder that you may write to"))
            }
            EngineError::SlotTaken(_)
            | EngineError::SlotHeld(..)
            | EngineError::WorkGone { .. }
            | EngineError::Tasks(_)
            | EngineError::Journal(_)
            | EngineError::Catalog(_)
            | EngineError::Partly { .. }
            | EngineError::Ledger(_)
            | EngineError::Disk(_)
            | EngineError::Process(..) => (Code::Failed, None),
        };
        let message = match &error {
            EngineError::Refused { .. } => Message::own(&chain(&error)),
            _ => chain(&error).into(),
        };
        let hint = hint.or_else(|| is_denied(&error).then(|| Message::from(DENIED)));
        let mut told = hint.into_iter().fold(Self::new(code, message), Self::hint);
        told.is_fault = code == Code::Failed
            && matches!(
                error,
                EngineError::Journal(_)
                    | EngineError::Disk(_)
                    | EngineError::NoSigningKey(_)
                    | EngineError::Catalog(_)
                    | EngineError::Ledger(_)
                    | EngineError::Process(..)
                    | EngineError::Git(_)
            );
        match &error {
            EngineError::Refused { why: refrain_core::Refusal::NothingGranted { used, flag }, .. } => {
                told.lacking(used, flag)
            }
            _ => told,
        }
    }
}

const DENIED: &str = "give yourself access there, then try again";

/// Whether the system denied access to a file or folder.
fn is_denied(error: &EngineError) -> bool {
    let first: &(dyn Error + 'static) = error;
    let causes = std::iter::successors(Some(first), |error| (*error).source());
    let mut denied = causes.filter_map(|error| error.downcast_ref::<std::io::Error>());
    denied.any(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

impl From<TasksError> for RequestError {
    fn from(error: TasksError) -> Self {
        let (code, hint): (Code, Option<Message>) = match &error {
            TasksError::NoTag { nearest, known, .. } => {
                let meant = nearest.as_ref().map(|nearest| format!("did you mean {nearest}? "));
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                (Code::NotFound, Some(format!("{}there are: {known}", meant.unwrap_or_default()).into()))
            }
            TasksError::Nothing(_) => {
                let next = "--plan FILE names a plan in Markdown, or a task file; refrain plan new \"IDEA\" writes a plan";
                (Code::NotFound, Some(next.into()))
            }
            TasksError::Which { .. } => (Code::Usage, Some("--tag TAG says which".into())),
            TasksError::Unfit { .. } => (
                Code::Usage,
                Some("accepted: a plan in Markdown, or a task file; nothing was changed".into()),
            ),
            TasksError::Malformed { .. } => (Code::Usage, Some("nothing was changed".into())),
            TasksError::Busy(_) => (Code::Failed, Some("nothing was changed; try again".into())),
            TasksError::Disk(_) => (Code::Failed, None),
        };
        let is_fault = matches!(error, TasksError::Disk(_));
        let error = Self { is_fault, ..Self::new(code, chain(&error)) };
        hint.into_iter().fold(error, Self::hint)
    }
}

impl From<ConfigError> for RequestError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Wrong { at: Origin::Option(option), what } => {
                Self::usage(Message::from(option).then(format!(": {what}")))
            }
            ConfigError::Wrong { .. } | ConfigError::Unusable { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<MemoryError> for RequestError {
    fn from(error: MemoryError) -> Self {
        let hint = match &error {
            MemoryError::Damaged(_) => Some("the next time something is remembered, a new one is begun"),
            MemoryError::Newer => Some("use that version"),
            MemoryError::Unreachable(_) => Some("try again: another process may be writing it"),
            MemoryError::Disk(_) => None,
        };
        let error = Self::new(Code::Failed, chain(&error));
        hint.into_iter().fold(error, Self::hint)
    }
}

impl From<EvolutionError> for RequestError {
    fn from(error: EvolutionError) -> Self {
        let (code, hint) = match &error {
            EvolutionError::Engine(_) => match error {
                EvolutionError::Engine(error) => return error.into(),
                other => return Self::new(Code::Failed, chain(&other)),
            },
            EvolutionError::None(_) => (Code::NotFound, "refrain memory proposals shows what there is"),
            EvolutionError::Decided { .. } => {
                (Code::Refused, "refrain memory proposals shows what else there is")
            }
            EvolutionError::Changed(_) => (
                Code::Refused,
                "add what you want of it by hand, then refrain memory dismiss; nothing was changed",
            ),
            EvolutionError::Useless(_) => (Code::Refused, "refrain list shows loops that ended"),
            EvolutionError::Fault(_) => (Code::Failed, "nothing was changed"),
            EvolutionError::Disk(_) => (Code::Failed, "nothing was changed"),
        };
        Self::new(code, chain(&error)).hint(hint)
    }
}

impl From<RememberError> for RequestError {
    fn from(error: RememberError) -> Self {
        match error {
            RememberError::File(error) => error.into(),
            RememberError::Empty => Self::usage("TEXT has no words; accepted: what is to be remembered"),
            RememberError::Secret(_) => {
                Self::usage(chain(&error)).hint("accepted: the text without the secret")
            }
        }
    }
}
