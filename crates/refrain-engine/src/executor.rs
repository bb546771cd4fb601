//! How a step is done: the effects, and nothing else. Everything here blocks, and runs on a thread that may.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::adapter::{Call, Dialect};
use refrain_agents::ear::{self, Ear, Heard};
use refrain_agents::{environment, gemini};
use refrain_core::agent::AgentReport;
use refrain_core::budget::Allowance;
use refrain_core::event::{AttemptFinished, Event, Exit};
use refrain_core::r#loop::Outcome;
use refrain_core::mirror::Mirrored;
use refrain_core::prompt::Printed;
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
    /// `printed` is what failed last printed; `news` hears what this one uses.
    pub(crate) fn new(
        state: &LoopState,
        id: AttemptId,
        dir: AttemptDir,
        printed: Printed<'_>,
        env: &[(OsString, OsString)],
        (meter, news): (Arc<Meter>, mpsc::Sender<AgentNews>),
        allowance: Option<Allowance>,
    ) -> Self {
        let spec = &state.spec;
        let prompt = prompt::assemble(state, printed);
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
        let context = context::context(state, printed);
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

/// Where the output is that the next prompt quotes: of the last iteration, where it failed. A stream is no text for
/// anybody: of its fault the prompt speaks anyway.
pub(crate) fn failure_logs(state: &LoopState, dir: &LoopDir) -> Vec<Utf8PathBuf> {
    let is_quoted = |outcome| matches!(outcome, Outcome::Failed | Outcome::TimeLimit | Outcome::Silence);
    let Some(last) = state.last_charged().filter(|last| is_quoted(last.outcome)) else { return Vec::new() };
    let dir = dir.attempt(last.id);
    let stdout = (!state.spec.agent.streams()).then(|| dir.stdout(false));
    std::iter::once(dir.stderr()).chain(stdout).collect()
}

/// Where it is told what was held against the last claim from outside.
pub(crate) fn outside_log(state: &LoopState, dir: &LoopDir) -> Option<Utf8PathBuf> {
    let (iteration, _) = state.git.published.objection.as_ref()?;
    let last = state.last_charged().filter(|last| last.id.iteration == *iteration)?;
    Some(dir.attempt(last.id).outside())
}

/// Where the output is that `context.md` quotes of the iterations before the last one.
pub(crate) fn earlier_logs(state: &LoopState, dir: &LoopDir) -> Vec<(AttemptId, Vec<Utf8PathBuf>)> {
    let logs = |(id, gate): (AttemptId, Option<(usize, AttemptId, u32)>)| {
        let of_gate = gate
            .and_then(|(gate, of, run)| Some(dir.attempt(of).gate(&state.spec.gates.get(gate)?.name, run)));
        let own = dir.attempt(id);
        let stdout = (!state.spec.agent.streams()).then(|| own.stdout(false));
        let own = || std::iter::once(own.stderr()).chain(stdout).collect();
        (id, of_gate.map_or_else(own, |log| vec![log]))
    };
    context::earlier(state).map(logs).collect()
}

/// The end of the first of these logs that says something.
pub(crate) fn last_words(logs: &[Utf8PathBuf]) -> Option<String> {
    logs.iter().find_map(|path| {
        let text = end_of(path)?;
        (!text.trim().is_empty()).then_some(text)
    })
}

/// The end of a log, fit to be read.
pub(crate) fn end_of(path: &Utf8Path) -> Option<String> {
    let bytes = output::read_end(path, context::EXCERPT as u64).ok()?;
    Some(refrain_core::text::printable(&String::from_utf8_lossy(&bytes)).into_owned())
}
