pub mod environment;

use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_engine::tool::{Tool, in_path_outside};
use refrain_engine::{Host, Project, Service, chain, own_limits};

use crate::caller::{Action, Caller, Permission};
use crate::effects::TypedOptions;
use crate::error::{Code, RequestError};

/// With fewer open files neither git nor a runner can be started.
const OPEN_FILES: u64 = 40;

/// The folder, host and caller of a request. The surface sets them; the request cannot.
#[derive(Clone, Debug)]
pub struct Context {
    /// The folder that paths of the request are relative to.
    pub dir: Utf8PathBuf,
    /// The machine, and the user's environment.
    pub host: Host,
    /// How many loops the caller runs in: [`Caller`] has the nearest one.
    pub depth: u32,
    pub caller: Caller,
    /// The options that the request has, for what has an effect on some loops only.
    pub typed: TypedOptions,
}

impl Context {
    /// The surroundings of a request that this caller makes in this folder, outside of all loops.
    pub fn new(dir: Utf8PathBuf, host: Host, caller: Caller) -> Self {
        Self { dir, host, depth: 0, caller, typed: TypedOptions::default() }
    }

    /// The service of the project that the folder lies in.
    pub fn service(&self) -> Result<Service, RequestError> {
        self.open(&self.dir, false)
    }

    /// A tool that is found outside of the project, where an agent writes.
    #[must_use]
    pub fn outside<'a>(&'a self, tool: Tool<'a>) -> Tool<'a> {
        self.with_folders(|folders| tool.outside(&self.host.env, folders))
    }

    /// The path of a program that [`Self::outside`] finds.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.with_folders(|folders| in_path_outside(name, &self.host.env, folders))
    }

    /// Gives the folders that an agent writes.
    fn with_folders<T>(&self, with: impl FnOnce(&[&Utf8Path]) -> T) -> T {
        let project = Project::find(&self.dir).ok();
        with(&project.iter().flat_map(Project::folders).collect::<Vec<_>>())
    }

    /// The path of a file that the user named, without the links that lead to it now.
    pub fn real(&self, path: &Utf8Path) -> Utf8PathBuf {
        let path = self.dir.join(path);
        let folder = path.parent().and_then(|folder| folder.canonicalize_utf8().ok());
        path.canonicalize_utf8().unwrap_or_else(|_| match (folder, path.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => path.components().collect(),
        })
    }

    /// A variable of the user's environment that is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.host.env.iter().find(|(found, _)| found == name)?;
        found.1.to_str().filter(|value| !value.is_empty())
    }

    /// Whether variables of the environment are configuration: inside an attempt they were set for the agent.
    pub fn has_variables(&self) -> bool {
        !self.caller.is_attempt()
    }

    /// The service of this folder's project. `once` says that this request trusts the project, which an attempt cannot
    /// say.
    pub fn open(&self, dir: &Utf8Path, once: bool) -> Result<Service, RequestError> {
        self.check(if once { Action::Trust } else { Action::Look })?;
        self.check_state_home()?;
        check_open_files()?;
        Ok(Service::open(dir, self.host.clone())?.trusting(once))
    }

    /// Refuses a state home that cannot be read. An attempt may be in a sandbox that hides it.
    fn check_state_home(&self) -> Result<(), RequestError> {
        if self.caller.is_attempt() {
            return Ok(());
        }
        self.host.signing().check_readable().map_err(|error| {
            let home = &self.host.state_home;
            let message = format!("the folder of Refrain's state, {home}, cannot be used: {}", chain(&error));
            RequestError::new(Code::Failed, message)
                .hint("make it a folder that you may read and write, or set XDG_STATE_HOME to another one")
        })
    }

    /// Refuses an action that the caller may not do, whatever the loop.
    pub fn check(&self, action: Action) -> Result<(), RequestError> {
        self.caller.check(action, None)
    }

    /// Refuses what the caller may not do with this loop or plan.
    pub fn check_on(&self, action: Action, service: &Service, id: &LoopId) -> Result<(), RequestError> {
        let Caller::Attempt(attempt) = &self.caller else { return Ok(()) };
        self.check(action)?;
        match action.permission() {
            Permission::OwnLoops(_) | Permission::StartedLoops(_) => {
                self.caller.check(action, Some(attempt.relation(service, id)?))
            }
            Permission::Anyone | Permission::OutsideAttempt(_) => Ok(()),
        }
    }
}

fn check_open_files() -> Result<(), RequestError> {
    match own_limits().open_files {
        Some(most) if most < OPEN_FILES => {
            let error =
                format!("only {most} open files are allowed; accepted: a limit of {OPEN_FILES} or more");
            Err(RequestError::new(Code::Failed, error).hint("ulimit -n 1024 raises it"))
        }
        Some(_) | None => Ok(()),
    }
}
