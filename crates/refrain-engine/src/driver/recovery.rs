//! Recovers the result of an agent whose end no runner saw, from its files.

use std::fs;
use std::io::{ErrorKind, Read};

use camino::Utf8Path;
use refrain_agents::adapter::{Call, StreamDecoder};
use refrain_agents::output_parser::{self, OutputParser, ParsedOutput};
use refrain_core::agent::AgentReport;
use refrain_core::event::{AttemptFinished, Event, Exit};
use refrain_core::spec::OutputFormat;
use refrain_core::{LoopState, Spec};
use refrain_files::read_text;
use refrain_proc::{identity, output};
use refrain_store::project::layout::LoopDir;
use refrain_store::project::worktree::WorktreeFiles;

use crate::child::conclusion::finished;
use crate::child::judge_spec;
use crate::clock;
use crate::service::seal;

/// A reader for the stream of an attempt with this prompt file.
pub(crate) fn dialect(spec: &Spec, prompt_file: &Utf8Path) -> Option<Box<dyn StreamDecoder>> {
    // A document is shown as it is: what its message is, is known only when it is whole.
    if spec.agent.output_format == OutputFormat::Json {
        return None;
    }
    let prompt = read_text(prompt_file).unwrap_or_default();
    output_parser::dialect(&told(spec, &prompt, prompt_file))
}

/// The call of an agent that was started already, as far as it is needed to read its stream.
fn told<'a>(spec: &'a Spec, prompt: &'a str, prompt_file: &'a Utf8Path) -> Call<'a> {
    let (budget, schema, clock) = (None, None, &clock::ON_THE_WALL);
    Call { spec, prompt, prompt_file, env: &[], budget, capped: false, schema, clock, root: false }
}

/// Parses the kept output of an agent whose end no runner saw, and says how long that output is; none for an agent that
/// does not stream.
fn hear_again(spec: &Spec, prompt_file: &Utf8Path, log: &Utf8Path) -> Option<(ParsedOutput, u64)> {
    let prompt = read_text(prompt_file).ok()?;
    let mut parser = OutputParser::new(&told(spec, &prompt, prompt_file));
    let mut kept = output::read(log).ok()?;
    let (mut chunk, mut total) = (vec![0; 64 << 10], 0);
    loop {
        match kept.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => {
                total += length as u64;
                parser.hear(&chunk[..length]);
            }
        }
    }
    Some((parser.adopt()?, total))
}

/// The result of an attempt in flight of which no runner saw the end: its result if its stream holds the agent's last
/// message, else what is known of its usage.
fn adopt(state: &LoopState, dir: &LoopDir) -> Option<AttemptFinished> {
    // Its process may not be on record yet: what it printed is on disk before anything else of it is.
    let flight = state.in_flight()?;
    let dir = dir.attempt(flight.id);
    let stdout = dir.stdout(state.spec.agent.streams());
    let (heard, total) = hear_again(&state.spec, &dir.prompt(), &stdout)?;
    let (exit, heard) = match heard {
        heard if heard.report.as_ref().is_some_and(|report| report.is_final) => (Exit::Unseen, heard),
        heard => (Exit::Lost, heard),
    };
    let mut adopted = AttemptFinished {
        stdout_bytes: total,
        stderr_bytes: fs::metadata(dir.stderr()).map_or(0, |meta| meta.len()),
        sealed: seal::attempt(&dir, &stdout),
        ..finished(exit, heard)
    };
    if exit == Exit::Unseen {
        WorktreeFiles::default().read_into(&mut adopted, &state.spec);
    }
    Some(adopted)
}

/// The usage of a judging agent of which no runner saw the end.
fn overhear(state: &LoopState, dir: &LoopDir) -> Option<AgentReport> {
    let log = match state.proving() {
        Some(proving) => {
            let running = proving.running.as_ref()?;
            let gate = state.spec.gates.get(running.gate)?;
            dir.attempt(proving.folder()).gate(&gate.name, running.run)
        }
        None => dir.attempt(state.critiquing().and(state.last_charged())?.id).critique(),
    };
    let spec = judge_spec::judging(state, state.runs()?);
    hear_again(&spec, &judge_spec::told(&log), &log)?.0.report
}

/// The first event of a new runner: what became of the agent that was in flight is in what it left on disk.
pub(crate) fn taken_over(state: &LoopState, dir: &LoopDir) -> Event {
    let interrupted = state.in_flight().map(|flight| flight.id);
    let (adopted, judged) = match interrupted {
        Some(_) => (adopt(state, dir).map(Box::new), None),
        None => (None, overhear(state, dir).map(Box::new)),
    };
    Event::RunnerStarted { runner: identity::own(), interrupted, adopted, judged, fence: None }
}
