//! The sandbox of a loop: as asked for, and as this machine can make it.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::sandbox::{SandboxMode, SandboxSpec};
use refrain_engine::sandbox::NoSandbox;

use crate::Context;
use crate::error::{Code, RequestError};

/// The sandbox, made once to see that this machine has it. Nothing is begun without the sandbox that was asked for.
pub(super) fn of(
    context: &Context,
    spec: &Spec,
    (mode, sandbox): (SandboxMode, SandboxSpec),
    notes: &mut Vec<String>,
) -> Result<Option<SandboxSpec>, RequestError> {
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    let sandbox = SandboxSpec {
        write: paths(context, "write", &sandbox.write)?,
        hide: paths(context, "hide", &sandbox.hide)?,
        ..sandbox
    };
    if sandbox.processes < SandboxSpec::FEWEST_PROCESSES {
        let (given, fewest) = (sandbox.processes, SandboxSpec::FEWEST_PROCESSES);
        let error =
            format!("sandbox.processes = {given}: too few for a build; accepted are {fewest} and more");
        return Err(RequestError::usage(error));
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
            let error = format!("sandbox.{key}: {path:?} is relative; accepted are absolute paths and ~/");
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
