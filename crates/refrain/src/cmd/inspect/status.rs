use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::fingerprint::failing_tests;
use refrain_core::r#loop::{LoopState, Outcome, QueuedRequest};
use refrain_core::spec::Millis;
use refrain_core::text::{cut, printable, squeeze};
use refrain_core::view::{self, Status, Tone};
use refrain_engine::{ByKind, LogKind, LoopLocation, OwnBranch, Service, goal};
use refrain_formats::mirror::{ForeignLoop, LoopPhase, PromiseWords};

use super::selection::Selection;
use crate::cmd::state_file::{self, StateFile};
use crate::plan::status_text::{self, Art};
use crate::render::event_text::{clock, next_commands, words};
use crate::render::phrase::Row;
use crate::render::{commits, gates, phrase};
use crate::{out, values};

/// How much of a goal is shown, in characters.
const GOAL: usize = 300;
/// How much of the end of a gate's log is read, in bytes.
const END: u64 = 64 << 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain status
  refrain status docs-3f9c --json")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// The loop that this file of another system shows, such as .descartes/loop-state.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "at"], hide_short_help = true)]
    state_file: Option<Utf8PathBuf>,
    /// Print the status object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let (service, id) = match &args.state_file {
        None => args.selection.open(context, "refrain status")?,
        Some(file) => match state_file::read(context, &context.service()?, file)? {
            StateFile::Own(id) => (context.service()?, id),
            StateFile::Foreign(found) if args.json => return Err(no_status_object(&found, file)),
            StateFile::Foreign(found) => {
                out::print(&foreign(&found, file, out::terminal_width()));
                return Ok(Code::Done.into());
            }
        },
    };
    show(&service, &id, args.json)
}

/// Prints the status of this loop, or plan.
pub(crate) fn show(service: &Service, id: &LoopId, json: bool) -> Result<ExitCode, RequestError> {
    let looked_at = service.find(id).and_then(|found| {
        Ok(match found {
            ByKind::Loop(found) => {
                let (state, status) = service.state_and_status(&found)?;
                ByKind::Loop((found, state, status))
            }
            ByKind::Plan(_) => ByKind::Plan(service.plan_status(id)?),
        })
    });
    match looked_at {
        Err(error) if json => return values::print_damaged(service, id, error),
        Err(error) => return Err(error.into()),
        Ok(ByKind::Loop((_, _, status))) if json => {
            let merged_into = status.has_stopped().then(|| service.merged_into(id)).flatten();
            out::print_json(&Status { merged_into, ..status })?;
        }
        Ok(ByKind::Plan(status)) if json => out::print_json(&status)?,
        Ok(ByKind::Loop((found, state, status))) => {
            // A loop that runs is at work on it; what git cannot say is not shown.
            let own = || service.branch_state_of(&found.dir, &state).ok().flatten();
            let own = status.has_stopped().then(own).flatten();
            let facts = Facts {
                next: match service.archived_folder(id) {
                    None => next(service, &state, &status, own.as_ref()),
                    // The commands would reach another loop.
                    Some(_) => String::new(),
                },
                goal: goal(&state.spec),
                branch: branch(&status, state.spec.git.new_branch().is_some(), own),
                sandbox: view::sandbox(&state.spec),
                failure: last_failure(service, &status),
                left_out: commits::left_out(state.git.last.as_ref()),
                lacks_worktree: state.lacks_worktree(),
            };
            out::print(&text(&status, &found, facts, out::terminal_width()));
        }
        Ok(ByKind::Plan(status)) => {
            out::print(&status_text::text(&status, Art::current(), refrain_engine::now()));
        }
    }
    Ok(Code::Done.into())
}

fn no_status_object(found: &ForeignLoop, file: &Utf8Path) -> RequestError {
    let why = format!("--json: {file} shows a loop of {}, which has no status object", found.system);
    RequestError::usage(format!("{why}; accepted: a file that shows a loop of Refrain's"))
        .hint(format!("refrain status --state-file {file}"))
}

/// What the status of a loop does not say.
struct Facts {
    /// What to type next.
    next: String,
    goal: String,
    /// Its branch, and what has become of it.
    branch: String,
    /// What it may write and reach; empty if it has the user's rights.
    sandbox: String,
    /// The required gate that failed last.
    failure: Option<String>,
    /// What the last commit omitted.
    left_out: String,
    /// Its own worktree was never made.
    lacks_worktree: bool,
}

/// What the loop needs; after its end, what to do with its work.
fn next(service: &Service, state: &LoopState, status: &Status, own: Option<&OwnBranch>) -> String {
    if let Some(needs) = &status.needs {
        return needs.clone();
    }
    if state.ended.is_none() {
        return String::new();
    }
    let (has_changes, is_merged) = match own {
        Some(OwnBranch::Open) => (true, false),
        Some(OwnBranch::Merged { .. } | OwnBranch::Landed(_)) => (true, true),
        Some(OwnBranch::Discarded(_) | OwnBranch::Gone) => (false, false),
        // Its worktree may have work that is not committed.
        Some(OwnBranch::Empty) | None => {
            let shown = service.shown_changes(&status.id).ok().flatten();
            (shown.is_some_and(|(size, _)| size.files + size.mixed > 0), true)
        }
    };
    next_commands(state, status, has_changes, is_merged)
}

/// A loop of another system, one fact a line.
fn foreign(found: &ForeignLoop, file: &Utf8Path, width: Option<usize>) -> String {
    let standing = serde_json::to_value(found.standing).unwrap_or_default();
    let mut rows = vec![
        Row::exact("loop", format!("of {}, in {file}", found.system)),
        Row::prose("status", standing.as_str().unwrap_or_default().to_owned()),
        Row::prose("iteration", phrase::progress(found.iteration, found.cap)),
    ];
    if let PromiseWords::Words(promise) = &found.promised {
        rows.push(Row::exact("promise", promise.to_string()));
    }
    if let Some(command) = &found.command {
        rows.push(Row::exact("ran", command.clone()));
    }
    if found.standing != LoopPhase::Completed && found.standing != LoopPhase::Cancelled {
        rows.push(Row::exact("next", format!("refrain resume --from {file} --agent claude")));
    }
    phrase::rows(&rows, "", 12, width)
}

/// The required gate that failed last, with the tests that failed in it, or else the last two lines that it printed.
fn last_failure(service: &Service, status: &Status) -> Option<String> {
    let gate = status.gates.iter().find(|gate| gate.hard && !gate.passed)?;
    let (attempt, run) = gate.ran;
    let kept = LogKind::Gate(gate.name.parse().ok()?, run);
    let printed = service.printed(&status.id, (attempt, &kept), None, END).ok().flatten();
    let text = printed.map_or_else(|| gate.preview.clone(), |part| part.text);
    let tests = failing_tests(&text).names;
    let mut lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.split_off(lines.len().saturating_sub(2));
    let end = match tests.first() {
        Some(name) if tests.len() == 1 => format!(": {name} failed"),
        Some(name) => format!(": {name} failed, and {} more", tests.len() - 1),
        None if last.is_empty() => String::new(),
        None => format!(": {}", last.join(" / ")),
    };
    let when = status.gates_ran.as_ref().map_or_else(String::new, |when| format!(" ({when})"));
    Some(format!("gate {}{when}{end}", gate.name))
}

/// Why the folder of a loop is not there: a worktree of its own is made when the runner begins.
fn absence(lacks_worktree: bool, (attempts, has_ended): (u32, bool)) -> &'static str {
    if lacks_worktree || attempts == 0 && !has_ended { " (not made yet)" } else { " (removed)" }
}

/// Its branch, and whether that was merged, discarded or removed; empty if it has no commit on a branch that is there.
fn branch(status: &Status, has_own: bool, own: Option<OwnBranch>) -> String {
    let Some(branch) = &status.branch else { return String::new() };
    let is_there = has_own || !status.commits.is_empty();
    match own {
        None | Some(OwnBranch::Open) if is_there => branch.clone(),
        Some(OwnBranch::Empty) if Utf8Path::new(&status.worktree).is_dir() => format!("{branch} (no commit)"),
        None | Some(OwnBranch::Open | OwnBranch::Empty) => String::new(),
        Some(OwnBranch::Merged { into, is_removed }) => {
            let into = into.as_deref().unwrap_or("the detached head");
            let removed = if is_removed { ", and removed" } else { "" };
            format!("{branch} (merged into {into}{removed})")
        }
        Some(OwnBranch::Landed(plan)) => format!("{branch} (landed with plan {plan}, and removed)"),
        Some(OwnBranch::Discarded(reference)) => {
            format!("{branch} (discarded; git branch {branch} {reference} brings it back)")
        }
        Some(OwnBranch::Gone) => {
            format!("{branch} (gone; refrain merge {} says how to bring it back)", status.id)
        }
    }
}

/// The requests that can be taken back, a line each.
fn queued(status: &Status) -> impl Iterator<Item = Row> {
    status.queued.iter().enumerate().map(|(at, it): (usize, &QueuedRequest)| {
        let name = if at == 0 { "queued" } else { "" };
        Row::prose(name, format!("{it} (refrain take-back {} {})", status.id, it.request.as_str()))
    })
}

/// The reason, without the question, which has a row of its own.
fn reason(status: &Status) -> &str {
    let asks = status.question.as_deref().and_then(|question| status.reason.split_once(question));
    asks.map_or(status.reason.as_str(), |(before, _)| before.trim_end_matches([':', ' ']))
}

/// One fact a line: first what matters to a person, then the rest.
fn text(
    status: &Status,
    found: &LoopLocation,
    Facts { next, goal, branch, sandbox, failure, left_out, lacks_worktree }: Facts,
    width: Option<usize>,
) -> String {
    let progress = phrase::progress(status.iteration, status.max_iterations);
    let attempts = phrase::counted(status.started, "attempt", "attempts");
    let gone = match &status.mirrored {
        Some(copy) if !copy.is_here => " (on another machine)",
        _ if Utf8Path::new(&status.working_dir).is_dir() => "",
        Some(_) => " (on another machine)",
        None => absence(lacks_worktree, (status.started, status.ended_at.is_some())),
    };
    let mut rows = vec![
        Row::exact("loop", status.id.to_string()),
        Row::prose("status", format!("{}: {}", status.status.as_str(), reason(status))),
        Row::prose("question", status.question.clone().unwrap_or_default()).with_tone(Tone::Attention),
        Row::exact("next", next),
    ];
    rows.extend(queued(status));
    rows.extend([
        Row::exact("verified", phrase::label(status.verification()).to_owned()).with_tone(status.tone()),
        Row::prose("goal", cut(&squeeze(&goal), GOAL).into_owned()),
        Row::prose("failed", failure.unwrap_or_default()),
        Row::prose("used", phrase::used(&status.usage)),
        Row::exact("branch", branch),
        Row::prose("left out", left_out).with_tone(Tone::Attention),
        Row::prose("iteration", format!("{progress} ({} charged, {attempts})", status.charged)),
        Row::exact("runs", format!("{} ({})", words(status.command.iter()), status.agent)),
        Row::exact("in", format!("{}{gone}", status.working_dir)),
        Row::prose("sandbox", sandbox),
        Row::prose("git", commits::count(status)),
        Row::prose("gates", gates::row(status)),
        Row::prose("untrusted", gates::untrusted(&status.untrusted)).with_tone(Tone::Attention),
        Row::exact("verified tree", status.tree.clone().unwrap_or_default()),
        Row::prose("signature", status.signature.clone()),
        Row::prose("shared", phrase::caps(&status.caps)),
        Row::exact("started", clock(status.started_at)),
        Row::exact("last event", clock(status.updated_at)),
    ]);
    if let Some(mode) = &status.mode {
        rows.push(Row::exact("mode", mode.clone()));
    }
    if found.archived {
        rows.push(Row::exact("archived", found.dir.0.to_string()));
    }
    if let Some(promise) = &status.completion_promise {
        rows.push(Row::exact("promise", promise.clone()));
    }
    if let Some(wait) = status.wait {
        let left = Millis::from(wait.until.duration_since(refrain_engine::now()).unsigned_abs());
        let left =
            if wait.until > refrain_engine::now() { format!("{left} left") } else { "over".to_owned() };
        rows.push(Row::prose("waits until", format!("{} ({left})", clock(wait.until))));
    }
    if let Some(runner) = status.runner.as_ref().filter(|_| status.ended_at.is_none()) {
        rows.push(Row::prose("runner", format!("{runner}, {}", runner.life())));
    }
    let mut text = phrase::rows(&rows, "", 12, width);
    let iterations = status.iterations.as_deref().unwrap_or_default();
    for iteration in &iterations[iterations.len().saturating_sub(10)..] {
        let took = match (iteration.ended_at, iteration.outcome) {
            (None, _) if status.is_interrupted(iteration) => "interrupted".to_owned(),
            (None, _) => "running".to_owned(),
            // Its end was not observed.
            (Some(_), Some(Outcome::Lost)) => "lost".to_owned(),
            (Some(ended), _) => {
                Millis::from(ended.duration_since(iteration.started_at).unsigned_abs()).to_string()
            }
        };
        let exit = match (iteration.exit_code, iteration.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => String::new(),
        };
        let name = iteration.id().to_string();
        let refunded = if iteration.charged || iteration.ended_at.is_none() { "" } else { " (refunded)" };
        let said = printable(iteration.said().unwrap_or_default()).replace('\n', " ");
        let line = format!("  {name:<6} {took:>8}  {exit:<10}{refunded} {said}");
        let line = width.map_or(line.clone(), |width| phrase::cut(&line, width));
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::absence;

    #[test]
    fn a_folder_that_is_to_be_made_is_not_removed() {
        let cases = [((0, false), "not made yet"), ((0, true), "removed"), ((1, false), "removed")];
        for (progress, word) in cases {
            assert_eq!(absence(false, progress), format!(" ({word})"));
        }
        assert_eq!(absence(true, (0, true)), " (not made yet)", "it was paused before that");
    }
}
