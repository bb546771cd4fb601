//! The sandbox of a loop: as asked for, as this machine can make it, and one host more.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::Ask;
use refrain_core::sandbox::{Host, Mechanism, SandboxMode, SandboxSpec, hidden_repository};
use refrain_core::{LoopId, Spec};
use refrain_engine::config::keys::Sandbox;
use refrain_engine::sandbox::{AGENT, Cause, HiddenPath, NoSandbox, Registries, leads_through};
use refrain_engine::{ByKind, LoopRequest, Service};

use crate::error::{Code, Message, RequestError};
use crate::options::sandbox::SandboxArgs;
use crate::verbs::Slow;
use crate::{Action, Context};

/// The sandbox, made once to see that this machine has it. Nothing is begun without the sandbox that was asked for.
pub(crate) fn of(
    context: &Context,
    service: &Service,
    spec: &Spec,
    (args, config): (&SandboxArgs, &Sandbox),
    notes: &mut Vec<String>,
) -> Result<Option<SandboxSpec>, RequestError> {
    let (mode, mut sandbox) = args.resolve(config);
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    if mode == SandboxMode::Files && args.has_network() {
        let error = "--sandbox-host and --sandbox-localhost have no effect with --sandbox=files, which does not limit the network";
        return Err(RequestError::usage(error).hint("leave them out, or use --sandbox"));
    }
    if let Some(folder) = hidden_repository(mode, &spec.project) {
        let error = format!(
            "--sandbox=files hides {folder}, and git in it could not read the repository {}; accepted: a repository elsewhere",
            spec.project
        );
        return Err(RequestError::usage(error).hint(
            "move it, or use --sandbox, which needs namespaces; --no-sandbox starts it with your own rights",
        ));
    }
    if sandbox.has_network() && config.registries.unwrap_or(true) {
        let Registries { hosts, unknown } = refrain_engine::sandbox::registries(&context.host, spec);
        sandbox.hosts.extend(hosts);
        notes.extend(unknown.into_iter().map(|(host, file)| {
            format!("the sandbox reaches {host}: {file} names it, and your own tools do not; registries = false in [sandbox] leaves such hosts out")
        }));
    }
    let sandbox = SandboxSpec {
        write: paths(context, "write", &sandbox.write)?,
        hide: paths(context, "hide", &sandbox.hide)?,
        bounds: refrain_engine::sandbox::bounds(&sandbox),
        ..sandbox
    };
    check_write(service, spec, &sandbox.write)?;
    if sandbox.processes < SandboxSpec::FEWEST_PROCESSES {
        let (given, fewest) = (sandbox.processes, SandboxSpec::FEWEST_PROCESSES);
        let error = format!("sandbox.processes = {given}: too few for a build; accepted: {fewest} and more");
        return Err(RequestError::usage(error));
    }
    for HiddenPath { owner, path, is_program } in
        refrain_engine::sandbox::hidden(&context.host, spec, &sandbox)
    {
        if !is_program {
            notes.push(format!("{owner} names {path}, which the sandbox hides"));
            continue;
        }
        refuse_hidden(mode, notes, &format!("{path} of {owner}"))?;
        return Ok(None);
    }
    let Err(error) = refrain_engine::sandbox::probe(&context.host, spec, &sandbox) else {
        return Ok(Some(sandbox));
    };
    if mode == SandboxMode::Auto {
        notes.push(format!("the loop runs without a sandbox: {error}"));
        return Ok(None);
    }
    if error.cause == Cause::Path {
        // Something is in the way, and the command that mends it is named.
        return Err(refused(&error));
    }
    let has_less = mode == SandboxMode::On
        && refrain_engine::sandbox::probe_machine(&context.host, Mechanism::Files).is_ok();
    let less = has_less.then_some("--sandbox=files --worktree limits files and not the network; ");
    let none = "--no-sandbox starts it with your own rights";
    Err(refused(&error).hint(format!("{}{none}", less.unwrap_or_default())))
}

/// Refuses a path that an agent can make lead elsewhere, as it is followed: in the worktree of another loop, behind a link of
/// this one's, or in Refrain's own folders.
fn check_write(service: &Service, spec: &Spec, write: &[Utf8PathBuf]) -> Result<(), RequestError> {
    if write.is_empty() {
        return Ok(());
    }
    let host = service.host();
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let in_project = [".git/refrain", ".refrain/data"].map(|name| spec.project.join(name));
    let own = [&host.data_home, &host.state_home, &host.config_home].into_iter().chain(&in_project);
    let mut folders: Vec<_> = own.map(|folder| (real(folder), "Refrain's own data".to_owned())).collect();
    let worktrees = service.open_worktrees()?.into_iter();
    folders.extend(worktrees.map(|(id, worktree)| (real(&worktree), format!("the worktree of loop {id}"))));
    let worktree = real(&spec.worktree);
    for path in write {
        let through = leads_through(path);
        let of_other =
            folders.iter().find(|(folder, _)| through.iter().any(|place| place.starts_with(folder)));
        let is_inside = |place: &Utf8PathBuf| place.starts_with(&worktree);
        let leaves = through.iter().any(is_inside) && !through.last().is_some_and(is_inside);
        let owner = of_other.map(|(_, owner)| owner.as_str()).or(leaves.then_some("a link in the project"));
        let Some(owner) = owner else { continue };
        let error = format!(
            "sandbox.write: {path} leads through {owner}; accepted: paths outside, that no agent writes"
        );
        return Err(RequestError::usage(error).hint("take it out of write in [sandbox]"));
    }
    Ok(())
}

/// What an automatic sandbox does without, and another refuses.
fn refuse_hidden(mode: SandboxMode, notes: &mut Vec<String>, program: &str) -> Result<(), RequestError> {
    if mode == SandboxMode::Auto {
        notes.push(format!("the loop runs without a sandbox: it would hide the program {program}"));
        return Ok(());
    }
    let error = Message::from("the sandbox hides the program ").then(program.to_owned());
    Err(RequestError::usage(error)
        .hint("move it out of /tmp, /dev and hidden folders; --no-sandbox starts it with your own rights"))
}

/// Refuses a loop whose sandbox needs a worktree of its own, and that has none; and one whose agent lies in the project, where
/// its own worktree does not show it.
pub(crate) fn check_worktree(
    context: &Context,
    spec: &mut Spec,
    (args, config): (&SandboxArgs, &Sandbox),
    notes: &mut Vec<String>,
) -> Result<(), RequestError> {
    let Some(sandbox) = &spec.sandbox else { return Ok(()) };
    if spec.git.checkout.is_own_worktree() {
        // It is made later.
        let there = Spec { worktree: context.host.state_home.join("worktrees/new"), ..spec.clone() };
        let mut hidden = refrain_engine::sandbox::hidden(&context.host, &there, sandbox).into_iter();
        if let Some(HiddenPath { owner, path, .. }) = hidden.find(|it| it.is_program && it.owner == AGENT) {
            refuse_hidden(args.resolve(config).0, notes, &format!("{path} of {owner}"))?;
            spec.sandbox = None;
        }
        return Ok(());
    }
    if sandbox.mechanism != Mechanism::Files {
        return Ok(());
    }
    let error =
        "--sandbox=files needs a worktree of the loop's own: it cannot protect the .git folder of a clone";
    Err(RequestError::usage(error).hint("add --worktree"))
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
    RequestError::new(Code::Failed, text).hint(error.cause.remedy(&error.refusal))
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
