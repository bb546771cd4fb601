//! The caller of a request, and what it may do.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::event::Asker;
use refrain_core::text::printable;
use refrain_engine::Service;
use refrain_engine::keeper::EnclosingSupervisor;

use crate::error::{Code, RequestError};

/// The caller of a request. The surface sets it: it is never read from what was sent, and is in no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person, or a program of theirs, on this machine.
    Person,
    /// A process inside an attempt of a loop, or inside a gate of one.
    Attempt(Attempt),
    /// A program or a browser with a token of `refrain serve`.
    Token,
    Slack,
    /// A reply that came by a topic of ntfy, with a code of the loop that it is for.
    Ntfy,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The loop that the environment names. The environment is the agent's to change.
    pub named: Option<String>,
    /// The nearest supervisor among the ancestors of the caller.
    pub supervisor: Option<EnclosingSupervisor>,
}

/// How the loop of an attempt is related to the loop or plan that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Own,
    Started,
    Other,
}

/// The action of a request. Every verb of every surface is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    /// Start or continue in a process that outlives the caller.
    Detach,
    Resume,
    /// Continue a loop under other limits, one that waits for approval, or all loops.
    Extend,
    ResumePlan,
    /// Approve what a loop waits with.
    Approve,
    /// Answer a loop and continue it.
    Answer,
    /// Pause a loop or a plan.
    Pause,
    Cancel,
    /// Cancel every loop and plan of a project.
    CancelAll,
    Steer,
    /// Take back a request that has had no effect yet.
    TakeBack,
    /// Let the sandbox of a loop reach one more host.
    AllowHost,
    Tune,
    /// Add, retry or block tasks of a plan.
    EditTasks,
    /// Move a stopped loop into the archive.
    Archive,
    /// Move a loop to another machine, or from one.
    Move,
    /// Merge the branch of a loop into what is checked out.
    Merge,
    /// Discard a loop and its branch.
    Discard,
    /// Remove what loops left that nothing needs.
    CollectGarbage,
    /// Look at loops, the configuration or the machine.
    Look,
    /// Count the iterations of the session that the caller runs in.
    CountSession,
    /// Drive a loop that a request has handed over.
    Drive,
    Trust,
    /// Serve loops over HTTP, and make tokens.
    Serve,
    /// Drive loops of the fleet on this machine.
    ServeFleet,
    /// Serve loops over the Model Context Protocol: each of its requests is an action of its own.
    ServeTools,
    ChangeMemories,
    /// Change plugins in the configuration of agents.
    ChangePlugins,
    /// Change the user's own configuration.
    Configure,
    /// Write Refrain's own files into the project.
    Initialize,
    /// Repair what `doctor` found.
    Repair,
    /// Choose whether loops continue after a reboot.
    Autostart,
}

/// Which callers may do an action. `{own}` in the text is the loop whose attempt is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    OutsideAttempt(&'static str),
    /// Every caller; an attempt only with its own loop, and with loops that its loop started.
    OwnLoops(&'static str),
    /// Every caller; an attempt only with loops that its loop started.
    StartedLoops(&'static str),
    Anyone,
}

impl Action {
    pub fn permission(self) -> Permission {
        use Permission::{Anyone, OutsideAttempt, OwnLoops, StartedLoops};
        match self {
            // The sweep after an attempt ends what it started.
            Self::Detach => OutsideAttempt(
                "{own} cannot leave a runner in the background from inside an attempt: it would be ended with that attempt",
            ),
            // An attempt that resumes its own loop would end itself.
            Self::Resume => StartedLoops("{own} cannot resume or extend this loop from inside an attempt"),
            Self::Answer => StartedLoops("{own} cannot answer this loop from inside an attempt"),
            Self::Extend => OutsideAttempt("{own} cannot resume or extend a loop from inside an attempt"),
            Self::ResumePlan => OutsideAttempt("{own} cannot resume or extend a plan from inside an attempt"),
            Self::Approve => OutsideAttempt("{own} cannot approve what a loop did from inside an attempt"),
            Self::AllowHost => OutsideAttempt("{own} cannot widen a sandbox from inside an attempt"),
            Self::Tune => OutsideAttempt("{own} cannot tune a plan from inside an attempt"),
            Self::EditTasks => {
                OutsideAttempt("{own} cannot change the tasks of a plan from inside an attempt")
            }
            Self::Trust => OutsideAttempt("{own} cannot say what is trusted from inside an attempt"),
            Self::Configure => OutsideAttempt("{own} cannot change the configuration from inside an attempt"),
            Self::Serve => OutsideAttempt("{own} cannot open a server from inside an attempt"),
            Self::ServeFleet => {
                OutsideAttempt("{own} cannot open this machine to a fleet from inside an attempt")
            }
            // Later loops would trust a changed memory as a person's word.
            Self::ChangeMemories => OutsideAttempt("{own} cannot change memories from inside an attempt"),
            Self::ChangePlugins => OutsideAttempt("{own} cannot change plugins from inside an attempt"),
            Self::Repair => OutsideAttempt("--fix from inside an attempt of {own}"),
            Self::Autostart => OutsideAttempt("--autostart from inside an attempt of {own}"),
            Self::CancelAll => OutsideAttempt("{own} cannot cancel all loops from inside an attempt"),
            Self::Pause => OwnLoops("{own} cannot pause another loop from inside an attempt"),
            Self::Cancel => OwnLoops("{own} cannot cancel another loop from inside an attempt"),
            Self::Steer => OwnLoops("{own} cannot steer another loop from inside an attempt"),
            Self::TakeBack => {
                OwnLoops("{own} cannot take back a request to another loop from inside an attempt")
            }
            Self::CountSession => OwnLoops("{own} cannot act for another loop from inside an attempt"),
            Self::Archive => StartedLoops("{own} cannot archive this loop from inside an attempt"),
            Self::Move => OutsideAttempt("{own} cannot move a loop between machines from inside an attempt"),
            Self::Merge => OutsideAttempt("{own} cannot merge what a loop did from inside an attempt"),
            Self::Discard => OutsideAttempt("{own} cannot discard a loop from inside an attempt"),
            Self::CollectGarbage => {
                OutsideAttempt("{own} cannot remove what loops left from inside an attempt")
            }
            Self::Start | Self::Look | Self::Drive | Self::ServeTools | Self::Initialize => Anyone,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Detach => "start it in the foreground; a person can detach it, from outside",
            Self::Repair | Self::Autostart => "a person does that, from outside; refrain doctor only looks",
            Self::ChangeMemories => "a person does that, from outside; refrain memory search is allowed",
            _ => "a person does that, from outside",
        }
    }
}

impl Caller {
    pub fn is_attempt(&self) -> bool {
        matches!(self, Self::Attempt(_))
    }

    /// The data folder of the loop whose attempt makes the request, if its supervisor is known.
    pub fn loop_dir(&self) -> Option<&Utf8Path> {
        match self {
            Self::Attempt(attempt) => attempt.loop_dir(),
            Self::Person | Self::Token | Self::Slack | Self::Ntfy => None,
        }
    }

    pub fn asker(&self) -> Asker {
        match self {
            Self::Attempt(_) => Asker::Agent,
            Self::Person | Self::Token | Self::Slack | Self::Ntfy => Asker::Person,
        }
    }

    /// Refuses what this caller may not do; the relation is to the loop or plan that the action changes, if one is
    /// known yet.
    pub fn check(&self, action: Action, relation: Option<Relation>) -> Result<(), RequestError> {
        let Self::Attempt(attempt) = self else { return Ok(()) };
        let (text, is_allowed) = match action.permission() {
            Permission::Anyone => return Ok(()),
            Permission::OutsideAttempt(text) => (text, false),
            Permission::OwnLoops(text) => (text, relation != Some(Relation::Other)),
            Permission::StartedLoops(text) => (text, matches!(relation, None | Some(Relation::Started))),
        };
        match is_allowed {
            true => Ok(()),
            false => {
                let error = text.replace("{own}", &attempt.name());
                Err(RequestError::new(Code::Refused, error).hint(action.hint()))
            }
        }
    }
}

impl Attempt {
    /// The data folder of its loop. A supervisor says it; the loop's journal has to name the same runner.
    pub fn loop_dir(&self) -> Option<&Utf8Path> {
        let supervisor = self.supervisor.as_ref()?;
        let dir = supervisor.loop_dir.as_deref()?;
        refrain_engine::is_driven_by(dir, supervisor.runner?).then_some(dir)
    }

    pub(crate) fn relation(&self, service: &Service, id: &LoopId) -> Result<Relation, RequestError> {
        let (dir, parent) = service.family(id)?;
        // Without a supervisor among the ancestors, only the environment says which loop it is.
        let is_own = |dir: &Utf8PathBuf| match (&self.supervisor, &self.named) {
            (Some(_), _) => self.loop_dir() == Some(dir),
            (None, Some(named)) => dir.file_name() == Some(named),
            (None, None) => false,
        };
        Ok(match parent {
            _ if is_own(&dir) => Relation::Own,
            Some(parent) if is_own(&parent) => Relation::Started,
            Some(_) | None => Relation::Other,
        })
    }

    fn name(&self) -> String {
        let dir = self.supervisor.as_ref().and_then(|supervisor| supervisor.loop_dir.as_ref());
        let id = dir.and_then(|dir| dir.file_name()).or(self.named.as_deref());
        id.map_or_else(|| "a loop".to_owned(), |id| format!("loop {}", printable(id)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Action::Approve, [false, false, false])]
    #[case(Action::Extend, [false, false, false])]
    #[case(Action::AllowHost, [false, false, false])]
    #[case(Action::Move, [false, false, false])]
    #[case(Action::Merge, [false, false, false])]
    #[case(Action::Configure, [false, false, false])]
    #[case(Action::EditTasks, [false, false, false])]
    #[case(Action::Discard, [false, false, false])]
    #[case(Action::CollectGarbage, [false, false, false])]
    #[case(Action::CancelAll, [false, false, false])]
    #[case(Action::Resume, [false, true, false])]
    #[case(Action::Answer, [false, true, false])]
    #[case(Action::Archive, [false, true, false])]
    #[case(Action::Pause, [true, true, false])]
    #[case(Action::Cancel, [true, true, false])]
    #[case(Action::Steer, [true, true, false])]
    #[case(Action::TakeBack, [true, true, false])]
    #[case(Action::Look, [true, true, true])]
    fn an_attempt_may_do_less_than_others(#[case] action: Action, #[case] allowed: [bool; 3]) {
        let may = |caller: &Caller, with| caller.check(action, Some(with)).is_ok();
        let attempt = Caller::Attempt(Attempt { named: Some("own".to_owned()), supervisor: None });
        let relations = [Relation::Own, Relation::Started, Relation::Other];
        assert_eq!(relations.map(|with| may(&attempt, with)), allowed);
        for caller in [Caller::Person, Caller::Token, Caller::Slack, Caller::Ntfy] {
            assert!(may(&caller, Relation::Other), "{caller:?}");
        }
    }
}
