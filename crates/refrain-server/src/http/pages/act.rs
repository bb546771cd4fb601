//! The forms of the pages: each calls the API's action and returns to the page.

use std::sync::Arc;

use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::frame::failed;
use refrain_app::verbs::Urgent;
use refrain_app::verbs::approve::Approve;
use refrain_app::verbs::resume::Resume;
use refrain_app::verbs::steer::Steering;
use refrain_app::verbs::tune::Tune;

use crate::desk::{Desk, Place, Refusal};
use crate::http::api::At;
use crate::http::app_state::AppState;

/// A loop, and what is to be done with it.
#[derive(Deserialize)]
pub(super) struct Which {
    project: String,
    id: String,
    action: String,
}

/// All fields of a form; those that it does not ask for are missing or empty.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    now: Option<String>,
    max_iterations: Option<String>,
    max_cost_usd: Option<String>,
    text: Option<String>,
    task: Option<String>,
    tree: Option<String>,
}

pub(super) async fn act(
    State(door): State<Arc<AppState>>,
    At(Which { project, id, action }): At<Which>,
    Form(said): Form<Said>,
) -> Response {
    let back = format!("/p/{project}/{id}");
    let place = Place { project, id };
    match door.at_desk(move |desk| done(desk, &place, &action, said)).await {
        Ok(()) => Redirect::to(&back).into_response(),
        Err(failure) => failed(&door, &failure),
    }
}

fn done(desk: &Desk, place: &Place, action: &str, said: Said) -> Result<(), Refusal> {
    let how = Urgent { now: said.now.is_some() };
    let text = said.text.unwrap_or_default();
    match action {
        "pause" => desk.pause(place, how),
        "cancel" => desk.cancel(place, how),
        "archive" => desk.archive(place),
        "steer" => desk.say(place, &Steering { text }),
        "answer" => desk.answer(place, &Steering { text }),
        "resume" => {
            let max_iterations = number("max_iterations", said.max_iterations)?;
            let max_cost_usd = number("max_cost_usd", said.max_cost_usd)?;
            desk.resume(place, &Resume { max_iterations, max_cost_usd, ..Resume::default() })
        }
        "approve" => desk.approve(place, &Approve { tree: said.tree }),
        "tune" => {
            let task = said.task.unwrap_or_default();
            let task = task.parse().map_err(|error| Refusal::new(format!("task: {error}")))?;
            desk.tune(place, &Tune { task, text })
        }
        other => {
            let accepted = "accepted are pause, cancel, resume, approve, steer, answer, archive and tune";
            Err(Refusal::new(format!("{other}: {accepted}")))
        }
    }
    .map(drop)
}

/// A number from a form field, which may be empty.
pub(super) fn number<T: std::str::FromStr>(
    name: &'static str,
    said: Option<String>,
) -> Result<Option<T>, Refusal> {
    let said = said.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let refused = |text: &str| Refusal::new(format!("{name} {text}: accepted are numbers")).about(name);
    said.map(|text| text.parse().map_err(|_| refused(&text))).transpose()
}
