//! The start of an attempt: its prompt, and the files that its agent reads.

use std::ffi::OsString;
use std::sync::{Arc, PoisonError};

use refrain_agents::environment;
use refrain_core::budget::Allowance;
use refrain_core::prompt::{QuotedLogs, context};
use refrain_core::view::seal::Sealing;
use refrain_core::view::trace::traceparent;
use refrain_core::{AttemptId, LoopState, prompt};
use refrain_formats::mirror::MirrorFiles;
use refrain_proc::{Job, Meter};
use refrain_store::project::layout::AttemptDir;
use tokio::sync::mpsc;

use crate::EngineError;
use crate::child::{AgentRole, AgentStart, ChildEvent, ChildOutput};
use crate::driver::budget;
use crate::service::mirror;
use crate::service::shared_files::SharedFiles;

/// An attempt that is about to be started, made from the state.
pub(crate) struct AttemptStart {
    start: AgentStart,
    dir: AttemptDir,
    iteration: u32,
    context: Option<String>,
    is_blocked: bool,
    mirrored: Vec<MirrorFiles>,
}

impl AttemptStart {
    pub(crate) fn new(
        state: &LoopState,
        id: AttemptId,
        dir: AttemptDir,
        quoted: QuotedLogs<'_>,
        env: Vec<(OsString, OsString)>,
        allowance: Option<Allowance>,
    ) -> Self {
        let spec = &state.spec;
        let mut variables = environment::of_attempt(state, id);
        // An agent that exports to the same collector joins the trace.
        let has_collector = |(name, _): &(OsString, OsString)| {
            name.to_str().is_some_and(|name| name.starts_with("OTEL_EXPORTER_OTLP"))
        };
        if env.iter().any(has_collector) {
            variables.push(("TRACEPARENT".to_owned(), traceparent(state, id)));
        }
        let context = context::context(state, quoted);
        Self {
            mirrored: mirror::files(state, context.as_deref()),
            start: AgentStart {
                spec: spec.clone(),
                prompt: prompt::assemble(state, quoted),
                prompt_file: dir.prompt(),
                schema: None,
                budget: budget::told(state, &spec.agent, allowance),
                env,
                variables,
                stdout_log: dir.stdout(spec.agent.streams()),
                stderr_log: dir.stderr(),
            },
            is_blocked: state.blocked > 0,
            iteration: id.iteration,
            dir,
            context,
        }
    }

    /// Writes the files that the agent reads, and makes its job. Blocks.
    pub(crate) fn prepare(
        self,
        files: &SharedFiles,
        (meter, news): (Arc<Meter>, mpsc::Sender<ChildEvent>),
    ) -> Result<Job<ChildOutput>, EngineError> {
        let Self { start, dir, iteration, context, is_blocked, mirrored } = self;
        let mut worktree = files.lock().unwrap_or_else(PoisonError::into_inner);
        worktree.prepare(&start.spec, iteration, context.as_deref(), is_blocked)?;
        drop(worktree);
        mirror::write(&start.spec, &mirrored);
        let logs = (start.stdout_log.clone(), start.stderr_log.clone());
        start
            .job(meter, |call| {
                let prompt = Sealing::of(call.prompt.as_bytes());
                ChildOutput::of_agent(AgentRole::Worker(dir, prompt), call, logs, news)
            })
            .map_err(|error| EngineError::Process("the attempt's folder cannot be written", error))
    }
}
