//! How a step is done: the effects, and nothing else. Everything here blocks, and runs on a thread that may.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8Path;
use refrain_agents::environment;
use refrain_agents::generic::{self, Reader};
use refrain_core::r#loop::Outcome;
use refrain_core::prompt::CONTEXT_EXCERPT;
use refrain_core::{AttemptId, LoopState, Spec, prompt};
use refrain_proc::{Job, Meter, output};
use refrain_store::layout::{AttemptDir, LoopDir};
use refrain_store::worktree::WorktreeFiles;

use crate::EngineError;

/// What the worktree's files say, shared between the thread that starts attempts and the one that hears them end.
pub(crate) type SharedFiles = Arc<Mutex<WorktreeFiles>>;

/// Everything that must be there before the agent is: its folder, its prompt, the files that it reads. Then the job.
pub(crate) fn prepare(
    spec: &Spec,
    dir: &AttemptDir,
    plan: Plan,
    files: &SharedFiles,
    meter: Arc<Meter>,
) -> Result<Job<Reader>, EngineError> {
    files.lock().unwrap_or_else(PoisonError::into_inner).prepare(spec, plan.context.as_deref())?;
    let failed = |error| EngineError::Process("the attempt's folder cannot be written", error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir.0).map_err(failed)?;
    // Not synced and not renamed: after a power loss no agent is there that could have been told it.
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(dir.prompt())
        .and_then(|mut file| file.write_all(plan.prompt.as_bytes()))
        .map_err(failed)?;
    let mut env = plan.env;
    env.extend(plan.launch.env);
    Ok(Job {
        argv: plan.launch.argv,
        dir: spec.working_dir.clone(),
        env,
        stdin: plan.launch.stdin,
        stdout_log: dir.output(),
        stderr_log: dir.stderr(),
        cap: spec.output_cap,
        listener: Reader::new(spec, &plan.prompt),
        meter,
    })
}

/// What an attempt is told and how it is started: pure, made from the state.
pub(crate) struct Plan {
    prompt: String,
    context: Option<String>,
    launch: generic::Launch,
    env: Vec<(String, String)>,
}

impl Plan {
    pub(crate) fn new(state: &LoopState, id: AttemptId, dir: &AttemptDir, output: Option<&str>) -> Self {
        let prompt = prompt::assemble(state, output);
        let launch = generic::launch(state, &prompt, &dir.prompt());
        let context = prompt::context(state, output);
        Self { launch, env: environment::of_attempt(state, id), prompt, context }
    }
}

/// The end of what the last iteration printed, where it failed and the next one is to be told.
pub(crate) fn last_failure(dir: &LoopDir, id: AttemptId) -> Option<String> {
    let dir = dir.attempt(id);
    [dir.stderr(), dir.output()].iter().find_map(|path| {
        let text = end_of(path, CONTEXT_EXCERPT as u64)?;
        (!text.trim().is_empty()).then_some(text)
    })
}

/// The attempt that the next prompt quotes.
pub(crate) fn quoted(state: &LoopState) -> Option<AttemptId> {
    let last = state.last_charged()?;
    matches!(last.outcome, Outcome::Failed | Outcome::TimeLimit | Outcome::Silence).then_some(last.id)
}

fn end_of(path: &Utf8Path, most: u64) -> Option<String> {
    let bytes = output::read_end(path, most).ok()?;
    Some(refrain_core::text::printable(&String::from_utf8_lossy(&bytes)).into_owned())
}
