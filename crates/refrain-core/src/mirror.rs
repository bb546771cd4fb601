//! What a loop looks like in the files of other systems, written for tools and people who read those. Never read back: the
//! journal is the only truth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Exit;
use crate::r#loop::{Attempt, LoopState};
use crate::stuck::{Stuck, Turn, Verdict};

/// A format of another system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mirror {
    /// `.ralph_state.json` and `.ralph_context.md` in the working folder (seed 004).
    Ralph,
}

/// The names that a mirror writes in the working folder: they are Refrain's, and never part of a candidate.
pub const RALPH: [&str; 3] = [".ralph_state.json", ".ralph_context.md", Mirror::LOCK];

/// A file that a mirror keeps, by its name in the working folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Its name.
    pub name: &'static str,
    /// What it holds; none where it is to go.
    pub text: Option<String>,
}

impl Mirror {
    /// The lock of seed 004: the number of the process that works there.
    pub const LOCK: &str = ".ralph.lock";

    /// The files of a loop that stands like this; `context` is what `context.md` says.
    #[must_use]
    pub fn files(self, state: &LoopState, context: Option<&str>) -> Vec<Mirrored> {
        let Self::Ralph = self;
        let [name, context_name, _] = RALPH;
        // Seed 004: what succeeded leaves nothing behind.
        if state.is_final() {
            return [name, context_name].map(|name| Mirrored { name, text: None }).into();
        }
        let text = serde_json::to_string_pretty(&Ralph::of(state)).ok().map(|json| json + "\n");
        let context = context.map(|text| text.replacen("# Loop Context:", "# Ralph Loop Context:", 1));
        vec![Mirrored { name, text }, Mirrored { name: context_name, text: context }]
    }
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
    attempts: Vec<Tried<'a>>,
}

#[derive(Serialize)]
struct Tried<'a> {
    iteration: u32,
    gate: &'a str,
    hash: Option<String>,
    shift: bool,
}

/// The gate that an iteration failed at, its exit code and its fingerprint.
type Failed<'a> = (&'a str, Option<i32>, Option<String>);

impl<'a> Ralph<'a> {
    fn of(state: &'a LoopState) -> Self {
        let charged = || state.attempts.iter().filter(|attempt| attempt.charged);
        // An iteration that was stopped before its gates says nothing of them: what they said before it stands.
        let proven = charged().rev().find(|attempt| attempt.proof.is_some());
        let last = proven.and_then(|attempt| failed(state, attempt));
        let mut stuck = Stuck::default();
        let mut attempts = Vec::new();
        for attempt in charged() {
            let shift = matches!(stuck.verdict(state.spec.stuck.threshold), Verdict::Shift(_));
            let Some((gate, _, hash)) = failed(state, attempt) else { continue };
            stuck.after(&Turn { failure: fingerprint(attempt, state), ..Turn::default() });
            attempts.push(Tried { iteration: attempt.id.iteration, gate, hash, shift });
        }
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

fn fingerprint(attempt: &Attempt, state: &LoopState) -> Option<crate::fingerprint::Fingerprint> {
    attempt.proof.as_ref()?.failing(&state.spec).next()?.fingerprint.clone()
}
