//! The start of a child: the prompt and the schema are on disk first.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use camino::Utf8PathBuf;
use refrain_agents::adapter::{Call, Schema};
use refrain_agents::{environment, gemini, output_parser};
use refrain_core::agent::Usd;
use refrain_core::gate::GateSpec;
use refrain_core::spec::{AgentKind, AgentSpec};
use refrain_core::{AttemptId, LoopState, Spec};
use refrain_proc::{Job, Listener, Meter, Stdin, identity};
use refrain_store::LoopDir;

use super::ChildOutput;
use crate::clock;
use crate::sandbox::unquestioned;

/// By its path: the first `sh` in `PATH` may be the agent's work.
const SHELL: &str = "/bin/sh";
/// Both streams are one, in the order in which they come, for any command.
const TOGETHER: &str = "exec /bin/sh -c \"$0\" 2>&1";

pub(crate) struct AgentStart {
    pub(crate) spec: Spec,
    pub(crate) prompt: String,
    pub(crate) prompt_file: Utf8PathBuf,
    /// The schema of the final message. Ignored for an agent that takes none.
    pub(crate) schema: Option<String>,
    /// The money that it may spend, and whether there is any cap.
    pub(crate) budget: (Option<Usd>, bool),
    /// [`environment::base`], and the variables of this child alone.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) stdout_log: Utf8PathBuf,
    pub(crate) stderr_log: Utf8PathBuf,
}

impl AgentStart {
    /// Writes the prompt and the schema, and makes the job. Blocks.
    pub(crate) fn job<L: Listener>(
        self,
        meter: Arc<Meter>,
        listener: impl FnOnce(&Call<'_>) -> L,
    ) -> io::Result<Job<L>> {
        let Self { spec, prompt, prompt_file, schema, budget, env, variables, stdout_log, stderr_log } = self;
        let spec = unquestioned(spec);
        // After a power loss there is no agent that could have read it.
        refrain_files::write(&prompt_file, prompt.as_bytes())?;
        let schema = schema.filter(|_| takes_schema(&spec.agent));
        let schema_file = stdout_log.with_extension("schema.json");
        if let Some(schema) = &schema {
            refrain_files::write(&schema_file, schema.as_bytes())?;
        }
        GeminiLock::of(&spec, &env).iter().for_each(GeminiLock::clear);
        let call = Call {
            spec: &spec,
            prompt: &prompt,
            prompt_file: &prompt_file,
            env: &env,
            budget: budget.0,
            capped: budget.1,
            schema: schema.as_ref().map(|text| Schema { text, file: &schema_file }),
            clock: &clock::ON_THE_WALL,
            root: identity::is_root(),
        };
        let launch = output_parser::launch(&call);
        let listener = listener(&call);
        Ok(Job {
            argv: launch.argv,
            dir: spec.working_dir.clone(),
            env: variables.into_iter().chain(launch.env).collect(),
            stdin: launch.stdin.map_or(Stdin::Closed, |text| Stdin::Text(text.into_bytes())),
            stdout_log,
            stderr_log,
            cap: spec.output_cap,
            listener,
            meter,
        })
    }
}

/// Whether the agent's final message can be held to a schema.
pub(crate) fn takes_schema(agent: &AgentSpec) -> bool {
    output_parser::adapter(agent.kind).is_some_and(|adapter| adapter.takes_schema())
}

/// The job of a gate that is a command, after the attempt `of`; iteration 0 is before the first. `inherited` is the
/// runner's own environment.
pub(crate) fn command_job(
    (state, inherited): (&LoopState, &[(OsString, OsString)]),
    (gate, command): (&GateSpec, &str),
    (of, run): (AttemptId, u32),
    dir: &LoopDir,
    meter: Arc<Meter>,
) -> Job<ChildOutput> {
    let log = dir.attempt(of).gate(&gate.name, run);
    // Only errors of the shell itself come separately.
    let stderr_log = log.with_extension("stderr.log");
    Job {
        argv: [SHELL, "-c", TOGETHER, command].map(str::to_owned).into(),
        dir: state.spec.working_dir.clone(),
        env: environment::of_gate(state, of, inherited),
        stdin: Stdin::Closed,
        stdout_log: log.clone(),
        stderr_log: stderr_log.clone(),
        cap: state.spec.output_cap,
        listener: ChildOutput::of_command(
            (gate.name.clone(), state.expected_summaries(gate)),
            (log, stderr_log),
        ),
        meter,
    }
}

/// The stale lock of a Gemini, for which the next one waits 13 s (agent-clis.md), and the variable by which a Gemini of
/// the same home is found.
#[derive(Debug)]
pub(crate) struct GeminiLock {
    path: PathBuf,
    home: Vec<u8>,
}

impl GeminiLock {
    pub(crate) fn of(spec: &Spec, env: &[(OsString, OsString)]) -> Option<Self> {
        let path = (spec.agent.kind == AgentKind::Gemini).then(|| gemini::lock(env)).flatten()?;
        let home = env.iter().rev().find(|(name, _)| name == "HOME").map(|(_, home)| home)?;
        Some(Self { path, home: [b"HOME=", home.as_encoded_bytes()].concat() })
    }

    /// Removes it if no Gemini of that home runs.
    pub(crate) fn clear(&self) {
        if self.path.exists() && !identity::is_running_with("gemini", &self.home) {
            // Not ours to insist on: without that the agent only starts later.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
