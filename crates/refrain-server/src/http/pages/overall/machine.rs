//! What loops of a project remember and which settings count for them, and what `refrain doctor` finds. Read-only: a
//! token of this server does not change them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::memory::{Kind, Memory};
use refrain_core::text::printable;
use refrain_core::view::checkup::{Checkup, Finding, Fix, Grade};
use refrain_engine::config::{Entry, Origin};
use serde_json::Value;

use super::links::{Pill, address, given, project_pills};
use crate::http::app_state::AppState;
use crate::http::pages::figures::Moment;
use crate::http::pages::frame::{Frame, PageQuery, page, shown};
use crate::requests::{ProjectSettings, RequestHandler};

#[derive(Template)]
#[template(path = "doctor.html")]
struct Doctor {
    frame: Frame,
    projects: Vec<Pill>,
    problems: usize,
    warnings: usize,
    fixable: usize,
    /// What needs attention, and what is as it should be.
    open: Vec<Finding>,
    fine: Vec<Finding>,
}

pub(super) async fn checkup(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state).in_section("doctor");
    let project = given(&asked, "project");
    let look = move |handler: &RequestHandler| {
        let checkup = handler.checkup(project.as_deref())?;
        let link = |project: &str| address("/doctor", &[("project", project)]);
        Ok((checkup, project_pills(handler.projects(), project.as_deref(), None, link)))
    };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(checkup, projects)| {
        let Checkup { problems, warnings, findings, .. } = checkup;
        let fixable = findings.iter().filter(|finding| finding.fix == Some(Fix::Possible)).count();
        let (fine, mut open): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|finding| finding.grade == Grade::Ok);
        open.sort_by_key(|finding| std::cmp::Reverse(finding.grade));
        page(&Doctor { frame, projects, problems, warnings, fixable, open, fine })
    })
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    frame: Frame,
    projects: Vec<Pill>,
    user_file: String,
    project_file: Option<(String, bool)>,
    /// Those that are not the default, and all others by table.
    chosen: Vec<Setting>,
    tables: Vec<(String, Vec<Setting>)>,
}

/// A key with its value.
struct Setting {
    key: String,
    value: String,
    origin: String,
}

pub(super) async fn settings(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state).in_section("settings");
    let project = given(&asked, "project");
    let look = move |handler: &RequestHandler| {
        let settings = handler.settings(project.as_deref())?;
        let link = |project: &str| address("/settings", &[("project", project)]);
        Ok((settings, project_pills(handler.projects(), project.as_deref(), None, link)))
    };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(settings, projects)| {
        let ProjectSettings { user_file, project_file, entries } = settings;
        let (mut chosen, mut tables): (_, Vec<(String, Vec<Setting>)>) = (Vec::new(), Vec::new());
        for entry in entries {
            let table = entry.key.split('.').next().unwrap_or_default().to_owned();
            let setting = setting(&entry);
            if entry.origin != Origin::Default {
                chosen.push(setting);
                continue;
            }
            match tables.last_mut() {
                Some((last, settings)) if *last == table => settings.push(setting),
                _ => tables.push((table, vec![setting])),
            }
        }
        page(&Settings { frame, projects, user_file, project_file, chosen, tables })
    })
}

fn setting(entry: &Entry) -> Setting {
    let value = match &entry.value {
        None => "not set".to_owned(),
        Some(Value::String(text)) => without_secret(text),
        Some(value) => value.to_string(),
    };
    let origin = match &entry.origin {
        Origin::Default => String::new(),
        origin => origin.to_string(),
    };
    Setting { key: printable(&entry.key).into_owned(), value: printable(&value).into_owned(), origin }
}

/// Of an address only its host: the path of a webhook or a topic is a secret.
fn without_secret(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/…")
}

#[derive(Template)]
#[template(path = "memory.html")]
struct Memories {
    frame: Frame,
    projects: Vec<Pill>,
    kinds: Vec<Pill>,
    /// The parameters that a search keeps.
    kept: Vec<(&'static str, String)>,
    words: String,
    trouble: Option<String>,
    memories: Vec<Row>,
}

/// A memory.
struct Row {
    kind: &'static str,
    text: String,
    /// The loop that it comes from, and its page.
    source: Option<(String, String)>,
    uses: u32,
    at: Moment,
}

pub(super) async fn memories(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let frame = Frame::of_all(&state).in_section("memory");
    let (project, words) = (given(&asked, "project"), given(&asked, "text").unwrap_or_default());
    let kind = given(&asked, "kind");
    let kind = Kind::ALL.into_iter().find(|it| kind.as_deref() == Some(it.as_str()));
    let (of_kind, shown_words) = (kind.map_or("", Kind::as_str), words.clone());
    let of_project = project.clone().unwrap_or_default();
    let look = move |handler: &RequestHandler| {
        let (memories, trouble) = handler.memories(project.as_deref(), kind, &words)?;
        let link =
            |project: &str| address("/memory", &[("project", project), ("kind", of_kind), ("text", &words)]);
        let name = crate::requests::project_name(&handler.named(project.as_deref())?);
        Ok((name, memories, trouble, project_pills(handler.projects(), project.as_deref(), None, link)))
    };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(name, memories, trouble, projects)| {
        let pill = |label: &str, kind: &str| Pill {
            label: label.to_owned(),
            href: address("/memory", &[("project", &of_project), ("kind", kind), ("text", &shown_words)]),
            is_chosen: kind == of_kind,
        };
        let kinds = Kind::ALL.map(|kind| pill(kind.as_str(), kind.as_str()));
        let row = |it: Memory| Row {
            kind: it.kind.as_str(),
            text: printable(&it.text).into_owned(),
            source: it.source.map(|id| (id.to_string(), format!("/p/{name}/{id}"))),
            uses: it.uses,
            at: Moment(it.created_at),
        };
        page(&Memories {
            frame,
            projects,
            kinds: [pill("all", "")].into_iter().chain(kinds).collect(),
            kept: vec![("project", of_project.clone()), ("kind", of_kind.to_owned())],
            words: shown_words.clone(),
            trouble,
            memories: memories.into_iter().map(row).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_an_address_is_not_shown() {
        for (text, shown) in [
            ("https://:tk_1@ntfy.example.org/topic-7", "https://ntfy.example.org/…"),
            ("https://example.org", "https://example.org/…"),
            ("cargo test", "cargo test"),
        ] {
            assert_eq!(without_secret(text), shown);
        }
    }
}
