//! Why something was not done, in one clear line that names the value and what is accepted.

use std::fmt;

use refrain_app::{Code, RequestError};
use refrain_core::text::printable;
use refrain_engine::{EngineError, chain};

/// A refusal: nothing was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    text: String,
    kind: RefusalKind,
}

/// What kind of refusal it is, for protocols that have a code for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// It was asked wrongly.
    Asked,
    /// There is nothing of that name.
    NotFound,
    /// The state of things does not allow it.
    Conflict,
    /// It could not be done here.
    Failed,
}

impl Refusal {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::of(RefusalKind::Asked, text)
    }

    pub(crate) fn of(kind: RefusalKind, text: impl AsRef<str>) -> Self {
        // What is named in it was said by somebody else.
        let text = printable(text.as_ref()).split_whitespace().collect::<Vec<_>>().join(" ");
        Self { text, kind }
    }

    pub(crate) fn kind(&self) -> RefusalKind {
        self.kind
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let meant = match &error {
            EngineError::NoLoop { nearest: Some(nearest), .. } => format!("; did you mean {nearest}?"),
            EngineError::NoLoop { nearest: None, .. } => "; loop_list shows what there is".to_owned(),
            _ => String::new(),
        };
        let kind = match &error {
            EngineError::NoLoop { .. } | EngineError::TaskGone(_) => RefusalKind::NotFound,
            EngineError::Refused { why: refrain_core::Refusal::SteeringTooLong { .. }, .. } => {
                RefusalKind::Asked
            }
            EngineError::Journal(_)
            | EngineError::Disk(_)
            | EngineError::Catalog(_)
            | EngineError::Ledger(_)
            | EngineError::Process(..)
            | EngineError::Git(_) => RefusalKind::Failed,
            _ => RefusalKind::Conflict,
        };
        Self::of(kind, format!("{}{meant}", chain(&error)))
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let kind = match error.code() {
            _ if error.is_fault() => RefusalKind::Failed,
            Code::Usage => RefusalKind::Asked,
            Code::NotFound => RefusalKind::NotFound,
            _ => RefusalKind::Conflict,
        };
        Self::of(kind, in_own_words(&error.line()))
    }
}

/// What a refusal says of options, said of parameters: whoever called has no command line.
fn in_own_words(text: &str) -> String {
    /// Longer ones first, as one may begin like another.
    const WORDS: [(&str, &str); 19] = [
        ("--allow-missing-gates", "allow_missing_gates"),
        ("--require-approval", "require_approval"),
        ("--max-iterations-per-task", "max_iterations_per_task"),
        ("--max-iterations", "max_iterations"),
        ("--max-cost", "max_cost_usd"),
        ("--timeout-grace", "max_tick_duration_minutes"),
        ("--timeout", "max_tick_duration_minutes"),
        ("--critique-every", "checkpoint_interval"),
        ("--success-command", "success_command"),
        ("--working-dir", "workspace"),
        ("--command", "command"),
        ("--verify", "verify"),
        ("--agent", "agent"),
        ("--model", "model"),
        ("--gate", "gates"),
        ("--name", "name"),
        ("--jobs", "jobs"),
        ("--plan", "plan"),
        ("--tag", "tag"),
    ];
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        said.push_str(before);
        let goes_on = |known: &str| {
            let behind = option[known.len()..].chars().next();
            behind.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-')
        };
        let known = WORDS.iter().find(|(known, _)| option.starts_with(known) && !goes_on(known));
        let (skipped, own) = known.map_or((2, "--"), |(known, own)| (known.len(), own));
        said.push_str(own);
        rest = &option[skipped..];
    }
    said + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_parameters_and_no_options() {
        for (said, expected) in [
            (
                "--max-cost 5: claude …; leave --max-cost out",
                "max_cost_usd 5: claude …; leave max_cost_usd out",
            ),
            ("--max-iterations 900: accepted are 1 to 200", "max_iterations 900: accepted are 1 to 200"),
            (
                "--gate-timeout stays, -- too, and --gate=x goes",
                "--gate-timeout stays, -- too, and gates=x goes",
            ),
            ("--max-iterations-per-task", "max_iterations_per_task"),
        ] {
            assert_eq!(in_own_words(said), expected);
        }
    }
}
