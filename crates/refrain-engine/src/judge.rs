//! Agents that judge, reviewers and critics: what they are told is put on disk, how they are started, what is heard of them
//! and what that came to. They run under the same keeper as all else, read-only and afresh; what they are asked and what
//! their answers amount to is decided in `core::review`.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::Arc;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::adapter::{Call, Schema};
use refrain_agents::ear::{self, Ear, Heard};
use refrain_agents::environment;
use refrain_agents::judge::judge;
use refrain_core::budget::Allowance;
use refrain_core::event::{CritiqueFinished, Exit, GateFinished, Reviewed};
use refrain_core::fingerprint::{self, Fingerprint};
use refrain_core::gate::{GateName, GateSpec, ReviewSpec, Verdict};
use refrain_core::review::{self, Changes};
use refrain_core::spec::AgentSpec;
use refrain_core::text::{clip, printable, squeeze};
use refrain_core::{AttemptId, LoopState, Spec, context};
use refrain_proc::{Job, Meter, identity, output};
use refrain_store::LoopDir;
use tokio::sync::mpsc;

use crate::agent_news::AgentNews;
use crate::executor::GeminiLock;
use crate::hearing::{Hearing, RetryNews};
use crate::{EngineError, budget, clock, seal};

/// The longest message of a command that is read, in bytes: it is judged whole or not at all.
const LONGEST_MESSAGE: u64 = 1 << 20;
/// The longest last line that is kept, in bytes.
const PREVIEW: usize = 200;

/// What a judge is told, and where what it says is kept.
pub(crate) struct Brief {
    /// The loop's, with the judge as its agent.
    spec: Spec,
    prompt: String,
    schema: Option<String>,
    of: AttemptId,
    log: Utf8PathBuf,
    who: Who,
}

/// Who judges.
enum Who {
    Reviewer(GateName),
    Critic,
}

impl Brief {
    /// Of the reviewer that a gate is.
    pub(crate) fn review(
        state: &LoopState,
        (gate, review): (&GateSpec, &ReviewSpec),
        (of, run): (AttemptId, u32),
        dir: &LoopDir,
        changes: Option<&Changes>,
    ) -> Self {
        let takes_schema = ear::adapter(review.agent.kind).is_some_and(|adapter| adapter.takes_schema());
        Self {
            spec: judging(state, &review.agent),
            prompt: review::prompt(&review.spec, changes, takes_schema),
            schema: takes_schema.then(|| review::schema().to_string()),
            of,
            log: dir.attempt(of).gate(&gate.name, run),
            who: Who::Reviewer(gate.name.clone()),
        }
    }

    /// Of a critic of the progress up to the attempt `of`.
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
            who: Who::Critic,
        }
    }

    /// What it reads is on disk, and this is the job.
    pub(crate) fn prepare(
        self,
        state: &LoopState,
        env: &[(OsString, OsString)],
        (meter, news): (Arc<Meter>, mpsc::Sender<AgentNews>),
        allowance: Option<Allowance>,
    ) -> Result<Job<Hearing>, EngineError> {
        let Self { spec, prompt, schema, of, log, who } = self;
        let failed = |error| EngineError::Process("what it is told cannot be written", error);
        let (prompt_file, schema_file) = (told(&log), log.with_extension("schema.json"));
        write(&prompt_file, &prompt).map_err(failed)?;
        if let Some(schema) = &schema {
            write(&schema_file, schema).map_err(failed)?;
        }
        GeminiLock::of(&spec, env).iter().for_each(GeminiLock::clear);
        let (budget, capped) = budget::told(state, &spec.agent, allowance);
        let call = Call {
            spec: &spec,
            prompt: &prompt,
            prompt_file: &prompt_file,
            env,
            budget,
            capped,
            schema: schema.as_ref().map(|text| Schema { text, file: &schema_file }),
            clock: clock::on_the_wall(),
            root: identity::is_root(),
        };
        let launch = ear::launch(&call);
        let mut variables: Vec<_> =
            spec.agent.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        variables.extend(environment::of_attempt(state, of));
        variables.extend(launch.env);
        let stderr = log.with_extension("stderr.log");
        Ok(Job {
            argv: launch.argv,
            dir: spec.working_dir.clone(),
            env: variables,
            stdin: launch.stdin,
            stdout_log: log.clone(),
            stderr_log: stderr.clone(),
            cap: spec.output_cap,
            listener: Hearing::Judge(Box::new(JudgeHearing {
                ear: Ear::new(&call),
                news,
                who,
                log,
                stderr,
                began: Instant::now(),
                retries: RetryNews::default(),
            })),
            meter,
        })
    }
}

/// The loop, as if this agent worked in it: only reading, and with nothing to claim.
pub(crate) fn judging(state: &LoopState, agent: &AgentSpec) -> Spec {
    Spec { agent: judge(agent), promise: None, ..state.spec.clone() }
}

/// Where what a judge is told is kept, beside its log.
pub(crate) fn told(log: &Utf8Path) -> Utf8PathBuf {
    log.with_extension("prompt.md")
}

/// Not synced and not renamed: after a power loss no agent is there that could have been told it.
pub(crate) fn write(path: &Utf8Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A judge's ear.
pub(crate) struct JudgeHearing {
    ear: Ear,
    news: mpsc::Sender<AgentNews>,
    who: Who,
    log: Utf8PathBuf,
    stderr: Utf8PathBuf,
    began: Instant,
    retries: RetryNews,
}

/// How a process ended, beside what it said.
pub(crate) struct Ending {
    pub(crate) exit: Exit,
    pub(crate) bytes: u64,
    pub(crate) left: bool,
    pub(crate) output_error: Option<String>,
}

impl JudgeHearing {
    pub(crate) fn hear(&mut self, chunk: &[u8]) {
        // Where the runner is busy it hears the next total, or the end.
        if let Some(used) = self.ear.hear(chunk) {
            let _: Result<(), _> = self.news.try_send(AgentNews::Used(used));
        }
        self.retries.tell(&self.ear, &self.news);
    }

    pub(crate) fn hear_stderr(&mut self, chunk: &[u8]) {
        self.ear.hear_stderr(chunk);
        self.retries.tell(&self.ear, &self.news);
    }

    /// It is over: what it came to.
    pub(crate) fn conclude(self, ending: Ending) -> AgentNews {
        let Self { ear, who, log, stderr, began, .. } = self;
        let stderr = output::read_end(&stderr, context::EXCERPT as u64).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let heard = ear.conclude(ending.exit, &stderr);
        let message = message(&heard, &log, &ending, &stderr);
        if let Ok(message) = &message {
            // A convenience for people: the log holds it too.
            let _ = write(&log.with_extension("final.md"), message);
        }
        let Ending { exit, bytes, left, output_error } = ending;
        let Heard { finding, report, .. } = heard;
        let report = report.map(Box::new);
        match who {
            Who::Reviewer(gate) => {
                let verdict = match message {
                    Ok(message) => review::judge(Some(&message)),
                    Err(why) => Verdict::Missing { why },
                };
                AgentNews::GateFinished(Box::new(GateFinished {
                    fingerprint: of_verdict(&gate, &verdict),
                    gate,
                    exit,
                    duration: began.elapsed().into(),
                    bytes,
                    no_test: None,
                    preview: clip(&finding.last_line, PREVIEW).into_owned(),
                    left,
                    output_error,
                    log: seal::of(&log).ok(),
                    review: Some(Box::new(Reviewed { verdict, report })),
                }))
            }
            Who::Critic => {
                let (feedback, error) = match (message, output_error) {
                    (_, Some(error)) => (None, Some(error)),
                    (Err(why), None) => (None, Some(why)),
                    (Ok(message), None) => (review::feedback(&message), None),
                };
                AgentNews::CritiqueFinished(Box::new(CritiqueFinished {
                    exit,
                    feedback,
                    error,
                    left,
                    report,
                }))
            }
        }
    }
}

/// What a refusal comes down to. Words of a model differ each time: a refusal is the same only where they do not.
fn of_verdict(gate: &GateName, verdict: &Verdict) -> Option<Fingerprint> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Fail { findings: said } | Verdict::Missing { why: said } => {
            Some(fingerprint::of(gate.as_str(), said))
        }
    }
}

/// The final message, whole; or why there is none that counts.
pub(crate) fn message(
    heard: &Heard,
    log: &Utf8Path,
    ending: &Ending,
    stderr: &str,
) -> Result<String, String> {
    let how = match ending.exit {
        Exit::Code(0) | Exit::Unseen => None,
        Exit::Code(code) => Some(format!("it ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("it was ended by signal {signal}")),
        Exit::Lost => Some("nobody saw it end".to_owned()),
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
        None if ending.bytes > LONGEST_MESSAGE => {
            Err(format!("it printed more than {LONGEST_MESSAGE} bytes, and is not read"))
        }
        None => match output::read_end(log, LONGEST_MESSAGE) {
            Ok(said) => Ok(String::from_utf8_lossy(&said).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err("it said nothing".to_owned()),
            Err(error) => Err(format!("what it said cannot be read: {error}")),
        },
    }
}
