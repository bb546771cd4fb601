//! The agent's prompt: the user's prompt, unchanged; how the loop works, in the same words in every iteration, so that
//! a provider's prompt cache hits; then what is new. The order is the contract's ("What the agent and its gates see").

pub mod context;
pub mod excerpt;
pub mod mode;
pub mod pull_request;
pub mod state_file;
pub mod summary;

mod commits;
mod failing_tests;
mod gates;
mod instructions;
mod outside_objections;
mod parts;
mod quote;
mod run;
mod touched_paths;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::event::{Asker, Event, Exit, FORMAT, LoopStarted, Record};
use crate::fingerprint::essence;
use crate::r#loop::{Attempt, LoopState, Outcome};
use crate::memory;
use crate::spec::Spec;
use crate::stuck::{self, CurrentFailure, Verdict};
use crate::text::{cut_middle, inline_code};
use crate::view::progress;

pub use quote::{GateRun, Quote, QuotedLogs, Source, quotes};

pub use parts::{FAILURE_EXCERPT, NOTES_EXCERPT};

pub(crate) use gates::describe_gate_failures;
pub(crate) use parts::{Excerpt, answer_schema, attempt_line, charged, fenced, fenced_as, last_iteration};
pub(crate) use touched_paths::describe_touched_paths;

use parts::separate;
use state_file::StatusFault;

/// The first prompt of a loop that a runner drives, unless gates fail before it.
pub fn first(spec: &Spec) -> String {
    let started = LoopStarted { format: FORMAT, refrain: String::new(), spec: spec.clone() };
    let event = Event::LoopStarted(Box::new(started));
    let begun = LoopState::begin(&Record { seq: 1, at: Timestamp::UNIX_EPOCH, event });
    // A start in this version's own format is no damage.
    let Ok(mut state) = begun else { return spec.prompt.clone() };
    state.iteration += 1;
    assemble(&state, QuotedLogs::default())
}

/// The begin of every prompt of a loop, as long as the same agent drives it: the user's prompt, how the loop works, and
/// what was recalled for it.
fn beginning(spec: &Spec, in_session: bool) -> String {
    let mut prompt = spec.prompt.clone();
    separate(&mut prompt);
    prompt.push_str(&instructions::how_it_works(spec, in_session));
    if let Some(section) = spec.memory.as_ref().and_then(|memory| memory::section(&memory.recalled)) {
        separate(&mut prompt);
        prompt.push_str(&section);
    }
    prompt
}

pub fn assemble(state: &LoopState, quoted: QuotedLogs<'_>) -> String {
    if !state.spec.iteration_context {
        return state.spec.prompt.clone();
    }
    let excerpt = Excerpt::IN_PROMPT;
    let last = last_iteration(state);
    let committed = state.git.last.as_ref().filter(|report| report.iteration + 1 == state.iteration);
    let failed = last.and_then(|last| describe_failed_run(last, quoted.attempt(), excerpt));
    let touched = touched_paths::describe_touched_paths(state, quoted.protected(), excerpt);
    let gates = describe_gate_failures(state, quoted, excerpt);
    let failures: Vec<_> = failed.into_iter().chain(touched).chain(gates).collect();
    let more = (!failures.is_empty() && quoted.has_output()).then(|| where_more_is(state));
    let others = [
        gates::describe_refused_approval(state),
        outside_objections::objection(state, quoted.outside(), excerpt),
        blocked(state),
        last.and_then(describe_near_miss),
        last.and_then(|last| describe_state_file_fault(state, last)),
        committed.and_then(commits::describe_refused_commit),
        feedback(state),
        directive(state, quoted),
        steering(state),
    ];
    let mut prompt = beginning(&state.spec, state.session.is_some());
    let news = [Some(run::this_run(state, quoted)), notes(state, quoted.notes())];
    for part in news.into_iter().flatten().chain(failures).chain(more).chain(others.into_iter().flatten()) {
        separate(&mut prompt);
        prompt.push_str(&part);
    }
    prompt
}

/// The line before each iteration: `[loop mend iteration 3/20]` (seed 000).
pub fn marker(state: &LoopState, iteration: u32) -> String {
    format!("[loop {} iteration {}]", state.spec.id, progress(iteration, state.limits.max_iterations))
}

/// Says that it asked for a person, and has one more try.
fn blocked(state: &LoopState) -> Option<String> {
    let file = state_file_path(&state.spec);
    let text = format!(
        "BLOCKED: {file} says `status: blocked`. You have this one more run. Find another way, or do the work that does not \
         depend on it, and set the status back to `status: in-progress`. If only a person can help, leave it as it is, and \
         write under Notes what they have to do: the loop then waits for them."
    );
    (state.blocked > 0).then_some(text)
}

/// The agent's notes, without what the prompt says anyway.
fn notes(state: &LoopState, text: Option<&str>) -> Option<String> {
    let notes = state_file::notes(text?, &state.spec.prompt)?;
    let notes = fenced(&cut_middle(&notes, NOTES_EXCERPT));
    Some(format!("Notes in {}:\n\n{notes}", inline_code(state_file_path(&state.spec).as_str())))
}

fn where_more_is(state: &LoopState) -> String {
    let file = inline_code(seen(&state.spec, &state.spec.context_file()).as_str());
    match charged(state).next() {
        None => format!("That output as it was printed: {file}."),
        Some(_) => format!("That output as it was printed, and a line for each earlier run: {file}."),
    }
}

/// The agent's own file, as it sees it.
fn state_file_path(spec: &Spec) -> Utf8PathBuf {
    seen(spec, &spec.state_file())
}

fn seen(spec: &Spec, path: &Utf8Path) -> Utf8PathBuf {
    path.strip_prefix(&spec.working_dir).unwrap_or(path).to_owned()
}

/// Says that the last run itself failed, and what it printed.
pub(crate) fn describe_failed_run(last: &Attempt, output: Option<&str>, excerpt: Excerpt) -> Option<String> {
    let exit = last.finished.as_ref().map(|finished| finished.exit);
    let what = match (last.outcome, exit) {
        (Outcome::Failed, Some(Exit::Code(code))) => format!("your last run ended with exit code {code}"),
        (Outcome::Failed, Some(Exit::Signal(signal))) => {
            format!("your last run was ended by signal {signal}")
        }
        (Outcome::Failed, Some(Exit::Lost | Exit::Unseen) | None) => {
            "your last run ended without a result".to_owned()
        }
        (Outcome::Budget, _) => "your last run used up its budget and was stopped".to_owned(),
        (Outcome::TimeLimit | Outcome::LoopDuration, _) => {
            "your last run took too long and was stopped".to_owned()
        }
        (Outcome::Silence, _) => "your last run printed nothing for too long and was stopped".to_owned(),
        (
            Outcome::Claimed
            | Outcome::Ended
            | Outcome::Cancelled
            | Outcome::Interrupted
            | Outcome::Lost
            | Outcome::NotStarted
            | Outcome::Limit
            | Outcome::Outage
            | Outcome::Unable
            | Outcome::Unresponsive
            | Outcome::OutputLost,
            _,
        ) => return None,
    };
    let fault = last.finished.as_ref().and_then(|finished| finished.report.as_ref()?.fault.as_ref());
    let what = fault.map_or(what.clone(), |fault| format!("{what} ({})", fault.message));
    Some(match output.map(str::trim).filter(|output| !output.is_empty()) {
        Some(output) => format!("LAST RUN FAILED: {what}. {}", excerpt.printed("It printed", output)),
        None => format!("LAST RUN FAILED: {what}."),
    })
}

fn describe_near_miss(last: &Attempt) -> Option<String> {
    let miss = last.finished.as_ref()?.near_miss?;
    Some(format!("CLAIM NOT HEARD: {}.", miss.hint()))
}

/// Says that what the agent wrote into its state file does not count.
fn describe_state_file_fault(state: &LoopState, last: &Attempt) -> Option<String> {
    let fault = last.finished.as_ref()?.state_fault?;
    let what = match fault {
        StatusFault::QuestionAlone => "QUESTION NOT ASKED",
        StatusFault::NoFrontMatter | StatusFault::OtherLoop | StatusFault::UnknownStatus => "STATUS NOT READ",
    };
    Some(format!("{what}: {}: {}.", state_file_path(&state.spec), fault.hint()))
}

fn feedback(state: &LoopState) -> Option<String> {
    let said = state.feedback.said.as_ref()?;
    Some(format!("REVIEWER FEEDBACK:\n{}", cut_middle(said.trim(), FAILURE_EXCERPT)))
}

/// The strategy shift, in every prompt as long as the loop makes no progress: the agent may not remember the last
/// prompt.
fn directive(state: &LoopState, quoted: QuotedLogs<'_>) -> Option<String> {
    let Verdict::Shift(pattern) = state.verdict() else { return None };
    let of_gate = |(gate, output): (usize, &str)| {
        let name = state.spec.gates.get(gate).filter(|gate| gate.hard)?.name.to_string();
        Some((Some(name), essence(output)))
    };
    let by_agent = quoted.attempt().map(|output| (None, essence(output)));
    let failing: Vec<_> = by_agent.into_iter().chain(quoted.gates().filter_map(of_gate)).collect();
    let failing: Vec<_> =
        failing.iter().map(|(gate, essence)| CurrentFailure { gate: gate.as_deref(), essence }).collect();
    let tried: Vec<_> = charged(state).map(|attempt| attempt_line(state, attempt, stuck::LINE)).collect();
    Some(stuck::directive((pattern, &state.progress.stuck), &failing, &tried))
}

/// A person's words, and apart from them those of another agent, or of an earlier run of this one.
fn steering(state: &LoopState) -> Option<String> {
    let headings = [
        (Asker::Person, "STEERING:"),
        (Asker::Unknown, "NOTE FROM AN UNKNOWN SENDER (nothing shows that a person sent this):"),
        (Asker::Agent, "NOTE FROM AN AGENT (an agent sent this with refrain steer; no person said it):"),
    ];
    let section = |(by, heading): (Asker, &str)| {
        let said: Vec<_> = state.steering.iter().filter(|said| said.by == by).collect();
        let text = said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n");
        (!said.is_empty()).then(|| format!("{heading}\n{text}"))
    };
    let sections: Vec<_> = headings.into_iter().filter_map(section).collect();
    (!sections.is_empty()).then(|| sections.join("\n\n"))
}

#[cfg(test)]
mod tests;
