//! The search over all loops: their names, goals and reasons, and what the agents of the latest ones printed.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::links::{address, given};
use crate::http::app_state::AppState;
use crate::http::pages::frame::{Frame, PageQuery, page, shown};
use crate::http::pages::parts::Label;
use crate::requests::{Entry, Line, LoopAddress, OverviewFilter, Refusal, RequestHandler};

/// How many of the loops touched last are searched for what their agents printed.
const MOST_SEARCHED: usize = 30;
/// After how many bytes of output no other loop is searched.
const MOST_READ: u64 = 256 << 20;
/// How many lines of one attempt, and how many attempts, are shown.
const MOST_LINES: usize = 5;
const MOST_ATTEMPTS: usize = 20;

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    frame: Frame,
    wanted: String,
    loops: Vec<MatchingLoop>,
    /// There are more than those.
    has_more: bool,
    output: Vec<Output>,
    searched: usize,
}

/// A loop or plan.
struct MatchingLoop {
    id: String,
    href: String,
    status: Label,
    folder: String,
    goal: String,
}

/// An attempt with lines that match.
struct Output {
    name: String,
    href: String,
    lines: Vec<Line>,
}

pub(super) async fn show(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state).in_section("search");
    let wanted = given(&asked, "text").unwrap_or_default();
    let text = wanted.clone();
    let found = state.run_blocking(move |handler| look(handler, &text)).await;
    shown(&state, found, |(loops, has_more, output, searched)| {
        page(&Page { frame, wanted, loops, has_more, output, searched })
    })
}

type Results = (Vec<MatchingLoop>, bool, Vec<Output>, usize);

fn look(handler: &RequestHandler, wanted: &str) -> Result<Results, Refusal> {
    if wanted.is_empty() {
        return Ok((Vec::new(), false, Vec::new(), 0));
    }
    let filter = OverviewFilter { text: wanted.to_owned(), ..OverviewFilter::default() };
    let matching = handler.overview(&filter)?;
    let loops = matching.entries.into_iter().map(|entry| MatchingLoop {
        href: format!("/p/{}/{}", entry.project, entry.brief.id),
        goal: entry.shown_goal(),
        id: entry.brief.id.to_string(),
        status: Label::of(entry.brief.status, entry.brief.verified),
        folder: entry.folder,
    });
    let mut latest: Vec<Entry> = handler.overview(&OverviewFilter::default())?.entries;
    latest.retain(|entry| entry.facts.tag.is_none() && entry.brief.iteration > 0);
    latest.sort_by_key(|entry| std::cmp::Reverse(entry.brief.updated_at));
    latest.truncate(MOST_SEARCHED);
    let (mut output, mut searched, mut read) = (Vec::new(), 0, 0);
    for entry in latest {
        // Of a loop that is gone, or printed nothing, nothing is found.
        let at = LoopAddress { project: entry.project, id: entry.brief.id.to_string() };
        let attempt = format!("{}.{}", entry.brief.iteration, entry.facts.attempt.max(1));
        let attempt = attempt.strip_suffix(".1").unwrap_or(&attempt);
        let Ok(activity) = handler.search(&at, attempt, wanted, None) else { continue };
        searched += 1;
        read += activity.next;
        let lines: Vec<_> = activity.lines.into_iter().take(MOST_LINES).collect();
        if !lines.is_empty() {
            output.push(Output {
                name: format!("{}, iteration {attempt}", at.id),
                href: address_of(&at, attempt, wanted),
                lines,
            });
        }
        if output.len() >= MOST_ATTEMPTS || read > MOST_READ {
            break;
        }
    }
    Ok((loops.collect(), matching.more > 0, output, searched))
}

fn address_of(at: &LoopAddress, attempt: &str, wanted: &str) -> String {
    address(&format!("{}/attempts/{attempt}/activity", at.path()), &[("find", wanted)])
}
