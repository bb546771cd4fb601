//! Agents beside the one that a loop begins with: the one that takes over when it is stuck, the reviewer, the critic.
//! Each is named as `--agent` names it: an adapter, or an agent of the configuration.

use refrain_core::spec::{AgentKind, AgentSpec, Limits, OutputFormat, PromptMode};
use refrain_engine::config::{Command, Settings};
use refrain_engine::{objection, own_model, without_model};

use crate::error::{Message, RequestError};

/// The agent called `name`: its omitted settings are those of the worker.
pub fn agent(
    who: &str,
    name: &str,
    worker: &AgentSpec,
    settings: &Settings,
) -> Result<AgentSpec, RequestError> {
    let agents = &settings.config.agents;
    let configured = agents.get(name);
    let Some(kind) = AgentKind::named(name).or_else(|| {
        let command = configured?.command.as_ref().map(|command| AgentKind::of_program(&command.program));
        configured?.kind.or(command)
    }) else {
        let names: Vec<_> =
            AgentKind::ALL.iter().map(ToString::to_string).chain(agents.keys().cloned()).collect();
        let error = format!("{who}: there is no such agent; accepted: {}", names.join(", "));
        return Err(RequestError::usage(error));
    };
    let command = configured.and_then(|agent| agent.command.clone());
    let (program, mut args) = match (command, kind.program()) {
        (Some(command), _) => (command.program, command.args),
        (None, Some(program)) => (program.to_owned(), Vec::new()),
        // The worker is of that kind already: only another model, say, is asked for.
        (None, None) if kind == worker.kind && configured.is_none() => {
            (worker.program.clone(), worker.args.clone())
        }
        (None, None) => {
            let error = format!("{who}: what is to run is missing; accepted: an agent of the configuration");
            return Err(RequestError::usage(error).hint("[agents.NAME] has a command"));
        }
    };
    args.extend(configured.and_then(|agent| agent.args.clone()).unwrap_or_default());
    let mut env = worker.env.clone();
    env.extend(configured.iter().flat_map(|agent| agent.env.clone()));
    let model = own_model(kind, &args).or_else(|| configured.and_then(|agent| agent.model.clone()));
    Ok(AgentSpec {
        kind,
        program,
        args,
        prompt_mode: configured.and_then(|agent| agent.prompt_mode).unwrap_or(PromptMode::Auto),
        env,
        env_names: worker.env_names.clone(),
        clean_env: worker.clean_env,
        price: model.as_deref().and_then(|model| settings.price(model)),
        model,
        permissions: configured.and_then(|agent| agent.permissions).unwrap_or(worker.permissions),
        output_format: configured.and_then(|agent| agent.output_format).unwrap_or(OutputFormat::Auto),
    })
}

pub fn with_model(
    who: &str,
    model: &str,
    worker: &AgentSpec,
    settings: &Settings,
) -> Result<AgentSpec, RequestError> {
    if worker.kind == AgentKind::Generic {
        let error = format!("{who}: a generic command cannot be told its model; accepted: known agents");
        return Err(
            RequestError::usage(error).hint("an agent of the configuration can have a command of its own")
        );
    }
    let price = settings.price(model);
    let args = without_model(worker.kind, &worker.args);
    if let Some(own) = own_model(worker.kind, &args) {
        let error = format!("{who}: the command names the model {own} as a setting; accepted: one without");
        return Err(RequestError::usage(error));
    }
    Ok(AgentSpec { model: Some(model.to_owned()), price, args, ..worker.clone() })
}

/// An agent that judges, said as the name of an agent or as a command; the worker if nothing is said. It is to keep the
/// loop's caps too.
pub fn judge(
    who: &str,
    said: Option<&str>,
    model: Option<&str>,
    (worker, limits): (&AgentSpec, &Limits),
    settings: &Settings,
) -> Result<AgentSpec, RequestError> {
    let judge = match said {
        None => worker.clone(),
        Some(name) if AgentKind::named(name).is_some() || settings.config.agents.contains_key(name) => {
            agent(who, name, worker, settings)?
        }
        Some(command) => {
            let Command { program, args } =
                command.parse().map_err(|error| RequestError::usage(format!("{who}: {error}")))?;
            let kind = AgentKind::of_program(&program);
            let model = own_model(kind, &args);
            AgentSpec {
                kind,
                program,
                args,
                prompt_mode: PromptMode::Auto,
                price: model.as_deref().and_then(|model| settings.price(model)),
                model,
                output_format: OutputFormat::Auto,
                ..worker.clone()
            }
        }
    };
    let judge = match model {
        None => judge,
        Some(model) => with_model(who, model, &judge, settings)?,
    };
    if let Some(why) = objection(judge.kind, &judge.args) {
        return Err(RequestError::usage(format!("{who}: {why}")));
    }
    judge.admits(limits.max_cost.is_some(), limits.max_tokens.is_some()).map_err(|refusal| {
        let error = Message::from(format!("{who}: ")).then(Message::own(&refusal.to_string()));
        RequestError::usage(error).hint("what it costs counts against the loop's caps")
    })?;
    Ok(judge)
}
