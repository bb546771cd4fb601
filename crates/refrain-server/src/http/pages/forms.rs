//! The forms of the pages: each calls the API's action and returns to the page. An action that needs details, or to be
//! confirmed, has a page that asks; a script shows that page as a dialog.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use refrain_app::plan::edit_tasks::AddTask;
use refrain_app::plan::tune::Tune;
use refrain_app::verbs::approve::{Approve, is_awaited};
use refrain_app::verbs::merge::Merge;
use refrain_app::verbs::resume::Resume;
use refrain_app::verbs::steer::Steering;
use refrain_app::verbs::take_back::TakeBack;
use refrain_app::verbs::{AnyStatus, Urgent};
use refrain_core::ids::RequestId;
use refrain_core::plan::{TaskEdit, TaskId};
use refrain_core::view::progress;
use serde::Deserialize;

use super::figures::Meter;
use super::frame::{Frame, PageQuery, RefusedAction, failed, page};
use super::overall::links::address;
use super::{list, loop_page};
use crate::http::api::At;
use crate::http::app_state::AppState;
use crate::http::failure::Failure;
use crate::requests::{LoopAddress, Refusal, RequestHandler};

/// A loop, and what is to be done with it.
#[derive(Deserialize)]
pub(super) struct LoopAction {
    project: String,
    id: String,
    action: String,
}

impl LoopAction {
    fn place(&self) -> LoopAddress {
        LoopAddress { project: self.project.clone(), id: self.id.clone() }
    }
}

/// All fields of a form; those that it does not ask for are missing or empty.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields {
    now: Option<String>,
    max_iterations: Option<String>,
    max_cost_usd: Option<String>,
    text: Option<String>,
    task: Option<String>,
    /// Of a new task.
    title: Option<String>,
    after: Option<String>,
    tree: Option<String>,
    squash: Option<String>,
    /// Of a comment: where it is about.
    path: Option<String>,
    line: Option<String>,
    unverified: Option<String>,
    request: Option<String>,
    /// `/` if the form is one of the list.
    back: Option<String>,
}

/// The page that asks before something is done.
#[derive(Template)]
#[template(path = "ask.html")]
struct Question {
    frame: Frame,
    base: String,
    verb: &'static str,
    title: String,
    text: &'static str,
    button: &'static str,
    is_danger: bool,
    /// Names and labels.
    boxes: &'static [(&'static str, &'static str)],
    has_totals: bool,
    /// It asks what the agent should change.
    has_text: bool,
    /// What is used up, of which totals.
    iterations: String,
    cost: String,
}

pub(super) async fn ask(State(state): State<Arc<AppState>>, At(of): At<LoopAction>) -> Response {
    let place = of.place();
    let found = state.run_blocking(move |handler| handler.standing(&place)).await;
    let question = match found {
        Ok(found) => Question::of(&state, &of, &found),
        Err(failure) => return failed(&state, &failure),
    };
    match question {
        Some(question) => page(&question),
        None => failed(&state, &unknown(&of.action).into()),
    }
}

impl Question {
    fn of(state: &AppState, of: &LoopAction, found: &AnyStatus) -> Option<Self> {
        let (is_sent_back, is_verified, iterations, cost) = match found {
            // A resume refuses the approval that it waits for.
            AnyStatus::Loop(it) => {
                let cap = it.limits.max_cost.map(f64::from);
                let cost = Meter::of(it.usage.cost_usd, it.usage.cost_at_least, cap);
                (is_awaited(it), it.verified == Some(true), it.progress(), cost)
            }
            AnyStatus::Plan(it) => {
                let (usage, cap) = (&it.usage, it.limits.max_cost.map(f64::from));
                let iterations = progress(usage.iterations_used, Some(usage.iterations_granted));
                let cost = Meter::of(usage.cost_usd, usage.at_least, cap);
                (false, it.verified == Some(true), iterations, cost)
            }
        };
        const NOW: &[(&str, &str)] =
            &[("now", "At once: end the agent, and do not let it finish its iteration")];
        const AS_ONE: &[(&str, &str)] = &[("squash", "As one commit")];
        const MERGE: &[(&str, &str)] =
            &[("squash", "As one commit"), ("unverified", "Also if no gate verified it")];
        let (verb, what, text, button) = match of.action.as_str() {
            "pause" => ("pause", "Pause", "It can continue later, exactly where it stopped.", "Pause"),
            "cancel" => (
                "cancel",
                "Cancel",
                "It stops for good and cannot continue. Its branch and its commits stay.",
                "Cancel the loop",
            ),
            "resume" if is_sent_back => (
                "resume",
                "Send back",
                "Its work is not approved, and its agent works on. New totals, if it may use more. Empty fields stay as they \
                 are.",
                "Send back",
            ),
            "resume" => (
                "resume",
                "Continue",
                "New totals, if it may use more. Empty fields stay as they are.",
                "Continue",
            ),
            "merge" => (
                "merge",
                "Merge",
                "Its branch is merged into the branch that is checked out in the project. Required gates run on the \
                 merged work first; nothing changes if one fails.",
                "Merge",
            ),
            "discard" => (
                "discard",
                "Discard",
                "It is archived, and its branch is removed from the list of branches. Its commits are kept for 30 days as \
                 refs/refrain/discarded.",
                "Discard",
            ),
            _ => return None,
        };
        let place = of.place();
        Some(Self {
            frame: Frame::of(state, &place),
            base: place.path(),
            verb,
            title: format!("{what} {}?", of.id),
            text,
            button,
            is_danger: matches!(verb, "cancel" | "discard"),
            boxes: match verb {
                "pause" | "cancel" => NOW,
                "merge" if is_verified => AS_ONE,
                "merge" => MERGE,
                _ => &[],
            },
            has_totals: verb == "resume",
            has_text: is_sent_back,
            iterations,
            cost: cost.map(|cost| cost.says).unwrap_or_default(),
        })
    }
}

pub(super) async fn act(
    State(state): State<Arc<AppState>>,
    At(of): At<LoopAction>,
    Form(fields): Form<Fields>,
) -> Response {
    let is_gone = matches!(of.action.as_str(), "archive" | "discard");
    let is_of_list = is_gone || fields.back.as_deref() == Some("/");
    let back = match of.action.as_str() {
        _ if is_of_list => "/".to_owned(),
        "comment" => format!("{}/diff", of.place().path()),
        _ => of.place().path(),
    };
    let (place, action) = (of.place(), of.action.clone());
    match state.run_blocking(move |handler| done(handler, &place, &action, fields)).await {
        Ok(()) => Redirect::to(&format!("{back}?did={}", of.action)).into_response(),
        Err(failure) => refused(&state, of.place(), is_of_list, failure).await,
    }
}

/// The page that the form is on, with why its action was refused.
async fn refused(state: &Arc<AppState>, place: LoopAddress, is_of_list: bool, failure: Failure) -> Response {
    let status = failure.status();
    let (why, commands) = failure.apart;
    let of_project = place.clone();
    let project = state.run_blocking(move |handler| handler.standing(&of_project)).await;
    let project = project.map(|found| match found {
        AnyStatus::Loop(status) => status.project,
        AnyStatus::Plan(status) => status.project,
    });
    // The command that starts a loop ends with its goal.
    let goal = commands.iter().find_map(|command| {
        let (_, words) = command.split_once("refrain start ")?;
        shlex::split(words)?.pop()
    });
    let start = goal.zip(project.ok());
    let start = start.map(|(goal, project)| address("/start", &[("workspace", &project), ("goal", &goal)]));
    let refused = Some(RefusedAction { why, commands, start });
    let shown = match is_of_list {
        true => list::framed(state, &PageQuery::default(), Frame { refused, ..Frame::of_all(state) }).await,
        false => {
            let frame = Frame { refused, ..Frame::of(state, &place) };
            loop_page::framed(state, place, None, frame).await
        }
    };
    (status, shown).into_response()
}

fn done(handler: &RequestHandler, place: &LoopAddress, action: &str, fields: Fields) -> Result<(), Refusal> {
    let how = Urgent { now: fields.now.is_some() };
    let text = fields.text.unwrap_or_default();
    match action {
        "pause" => handler.pause(place, how),
        "cancel" => handler.cancel(place, how),
        "archive" => handler.archive(place),
        "steer" => handler.say(place, &Steering { text }),
        "comment" => handler.say(place, &Steering { text: comment(fields.path, fields.line, &text)? }),
        "take-back" => {
            let request = fields.request.map(|text| text.parse::<RequestId>()).transpose();
            let request = request.map_err(|error| Refusal::new(format!("request: {error}")))?;
            handler.take_back(place, &TakeBack { request })
        }
        "answer" => handler.answer(place, &Steering { text }),
        "resume" => {
            let max_iterations = number(("max_iterations", "Iterations in total"), fields.max_iterations)?;
            let max_cost_usd = number(("max_cost_usd", "Dollars in total"), fields.max_cost_usd)?;
            // What the agent should change in work that is sent back.
            let has_text = !text.trim().is_empty();
            if has_text {
                handler.say(place, &Steering { text })?;
            }
            let resumed =
                handler.resume(place, &Resume { max_iterations, max_cost_usd, ..Resume::default() });
            if has_text && resumed.is_err() {
                // The next press sends it again.
                let _ = handler.take_back(place, &TakeBack::default());
            }
            resumed
        }
        "approve" => handler.approve(place, &Approve { tree: fields.tree }),
        "tune" => match handler.tune(place, &Tune { task: task(fields.task)?, text })? {
            // No task of a running plan is answered for.
            AnyStatus::Plan(plan) if plan.blocked.is_empty() => handler.resume(place, &Resume::default()),
            tuned => Ok(tuned),
        },
        "retry" => handler.edit_task(place, &task(fields.task)?, TaskEdit::Retry),
        "block" => handler.edit_task(place, &task(fields.task)?, TaskEdit::Block),
        "add" => {
            let after = fields.after.unwrap_or_default();
            let after = after.split([',', ' ']).filter(|id| !id.is_empty()).map(str::to_owned);
            let after = after.map(|id| task(Some(id))).collect::<Result<_, _>>()?;
            let title = fields.title.unwrap_or_default();
            handler.add_task(place, &AddTask { title, text: Some(text), after })
        }
        "merge" => {
            let (squash, unverified) = (fields.squash.is_some(), fields.unverified.is_some());
            return handler.merge(place, Merge { squash, unverified }).map(drop);
        }
        "discard" => return handler.discard(place).map(drop),
        other => Err(unknown(other)),
    }
    .map(drop)
}

fn task(id: Option<String>) -> Result<TaskId, Refusal> {
    id.unwrap_or_default().parse().map_err(|error| Refusal::new(format!("task: {error}")))
}

/// A comment on a line of a file as the agent reads it.
fn comment(path: Option<String>, line: Option<String>, text: &str) -> Result<String, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::new("text: accepted: what the agent should know, 1 character or more"));
    }
    let line = number::<u64>(("line", "line"), line)?.map(|line| format!(":{line}")).unwrap_or_default();
    Ok(format!("About {}{line}: {text}", path.unwrap_or_default()))
}

fn unknown(action: &str) -> Refusal {
    let accepted = "accepted: pause, cancel, resume, approve, steer, comment, take-back, answer, archive, merge, discard, tune, add, retry and block";
    Refusal::new(format!("{action}: {accepted}"))
}

/// A number from a form field with a label, which may be empty.
pub(super) fn number<T: std::str::FromStr>(
    (name, label): (&'static str, &str),
    said: Option<String>,
) -> Result<Option<T>, Refusal> {
    let said = said.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let refused = |text: &str| Refusal::new(format!("{label} {text}: accepted: numbers")).about(name);
    said.map(|text| text.parse().map_err(|_| refused(&text))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_names_its_line() {
        let of = |path: &str, line: &str, text: &str| {
            comment(Some(path.to_owned()), Some(line.to_owned()), text).map_err(|error| error.to_string())
        };
        assert_eq!(of("src/a b.rs", "12", "Too long."), Ok("About src/a b.rs:12: Too long.".to_owned()));
        assert_eq!(of("a", "", "No."), Ok("About a: No.".to_owned()));
        assert!(of("a", "x", "No.").is_err() && of("a", "1", " ").is_err());
    }
}
