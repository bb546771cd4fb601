//! Seed 004's files: `.ralph_state.json`, as its own runner writes it, and `.ralph_context.md`.

use refrain_core::event::Exit;
use refrain_core::r#loop::{Attempt, LoopState};
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::foreign_loop::{ForeignLoop, PromiseWords, Prompt, System, Unread, counted, id};
use super::parts::{LoopPhase, Mark, pretty};

/// Their names in the working folder; the first says which loop owns them.
pub(super) const FILES: [&str; 2] = [".ralph_state.json", ".ralph_context.md"];

/// The content of `context.md`, under the heading of seed 004.
pub(super) fn context(text: &str) -> String {
    text.replacen("# Loop Context:", "# Ralph Loop Context:", 1)
}

pub(super) fn document(state: &LoopState, mark: Mark) -> String {
    pretty(&Ralph::of(state, mark))
}

/// What is read of it. Its prompt is in a file that it does not name.
#[derive(Deserialize)]
struct MirrorFile {
    task_id: String,
    iteration: u32,
    #[serde(deserialize_with = "super::foreign_loop::present")]
    max_iterations: Option<u32>,
}

pub(super) fn read(text: &str) -> Result<ForeignLoop, Unread> {
    let system = System::Ralph;
    let read: MirrorFile = serde_json::from_str(text).map_err(|error| system.damaged(&error))?;
    let cap = read.max_iterations;
    // Its own runner leaves the number of the iteration that there is none of any more.
    let is_over = cap.is_some_and(|cap| read.iteration > cap);
    Ok(ForeignLoop {
        system,
        id: Some(id(system, "task_id", &read.task_id)?),
        began: None,
        prompt: Prompt::Unsaid,
        command: None,
        promised: PromiseWords::Never,
        cap,
        iteration: counted(cap.map_or(read.iteration, |cap| read.iteration.min(cap)))?,
        standing: if is_over { LoopPhase::MaxIterationsReached } else { LoopPhase::Running },
        check: Some(Check::Gates),
    })
}

/// `.ralph_state.json`, as seed 004 documents it and its own runner writes it.
#[derive(Serialize)]
struct Ralph<'a> {
    task_id: &'a str,
    iteration: u32,
    max_iterations: Option<u32>,
    last_gate: Option<&'a str>,
    exit_code: Option<i32>,
    error_hash: Option<String>,
    timestamp: String,
    stuck_count: u32,
    strategy_shifts: u32,
    attempts: Vec<AttemptRecord<'a>>,
    #[serde(flatten)]
    mark: Mark,
}

#[derive(Serialize)]
struct AttemptRecord<'a> {
    iteration: u32,
    gate: &'a str,
    hash: Option<String>,
    shift: bool,
}

/// The gate that an iteration failed at, its exit code and its fingerprint.
type Failed<'a> = (&'a str, Option<i32>, Option<String>);

impl<'a> Ralph<'a> {
    fn of(state: &'a LoopState, mark: Mark) -> Self {
        let charged = || state.attempts.iter().filter(|attempt| attempt.charged);
        // An iteration that was stopped before its gates says nothing of them: their results before it hold.
        let proven = charged().rev().find(|attempt| attempt.proof.is_some());
        let last = proven.and_then(|attempt| failed(state, attempt));
        let tried = |attempt: &'a Attempt| {
            let (gate, _, hash) = failed(state, attempt)?;
            Some(AttemptRecord { iteration: attempt.id.iteration, gate, hash, shift: attempt.shifted })
        };
        let attempts: Vec<_> = charged().filter_map(tried).collect();
        let shifts = attempts.iter().filter(|tried| tried.shift).count();
        Self {
            task_id: state.spec.id.as_str(),
            iteration: state.iteration.max(1),
            max_iterations: state.limits.max_iterations,
            last_gate: last.as_ref().map(|(gate, ..)| *gate),
            exit_code: last.as_ref().and_then(|(_, code, _)| *code),
            error_hash: last.and_then(|(.., hash)| hash),
            timestamp: state.updated_at.to_string(),
            stuck_count: state.progress.stuck.count(),
            strategy_shifts: u32::try_from(shifts).unwrap_or(u32::MAX),
            attempts,
            mark,
        }
    }
}

fn failed<'a>(state: &'a LoopState, attempt: &'a Attempt) -> Option<Failed<'a>> {
    let result = attempt.proof.as_ref()?.failing(&state.spec).next()?;
    let code = match result.exit {
        Some(Exit::Code(code)) => Some(code),
        Some(Exit::Signal(_) | Exit::Lost | Exit::Unseen) | None => None,
    };
    // Eight digits, as the seed shows them.
    let hash = result.fingerprint.as_ref().map(|fingerprint| fingerprint.as_str()[..8].to_owned());
    Some((result.spec(&state.spec)?.name.as_str(), code, hash))
}
