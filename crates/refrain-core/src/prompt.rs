//! What the agent is told: the person's prompt, unchanged; how to claim, the same in every iteration, so that a
//! provider's prompt cache hits; then what is new. The order is the contract's ("What the agent and its gates see").

mod outside;
mod touching;

use std::fmt::Write;

use camino::Utf8PathBuf;

use crate::event::{ClaimSource, Exit};
use crate::fingerprint::essence;
use crate::gate::GateSpec;
use crate::git::{CommitReport, CommitResult, Skipped, Why};
use crate::ids::AttemptId;
use crate::r#loop::{Attempt, GateFailure, GateResult, LoopState, Outcome};
use crate::memory;
use crate::session::Isolation;
use crate::spec::{Spec, Until};
use crate::stuck::{self, Failing, Tried, Verdict};
use crate::text::{clip, cut_middle, printable, squeeze};
use crate::view::progress;

pub(crate) use touching::what_was_touched;

/// How much of a failed attempt's output is repeated to the next, in bytes: some thousand tokens.
pub const FAILURE_EXCERPT: usize = 4096;

/// How many gates that failed are quoted to the agent.
const MOST_GATES: usize = 5;

/// How much of a gate's command is named to the agent, in bytes.
const LONGEST_COMMAND: usize = 200;

/// How many files that look like secrets are named to the agent.
const MOST_SECRETS: usize = 10;

/// What a claim says.
const DONE: &str = "the task is completely finished";
/// The same in a loop that goes on for ever.
const NOTHING_TO_DO: &str = "there is nothing to do now";

/// What was printed by whatever failed last: the ends of logs, made fit to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Printed<'a> {
    /// By the last attempt.
    pub attempt: Option<&'a str>,
    /// By gates of [`failed_gates`], each with its place in the specification.
    pub gates: &'a [(usize, String)],
    /// By the checks of a pull request that failed behind the last iteration; or what both sides of a conflict with the
    /// remote did.
    pub outside: Option<&'a str>,
    /// The lines of what is protected and was touched, as `git diff` tells them.
    pub touched: Option<&'a str>,
    /// By what failed in the iterations of [`earlier`], for `context.md`.
    pub earlier: &'a [(AttemptId, String)],
}

/// What every prompt of a loop begins with, and the first one consists of, unless gates failed before it: the person's
/// prompt, what was recalled for it, and how to claim.
#[must_use]
pub fn first(spec: &Spec) -> String {
    let mut prompt = spec.prompt.clone();
    let recalled = spec.memory.as_ref().filter(|_| spec.iteration_context);
    if let Some(section) = recalled.and_then(|memory| memory::section(&memory.recalled)) {
        separate(&mut prompt);
        prompt.push_str(&section);
    }
    let tagged = spec.promise.as_ref().is_some_and(|promise| promise.is_tagged_in(&spec.prompt));
    if spec.iteration_context && !tagged {
        separate(&mut prompt);
        prompt.push_str(&how_to_claim(spec));
    }
    prompt
}

/// The prompt of the next attempt.
#[must_use]
pub fn assemble(state: &LoopState, printed: Printed<'_>) -> String {
    let mut prompt = first(&state.spec);
    if !state.spec.iteration_context {
        return prompt;
    }
    if state.iteration > 1 {
        separate(&mut prompt);
        prompt.push_str(&iteration_context(state));
    }
    let last = last_iteration(state);
    let committed = state.git.last.as_ref().filter(|report| report.iteration + 1 == state.iteration);
    let failed = last.and_then(|last| what_failed(last, printed.attempt, FAILURE_EXCERPT));
    let news =
        [blocked(state), last.and_then(what_was_nearly_said), committed.and_then(what_was_not_committed)];
    let touched = touching::what_was_touched(state, printed.touched, FAILURE_EXCERPT);
    let gates = what_gates_said(state, printed.gates, FAILURE_EXCERPT);
    let person = what_a_person_said(state);
    let outside = outside::objection(state, printed.outside, FAILURE_EXCERPT);
    let advice = [feedback(state), directive(state, printed), steering(state)];
    for part in failed
        .into_iter()
        .chain(touched)
        .chain(gates)
        .chain(person)
        .chain(outside)
        .chain(news.into_iter().chain(advice).flatten())
    {
        separate(&mut prompt);
        prompt.push_str(&part);
    }
    prompt
}

/// What stands on a line of its own before each iteration: `[loop mend iteration 3/20]` (seed 000).
#[must_use]
pub fn marker(state: &LoopState, iteration: u32) -> String {
    format!("[loop {} iteration {}]", state.spec.id, progress(iteration, state.limits.max_iterations))
}

/// The gates that the next prompt speaks of: those that failed behind the last iteration, or before the first.
pub fn failed_gates(state: &LoopState) -> impl Iterator<Item = &GateResult> {
    let proof = match state.iteration {
        0 | 1 => state.baseline.as_ref(),
        _ => last_iteration(state).and_then(|last| last.proof.as_ref()),
    };
    proof.into_iter().flat_map(|proof| &proof.results).filter(|result| !result.passed())
}

/// The attempt that the next one follows.
pub(crate) fn last_iteration(state: &LoopState) -> Option<&Attempt> {
    state.last_charged().filter(|last| last.id.iteration + 1 == state.iteration)
}

fn separate(prompt: &mut String) {
    prompt.push_str(if prompt.ends_with('\n') { "\n" } else { "\n\n" });
}

/// That it said it needs a person, and has one more try.
fn blocked(state: &LoopState) -> Option<String> {
    let file = state_file(&state.spec);
    let text = format!(
        "BLOCKED: {file} says `status: blocked`. You have this one more iteration. Find another way, or do what does not depend \
         on it, and set it back to `status: in-progress`. If nobody but a person can help, leave it as it is, and write down \
         in Notes what they have to do: the loop then waits for them."
    );
    (state.blocked > 0).then_some(text)
}

/// The agent's own file, as it sees it.
fn state_file(spec: &Spec) -> Utf8PathBuf {
    let path = spec.state_file();
    path.strip_prefix(&spec.working_dir).map(ToOwned::to_owned).unwrap_or(path)
}

fn how_to_claim(spec: &Spec) -> String {
    let mut text = String::from("---\nLOOP:\n");
    let (until, claim) = match spec.until {
        Until::Complete => ("until the work is done", DONE),
        Until::Count => ("as often as was asked for, done or not", DONE),
        Until::Forever => ("for as long as nobody stops it", NOTHING_TO_DO),
    };
    let _ = match spec.session.as_ref().map(|session| session.isolation) {
        None => writeln!(text, "- You are run again and again {until}; each run starts afresh"),
        Some(Isolation::SharedContext) => {
            writeln!(text, "- Each time you end your turn you are told to go on, {until}")
        }
        Some(Isolation::Subagent) => writeln!(
            text,
            "- Each time you end your turn you are told to go on, {until}. Have a fresh subagent do the work of each iteration, \
             and give it the task and the file of notes; its report is no claim: you make it, or not"
        ),
    };
    if let Some(promise) = &spec.promise {
        let tag = promise.tag();
        // Not a line of its own here: an agent that echoes its prompt would claim by it.
        let _ = writeln!(text, "- Only when {claim}, print {tag} alone on a line of your final message");
    }
    let state_file = state_file(spec);
    let claims =
        if spec.promise.is_some() { "claims the same".to_owned() } else { format!("claims that {claim}") };
    let _ = writeln!(
        text,
        "- Keep notes for the next run in {state_file}; `status: done` there {claims}, `status: blocked` asks for a person"
    );
    if spec.git.workflow.commits() {
        text.push_str(match spec.has_hard_gates() {
            // What failed stays in the working tree: an agent that trusted to find it in the history would miss it.
            true => "- What you change is committed once the gates that decide pass; leave that to it\n",
            false => "- What you change is committed after each run; leave that to it\n",
        });
    }
    for (number, gate) in spec.gates.iter().enumerate() {
        if number == 0 {
            text.push_str(match spec.has_hard_gates() {
                true => "- Done is proven by gates that are run after you, not by you:\n",
                false => "- These gates are run after you, and only inform:\n",
            });
        }
        let only = if gate.hard || !spec.has_hard_gates() { "" } else { " (it only informs)" };
        let _ = writeln!(text, "  - {}: `{}`{only}", gate.name, command(gate));
    }
    if spec.clean_checkout {
        text.push_str(
            "- They are run in a clean checkout elsewhere, which absolute paths in their output name: what git ignores, and \
             what was not committed before you began, is not there\n",
        );
    }
    text.push_str(&touching::what_is_kept(spec));
    if spec.approval {
        text.push_str(
            "- Last of all a person looks at what you claim to be done, and approves it or sends it back\n",
        );
    }
    text.push_str("---");
    text
}

fn iteration_context(state: &LoopState) -> String {
    let total = state.limits.max_iterations.map_or_else(|| "unlimited".to_owned(), |cap| cap.to_string());
    let mut text = format!(
        "---\nITERATION CONTEXT:\n- This is iteration {} of {total}\n- Your previous work persists in files and git \
         history\n- Review what you've done and continue improving\n",
        state.iteration
    );
    if let Some(promise) = &state.spec.promise {
        let claim = if state.spec.until == Until::Forever { NOTHING_TO_DO } else { DONE };
        let _ = writeln!(text, "- Output {} when {claim}", promise.tag());
    }
    text.push_str("---");
    text
}

pub(crate) fn what_failed(last: &Attempt, output: Option<&str>, most: usize) -> Option<String> {
    let exit = last.finished.as_ref().map(|finished| finished.exit);
    let what = match (last.outcome, exit) {
        (Outcome::Failed, Some(Exit::Code(code))) => format!("your last run ended with exit code {code}"),
        (Outcome::Failed, Some(Exit::Signal(signal))) => {
            format!("your last run was ended by signal {signal}")
        }
        (Outcome::Failed, Some(Exit::Lost | Exit::Unseen) | None) => {
            "your last run came to nothing".to_owned()
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
    let excerpt = output.map(str::trim).filter(|output| !output.is_empty());
    Some(match excerpt {
        Some(output) => {
            format!("LAST RUN FAILED: {what}. It printed:\n\n{}", fenced(&cut_middle(output, most)))
        }
        None => format!("LAST RUN FAILED: {what}."),
    })
}

/// Verbatim what the gates that failed printed, those that decide first: you said done, but they say …
pub(crate) fn what_gates_said(state: &LoopState, printed: &[(usize, String)], most: usize) -> Vec<String> {
    let is_hard = |result: &&GateResult| result.spec(&state.spec).is_some_and(|gate| gate.hard);
    let (hard, soft): (Vec<_>, Vec<_>) = failed_gates(state).partition(is_hard);
    let quoted: Vec<_> = hard.into_iter().chain(soft).take(MOST_GATES).collect();
    let each = most / quoted.len().max(1);
    let mut said: Vec<String> =
        quoted.iter().filter_map(|result| what_one_gate_said(state, result, printed, each)).collect();
    if !said.is_empty() && state.lay_on_theirs() {
        said.insert(
            0,
            "OTHERS' COMMITS CAME IN: others pushed to the branch while you worked. Your commits lie on top of theirs now, and \
             that is what the gates looked at: what fails may come of both together. git log shows what is theirs."
                .to_owned(),
        );
    }
    let last = last_iteration(state).and_then(|last| last.proof.as_ref());
    if last.is_some_and(|proof| proof.restless) {
        said.push(
            "CLAIM REFUSED: the gates, or a hook of the repository, change files of the project each time they run, so \
             nothing is proven. Leave the files as the gates make them, or keep the gates from changing them."
                .to_owned(),
        );
    }
    let flaky = last.into_iter().flat_map(|proof| &proof.results).filter(|result| result.flaky);
    for gate in flaky.filter_map(|result| result.spec(&state.spec)) {
        said.push(format!("FLAKY: gate {} failed, and then passed on the same files.", gate.name));
    }
    said
}

/// That a person, who was asked last of all, did not approve it; their words, if any, are steering.
fn what_a_person_said(state: &LoopState) -> Option<String> {
    last_iteration(state)?.proof.as_ref().filter(|proof| proof.is_refused())?;
    let gates = if state.spec.has_hard_gates() { ", though every gate that decides passed" } else { "" };
    let words = match state.steering.is_empty() {
        true => "They said nothing more: look again at what was asked for, and at what you left undone",
        false => "What they say to it stands under STEERING",
    };
    Some(format!(
        "NOT APPROVED: a person looked at what you claim to be done, and sends it back{gates}. {words}."
    ))
}

fn what_one_gate_said(
    state: &LoopState,
    result: &GateResult,
    printed: &[(usize, String)],
    most: usize,
) -> Option<String> {
    let (gate, failure) = (result.spec(&state.spec)?, result.failure.as_ref()?);
    let name = &gate.name;
    let claim = last_iteration(state).and_then(|last| last.claim);
    let mut text = match (gate.hard, claim) {
        (true, _) if state.iteration <= state.spec.carried() + 1 => {
            format!("FAILED BEFORE YOU BEGAN: gate {name}")
        }
        (true, Some(ClaimSource::Promise | ClaimSource::StateFile)) => {
            format!("CLAIM REFUSED: you said done, but gate {name} says otherwise")
        }
        (true, Some(ClaimSource::ExitCode | ClaimSource::Gates | ClaimSource::Result) | None) => {
            format!("GATE FAILED: {name}")
        }
        (false, _) => format!("SOFT GATE FAILED, WHICH DECIDES NOTHING: {name}"),
    };
    let why = match failure {
        GateFailure::Review(_) => "the reviewer refuses it".to_owned(),
        GateFailure::Exit(_)
        | GateFailure::TimeLimit
        | GateFailure::NoTest(_)
        | GateFailure::NotStarted(_)
        | GateFailure::NoVerdict(_) => failure.to_string(),
    };
    let _ = write!(text, " (`{}`): {why}", command(gate));
    if state.iteration > state.spec.carried() + 1 {
        text.push_str(state.said_before(result));
    }
    if let GateFailure::Review(findings) = failure {
        // What is to be done stands there, so it is told whole.
        let _ = write!(text, ". It found:\n\n{}", fenced(&cut_middle(findings.trim(), most)));
        return Some(text);
    }
    let output = printed.iter().find(|(place, _)| *place == result.gate).map(|(_, output)| output.trim());
    match output.filter(|output| !output.is_empty()) {
        Some(output) => {
            let _ = write!(text, ". It printed:\n\n{}", fenced(&cut_middle(output, most)));
        }
        None => text.push('.'),
    }
    Some(text)
}

/// A gate's command, on one line.
fn command(gate: &GateSpec) -> String {
    clip(&squeeze(&printable(&gate.check.to_string())), LONGEST_COMMAND).into_owned()
}

fn what_was_nearly_said(last: &Attempt) -> Option<String> {
    let miss = last.finished.as_ref()?.near_miss?;
    Some(format!("CLAIM NOT HEARD: {}.", miss.hint()))
}

/// What an agent can do something about: a hook's complaint, and what looks like a secret.
fn what_was_not_committed(report: &CommitReport) -> Option<String> {
    let mut text = String::new();
    if let CommitResult::Skipped(Skipped::Hook { said }) = &report.result {
        let said = fenced(&cut_middle(said.trim(), FAILURE_EXCERPT));
        let _ = write!(
            text,
            "COMMIT REFUSED: a hook of the repository refused what you changed. It said:\n\n{said}"
        );
    }
    let secrets = report.left_out.iter().filter(|left| matches!(left.why, Why::Secret { .. }));
    for (number, secret) in secrets.take(MOST_SECRETS).enumerate() {
        if number == 0 {
            if !text.is_empty() {
                separate(&mut text);
            }
            text.push_str("NOT COMMITTED, AS IT LOOKS LIKE A SECRET:");
        }
        let _ = write!(text, "\n- {}: {}", secret.path, secret.why);
    }
    for (number, secret) in report.exposed.iter().filter(|it| !it.allowed).take(MOST_SECRETS).enumerate() {
        if number == 0 {
            if !text.is_empty() {
                separate(&mut text);
            }
            text.push_str(
                "YOU COMMITTED WHAT LOOKS LIKE A SECRET. It stays in the history: do not rewrite that. Take it out of the \
                 file, and say in your notes that it has to be replaced:",
            );
        }
        let _ = write!(text, "\n- {secret}");
    }
    (!text.is_empty()).then_some(text)
}

/// The text in a fence that it cannot close.
pub(crate) fn fenced(text: &str) -> String {
    fenced_as("", text)
}

/// The same, of a language.
pub(crate) fn fenced_as(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn feedback(state: &LoopState) -> Option<String> {
    let said = state.feedback.said.as_ref()?;
    Some(format!("REVIEWER FEEDBACK:\n{}", cut_middle(said.trim(), FAILURE_EXCERPT)))
}

/// Words for an agent that goes in circles; each run starts afresh, so it is told as long as that lasts.
fn directive(state: &LoopState, printed: Printed<'_>) -> Option<String> {
    let Verdict::Shift(pattern) = state.verdict() else { return None };
    let of_gate = |(gate, output): &(usize, String)| {
        let name = state.spec.gates.get(*gate).filter(|gate| gate.hard)?.name.to_string();
        Some((Some(name), essence(output)))
    };
    let by_agent = printed.attempt.map(|output| (None, essence(output)));
    let failing: Vec<_> = by_agent.into_iter().chain(printed.gates.iter().filter_map(of_gate)).collect();
    let failing: Vec<_> =
        failing.iter().map(|(gate, essence)| Failing { gate: gate.as_deref(), essence }).collect();
    let turns = state.progress.stuck.turns(pattern);
    let outcomes: Vec<_> = charged(state).map(|attempt| (attempt, outcome(state, attempt))).collect();
    let tried: Vec<_> = outcomes
        .iter()
        .map(|(attempt, outcome)| Tried {
            iteration: attempt.id.iteration,
            outcome,
            files: &[],
            preview: attempt.finished.as_ref().map(|finished| finished.preview.as_str()),
        })
        .collect();
    Some(stuck::directive(pattern, turns, &failing, &tried))
}

/// The attempts that count, oldest first.
pub(crate) fn charged(state: &LoopState) -> impl Iterator<Item = &Attempt> {
    state.attempts.iter().filter(|attempt| attempt.charged)
}

/// What an iteration came to, in a few words.
pub(crate) fn outcome(state: &LoopState, attempt: &Attempt) -> String {
    let own = match attempt.outcome {
        Outcome::Claimed => "claimed",
        Outcome::Ended => "ended without a claim",
        Outcome::Failed => "the agent failed",
        Outcome::TimeLimit | Outcome::LoopDuration => "took too long",
        Outcome::Silence => "was silent for too long",
        Outcome::Budget => "used up its budget",
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
    let touched = touched.then(|| "touched what is protected".to_owned());
    let refused = attempt.proof.as_ref().is_some_and(|proof| proof.is_refused());
    let refused = refused.then(|| "a person did not approve it".to_owned());
    std::iter::once(own.to_owned())
        .chain(touched)
        .chain(failing)
        .chain(refused)
        .collect::<Vec<_>>()
        .join("; ")
}

fn steering(state: &LoopState) -> Option<String> {
    (!state.steering.is_empty()).then(|| format!("STEERING:\n{}", state.steering.join("\n")))
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
