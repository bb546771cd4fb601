//! `/_design`: the parts that pages are made of, in every state. Only in development builds.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::view::StatusWord;

use super::figures::{Chart, Meter, Moment, Point, Unit};
use super::frame::{Frame, page};
use super::parts::{GateChip, Label, Need, NeedForm};
use crate::http::app_state::AppState;

#[derive(Template)]
#[template(path = "design.html")]
struct Page {
    frame: Frame,
    colours: [&'static str; 10],
    labels: Vec<Label>,
    pips: [&'static str; 6],
    gates: [GateChip; 3],
    needs: Vec<Need>,
    meter: Option<Meter>,
    charts: Vec<Chart>,
    at: Moment,
}

pub(super) async fn show(State(state): State<Arc<AppState>>) -> Response {
    let all = [
        StatusWord::Running,
        StatusWord::Waiting,
        StatusWord::Paused,
        StatusWord::Moved,
        StatusWord::Blocked,
        StatusWord::Crashed,
        StatusWord::Completed,
        StatusWord::Cancelled,
        StatusWord::IterationCap,
        StatusWord::Stuck,
        StatusWord::Failed,
    ];
    let need = |title, text: &str, form| Need {
        base: "/_design".to_owned(),
        id: title,
        back: "",
        title: "Needs you",
        text: text.to_owned(),
        form,
        terminal: "refrain approve job".to_owned(),
    };
    let point = |n: u8| Point {
        label: n.to_string(),
        value: Some(f64::from(n) / 2.0),
        note: "a note".to_owned(),
        class: if n == 5 { "failed" } else { "" },
    };
    let points: Vec<_> = (1..=6).map(point).collect();
    let charts = [
        Chart::columns("Columns", Unit::Money, "by iteration".to_owned(), &points),
        Chart::line("Line", Unit::Money, &points, Some(5.0)),
    ];
    page(&Page {
        frame: Frame::of_all(&state),
        colours: ["bg", "surface", "sunken", "line", "ink", "soft", "accent", "good", "warn", "bad"],
        labels: all
            .into_iter()
            .map(|status| Label::of(status, Some(false)))
            .chain([Label::of(StatusWord::Completed, Some(true))])
            .collect(),
        pips: ["passed", "failed", "advisory", "ended", "broken", "running"],
        gates: [
            GateChip::of("tests", true, true),
            GateChip::of("build", true, false),
            GateChip::of("lint", false, false),
        ],
        needs: vec![
            need("a".to_owned(), "The work is done.", NeedForm::Approve(String::new())),
            need("b".to_owned(), "Which database may I use?", NeedForm::Answer(true)),
            need("c".to_owned(), "Log in with claude.", NeedForm::Continue),
        ],
        meter: Meter::of(Some(1.25), false, Some(5.0)),
        charts: charts.into_iter().flatten().collect(),
        at: Moment(refrain_engine::now()),
    })
}
