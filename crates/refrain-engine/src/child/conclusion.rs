use std::io;

use camino::Utf8Path;
use refrain_agents::output_parser::ParsedOutput;
use refrain_core::event::{
    AttemptFinished, AttemptSeals, CritiqueFinished, Event, Exit, GateFinished, ReviewResult,
};
use refrain_core::fingerprint::{self, Fingerprint};
use refrain_core::gate::{GateName, Verdict, cannot_run, found_no_test, lacks_summary, summaries};
use refrain_core::prompt::context;
use refrain_core::review;
use refrain_core::text::{clip, cut_middle, printable, squeeze};
use refrain_proc::output;
use refrain_store::project::layout::AttemptDir;

use super::output::ChildKind;
use super::{AgentRole, ChildOutput};
use crate::child::quotes;
use crate::service::seal;

/// How much of a failure is read for its fingerprint, in bytes.
const MOST_READ: usize = 256 << 10;
/// The longest message of a command that is read, in bytes: it is judged whole or not at all.
const LONGEST_MESSAGE: u64 = 1 << 20;
/// The longest last line that is kept, in bytes.
const PREVIEW: usize = 200;

pub(crate) struct ChildEnd {
    pub(crate) exit: Exit,
    /// How much it printed, in bytes.
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
    pub(crate) left: bool,
    /// Why not all that it printed was kept.
    pub(crate) output_error: Option<String>,
}

impl ChildOutput {
    /// The event that records the child's end. Blocks.
    pub(crate) fn conclude(self, ending: ChildEnd) -> Event {
        let refused = self.refused.take();
        let mut event = self.concluded(ending);
        if let Event::AttemptFinished(finished) = &mut event {
            finished.refused = refused;
        } else if let Event::GateFinished(finished) = &mut event {
            finished.refused = refused;
        }
        event
    }

    fn concluded(self, ending: ChildEnd) -> Event {
        let Self { kind, log, stderr_log, began, sealing, refused: _ } = self;
        let seal = seal::of_log(&log, &sealing);
        let gate = |gate: GateName| GateFinished {
            duration: began.elapsed().into(),
            bytes: ending.stdout,
            left: ending.left,
            output_error: ending.output_error.clone(),
            log: seal.clone(),
            ..GateFinished::new(gate, ending.exit)
        };
        let (role, output) = match kind {
            ChildKind::Command { gate: name, expected_summaries } => {
                let bytes = ending.stdout + ending.stderr;
                let finished = GateFinished { bytes, ..gate(name) };
                return Event::GateFinished(Box::new(command(finished, &log, expected_summaries)));
            }
            ChildKind::Agent(role, output) => (role, output),
        };
        let stderr = output::read_end(&stderr_log, context::EXCERPT as u64).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let heard = output.parser.conclude(ending.exit, &stderr);
        match role {
            AgentRole::Worker(dir, prompt) => {
                let prompt = seal::of_prompt(&dir.prompt(), prompt);
                let sealed = AttemptSeals { prompt, output: seal };
                Event::AttemptFinished(Box::new(attempt((&dir, sealed), &ending, heard, &stderr)))
            }
            AgentRole::Reviewer(name) => {
                let verdict = match kept_message(&heard, &log, &ending, &stderr) {
                    Ok(message) => review::judge(Some(&message)),
                    Err(why) => Verdict::Missing { why },
                };
                Event::GateFinished(Box::new(GateFinished {
                    fingerprint: of_verdict(&name, &verdict),
                    preview: clip(&heard.finding.last_line, PREVIEW).into_owned(),
                    review: Some(Box::new(ReviewResult { verdict, report: heard.report.map(Box::new) })),
                    ..gate(name)
                }))
            }
            AgentRole::Critic => {
                let message = kept_message(&heard, &log, &ending, &stderr);
                let (feedback, error) = match (message, ending.output_error) {
                    (_, Some(error)) => (None, Some(error)),
                    (Err(why), None) => (None, Some(why)),
                    (Ok(message), None) => (review::feedback(&message), None),
                };
                let report = heard.report.map(Box::new);
                let (exit, left) = (ending.exit, ending.left);
                Event::CritiqueFinished(Box::new(CritiqueFinished { exit, feedback, error, left, report }))
            }
        }
    }
}

fn attempt(
    (dir, sealed): (&AttemptDir, AttemptSeals),
    ending: &ChildEnd,
    heard: ParsedOutput,
    stderr: &str,
) -> AttemptFinished {
    if let Some(message) = &heard.message {
        // A convenience for people: the stream holds it too.
        let _ = refrain_files::write(&dir.last_message(), message.as_bytes());
    }
    AttemptFinished {
        fingerprint: failure(ending.exit, &heard, stderr),
        sealed,
        stdout_bytes: ending.stdout,
        stderr_bytes: ending.stderr,
        left: ending.left,
        output_error: ending.output_error.clone(),
        ..finished(ending.exit, heard)
    }
}

pub(crate) fn finished(exit: Exit, heard: ParsedOutput) -> AttemptFinished {
    AttemptFinished {
        promised: heard.finding.claimed,
        gave_up: heard.finding.gave_up,
        near_miss: heard.finding.near_miss,
        preview: heard.finding.last_line,
        summary: heard.finding.summary,
        report: heard.report.map(Box::new),
        ..AttemptFinished::new(exit)
    }
}

/// The fingerprint of an agent's own failure: its fault, else what it printed.
fn failure(exit: Exit, heard: &ParsedOutput, stderr: &str) -> Option<Fingerprint> {
    let fault = heard.report.as_ref().and_then(|report| report.fault.as_ref());
    if exit == Exit::Code(0) && fault.is_none() && heard.report.as_ref().is_none_or(|report| report.is_final)
    {
        return None;
    }
    let message = heard.message.as_deref().unwrap_or_default();
    let said = match fault {
        Some(fault) => &fault.message,
        None if stderr.trim().is_empty() => message,
        None => stderr,
    };
    Some(fingerprint::of("agent", &format!("{}\n{exit:?}", cut_middle(&printable(said), MOST_READ))))
}

/// The end of a gate that is a command, from its log.
fn command(gate: GateFinished, log: &Utf8Path, expected_summaries: u32) -> GateFinished {
    let exit = gate.exit;
    let end = quotes::end_of(log, MOST_READ).unwrap_or_default();
    let last = end.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let summaries = summaries(&end);
    // The first summaries of a longer output are not read.
    let expected_summaries =
        if gate.bytes > MOST_READ as u64 { expected_summaries.min(1) } else { expected_summaries };
    let lacking = || lacks_summary(summaries, expected_summaries).filter(|_| exit == Exit::Code(0));
    let no_test = proved_nothing(&end, exit).or_else(lacking);
    let fingerprint = (exit != Exit::Code(0) || no_test.is_some())
        .then(|| fingerprint::of(gate.gate.as_str(), &format!("{end}\n{exit:?}")));
    GateFinished { fingerprint, no_test, summaries, preview: clip(last, PREVIEW).into_owned(), ..gate }
}

/// Why the gate proved nothing, independent of its exit code: it could not run, or its runners found no test.
fn proved_nothing(said: &str, exit: Exit) -> Option<String> {
    let Exit::Code(code) = exit else { return None };
    cannot_run(said, code).or_else(|| found_no_test(said, code))
}

/// The fingerprint of a refusal. A model words it differently each time: only identical refusals are the same.
fn of_verdict(gate: &GateName, verdict: &Verdict) -> Option<Fingerprint> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Fail { findings: said } | Verdict::Missing { why: said } => {
            Some(fingerprint::of(gate.as_str(), said))
        }
    }
}

/// The same as [`message`], which is also put beside the log.
fn kept_message(
    heard: &ParsedOutput,
    log: &Utf8Path,
    ending: &ChildEnd,
    stderr: &str,
) -> Result<String, String> {
    let message = message(heard, log, ending, stderr)?;
    // A convenience for people: the log holds it too.
    let _ = refrain_files::write(&log.with_extension("final.md"), message.as_bytes());
    Ok(message)
}

/// The whole final message; or why there is none that counts.
pub(crate) fn message(
    heard: &ParsedOutput,
    log: &Utf8Path,
    ending: &ChildEnd,
    stderr: &str,
) -> Result<String, String> {
    let how = match ending.exit {
        Exit::Code(0) | Exit::Unseen => None,
        Exit::Code(code) => Some(format!("it ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("it was ended by signal {signal}")),
        Exit::Lost => Some("its end was not observed".to_owned()),
    };
    if let Some(fault) = heard.report.as_ref().and_then(|report| report.fault.as_ref()) {
        return Err(squeeze(&printable(&fault.message)));
    }
    if let Some(how) = how {
        let said = printable(stderr);
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        return Err(last.map_or_else(|| how.clone(), |last| format!("{how}: {}", clip(last, PREVIEW))));
    }
    match &heard.report {
        Some(report) if !report.is_final => Err("it ended without a last word".to_owned()),
        Some(_) => heard.message.clone().ok_or_else(|| "it said nothing".to_owned()),
        None if ending.stdout > LONGEST_MESSAGE => {
            Err(format!("it printed more than {LONGEST_MESSAGE} bytes, and is not read"))
        }
        None => match output::read_end(log, LONGEST_MESSAGE) {
            Ok(said) => Ok(String::from_utf8_lossy(&said).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err("it said nothing".to_owned()),
            Err(error) => Err(format!("what it said cannot be read: {error}")),
        },
    }
}
