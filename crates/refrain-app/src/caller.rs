//! Who makes a request, and what that caller may do.

use crate::error::{Code, RequestError};

/// Who makes a request. The surface says so: it is never read from what was sent, and is in no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person, or a program of theirs, on this machine.
    Person,
    /// A process inside an attempt of the loop of this id.
    Attempt(String),
    /// A program or a browser with a token of `refrain serve`.
    Token,
    /// A person in Slack.
    Slack,
}

/// What a request does. Every verb of every surface is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a loop or a plan.
    Start,
    /// Start or continue in a process that outlives the caller.
    Detach,
    /// Continue a loop that has stopped.
    Resume,
    /// Continue a loop under other limits, one that waits for approval, or all loops.
    Extend,
    /// Continue a plan.
    ResumePlan,
    /// Approve what a loop waits with.
    Approve,
    /// Pause a loop or a plan.
    Pause,
    /// Cancel a loop or a plan.
    Cancel,
    /// Tell an agent something.
    Steer,
    /// Say how a task continues.
    Tune,
    /// Move a stopped loop into the archive.
    Archive,
    /// Look at loops, the configuration or the machine.
    Look,
    /// Count the iterations of the session that the caller runs in.
    CountSession,
    /// Drive a loop that a request has handed over.
    Drive,
    /// Let the project's configuration count.
    Trust,
    /// Serve loops over HTTP, and make tokens.
    Serve,
    /// Serve loops over the Model Context Protocol: each of its requests is an action of its own.
    ServeTools,
    /// Change what loops remember.
    ChangeMemories,
    /// Change plugins in the configuration of agents.
    ChangePlugins,
    /// Write Refrain's own files into the project.
    Initialize,
    /// Repair what `doctor` found.
    Repair,
    /// Choose whether loops continue after a reboot.
    Autostart,
}

/// Which callers may do an action. `{own}` in the text is the id of the loop whose attempt is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Every caller but an attempt.
    OutsideAttempt(&'static str),
    /// Every caller; an attempt not with its own loop.
    OtherLoops(&'static str),
    /// Every caller.
    Anyone,
}

impl Action {
    /// Who may do it.
    #[must_use]
    pub fn permission(self) -> Permission {
        use Permission::{Anyone, OtherLoops, OutsideAttempt};
        match self {
            // The sweep behind an attempt ends what it started.
            Self::Detach => OutsideAttempt(
                "--detach from inside an attempt of loop {own}: the runner would be ended with that attempt",
            ),
            // An attempt that resumes its own loop would end itself.
            Self::Resume => OtherLoops("loop {own} cannot resume or extend a loop from inside an attempt"),
            Self::Extend => {
                OutsideAttempt("loop {own} cannot resume or extend a loop from inside an attempt")
            }
            Self::ResumePlan => {
                OutsideAttempt("loop {own} cannot resume or extend a plan from inside an attempt")
            }
            Self::Approve => {
                OutsideAttempt("loop {own} cannot approve what a loop did from inside an attempt")
            }
            Self::Tune => OutsideAttempt("loop {own} cannot tune a plan from inside an attempt"),
            Self::Trust => OutsideAttempt("loop {own} cannot say what is trusted from inside an attempt"),
            Self::Serve => OutsideAttempt("loop {own} cannot let anybody in from inside an attempt"),
            // Later loops are told what is remembered as a person's word.
            Self::ChangeMemories => {
                OutsideAttempt("loop {own} cannot change memories from inside an attempt")
            }
            Self::ChangePlugins => OutsideAttempt("loop {own} cannot change plugins from inside an attempt"),
            Self::Repair => OutsideAttempt("--fix from inside an attempt of loop {own}"),
            Self::Autostart => OutsideAttempt("--autostart from inside an attempt of loop {own}"),
            Self::Start
            | Self::Pause
            | Self::Cancel
            | Self::Steer
            | Self::Archive
            | Self::Look
            | Self::CountSession
            | Self::Drive
            | Self::ServeTools
            | Self::Initialize => Anyone,
        }
    }

    /// What an attempt can do instead.
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
    /// The loop whose attempt makes the request.
    #[must_use]
    pub fn own_loop(&self) -> Option<&str> {
        match self {
            Self::Attempt(id) => Some(id),
            Self::Person | Self::Token | Self::Slack => None,
        }
    }

    /// Refuses what this caller may not do; `target` is the loop that the action changes, if any.
    pub fn check(&self, action: Action, target: Option<&str>) -> Result<(), RequestError> {
        let Some(own) = self.own_loop() else { return Ok(()) };
        match action.permission() {
            Permission::OutsideAttempt(text) => Err(refused(action, text, own)),
            Permission::OtherLoops(text) if target == Some(own) => Err(refused(action, text, own)),
            Permission::OtherLoops(_) | Permission::Anyone => Ok(()),
        }
    }
}

fn refused(action: Action, text: &str, own: &str) -> RequestError {
    RequestError::new(Code::Refused, text.replace("{own}", own)).hint(action.hint())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Action::Approve, false, false)]
    #[case(Action::Extend, false, false)]
    #[case(Action::Resume, false, true)]
    #[case(Action::Pause, true, true)]
    #[case(Action::Look, true, true)]
    fn an_attempt_may_do_less_than_others(#[case] action: Action, #[case] own: bool, #[case] other: bool) {
        let may = |caller: &Caller, with| caller.check(action, Some(with)).is_ok();
        let attempt = Caller::Attempt("own".to_owned());
        assert_eq!((may(&attempt, "own"), may(&attempt, "other")), (own, other));
        for caller in [Caller::Person, Caller::Token, Caller::Slack] {
            assert!(may(&caller, "own"), "{caller:?}");
        }
    }
}
