//! Remote views of a loop: the prompt of an attempt, a part of what it printed. Secrets are taken out, as in a report:
//! what is shown may leave the machine.

pub(crate) mod whole_logs;

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use camino::Utf8Path;
use refrain_agents::output_parser::Stream;
use refrain_core::agent::AgentEvent;
use refrain_core::gate::GateName;
use refrain_core::prompt::mode;
use refrain_core::spec::AgentKind;
use refrain_core::text::printable;
use refrain_core::{AttemptId, LoopId, Spec};
use refrain_files::read_text;
use refrain_git::Repository;
use refrain_proc::output;
use refrain_store::journal;
use refrain_store::project::layout::AttemptDir;

use crate::driver::recovery;
use crate::service::redact::Redactor;
use crate::{EngineError, Service};

/// How much is read before a part of a log and after it, in bytes, to see a secret that lies across its edge.
const AROUND: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogKind {
    Output,
    /// What its agent printed on standard error.
    Errors,
    /// What a run of a gate after it printed.
    Gate(GateName, u32),
    Critique,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub from: u64,
    /// The byte after it: where the next one begins.
    pub next: u64,
    /// How many bytes the log has now.
    pub total: u64,
    /// The text, less secrets and control characters.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TextPart {
    pub from: u64,
    pub next: u64,
    /// How many bytes there are now.
    pub total: u64,
    /// Whose stream it is.
    pub kind: AgentKind,
    /// What it said; what is no stream of events comes as one text.
    pub said: Vec<AgentEvent>,
}

impl Service {
    /// The prompt of an attempt's agent; none if that is not there.
    pub fn told(&self, id: &LoopId, attempt: AttemptId) -> Result<Option<String>, EngineError> {
        let dir = self.locate(id)?.dir;
        let redactor = Redactor::new(&journal::read(&dir)?.state.spec, []);
        let text = read_text(&dir.attempt(attempt).prompt()).ok();
        Ok(text.map(|text| redactor.clean(&printable(&text))))
    }

    pub fn goal(&self, id: &LoopId) -> Result<Arc<str>, EngineError> {
        let dir = self.locate(id)?.dir;
        let first = journal::first_line(&dir)?;
        self.known.goal(&first, || Ok(goal(&journal::spec_of(&first, &dir)?)))
    }

    /// Whether the project has this branch now.
    pub fn has_branch(&self, branch: &str) -> bool {
        let repository = Repository::open(&self.project.worktree, &self.host.env);
        repository.is_ok_and(|repository| repository.branch_head(branch).is_ok_and(|head| head.is_some()))
    }

    /// At most `most` bytes of a log from its byte `from` on, or of its end; it ends with a line if it can. None where
    /// there is no such log.
    pub fn printed(
        &self,
        id: &LoopId,
        (attempt, kept): (AttemptId, &LogKind),
        from: Option<u64>,
        most: u64,
    ) -> Result<Option<Part>, EngineError> {
        let dir = self.locate(id)?.dir;
        let state = journal::read(&dir)?.state;
        let spec = state.spec;
        let of = dir.attempt(attempt);
        let path = match kept {
            LogKind::Output => of.stdout(spec.agent.streams()),
            LogKind::Errors => of.stderr(),
            LogKind::Gate(name, run) => of.gate(name, *run),
            LogKind::Critique => of.critique(),
        };
        let Some((from, bytes, total)) = part(&path, from, most) else {
            // A file is made by its first byte.
            let is_one = match kept {
                LogKind::Output | LogKind::Errors => true,
                LogKind::Gate(name, _) => spec.gates.iter().any(|gate| gate.name == *name),
                LogKind::Critique => spec.critique.is_some(),
            };
            // The baseline makes its folder with the first byte that a gate prints.
            let is_baseline = attempt.iteration == 0 && state.baseline.is_some();
            return Ok((is_one && (is_baseline || of.0.is_dir())).then(Part::default));
        };
        let next = from + bytes.len() as u64;
        let text = cleaned(&Redactor::new(&spec, []), &path, from, &bytes);
        Ok(Some(Part { from, next, total, text }))
    }

    pub fn heard(
        &self,
        id: &LoopId,
        attempt: AttemptId,
        from: Option<u64>,
        most: u64,
    ) -> Result<Option<TextPart>, EngineError> {
        let dir = self.locate(id)?.dir;
        let spec = journal::read(&dir)?.state.spec;
        let (of, redactor) = (dir.attempt(attempt), Redactor::new(&spec, []));
        let clean = |text: &str| redactor.clean(&printable(text));
        let streams = spec.agent.streams();
        let log = of.stdout(streams);
        let Some((from, mut bytes, total)) = part(&log, from, most) else { return Ok(None) };
        let dialect = if streams { recovery::dialect(&spec, &of.prompt()) } else { None };
        // An event whose line is still being written is read with the next part.
        if dialect.is_some() && !bytes.ends_with(b"\n") && (bytes.len() as u64) < most {
            bytes.clear();
        }
        let next = from + bytes.len() as u64;
        let is_at_line =
            from == 0 || output::read_part(&log, from - 1, 1).is_ok_and(|(byte, _)| byte == b"\n");
        let mut said = Vec::new();
        match dialect {
            Some(dialect) => {
                let mut stream = if is_at_line { Stream::new(dialect) } else { Stream::joined(dialect) };
                stream.push(&bytes, &mut |event| said.push(event.cleaned(&clean)));
            }
            None if bytes.is_empty() => {}
            None => said.push(AgentEvent::Notice(cleaned(&redactor, &log, from, &bytes))),
        }
        Ok(Some(TextPart { from, next, total, kind: spec.agent.kind, said }))
    }
}

/// What a loop is to do, without secrets and control characters: its prompt; of a mode's loop without a task, the mode.
pub fn goal(spec: &Spec) -> String {
    let goal = match &spec.mode {
        Some(mode) => mode::task(&spec.prompt).unwrap_or(mode),
        None => &spec.prompt,
    };
    Redactor::new(spec, []).clean(&printable(goal))
}

/// A part of a log as it may be shown, which begins at that byte.
fn cleaned(redactor: &Redactor, log: &Utf8Path, from: u64, bytes: &[u8]) -> String {
    let read = |from, most| output::read_part(log, from, most).map(|(bytes, _)| bytes).unwrap_or_default();
    let begin = from.saturating_sub(AROUND);
    let (before, behind) = (read(begin, from - begin), read(from + bytes.len() as u64, AROUND));
    let [before, part, behind] =
        [&before[..], bytes, &behind].map(|bytes| printable(&String::from_utf8_lossy(bytes)).into_owned());
    redactor.clean_part(&before, &part, &behind)
}

/// A part of a log, and how long that is: from the beginning of a line on if it is the end that is wanted, and to the
/// end of one if there is one.
pub(crate) fn part(path: &Utf8Path, from: Option<u64>, most: u64) -> Option<(u64, Vec<u8>, u64)> {
    let (_, total) = output::read_part(path, 0, 0).ok()?;
    let begin = from.unwrap_or_else(|| total.saturating_sub(most));
    let (mut bytes, total) = output::read_part(path, begin, most).ok()?;
    let mut skipped = 0;
    if from.is_none() && begin > 0 {
        skipped = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.drain(..skipped);
    }
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
    bytes.truncate(end.unwrap_or(bytes.len()));
    Some((begin.min(total) + skipped as u64, bytes, total))
}

impl Service {
    /// What an attempt's agent said, if that was a stream of events; `false` where it was not.
    pub fn said(
        &self,
        spec: &Spec,
        dir: &AttemptDir,
        say: &mut dyn FnMut(AgentEvent),
    ) -> Result<bool, EngineError> {
        let Some(dialect) = recovery::dialect(spec, &dir.prompt()) else { return Ok(false) };
        let (mut stream, mut chunk) = (Stream::new(dialect), vec![0; 64 << 10]);
        let kept = dir.stdout(true);
        let Ok(mut kept) = output::read(&kept) else { return Ok(true) };
        loop {
            match kept.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(EngineError::Process("a stream cannot be read", error)),
                Ok(0) => break,
                Ok(length) => stream.push(&chunk[..length], say),
            }
        }
        stream.end(say);
        Ok(true)
    }
}
