//! The sandbox of a loop: as asked for, as this machine can make it, and one host more.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::Ask;
use refrain_core::sandbox::{Host, SandboxMode, SandboxSpec};
use refrain_core::{LoopId, Spec};
use refrain_engine::config::keys::Sandbox;
use refrain_engine::sandbox::NoSandbox;
use refrain_engine::{ByKind, LoopRequest, Service};

use crate::error::{Code, Message, RequestError};
use crate::options::sandbox::SandboxArgs;
use crate::verbs::Slow;
use crate::{Action, Context};

/// The sandbox, made once to see that this machine has it. Nothing is begun without the sandbox that was asked for.
pub(crate) fn of(
    context: &Context,
    spec: &Spec,
    (args, config): (&SandboxArgs, &Sandbox),
    notes: &mut Vec<String>,
) -> Result<Option<SandboxSpec>, RequestError> {
    let (mode, mut sandbox) = args.resolve(config);
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    if config.registries.unwrap_or(true) {
        sandbox.hosts.extend(refrain_engine::sandbox::registries(&context.host, spec));
    }
    let sandbox = SandboxSpec {
        write: paths(context, "write", &sandbox.write)?,
        hide: paths(context, "hide", &sandbox.hide)?,
        ..sandbox
    };
    if sandbox.processes < SandboxSpec::FEWEST_PROCESSES {
        let (given, fewest) = (sandbox.processes, SandboxSpec::FEWEST_PROCESSES);
        let error = format!("sandbox.processes = {given}: too few for a build; accepted: {fewest} and more");
        return Err(RequestError::usage(error));
    }
    if let Some(program) = refrain_engine::sandbox::hidden_program(&context.host, spec, &sandbox) {
        let error = Message::from("the sandbox hides the program ").then(program.to_string());
        if mode == SandboxMode::Auto {
            notes.push(format!("the loop runs without a sandbox: it would hide the program {program}"));
            return Ok(None);
        }
        return Err(RequestError::usage(error)
            .hint("move it out of /tmp and of hidden folders; --no-sandbox starts it with your own rights"));
    }
    match (refrain_engine::sandbox::probe(&context.host, spec, &sandbox), mode) {
        (Ok(()), _) => Ok(Some(sandbox)),
        (Err(error), SandboxMode::Auto) => {
            notes.push(format!("the loop runs without a sandbox: {error}"));
            Ok(None)
        }
        (Err(error), SandboxMode::On | SandboxMode::Off) => {
            Err(refused(&error).hint("--no-sandbox starts it with your own rights"))
        }
    }
}

/// Absolute paths of `[sandbox]`; `~/` is the user's home.
fn paths(context: &Context, key: &str, paths: &[Utf8PathBuf]) -> Result<Vec<Utf8PathBuf>, RequestError> {
    let home = context.variable("HOME").unwrap_or("/nonexistent");
    let absolute = |path: &Utf8PathBuf| match path.strip_prefix("~") {
        Ok(inside) => Ok(Utf8Path::new(home).join(inside)),
        Err(_) if path.is_absolute() => Ok(path.clone()),
        Err(_) => {
            let error = format!("sandbox.{key}: {path:?} is relative; accepted: absolute paths and ~/");
            Err(RequestError::usage(error))
        }
    };
    paths.iter().map(absolute).collect()
}

/// The refusal of a loop whose sandbox cannot be made.
pub fn refused(error: &NoSandbox) -> RequestError {
    let text = format!("this machine cannot make the sandbox: {error}");
    RequestError::new(Code::Failed, text).hint(error.cause.remedy())
}

/// Allows the host from the next run of the agent or of a gate on; returns once the loop has taken the request.
pub fn allow_host(
    context: &Context,
    service: &Service,
    id: &LoopId,
    host: &Host,
    mut slow: Slow<'_>,
) -> Result<(), RequestError> {
    context.check_on(Action::AllowHost, service, id)?;
    slow.check(service, id)?;
    let ask = (Ask::AllowHost(host.clone()), context.caller.asker());
    let answered = service.ask(id, LoopRequest::AllowHost, ask, |runner| slow.note(id, runner))?;
    let hosts = match &answered {
        ByKind::Loop(state) => state.spec.sandbox.as_ref().map(|sandbox| sandbox.hosts.as_slice()),
        ByKind::Plan(_) => None,
    };
    if hosts.is_some_and(|hosts| hosts.contains(host)) {
        return Ok(());
    }
    let error = format!("{id} does not allow {host}: the request has no valid signature");
    Err(RequestError::new(Code::Refused, error).hint(format!("refrain verify {id} says which keys count")))
}
