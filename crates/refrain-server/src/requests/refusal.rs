//! Errors for callers: one clear line that names the value and what is accepted.

use std::fmt;

use refrain_app::{Code, RequestError, remote};
use refrain_core::text::printable;
use refrain_engine::{EngineError, chain};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    text: String,
    /// What to type next on a command line.
    commands: Vec<String>,
    /// The same for an agent that calls tools.
    tools: Option<&'static str>,
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
        Self { text: one_line(text.as_ref()), commands: Vec::new(), tools: None, kind, parameter: None }
    }

    /// Names the tool, or its parameter, that helps.
    pub(crate) fn with_tools(self, tools: &'static str) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// The error where no tools are called: the browser, and programs that use the API.
    pub(crate) fn without_tools(&self) -> String {
        Self { tools: None, ..self.clone() }.to_string()
    }

    /// The error alone, for a surface that has words of its own for what to do next.
    pub(crate) fn text(&self) -> &str {
        &self.text
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
        f.write_str(&self.text)?;
        let commands = self.commands.iter().map(String::as_str);
        commands.chain(self.tools).try_for_each(|next| write!(f, "; {next}"))
    }
}

/// A text that may quote untrusted input.
fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let (meant, tools) = match &error {
            EngineError::NoLoop { nearest: Some(nearest), .. } => {
                (format!("; did you mean {nearest}?"), None)
            }
            EngineError::NoLoop { nearest: None, .. } => {
                (String::new(), Some("loop_list shows what there is"))
            }
            _ => (String::new(), None),
        };
        let kind = match &error {
            EngineError::NoLoop { .. } | EngineError::NoPlan { .. } | EngineError::TaskGone(_) => {
                RefusalKind::NotFound
            }
            EngineError::IsPlan(_) | EngineError::IsLoop(_) => RefusalKind::Asked,
            EngineError::Refused {
                why: refrain_core::Refusal::SteeringTooLong { .. } | refrain_core::Refusal::NotALoop,
                ..
            } => RefusalKind::Asked,
            EngineError::Journal(_)
            | EngineError::Disk(_)
            | EngineError::Catalog(_)
            | EngineError::Ledger(_)
            | EngineError::Process(..)
            | EngineError::Git(_) => RefusalKind::Failed,
            _ => RefusalKind::Conflict,
        };
        Self { tools, ..Self::of(kind, format!("{}{meant}", chain(&error))) }
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
        let (message, hints) = error.parts_with(remote::parameter);
        let (commands, more): (Vec<_>, Vec<_>) =
            hints.into_iter().partition(|hint| hint.contains("refrain "));
        let text = std::iter::once(message).chain(more).collect::<Vec<_>>().join("; ");
        let commands = commands.iter().map(|hint| one_line(hint)).collect();
        Self { parameter, commands, ..Self::of(kind, text) }
    }
}
