//! How a step is done: the effects, and nothing else. Everything here blocks, and runs on a thread that may.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8Path;
use refrain_agents::adapter::{Call, Dialect};
use refrain_agents::ear::{self, Ear, Heard};
use refrain_agents::{environment, gemini};
use refrain_core::agent::AgentReport;
use refrain_core::budget::Allowance;
use refrain_core::event::{AttemptFinished, Event, Exit};
use refrain_core::mirror::Mirrored;
use refrain_core::prompt::Quoted;
use refrain_core::spec::{AgentKind, OutputFormat};
use refrain_core::trace::traceparent;
use refrain_core::{AttemptId, LoopState, Spec, context, prompt};
use refrain_proc::{Job, Meter, identity, output};
use refrain_store::layout::{AttemptDir, LoopDir};
use refrain_store::worktree::{self, WorktreeFiles};
use tokio::sync::mpsc;

use crate::agent_news::AgentNews;
use crate::hearing::{AttemptHearing, Hearing, finished};
use crate::{EngineError, budget, clock, judge, mirror, seal};

/// What the worktree's files say, shared between the thread that starts attempts and the one that hears them end.
pub(crate) type SharedFiles = Arc<Mutex<WorktreeFiles>>;

/// Everything that must be there before the agent is: its folder, its prompt, the files that it reads. Then the job.
pub(crate) fn prepare(spec: &Spec, plan: Plan, files: &SharedFiles) -> Result<Job<Hearing>, EngineError> {
    files.lock().unwrap_or_else(PoisonError::into_inner).prepare(
        spec,
        plan.iteration,
        plan.context.as_deref(),
        plan.is_blocked,
    )?;
    let failed = |error| EngineError::Process("the attempt's folder cannot be written", error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&plan.dir.0).map_err(failed)?;
    // Not synced and not renamed: after a power loss no agent is there that could have been told it.
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(plan.dir.prompt())
        .and_then(|mut file| file.write_all(plan.prompt.as_bytes()))
        .map_err(failed)?;
    mirror::write(spec, &plan.mirrored);
    plan.lock.iter().for_each(GeminiLock::clear);
    Ok(plan.job)
}

/// What an attempt is told and how it is started, made from the state.
pub(crate) struct Plan {
    dir: AttemptDir,
    prompt: String,
    iteration: u32,
    context: Option<String>,
    is_blocked: bool,
    mirrored: Vec<Mirrored>,
    lock: Option<GeminiLock>,
    job: Job<Hearing>,
}

impl Plan {
    /// `news` hears what this one uses.
    pub(crate) fn new(
        state: &LoopState,
        id: AttemptId,
        dir: AttemptDir,
        quoted: Quoted<'_>,
        env: &[(OsString, OsString)],
        (meter, news): (Arc<Meter>, mpsc::Sender<AgentNews>),
        allowance: Option<Allowance>,
    ) -> Self {
        let spec = &state.spec;
        let prompt = prompt::assemble(state, quoted);
        let prompt_file = dir.prompt();
        let call = call(state, &prompt, &prompt_file, (env, allowance));
        let launch = ear::launch(&call);
        let mut variables = environment::of_attempt(state, id);
        // Whoever tells the same collector finds its place there.
        if env
            .iter()
            .any(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("OTEL_EXPORTER_OTLP")))
        {
            variables.push(("TRACEPARENT".to_owned(), traceparent(state, id)));
        }
        variables.extend(launch.env);
        let job = Job {
            argv: launch.argv,
            dir: spec.working_dir.clone(),
            env: variables,
            stdin: launch.stdin,
            stdout_log: dir.stdout(spec.agent.streams()),
            stderr_log: dir.stderr(),
            cap: spec.output_cap,
            listener: Hearing::Attempt(Box::new(AttemptHearing::new(&call, &dir, news))),
            meter,
        };
        let context = context::context(state, quoted);
        let mirrored = mirror::files(state, context.as_deref());
        Self {
            lock: GeminiLock::of(spec, env),
            is_blocked: state.blocked > 0,
            iteration: id.iteration,
            dir,
            prompt,
            context,
            mirrored,
            job,
        }
    }
}

/// What an adapter is told of an attempt of this loop.
fn call<'a>(
    state: &'a LoopState,
    prompt: &'a str,
    prompt_file: &'a Utf8Path,
    (env, allowance): (&'a [(OsString, OsString)], Option<Allowance>),
) -> Call<'a> {
    let (budget, capped) = budget::told(state, &state.spec.agent, allowance);
    Call {
        spec: &state.spec,
        prompt,
        prompt_file,
        env,
        budget,
        capped,
        schema: None,
        clock: clock::on_the_wall(),
        root: identity::is_root(),
    }
}

/// A reader for the stream of an attempt that was told what is in this file.
pub(crate) fn dialect(spec: &Spec, prompt_file: &Utf8Path) -> Option<Box<dyn Dialect>> {
    // A document is shown as it is: what its message is, is known only when it is whole.
    if spec.agent.output_format == OutputFormat::Json {
        return None;
    }
    let prompt = fs::read_to_string(prompt_file).unwrap_or_default();
    ear::dialect(&told(spec, &prompt, prompt_file))
}

/// What an agent was told that was started already, as far as that says how to read it.
fn told<'a>(spec: &'a Spec, prompt: &'a str, prompt_file: &'a Utf8Path) -> Call<'a> {
    let (budget, schema, clock) = (None, None, clock::on_the_wall());
    Call { spec, prompt, prompt_file, env: &[], budget, capped: false, schema, clock, root: false }
}

/// What is heard of an agent whose end nobody saw, in what is kept of its output, and how long that is; nothing of one that
/// does not stream.
fn hear_again(spec: &Spec, prompt_file: &Utf8Path, log: &Utf8Path) -> Option<(Heard, u64)> {
    let prompt = fs::read_to_string(prompt_file).ok()?;
    let mut ear = Ear::new(&told(spec, &prompt, prompt_file));
    let mut kept = output::read(log).ok()?;
    let (mut chunk, mut total) = (vec![0; 64 << 10], 0);
    loop {
        match kept.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => {
                total += length as u64;
                ear.hear(&chunk[..length]);
            }
        }
    }
    Some((ear.adopt()?, total))
}

/// The lock that a Gemini leaves behind and the next one waits 13 s for (agent-clis.md), and the variable by which its kind
/// is told apart.
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

    /// Takes it away where it is nobody's: none of that home runs.
    pub(crate) fn clear(&self) {
        if self.path.exists() && !identity::anyone_runs("gemini", &self.home) {
            // Not ours to insist on: without that the agent only starts later.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// What an attempt in flight came to, of which nobody saw the end: its result where its stream holds the agent's last
/// word, else what is known of what it used.
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
    let said = if exit == Exit::Unseen { WorktreeFiles::default().says(&state.spec) } else { None };
    Some(AttemptFinished {
        stdout_bytes: total,
        stderr_bytes: fs::metadata(dir.stderr()).map_or(0, |meta| meta.len()),
        state: said,
        needs: worktree::needs(&state.spec, said),
        sealed: seal::attempt(&dir, state.spec.agent.streams()),
        ..finished(exit, heard)
    })
}

/// What an agent that judged used, of which nobody saw the end.
fn overhear(state: &LoopState, dir: &LoopDir) -> Option<AgentReport> {
    let log = match state.proving() {
        Some(proving) => {
            let running = proving.running.as_ref()?;
            let gate = state.spec.gates.get(running.gate)?;
            dir.attempt(proving.folder()).gate(&gate.name, running.run)
        }
        None => dir.attempt(state.critiquing().and(state.last_charged())?.id).critique(),
    };
    let spec = judge::judging(state, state.runs()?);
    hear_again(&spec, &judge::told(&log), &log)?.0.report
}

/// The first event of a new runner: what became of the agent that was in flight is in what it left on disk.
pub(crate) fn taken_over(state: &LoopState, dir: &LoopDir) -> Event {
    let interrupted = state.in_flight().map(|flight| flight.id);
    let (adopted, judged) = match interrupted {
        Some(_) => (adopt(state, dir).map(Box::new), None),
        None => (None, overhear(state, dir).map(Box::new)),
    };
    Event::RunnerStarted { runner: identity::own(), interrupted, adopted, judged }
}
