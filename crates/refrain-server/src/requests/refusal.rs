//! Errors for callers: one clear line that names the value and what is accepted.

use std::fmt;

use refrain_app::{Code, RequestError, remote};
use refrain_core::text::printable;
use refrain_engine::{EngineError, chain};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    text: String,
    kind: RefusalKind,
    /// The parameter that it is about, if it names one.
    parameter: Option<&'static str>,
}

/// The kind of error, for protocols that have a code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
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
        // The text may quote untrusted input.
        let text = printable(text.as_ref()).split_whitespace().collect::<Vec<_>>().join(" ");
        Self { text, kind, parameter: None }
    }

    pub(crate) fn about(self, parameter: &'static str) -> Self {
        Self { parameter: Some(parameter), ..self }
    }

    pub(crate) fn parameter(&self) -> Option<&'static str> {
        self.parameter
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
            EngineError::NoLoop { .. } | EngineError::NoPlan { .. } | EngineError::TaskGone(_) => {
                RefusalKind::NotFound
            }
            EngineError::IsPlan(_) | EngineError::IsLoop(_) => RefusalKind::Asked,
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
        let parameter = error.options().find_map(remote::parameter);
        Self { parameter, ..Self::of(kind, error.line_with(remote::parameter)) }
    }
}
