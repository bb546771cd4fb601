//! Agents that judge, reviewers and critics: their prompts and where these are kept. They run read-only and afresh;
//! what they are asked and what their answers amount to is decided in `core::review`.

use std::ffi::OsString;
use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_agents::environment;
use refrain_core::budget::Allowance;
use refrain_core::gate::{GateSpec, ReviewSpec};
use refrain_core::review::{self, Changes};
use refrain_core::spec::AgentSpec;
use refrain_core::{AttemptId, LoopState, Spec};
use refrain_proc::{Job, Meter};
use refrain_store::LoopDir;
use tokio::sync::mpsc;

use crate::EngineError;
use crate::child::judge_spec::{judging, told};
use crate::child::{AgentRole, AgentStart, ChildEvent, ChildOutput, takes_schema};
use crate::driver::budget;

/// A judge's prompt, and where its output is kept.
pub(crate) struct Brief {
    /// The loop's specification, with the judge as its agent.
    spec: Spec,
    prompt: String,
    schema: Option<String>,
    of: AttemptId,
    log: Utf8PathBuf,
    role: AgentRole,
}

impl Brief {
    /// The prompt of the reviewer that a gate is.
    pub(crate) fn review(
        state: &LoopState,
        (gate, review): (&GateSpec, &ReviewSpec),
        (of, run): (AttemptId, u32),
        dir: &LoopDir,
        changes: Option<&Changes>,
    ) -> Self {
        Self {
            spec: judging(state, &review.agent),
            prompt: review::prompt(&review.spec, changes, takes_schema(&review.agent)),
            schema: Some(review::schema().to_string()),
            of,
            log: dir.attempt(of).gate(&gate.name, run),
            role: AgentRole::Reviewer(gate.name.clone()),
        }
    }

    /// The prompt of a critic of the progress up to the attempt `of`.
    pub(crate) fn critique(
        state: &LoopState,
        critic: &AgentSpec,
        of: AttemptId,
        dir: &LoopDir,
        changes: Option<&Changes>,
    ) -> Self {
        Self {
            spec: judging(state, critic),
            prompt: review::critique(state, changes),
            schema: None,
            of,
            log: dir.attempt(of).critique(),
            role: AgentRole::Critic,
        }
    }

    /// Writes the files that it reads, and makes the job.
    pub(crate) fn prepare(
        self,
        state: &LoopState,
        env: Vec<(OsString, OsString)>,
        (meter, news): (Arc<Meter>, mpsc::Sender<ChildEvent>),
        allowance: Option<Allowance>,
    ) -> Result<Job<ChildOutput>, EngineError> {
        let Self { spec, prompt, schema, of, log, role } = self;
        let own = spec.agent.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let variables = own.chain(environment::of_attempt(state, of)).collect();
        let stderr_log = log.with_extension("stderr.log");
        let logs = (log.clone(), stderr_log.clone());
        let start = AgentStart {
            budget: budget::told(state, &spec.agent, allowance),
            prompt_file: told(&log),
            stdout_log: log,
            spec,
            prompt,
            schema,
            env,
            variables,
            stderr_log,
        };
        start
            .job(meter, |call| ChildOutput::of_agent(role, call, logs, news))
            .map_err(|error| EngineError::Process("its prompt cannot be written", error))
    }
}
