use refrain_core::event::{ClaimSource, GateFinished, StopReason};
use refrain_core::gate::{DefaultGates, GateName, GateSpec, GateWhen};
use refrain_core::r#loop::{Attempt, DroppedGate, GateResult, LoopState, Proof};
use refrain_core::protect::Part;
use refrain_core::spec::{Millis, ProtectSpec, Spec, Until};
use refrain_core::text::{cut, printable, squeeze};
use refrain_core::view::{Gate, Status, Tone};

use crate::render::phrase;

/// A line about gates.
pub(crate) struct Line {
    /// A result's mark and its colour; none of what is only noted.
    pub(crate) mark: Option<(Tone, &'static str)>,
    pub(crate) text: String,
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self { mark: None, text }
    }
}

/// What the gate runs, in a line; the report has all of it.
fn short_command(gate: &GateSpec) -> String {
    cut(&squeeze(&gate.check.to_string()), LONGEST_COMMAND).into_owned()
}

const LONGEST_COMMAND: usize = 200;

pub(crate) fn intent(spec: &Spec) -> String {
    let named = |hard: bool| {
        let gates = spec.gates.iter().filter(|gate| gate.hard == hard);
        let completes = |gate: &GateSpec| if gate.completes { ", completes the loop" } else { "" };
        let one = |gate: &GateSpec| format!("{} ({}{})", gate.name, short_command(gate), completes(gate));
        gates.map(one).collect::<Vec<_>>().join(", ")
    };
    let (hard, soft) = (named(true), named(false));
    let asks = if spec.approval { "; and your approval last" } else { "" };
    let mut text = match (hard.is_empty(), soft.is_empty()) {
        (true, true) => return format!("no gates: {}; --gate CMD adds one{asks}", unverified_end(spec)),
        (true, false) => format!("no required gate: {}; advisory: {soft}", unverified_end(spec)),
        (false, true) => hard,
        (false, false) => format!("{hard}; advisory: {soft}"),
    };
    if spec.gates.iter().all(|gate| gate.when == GateWhen::Claim) {
        text.push_str("; when it claims");
    }
    if spec.gates.iter().any(|gate| gate.by_default) {
        text.push_str("; found in the project, --no-gates leaves them out");
    }
    if spec.clean_checkout {
        text.push_str("; in a clean checkout");
    }
    text.push_str(asks);
    text
}

/// How a loop without a required gate ends.
fn unverified_end(spec: &Spec) -> &'static str {
    match spec.until {
        Until::Complete if spec.promise.is_none() => "exit code 0 completes the loop, unverified",
        Until::Complete => "a claim completes the loop, unverified",
        Until::Count => "the loop completes unverified",
        Until::Forever => "its work stays unverified",
    }
}

/// What names gates and was left out, and what to do about it; empty if there is nothing.
pub(crate) fn untrusted(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => {
            let names = printable(&names.join(", ")).replace('\n', " ");
            format!(
                "gates of {names} are left out, as you do not trust them: refrain trust, then start again"
            )
        }
    }
}

/// The gates that a project offers, for the question whether to use them.
pub(crate) fn offered(gates: &[GateSpec]) -> String {
    let line = |gate: &GateSpec| {
        let required = if gate.hard { "required" } else { "advisory" };
        format!("  {}   ({required})\n", printable(&gate.check.to_string()).replace('\n', " "))
    };
    let lines: String = gates.iter().map(line).collect();
    format!("This project offers gates. Refrain runs them to check the agent's work:\n{lines}")
}

/// How many protected paths of a kind are named.
const NAMED: usize = 3;

/// The protected paths, for the header; empty if there are none.
pub(crate) fn protected(spec: &Spec) -> String {
    let ProtectSpec { frozen, existing, parts, modules } = &spec.protect;
    let part = |part: &Part| part.path.to_string();
    let parts: Vec<String> = parts.iter().map(part).collect();
    let mut rules = Vec::new();
    for (what, globs) in [("", frozen), ("what exists of ", existing), ("parts of ", &parts)] {
        let more = match globs.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !globs.is_empty() {
            rules.push(format!("{what}{}{more}", globs[..globs.len().min(NAMED)].join(", ")));
        }
    }
    if !modules.is_empty() {
        rules.push("modules of Python's test runner".to_owned());
    }
    if [frozen, existing, &parts].iter().any(|globs| globs.len() > NAMED) {
        rules.push("see refrain docs protection".to_owned());
    }
    rules.join("; ")
}

pub(crate) fn started(state: &LoopState, name: &GateName, run: u32) -> String {
    let command = state.spec.gates.iter().find(|gate| gate.name == *name).map(short_command);
    let before = match state.proving().map(|proving| proving.of) {
        Some(None) => ", before the first iteration",
        _ => "",
    };
    let again = if run > 1 { ", again" } else { "" };
    format!("gate {name}{before}{again}: {}", command.unwrap_or_default())
}

/// A gate that runs on the merged tree, or its result there.
pub(crate) fn on_merged(name: &GateName, passed: Option<bool>) -> String {
    match passed {
        None => format!("gate {name} runs on the merged work\n"),
        Some(true) => format!("{}  {name}\n", phrase::coloured(Tone::Good, "PASS")),
        Some(false) => format!("{}  {name}\n", phrase::coloured(Tone::Bad, "FAIL")),
    }
}

pub(crate) fn stopping(because: StopReason) -> &'static str {
    match because {
        StopReason::Cancel => "cancelled: ending the gate",
        StopReason::Interrupt => "ending the gate; it is run again when the loop continues",
        StopReason::TimeLimit => "the gate took too long: ending it",
        StopReason::LoopDuration => "the loop's time is over: ending the gate",
        StopReason::OutputLost => "what the gate prints cannot be kept: ending it",
        StopReason::ProviderWait => {
            "the reviewer is waiting for its provider: Refrain stops it and waits itself"
        }
        StopReason::Silence | StopReason::Budget => "ending the gate",
    }
}

/// The result of a finished gate, and of all gates together.
pub(crate) fn finished(state: &LoopState, finished: &GateFinished) -> Vec<Line> {
    let is_it = |result: &&GateResult| {
        result.duration == finished.duration
            && result.spec(&state.spec).is_some_and(|gate| gate.name == finished.gate)
    };
    let proving = state.proving();
    let results = proving.map_or(&[][..], |proving| &proving.results);
    let settled = state.proof.iter().filter(|_| proving.is_none()).flat_map(|proof| &proof.results);
    let found = results.iter().chain(settled).find(is_it);
    let mut lines = Vec::new();
    match found.and_then(|result| Some((result, result.spec(&state.spec)?))) {
        Some((result, gate)) => lines.push(said(state, result, gate)),
        None if state.dropped.iter().any(|it| it.name == finished.gate) => {}
        None if proving.is_some_and(|proving| proving.failed > 0) => {
            lines.push(format!("gate {} failed; it is tried again", finished.gate).into());
        }
        None => lines.push(format!("gate {} was cut off; it is run again", finished.gate).into()),
    }
    lines.extend(default_gates(state).into_iter().map(Line::from));
    lines.extend(done_already(state).map(Line::from));
    lines.extend(verdict(state));
    lines
}

/// What the run before the first iteration led to for default gates.
fn default_gates(state: &LoopState) -> Vec<String> {
    let is_baseline = state.proving().is_none() && state.iteration == state.spec.carried();
    let Some(baseline) = state.baseline.as_ref().filter(|_| is_baseline) else { return Vec::new() };
    let dropped = |it: &DroppedGate| {
        let said = printable(&it.said);
        let said = if said.is_empty() { said } else { format!(": {said}").into() };
        format!("gate {} cannot run and is dropped: {}{said}", it.name, it.why)
    };
    let mut lines: Vec<_> = state.dropped.iter().map(dropped).collect();
    if !lines.is_empty() && !state.spec.has_hard_gates() {
        lines.push(format!("no required gate is left: {}", unverified_end(&state.spec)));
    }
    let spec = |result: &GateResult| result.spec(&state.spec).filter(|gate| gate.by_default);
    let of_default: Vec<_> = baseline.results.iter().filter_map(|it| Some((it, spec(it)?))).collect();
    let taken = Millis(of_default.iter().map(|(result, _)| result.duration.0).sum());
    if taken > DefaultGates::SLOW && of_default.iter().all(|(_, gate)| gate.when == GateWhen::Claim) {
        lines.push(format!("the gates took {taken}: from now on they run only after a claim"));
    }
    lines
}

/// The gates pass before the first iteration: what completes the loop is done already.
fn done_already(state: &LoopState) -> Option<String> {
    let is_baseline = state.proving().is_none() && state.iteration == state.spec.carried();
    let ends = state.spec.until == Until::Complete;
    let baseline = state.baseline.as_ref().filter(|_| is_baseline && ends)?;
    let passes =
        |result: &&GateResult| result.passed() && result.spec(&state.spec).is_some_and(|gate| gate.completes);
    baseline.results.iter().find(passes)?;
    let others = state.spec.gates.iter().filter(|gate| gate.hard).count() > 1;
    let others = if others { " in which every other required gate passes" } else { "" };
    Some(format!(
        "warning: the success command passes already: the loop will end after its first iteration{others}"
    ))
}

pub(crate) fn not_started(state: &LoopState, error: &str) -> Vec<Line> {
    let mut lines = vec![format!("the gate could not be started, which is a failure: {error}").into()];
    lines.extend(verdict(state));
    lines
}

/// A candidate is known: either the gates run now, or their earlier results count.
pub(crate) fn candidate(state: &LoopState) -> Vec<Line> {
    let Some(last) = state.attempts.last().filter(|_| state.proving().is_none()) else { return Vec::new() };
    let Some(proof) = &last.proof else { return Vec::new() };
    let is_kept = proof.results.first().is_some_and(|result| result.of != last.id);
    let mut lines = Vec::new();
    if is_kept {
        lines.push("no changes since the last gate run: its results are reused".to_owned().into());
    }
    lines.extend(verdict(state));
    lines
}

/// A commit is made: if a hook changed the tree each time, nothing is verified.
pub(crate) fn committed(state: &LoopState) -> Vec<Line> {
    let is_restless = state.proof.as_ref().is_some_and(|proof| proof.restless);
    verdict(state).filter(|_| is_restless).into_iter().collect()
}

/// The result of all gates once they have run: a verified claim, or the failures.
fn verdict(state: &LoopState) -> Option<Line> {
    if state.proving().is_some() {
        return None;
    }
    let last = state.attempts.last()?;
    let proof = last.proof.as_ref()?;
    if state.is_proven() {
        let tree = state.proven_tree().map_or_else(String::new, |tree| format!(": tree {}", tree.short()));
        let more = if state.is_proven_beyond_its_tree() { ", and changes that it does not show" } else { "" };
        return Some(Line { mark: Some((Tone::Good, "✔")), text: format!("verified{tree}{more}") });
    }
    let failing = failing(proof, &state.spec);
    if let Some(first) = proof.candidate.touched.first() {
        let more = match proof.candidate.touched.len() {
            1 => String::new(),
            all => format!(" (and {} more)", all - 1),
        };
        let claim = last.claim.map_or("no claim counts", |_| "the claim is refused");
        return Some(refusal(format!("{claim}: {first}{more}")));
    }
    match last.claim? {
        _ if proof.restless => Some(refusal(
            "the claim is refused: gates or hooks change each time what they are asked about".to_owned(),
        )),
        ClaimSource::Gates | ClaimSource::Result | ClaimSource::ExitCode | ClaimSource::Count => None,
        ClaimSource::Promise | ClaimSource::StateFile => {
            let refused = || refusal(format!("the claim is refused: {} failed", failing.join(", ")));
            (!failing.is_empty()).then(refused)
        }
    }
}

fn refusal(text: String) -> Line {
    Line { mark: Some((Tone::Attention, "!")), text }
}

fn failing(proof: &Proof, spec: &Spec) -> Vec<String> {
    proof.failing(spec).filter_map(|result| Some(format!("gate {}", result.spec(spec)?.name))).collect()
}

/// A gate's result. The names are one column.
fn said(state: &LoopState, result: &GateResult, gate: &GateSpec) -> Line {
    let advisory = if gate.hard { "" } else { ", advisory" };
    let width = state.spec.gates.iter().map(|gate| gate.name.as_str().len()).max().unwrap_or(0);
    let begin = format!("{:width$}  {}{advisory}", gate.name.as_str(), result.duration);
    let Some(failure) = &result.failure else {
        let flaky = if result.flaky { ", flaky: it had failed on the same files" } else { "" };
        let tests = match (gate.own_tests, result.summaries) {
            (false, _) => "",
            (true, 0) => ": there are no tests",
            (true, _) => ": tests that the loop itself made",
        };
        let mark = if result.flaky { (Tone::Attention, "FLAKY") } else { (Tone::Good, "PASS ") };
        return Line { mark: Some(mark), text: format!("{begin}{flaky}{tests}") };
    };
    let is_baseline = state.iteration == state.spec.carried();
    let before = if is_baseline { String::new() } else { state.said_before(result, "iteration") };
    let tone = if gate.hard { Tone::Bad } else { Tone::Attention };
    Line { mark: Some((tone, "FAIL ")), text: format!("{begin}: {failure}{before}") }
}

/// The gate results of an attempt, for the digest of a later watcher.
pub(crate) fn digest(state: &LoopState, attempt: &Attempt) -> Vec<Line> {
    let results = attempt.proof.iter().flat_map(|proof| &proof.results);
    results.filter_map(|result| Some(said(state, result, result.spec(&state.spec)?))).collect()
}

/// The gates' last words, on one line.
pub(crate) fn row(status: &Status) -> String {
    let one = |gate: &Gate| {
        let mark = if gate.hard { "" } else { " (advisory)" };
        let flaky = if gate.flaky { ", flaky" } else { "" };
        match &gate.why {
            None => format!("{}{mark} passed{flaky}", gate.name),
            Some(why) => {
                let is_later = gate.ran.0.iteration > 0;
                let before =
                    if is_later && gate.failed_before == Some(true) { ", before the loop too" } else { "" };
                format!("{}{mark} failed: {why}{before} ({})", gate.name, gate.command)
            }
        }
    };
    let ran = status.gates_ran.iter().map(|when| format!("they ran last {when}"));
    let ran = ran.filter(|_| !status.gates.is_empty());
    status.gates.iter().map(one).chain(ran).collect::<Vec<_>>().join("; ")
}
