//! The form that starts a loop, with a preview of what will run.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use refrain_app::remote::{MOST_MONEY, Start};
use refrain_app::verbs::tune::LONGEST;
use refrain_core::spec::Limits;
use serde::Deserialize;

use super::act::number;
use super::frame::{Frame, page};
use crate::desk::{Desk, Refusal};
use crate::http::app_state::AppState;
use crate::http::failure::Failure;

#[derive(Template)]
#[template(path = "start.html")]
struct Page {
    frame: Frame,
    told: String,
    /// The field of the error; empty if it is about none.
    at: &'static str,
    preview: String,
    folders: Vec<String>,
    fields: Vec<Field>,
    /// Whether a person is to be asked last of all.
    asks: bool,
    /// Whether the program of a gate may be missing.
    may_lack: bool,
    no_gates: bool,
}

/// A field of the form.
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
    /// The height of a text area; 0 for a one-line field.
    rows: u32,
    /// HTML attributes by which the browser validates it.
    bounds: String,
}

/// The form's fields as they were typed, to show them again after an error.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Typed {
    goal: String,
    workspace: String,
    agent: String,
    command: String,
    model: String,
    name: String,
    gates: String,
    max_iterations: String,
    max_cost_usd: String,
    require_approval: Option<String>,
    allow_missing_gates: Option<String>,
    no_gates: Option<String>,
    r#do: String,
}

enum Came {
    Started { project: String, id: String },
    Shown(String),
}

pub(super) async fn show(State(door): State<Arc<AppState>>) -> Response {
    form(&door, None, String::new(), Typed::default()).await
}

pub(super) async fn start(State(door): State<Arc<AppState>>, Form(asked): Form<Typed>) -> Response {
    let said = asked.clone();
    match door.at_desk(move |desk| act(desk, said)).await {
        Ok(Came::Started { project, id }) => Redirect::to(&format!("/p/{project}/{id}")).into_response(),
        Ok(Came::Shown(preview)) => form(&door, None, preview, asked).await,
        Err(failure) => {
            (failure.status(), form(&door, Some(failure), String::new(), asked).await).into_response()
        }
    }
}

async fn form(door: &Arc<AppState>, failure: Option<Failure>, preview: String, asked: Typed) -> Response {
    let projects = door.at_desk(|desk| Ok(desk.projects())).await.unwrap_or_default();
    let folders = projects.into_iter().map(|project| project.folder).collect();
    let (asks, may_lack) = (asked.require_approval.is_some(), asked.allow_missing_gates.is_some());
    let no_gates = asked.no_gates.is_some();
    let fields = asked.fields();
    let is_at = |field: &&Field| failure.as_ref().is_some_and(|it| it.parameter == Some(field.name));
    let at = fields.iter().find(is_at).map_or("", |field| field.name);
    let told = failure.map(|failure| failure.error).unwrap_or_default();
    page(&Page { frame: Frame::of_all(door), told, at, preview, folders, fields, asks, may_lack, no_gates })
}

fn act(desk: &Desk, said: Typed) -> Result<Came, Refusal> {
    let is_preview = said.r#do == "preview";
    let start = said.start()?;
    if is_preview {
        let words = desk.preview(&start)?;
        return Ok(Came::Shown(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
    }
    let view = desk.start(&start)?.view;
    Ok(Came::Started { project: view.project, id: view.id.to_string() })
}

impl Typed {
    fn fields(self) -> Vec<Field> {
        let text = |name, label, value, rows, bounds: &str| {
            let bounds = bounds.to_owned();
            Field { name, label, value, rows, bounds }
        };
        let one = |name, label, value, bounds: &str| text(name, label, value, 0, bounds);
        let agent = "Agent: claude, codex, opencode, gemini, or one of the configuration";
        vec![
            text("goal", "Goal", self.goal, 5, &format!("required maxlength=\"{LONGEST}\"")),
            one("workspace", "Folder", self.workspace, "list=\"folders\""),
            one("agent", agent, self.agent, ""),
            one("command", "Or a command", self.command, ""),
            one("model", "Model", self.model, ""),
            one("name", "Name", self.name, "pattern=\"[a-z0-9][a-z0-9\\-]*\" maxlength=\"64\""),
            text(
                "gates",
                "Gates, one command a line (default: the tests that the project offers)",
                self.gates,
                3,
                "",
            ),
            one(
                "max_iterations",
                "Iterations at most",
                self.max_iterations,
                &format!("type=\"number\" min=\"1\" max=\"{}\"", Limits::MAX_GRANT),
            ),
            one(
                "max_cost_usd",
                "Dollars at most",
                self.max_cost_usd,
                &format!("type=\"number\" min=\"0.01\" max=\"{MOST_MONEY}\" step=\"0.01\""),
            ),
        ]
    }

    fn start(self) -> Result<Start, Refusal> {
        let given = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let gates =
            self.gates.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Ok(Start {
            goal: self.goal.replace("\r\n", "\n"),
            workspace: given(self.workspace),
            agent: given(self.agent),
            command: given(self.command),
            model: given(self.model),
            name: given(self.name),
            gates,
            no_gates: self.no_gates.is_some(),
            success_command: None,
            allow_missing_gates: self.allow_missing_gates.is_some(),
            max_iterations: number("max_iterations", Some(self.max_iterations))?,
            max_cost_usd: number("max_cost_usd", Some(self.max_cost_usd))?,
            max_tick_duration_minutes: None,
            checkpoint_interval: None,
            require_approval: self.require_approval.is_some(),
        })
    }
}

/// A word as a shell would take it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("--name=job", "--name=job")]
    #[case("", "''")]
    #[case("a b", "'a b'")]
    #[case("it's", r"'it'\''s'")]
    fn a_word_is_shown_as_a_shell_would_take_it(#[case] word: &str, #[case] shown: &str) {
        assert_eq!(quoted(word), shown);
    }
}
