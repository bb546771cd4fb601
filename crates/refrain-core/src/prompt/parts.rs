//! What several sections of a prompt have in common: how texts are quoted, and the result of an iteration.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use crate::event::ClaimSource;
use crate::r#loop::{Attempt, LoopState, Outcome};
use crate::prompt::excerpt::without_noise;
use crate::text::{clip, cut_middle, printable, squeeze};

/// How much of a failed attempt's output is repeated to the next, in bytes: some thousand tokens.
pub const FAILURE_EXCERPT: usize = 4096;

/// How much of `state.md` is repeated, in bytes.
pub const NOTES_EXCERPT: usize = 2048;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Excerpt {
    /// The limit of each text, in bytes.
    pub(crate) most: usize,
    /// Passing tests and foreign frames too.
    pub(crate) is_verbatim: bool,
}

impl Excerpt {
    pub(super) const IN_PROMPT: Self = Self { most: FAILURE_EXCERPT, is_verbatim: false };

    /// The text in a fence, its middle cut.
    pub(crate) fn whole(self, text: &str) -> String {
        fenced(&cut_middle(text, self.most))
    }

    /// The same of a program's output, after words that say so.
    pub(crate) fn printed(self, words: &str, output: &str) -> String {
        match without_noise(output).filter(|_| !self.is_verbatim) {
            Some(rest) => {
                let rest = self.whole(rest.trim_matches('\n'));
                format!("{words}, without passing tests and library frames:\n\n{rest}")
            }
            None => format!("{words}:\n\n{}", self.whole(output)),
        }
    }
}

/// The attempt that the next one follows.
pub(crate) fn last_iteration(state: &LoopState) -> Option<&Attempt> {
    state.last_charged().filter(|last| last.id.iteration + 1 == state.iteration)
}

pub(super) fn separate(prompt: &mut String) {
    prompt.push_str(if prompt.ends_with('\n') { "\n" } else { "\n\n" });
}

/// The text in a fence that it cannot close.
pub(crate) fn fenced(text: &str) -> String {
    fenced_as("", text)
}

pub(crate) fn fenced_as(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// The JSON Schema of an answer, for agents that can be held to one.
pub(crate) fn answer_schema<T: JsonSchema>() -> serde_json::Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // Names of ours are nothing to an agent.
    schema.remove("title");
    schema.to_value()
}

/// The attempts that count, oldest first.
pub(crate) fn charged(state: &LoopState) -> impl Iterator<Item = &Attempt> {
    state.attempts.iter().filter(|attempt| attempt.charged)
}

/// An iteration: its result and its agent's words on it, on one line, each at most `most` bytes.
pub(crate) fn attempt_line(state: &LoopState, attempt: &Attempt, most: usize) -> String {
    let line = |text: &str| clip(&squeeze(&printable(text)), most).into_owned();
    let result = format!("iteration {}: {}", attempt.id.iteration, line(&outcome(state, attempt)));
    match attempt.finished.as_ref().map(|finished| line(&finished.preview)) {
        Some(said) if !said.is_empty() => format!("{result}; said: {said}"),
        Some(_) | None => result,
    }
}

/// The result of an iteration, in a few words.
pub(crate) fn outcome(state: &LoopState, attempt: &Attempt) -> String {
    let own = match attempt.outcome {
        Outcome::Claimed if attempt.claim.is_some_and(ClaimSource::is_said) => "claimed",
        Outcome::Claimed | Outcome::Ended => "no claim",
        Outcome::Failed => "the agent failed",
        Outcome::TimeLimit | Outcome::LoopDuration => "stopped, it took too long",
        Outcome::Silence => "stopped, it printed nothing for too long",
        Outcome::Budget => "stopped, its budget was used up",
        Outcome::Cancelled
        | Outcome::Interrupted
        | Outcome::Lost
        | Outcome::NotStarted
        | Outcome::OutputLost
        | Outcome::Limit
        | Outcome::Outage
        | Outcome::Unable
        | Outcome::Unresponsive => "was refunded",
    };
    let failing = attempt.proof.iter().flat_map(|proof| proof.failing(&state.spec)).filter_map(|result| {
        let (gate, failure) = (result.spec(&state.spec)?, result.failure.as_ref()?);
        Some(format!("gate {} failed: {failure}", gate.name))
    });
    let touched = attempt.proof.as_ref().is_some_and(|proof| !proof.candidate.touched.is_empty());
    let touched = touched.then(|| "changed what is protected".to_owned());
    let refused = attempt.proof.as_ref().is_some_and(|proof| proof.is_refused());
    let refused = refused.then(|| "a person did not approve it".to_owned());
    std::iter::once(own.to_owned())
        .chain(touched)
        .chain(failing)
        .chain(refused)
        .collect::<Vec<_>>()
        .join("; ")
}
