//! One turn of a session: its result, and the prompt of the next.

use camino::Utf8Path;
use refrain_core::agent::AgentReport;
use refrain_core::event::{AttemptFinished, Event, Exit};
use refrain_core::promise::Scanner;
use refrain_core::prompt::{self, QuotedLogs, context};
use refrain_core::work::WorkDigest;
use refrain_core::{AttemptId, ChildId, Live, LoopState, Spec, Step, next_step};
use refrain_store::project::worktree::WorktreeFiles;
use refrain_store::{Journal, LoopDir};

use super::Turn;
use crate::child::quotes;
use crate::service::mirror;
use crate::{EngineError, now};

#[derive(Clone, Debug, Default)]
pub struct TurnReport {
    /// Its last message, as its agent passed it on.
    pub message: String,
    /// It claims the loop done by a command, not in a message: `tick finish`.
    pub claims: bool,
    pub activity: Activity,
    /// What it used, and its model, where that is known.
    pub report: Option<AgentReport>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    #[default]
    Worked,
    Idle,
    /// Its transcript cannot be read: it did where the work is another.
    Unread,
}

pub(super) enum Next {
    Turn(Turn),
    Prover,
}

pub(super) fn over(
    state: &LoopState,
    dir: &LoopDir,
    said: &TurnReport,
    (work, git_changed): (Option<WorkDigest>, Vec<String>),
) -> AttemptFinished {
    let spec = &state.spec;
    if let Some(flight) = state.in_flight() {
        let dir = dir.attempt(flight.id);
        // Conveniences for people.
        keep(&dir.stdout(false), &said.message);
        keep(&dir.last_message(), &said.message);
    }
    let mut scanner = Scanner::of_attempt(spec, "");
    scanner.push(said.message.as_bytes());
    let finding = scanner.finish();
    let idle = match said.activity {
        Activity::Worked => false,
        Activity::Idle => true,
        Activity::Unread => state.has_changed_work(work.as_ref()) != Some(true),
    };
    let mut ended = AttemptFinished {
        promised: finding.claimed || said.claims,
        near_miss: finding.near_miss,
        gave_up: finding.gave_up,
        work,
        git_changed,
        idle,
        stdout_bytes: said.message.len() as u64,
        preview: finding.last_line,
        summary: finding.summary,
        report: said.report.clone().map(Box::new),
        ..AttemptFinished::new(Exit::Unseen)
    };
    WorktreeFiles::default().read_into(&mut ended, spec);
    ended
}

fn keep(path: &Utf8Path, text: &str) {
    let _ = refrain_files::write(path, text.as_bytes());
}

/// Continues until it is the session's turn, the loop has stopped, or a runner is needed.
pub(super) fn go_on(
    journal: &mut Journal,
    mut look: impl FnMut(&Spec) -> Option<WorkDigest>,
) -> Result<Next, EngineError> {
    let mut told = None;
    loop {
        let state = journal.state();
        let event = match next_step(state, &Live::default(), now()) {
            Step::BeginIteration { iteration } => {
                Event::IterationBegun { iteration, work: look(&state.spec) }
            }
            Step::Start(ChildId::Attempt(id)) if state.session.is_some() => {
                told = Some(tell(state, journal.dir(), id)?);
                Event::AttemptStarted(id)
            }
            Step::TakeCandidate if !state.spec.git.candidates => {
                Event::CandidateTaken { tree: None, partial: false, touched: Vec::new(), changed: Vec::new() }
            }
            Step::Finish(end) => Event::LoopEnded(end),
            Step::Rest => return Ok(Next::Turn(Turn::Stopped(Box::new(state.clone())))),
            Step::Wait(wait) if state.is_in_session() => Event::WaitStarted(wait),
            Step::Await { until } if state.is_in_session() => {
                let stands = || match until {
                    Some(until) if state.in_flight().is_none() => Turn::Resting { until },
                    Some(_) | None => Turn::Under(Box::new(state.clone())),
                };
                return Ok(Next::Turn(told.unwrap_or_else(stands)));
            }
            Step::TakeBase
            | Step::TakeCandidate
            | Step::Start(_)
            | Step::Stop(_)
            | Step::Commit { .. }
            | Step::Intend(_)
            | Step::Publish(_)
            | Step::ChangeAgent
            | Step::SaveWork
            | Step::ReleaseWorktree
            | Step::Wait(_)
            | Step::Await { .. } => return Ok(Next::Prover),
        };
        journal.push(event, now())?;
    }
}

/// Creates everything that must be there before the session gets its turn: the attempt's folder, its prompt, the files
/// that it reads.
fn tell(state: &LoopState, loop_dir: &LoopDir, id: AttemptId) -> Result<Turn, EngineError> {
    let quoted = quotes::read(&state.spec, loop_dir, &prompt::quotes(state));
    let prompt = prompt::assemble(state, QuotedLogs(&quoted));
    let context = context::context(state, QuotedLogs(&quoted));
    WorktreeFiles::default().prepare(&state.spec, id.iteration, context.as_deref(), state.blocked > 0)?;
    let dir = loop_dir.attempt(id);
    let failed = |error| EngineError::Process("the attempt's folder cannot be written", error);
    loop_dir.remove_links(Some(id))?;
    refrain_files::write(&dir.prompt(), prompt.as_bytes()).map_err(failed)?;
    mirror::write(&state.spec, &mirror::files(state, context.as_deref()));
    Ok(Turn::Next { marker: prompt::marker(state, id.iteration), prompt })
}
