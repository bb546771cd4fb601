//! Errors for callers: one clear line that names the value and what is accepted.

use std::fmt;

use refrain_app::{Code, RequestError, remote};
use refrain_core::text::printable;
use refrain_engine::{EngineError, chain};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    text: String,
    /// The same with the labels of the start form in place of the names of parameters, if it names any.
    labelled: Option<String>,
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
        Self {
            text: one_line(text.as_ref()),
            labelled: None,
            commands: Vec::new(),
            tools: None,
            kind,
            parameter: None,
        }
    }

    /// Names the tool, or its parameter, that helps.
    pub(crate) fn with_tools(self, tools: &'static str) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// The error where no tools are called: the browser, and programs that use the API.
    pub(crate) fn without_tools(&self) -> String {
        Self { tools: None, ..self.clone() }.to_string()
    }

    /// The same on the page with the start form.
    pub(crate) fn on_form(&self) -> String {
        let text = self.labelled.clone().unwrap_or_else(|| self.text.clone());
        Self { text, ..self.clone() }.without_tools()
    }

    /// The error alone, for a surface that has words of its own for what to do next.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What to type next on a command line.
    pub(crate) fn commands(&self) -> &[String] {
        &self.commands
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
        let (text, commands) = worded(&error, remote::parameter);
        let (labelled, _) = worded(&error, |option| remote::parameter(option).map(label));
        let commands = commands.iter().map(|hint| one_line(hint)).collect();
        Self { parameter, commands, labelled: Some(one_line(&labelled)), ..Self::of(kind, text) }
    }
}

/// The error with these names for the options that it names, and the commands to type next.
fn worded(error: &RequestError, name: impl Fn(&str) -> Option<&'static str>) -> (String, Vec<String>) {
    let (message, hints) = error.parts_with(name);
    let (commands, more): (Vec<_>, Vec<_>) = hints.into_iter().partition(|hint| hint.contains("refrain "));
    (std::iter::once(message).chain(more).collect::<Vec<_>>().join("; "), commands)
}

/// The label of a parameter on the start form; its name if the form does not have it.
fn label(parameter: &'static str) -> &'static str {
    match parameter {
        "agent" => "Agent",
        "allow_missing_gates" => "\"Start although the program of a gate is missing\"",
        "command" => "Command",
        "gates" => "Gates",
        "goal" => "Goal",
        "max_cost_usd" => "Dollars",
        "max_iterations" => "Iterations",
        "max_tick_duration_minutes" => "\"Minutes of one iteration\"",
        "model" => "Model",
        "name" => "Name",
        "place" => "\"Where it works\"",
        "require_approval" => "\"Require my approval before it finishes\"",
        "workspace" => "Project",
        other => other,
    }
}
