//! The tabs of a loop beside its activity: changes, gates, prompt, report.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::view::diff::{DiffFile, diff_files};
use refrain_core::view::{Iteration, Status};

use super::figures::{self, Chart, Moment, loop_charts};
use super::frame::{Frame, PageQuery, page, shown};
use super::head::Head;
use super::loop_page::{FailureView, LoopPage, cost, failed_gates, gate_view, outcome, see, tokens, took};
use crate::http::api::At;
use crate::http::app_state::AppState;
use crate::requests::{Difference, LoopAddress, Refusal, RequestHandler};

/// How many iterations the table of gates has.
const MOST_COLUMNS: usize = 200;

/// What the handlers of the tabs are given.
type Shared = State<Arc<AppState>>;

#[derive(Template)]
#[template(path = "changes.html")]
struct Changes {
    frame: Frame,
    base: String,
    head: Head,
    note: String,
    files: Vec<DiffFile>,
    tree: Vec<TreeFile>,
    /// How many files.
    count: String,
    added: u64,
    removed: u64,
    /// Each iteration, and whether its changes are shown.
    iterations: Vec<(u32, bool)>,
    is_all: bool,
    can_steer: bool,
}

/// A file in the tree beside the changes.
struct TreeFile {
    /// If it is the first of its folder.
    folder: Option<String>,
    is_nested: bool,
    name: String,
    path: String,
    added: u64,
    removed: u64,
}

/// The folder of a path, empty for none, and the name there.
fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Each folder once, those without one first; in the order of the files.
fn tree(files: &[DiffFile]) -> Vec<TreeFile> {
    let mut last = "";
    let entry = |file: &DiffFile, folder: Option<&str>| TreeFile {
        folder: folder.map(str::to_owned),
        is_nested: file.path.contains('/'),
        name: parts(&file.path).1.to_owned(),
        path: file.path.clone(),
        added: file.added,
        removed: file.removed,
    };
    let mut tree = Vec::new();
    for file in files {
        let (folder, _) = parts(&file.path);
        tree.push(entry(file, Some(folder).filter(|folder| *folder != last)));
        last = folder;
    }
    tree
}

pub(super) async fn changes(State(state): Shared, At(place): At<LoopAddress>, asked: PageQuery) -> Response {
    let (frame, base) = (Frame::of(&state, &place).after(&asked), place.path());
    let chosen = asked.get("iteration").and_then(|text| text.parse::<u32>().ok());
    let found = state
        .run_blocking(move |handler| Ok((see(handler, &place)?, handler.difference(&place, chosen)?)))
        .await;
    shown(&state, found, |(seen, difference)| {
        let Difference { note, is_shown, diff, .. } = difference;
        let mut files = diff_files(&diff);
        files.sort_by(|a, b| parts(&a.path).cmp(&parts(&b.path)));
        let mut iterations: Vec<_> = seen.status.iterations.iter().flatten().map(|it| it.n).collect();
        iterations.dedup();
        let head = seen.head(&frame, &base, "/diff");
        page(&Changes {
            frame: Frame { icon: head.icon, ..frame },
            base,
            head,
            note: if is_shown && files.is_empty() { format!("{note} Nothing is different.") } else { note },
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
            tree: tree(&files),
            count: figures::files(files.len()),
            files,
            iterations: iterations.into_iter().map(|n| (n, chosen == Some(n))).collect(),
            is_all: chosen.is_none(),
            can_steer: seen.can_steer(),
        })
    })
}

#[derive(Template)]
#[template(path = "gates.html")]
struct Gates {
    frame: Frame,
    head: Head,
    /// How many earlier iterations the table leaves out.
    earlier: u64,
    columns: Vec<String>,
    /// A gate ran before the first iteration.
    has_before: bool,
    rows: Vec<GateRow>,
    failing: Option<Chart>,
    failures: Vec<FailureView>,
}

/// A gate, and its result after each iteration.
struct GateRow {
    name: String,
    command: String,
    is_hard: bool,
    failed_before: Option<bool>,
    cells: Vec<Option<Cell>>,
}

struct Cell {
    class: &'static str,
    glyph: &'static str,
    says: String,
    href: String,
}

pub(super) async fn gates(State(state): Shared, At(place): At<LoopAddress>, asked: PageQuery) -> Response {
    let (frame, base) = (Frame::of(&state, &place).after(&asked), place.path());
    let path = base.clone();
    let chosen = asked.get("at").cloned().zip(asked.get("gate").cloned());
    let look =
        move |handler: &RequestHandler| -> Result<(LoopPage, Vec<FailureView>, Option<Chart>), Refusal> {
            let seen = see(handler, &place)?;
            let mut all = seen.status.iterations.iter().flatten();
            let chosen = chosen.and_then(|(at, name)| {
                let gates = &all.find(|it| it.id().to_string() == at)?.gates;
                gates.iter().find(|gate| gate.name == name)
            });
            let failures = match chosen {
                Some(gate) => vec![gate_view(handler, &place, gate, &path)],
                None => failed_gates(handler, &place, &seen.status, &path),
            };
            let counts = handler.failing_tests(&place, &seen.status)?;
            Ok((seen, failures, loop_charts::failing(&counts)))
        };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(seen, failures, failing)| {
        let head = seen.head(&frame, &base, "/gates");
        let (earlier, columns, rows) = matrix(&seen.status, &base);
        let has_before = rows.iter().any(|row| row.failed_before.is_some());
        let frame = Frame { icon: head.icon, ..frame };
        let earlier = earlier as u64;
        page(&Gates { frame, head, earlier, columns, has_before, rows, failing, failures })
    })
}

/// The results of the latest iterations that had any, and how many earlier ones are left out.
fn matrix(status: &Status, base: &str) -> (usize, Vec<String>, Vec<GateRow>) {
    let all: Vec<&Iteration> = status.iterations.iter().flatten().filter(|it| !it.gates.is_empty()).collect();
    let earlier = all.len().saturating_sub(MOST_COLUMNS);
    let all = &all[earlier..];
    let mut rows: Vec<GateRow> = Vec::new();
    for (column, it) in all.iter().enumerate() {
        for gate in &it.gates {
            let at = rows.iter().position(|row| row.name == gate.name).unwrap_or_else(|| {
                rows.push(GateRow {
                    name: gate.name.clone(),
                    command: gate.command.clone(),
                    is_hard: gate.hard,
                    failed_before: gate.failed_before,
                    cells: all.iter().map(|_| None).collect(),
                });
                rows.len() - 1
            });
            let (class, glyph, word) = match (gate.passed, gate.flaky, gate.hard) {
                (true, true, _) => ("passed", "~", "flaky: it passed when it ran again"),
                (true, false, _) => ("passed", "✔", "passed"),
                (false, _, true) => ("failed", "✘", "failed"),
                (false, _, false) => ("advisory", "✘", "failed, advisory"),
            };
            rows[at].cells[column] = Some(Cell {
                class,
                glyph,
                says: format!("{} after iteration {}: {word}", gate.name, it.id()),
                href: format!("{base}/gates?at={}&gate={}#failure", it.id(), gate.name),
            });
        }
    }
    (earlier, all.iter().map(|it| it.id().to_string()).collect(), rows)
}

#[derive(Template)]
#[template(path = "prompt.html")]
struct Prompt {
    frame: Frame,
    base: String,
    head: Head,
    goal: String,
    prompt: Option<(String, String)>,
    notes: Option<String>,
    attempts: Vec<String>,
}

pub(super) async fn prompt(State(state): Shared, At(place): At<LoopAddress>, asked: PageQuery) -> Response {
    let (frame, base) = (Frame::of(&state, &place).after(&asked), place.path());
    let look = move |handler: &RequestHandler| {
        let seen = see(handler, &place)?;
        let attempts: Vec<_> =
            seen.status.iterations.iter().flatten().map(|it| it.id().to_string()).collect();
        let prompt = attempts.last().and_then(|last| Some((last.clone(), handler.told(&place, last).ok()?)));
        Ok((seen, attempts, prompt, handler.notes(&place).ok()))
    };
    let found = state.run_blocking(look).await;
    shown(&state, found, |(seen, attempts, prompt, notes)| {
        let head = seen.head(&frame, &base, "/prompt");
        let frame = Frame { icon: head.icon, ..frame };
        page(&Prompt { frame, base, head, goal: seen.goal, prompt, notes, attempts })
    })
}

#[derive(Template)]
#[template(path = "report.html")]
struct Report {
    frame: Frame,
    head: Head,
    facts: Vec<(&'static str, String)>,
    started: Moment,
    ended: Option<Moment>,
    charts: Vec<Chart>,
    iterations: Vec<Row>,
}

/// An attempt, in words.
struct Row {
    name: String,
    took: String,
    outcome: String,
    tokens: String,
    cost: String,
    said: String,
}

pub(super) async fn report(State(state): Shared, At(place): At<LoopAddress>, asked: PageQuery) -> Response {
    let (frame, base) = (Frame::of(&state, &place).after(&asked), place.path());
    let found =
        state.run_blocking(move |handler| Ok((see(handler, &place)?, handler.sandbox(&place)?))).await;
    shown(&state, found, |(seen, sandbox)| {
        let head = seen.head(&frame, &base, "/report");
        let status = &seen.status;
        let usage = &status.usage;
        let used = match (usage.cost_usd, usage.input_tokens, usage.output_tokens) {
            (None, None, None) => "not reported by its agents".to_owned(),
            _ => format!("{}, {} tokens", cost(usage), tokens(usage)),
        };
        let mut facts =
            vec![("Command", status.command.join(" ")), ("Folder", status.worktree.clone()), ("Used", used)];
        facts.extend((!sandbox.is_empty()).then_some(("Sandbox", sandbox)));
        facts.extend(status.tree.clone().map(|tree| ("Verified tree", tree)));
        facts.extend((!status.signature.is_empty()).then(|| ("Signature", status.signature.clone())));
        facts.extend((!status.commits.is_empty()).then(|| ("Commits", status.commits.join(" "))));
        let row = |it: &Iteration| Row {
            name: it.id().to_string(),
            took: if it.ended_at.is_none() { String::new() } else { took(status, it) },
            outcome: outcome(status, it),
            tokens: tokens(&it.usage),
            cost: cost(&it.usage),
            said: it.said().unwrap_or_default().to_owned(),
        };
        page(&Report {
            frame: Frame { icon: head.icon, ..frame },
            head,
            facts,
            started: Moment(status.started_at),
            ended: status.ended_at.map(Moment),
            charts: [loop_charts::cost(status), loop_charts::tokens(status), loop_charts::time(status)]
                .into_iter()
                .flatten()
                .collect(),
            iterations: status.iterations.iter().flatten().rev().map(row).collect(),
        })
    })
}
