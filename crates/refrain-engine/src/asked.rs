//! An agent that is asked something beside a loop: it only reads, in a session of its own, and what it says last is the answer.

use std::fs;
use std::io;
use std::time::Duration;

use camino::Utf8Path;
use refrain_agents::adapter::{Call, Schema};
use refrain_agents::ear::{self, Ear};
use refrain_agents::{environment, generic};
use refrain_core::Spec;
use refrain_core::agent::Usd;
use refrain_core::event::Exit;
use refrain_proc::{identity, tool};

use crate::{EngineError, Host, judge};

/// What is asked.
pub(crate) struct Question<'a> {
    /// The loop's, with the judge as its agent ([`refrain_agents::judge::judge`]), where it is to look.
    pub(crate) spec: &'a Spec,
    pub(crate) prompt: &'a str,
    /// Where the prompt is kept; a schema is, beside it.
    pub(crate) file: &'a Utf8Path,
    /// What the answer is held to, where the agent can be.
    pub(crate) schema: Option<&'a str>,
    /// What it may spend, likewise.
    pub(crate) budget: Option<Usd>,
    pub(crate) limit: Duration,
}

/// What it said, and what that cost, as far as it told.
pub(crate) struct Answer {
    pub(crate) said: String,
    pub(crate) cost: Option<Usd>,
}

/// Asks it, and waits for the answer.
///
/// # Errors
/// [`EngineError`] where it could not be started, or came to nothing.
pub(crate) fn ask(host: &Host, question: &Question<'_>) -> Result<Answer, EngineError> {
    let Question { spec, prompt, file, schema, budget, limit } = *question;
    let failed = |what| move |error| EngineError::Process(what, error);
    judge::write(file, prompt).map_err(failed("what the agent is asked cannot be written"))?;
    let adapter = ear::adapter(spec.agent.kind);
    let schema = schema.filter(|_| adapter.is_some_and(|adapter| adapter.takes_schema()));
    let schema_file = file.with_extension("schema.json");
    if let Some(schema) = schema {
        judge::write(&schema_file, schema).map_err(failed("what the agent is asked cannot be written"))?;
    }
    let env = environment::base(spec, host.env.iter().cloned());
    let program = generic::locate(spec, &env)?;
    let call = Call {
        spec,
        prompt,
        prompt_file: file,
        env: &env,
        budget,
        capped: budget.is_some(),
        schema: schema.map(|text| Schema { text, file: &schema_file }),
        root: identity::is_root(),
    };
    let launch = match adapter {
        Some(adapter) => adapter.launch(&call),
        None => generic::launch(&call),
    };
    let stdin = launch.stdin.as_deref().map(Utf8Path::as_std_path).map(fs::read).transpose();
    let stdin = stdin.map_err(failed("what the agent is asked cannot be read"))?.unwrap_or_default();
    let args = launch.argv.iter().skip(1);
    let mut asked = tool::Tool::new(program, spec.working_dir.as_std_path())
        .args(args)
        .env(&env)
        .input(&stdin)
        .limit(limit);
    let own = spec.agent.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    // To it applies what does to every agent of the loop: it starts nothing, and takes nothing over.
    let inside = [("REFRAIN_LOOP_ID", spec.id.to_string()), ("REFRAIN_DEPTH", (spec.depth + 1).to_string())];
    let inside = inside.map(|(name, value)| (name.to_owned(), value));
    for (name, value) in own.chain(inside).chain(launch.env) {
        asked = asked.with(name, value);
    }
    let done = asked
        .run()
        .map_err(|error| EngineError::Process("the agent cannot be asked", io::Error::other(error)))?;
    let mut ear = Ear::new(&call);
    ear.hear(&done.stdout);
    let exit = done.status.code().map_or(Exit::Lost, Exit::Code);
    let stderr = String::from_utf8_lossy(&done.stderr);
    let heard = ear.conclude(exit, &stderr);
    if let Some(fault) = heard.report.as_ref().and_then(|report| report.fault.as_ref()) {
        let error = io::Error::other(fault.message.clone());
        return Err(EngineError::Process("the agent came to nothing", error));
    }
    let cost = heard.report.as_ref().and_then(|report| report.cost).map(|(_, cost)| cost);
    let said = heard.message.unwrap_or_else(|| String::from_utf8_lossy(&done.stdout).into_owned());
    Ok(Answer { said, cost })
}
