//! A one-shot agent call beside a loop: the agent only reads, in a session of its own, and its last message is the
//! answer. It has a keeper as every agent has: it does not outlive its caller, however that ends.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use refrain_agents::output_parser::{self, OutputParser};
use refrain_agents::{environment, generic};
use refrain_core::Spec;
use refrain_core::agent::Usd;
use refrain_core::prompt::context;
use refrain_core::sandbox::Role;
use refrain_proc::{Job, KeeperSpec, Listener, Meter, Report, Supervisor, output};

use crate::child::AgentStart;
use crate::child::conclusion::{self, ChildEnd};
use crate::sandbox::{ConfinedChild, RefusedHosts};
use crate::{EngineError, Host};

pub(crate) struct Question<'a> {
    /// The loop's, with the judge as its agent ([`refrain_agents::judge::judge`]), where it is to look.
    pub(crate) spec: &'a Spec,
    pub(crate) prompt: &'a str,
    /// Where the prompt is kept; a schema is, beside it.
    pub(crate) file: &'a Utf8Path,
    /// The schema of the answer, if the agent can be held to one.
    pub(crate) schema: Option<&'a str>,
    /// What it may spend, if the agent can be held to that.
    pub(crate) budget: Option<Usd>,
    pub(crate) limit: Duration,
}

/// Its answer, and the cost of that, as far as it is known.
pub(crate) struct Reply {
    pub(crate) said: String,
    pub(crate) cost: Option<Usd>,
}

/// Asks it, and waits for the answer.
pub(crate) fn ask(host: &Host, question: &Question<'_>) -> Result<Reply, EngineError> {
    let Question { spec, prompt, file, schema, budget, limit } = *question;
    let unwritten = |error| EngineError::Process("what the agent is asked cannot be written", error);
    let env = environment::base(spec, host.env.iter().cloned());
    generic::locate(spec, &env)?;
    // To it applies what does to every agent of the loop: it starts nothing, and takes nothing over.
    let inside = [
        ("REFRAIN_LOOP_ID", spec.id.to_string()),
        ("REFRAIN_DEPTH", (spec.depth + 1).to_string()),
        (MARK, file.to_string()),
    ];
    let (log, stderr) = (file.with_extension("log"), file.with_extension("stderr.log"));
    // Only the output of this run is to be read.
    for before in [&log, &stderr] {
        refrain_files::remove(before).map_err(unwritten)?;
    }
    let start = AgentStart {
        spec: spec.clone(),
        prompt: prompt.to_owned(),
        prompt_file: file.to_owned(),
        schema: schema.map(str::to_owned),
        budget: (budget, budget.is_some()),
        env: env.clone(),
        variables: inside.map(|(name, value)| (name.to_owned(), value)).into(),
        stdout_log: log.clone(),
        stderr_log: stderr.clone(),
    };
    let job = start
        .job(Arc::new(Meter::new(|| {})), |call| ReplyListener(OutputParser::new(call)))
        .map_err(unwritten)?;
    let confined = ConfinedChild {
        spec,
        role: Role::Agent(spec.agent.kind),
        host,
        loop_dir: file.parent().unwrap_or(file),
        verification: None,
    };
    let job = confined.job(job, &RefusedHosts::default()).map_err(unwritten)?;
    let marks = vec![format!("{MARK}={file}")];
    let keeper = KeeperSpec { program: host.program.clone(), marks, env, loop_dir: None, lease: None };
    let (ReplyListener(parser), ending) = run(keeper, job, spec, limit)?;
    let printed = output::read_end(&stderr, context::EXCERPT as u64).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let heard = parser.conclude(ending.exit, &printed);
    let said = conclusion::message(&heard, &log, &ending, &printed).map_err(nothing)?;
    for raw in [log, stderr] {
        // Only the answer is kept. If this fails, the next call removes the file.
        let _ = refrain_files::remove(&raw);
    }
    Ok(Reply { said, cost: heard.report.and_then(|report| report.cost).map(|(_, cost)| cost) })
}

/// A variable of all processes of an asked agent, with the file of its prompt: if its keeper dies, they are found by
/// it.
const MARK: &str = "REFRAIN_QUESTION_FILE";

/// Output listener of a one-shot agent call.
struct ReplyListener(OutputParser);

impl Listener for ReplyListener {
    fn hear(&mut self, chunk: &[u8]) {
        // Its usage is reported at the end.
        let _ = self.0.hear(chunk);
    }
}

/// Runs the agent to its end, or until its time is up. The keeper goes with the supervisor, and with the keeper every
/// process that is left.
fn run(
    keeper: KeeperSpec,
    job: Job<ReplyListener>,
    spec: &Spec,
    limit: Duration,
) -> Result<(ReplyListener, ChildEnd), EngineError> {
    let unasked = |error| EngineError::Process("the agent cannot be asked", error);
    let (sender, reports) = mpsc::channel();
    let report = move |report| {
        // The caller no longer listens.
        let _ = sender.send(report);
    };
    let supervisor = Supervisor::start(keeper, report).map_err(unasked)?;
    supervisor.run(job);
    let (until, mut given_up) = (Instant::now() + limit, None);
    loop {
        let report = match given_up {
            // The ladder ends by itself.
            Some(_) => reports.recv().map_err(|_| RecvTimeoutError::Disconnected),
            None => reports.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        given_up = match report {
            Ok(Report::Started(_) | Report::Swept { .. }) => continue,
            Ok(Report::NotStarted(error)) => return Err(unasked(io::Error::other(error))),
            Ok(Report::Exited { exit, stdout, stderr, listener, left, output_error }) => {
                let output_error = output_error.map(|error| error.to_string());
                return match given_up.or_else(|| output_error.clone()) {
                    Some(why) => Err(nothing(why)),
                    None => Ok((listener, ChildEnd { exit, stdout, stderr, left, output_error })),
                };
            }
            Ok(Report::OutputFailed) => Some("what it says cannot be kept".to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                Some(format!("it took longer than {} s, and was stopped", limit.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(nothing("its end was not observed".to_owned()));
            }
        };
        supervisor.stop(output_parser::ladder(spec.agent.kind));
    }
}

fn nothing(why: String) -> EngineError {
    EngineError::Process("the agent came to nothing", io::Error::other(why))
}
