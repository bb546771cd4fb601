//! Makes a plan's specification from options and configuration: `plan show` and `plan check` look at the same one that
//! `plan run` starts.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::{GateChoice, GateSpec};
use refrain_core::mirror::MirrorName;
use refrain_core::plan::{PlanLimits, PlanSpec, TaskReadiness};
use refrain_core::promise::Promise;
use refrain_core::spec::Limits;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::Settings;
use refrain_engine::{DiskError, EngineError, GateProgramError, Service, Texts};

use super::source::{Source, SourceArgs};
use super::spec_args::SpecArgs;
use super::task_mode::HowArgs;
use crate::error::{Message, RequestError};
use crate::options::work::WorkArgs;
use crate::repository_command::{self, RepositoryCommand};
use crate::{Context, Note, resolve, trust};

const NO_COMMITTER: &str = "git does not know who you are, so no task can land: git config --global user.name NAME; \
                            git config --global user.email ADDRESS";

/// How many specifications that are too long are named one by one.
const NAMED: usize = 5;

#[derive(Debug, Default)]
pub struct RunPlan {
    pub source: SourceArgs,
    pub spec: SpecArgs,
    pub how: HowArgs,
    pub name: Option<LoopId>,
    pub work: WorkArgs,
    /// The systems in whose files it is shown.
    pub mirror: Vec<MirrorName>,
}

pub struct PreparedPlan {
    pub service: Service,
    pub settings: Settings,
    pub dir: Utf8PathBuf,
    pub source: Source,
    pub spec: PlanSpec,
    /// What was chosen by default, and by whom.
    pub notes: Vec<String>,
    /// The commands of the repository that a run would start.
    commands: Vec<RepositoryCommand>,
    source_args: SourceArgs,
}

impl PreparedPlan {
    /// Reads the tasks and makes a specification of all that was said; nothing is begun.
    pub fn of(context: &Context, request: RunPlan, note: Note<'_>) -> Result<Self, RequestError> {
        let RunPlan { source: source_args, spec, how, name, mut work, mirror } = request;
        if let Some(MirrorName::Loop(other)) = mirror.iter().find(|name| **name != MirrorName::Scud) {
            let error = format!("--mirror {other}: it shows a loop; accepted for a plan is scud");
            return Err(RequestError::usage(error));
        }
        let dir = resolve::folder(context, work.working_dir.as_deref())?;
        let service = context.open(&dir, work.yes)?;
        let mut settings = resolve::settings_or_claude(context, &service, &mut work)?;
        resolve::note_untrusted(&settings, note);
        let why = "the tasks of a plan wait for no person; use it with a loop";
        resolve::forget_approval(&mut settings, why).into_iter().for_each(&mut *note);
        let source = source_args.read(context, note)?;
        let brief = spec.brief(context, &source_args)?;
        let (mut notes, mut commands) = prove(&mut work, &spec, &source, &settings, &service, &dir)?;
        commands.extend(of_tasks(&source));
        let is_asked = work.gates.require_approval;
        let resolved = resolve::common(context, &work, GateChoice::default(), &settings, &service, &dir)?;
        notes.extend(resolved.notes);
        commands.extend(resolved.offered);
        let each = resolved.spec;
        resolve::refuse_approval(&each, is_asked, &settings, why)?;
        resolve::check_caps(&settings, &each.agent)?;
        let config = &settings.config.plan;
        let spec = PlanSpec {
            id: name.unwrap_or_else(|| LoopId::derived(&source.file.tag, 0)),
            tag: source.file.tag.clone(),
            tasks: source.file.path.clone(),
            brief,
            limits: PlanLimits {
                per_task: how
                    .max_iterations_per_task
                    .or(config.max_iterations_per_task)
                    .unwrap_or(PlanLimits::PER_TASK),
                total: how.max_total_iterations.or(config.max_total_iterations).unwrap_or(PlanLimits::TOTAL),
                max_cost: each.limits.max_cost,
                max_duration: each.limits.max_duration,
            },
            // Money and time are the plan's: it gives its tasks a share.
            each: Box::new(Spec {
                promise: Some(Promise::of_task()),
                limits: Limits { max_cost: None, max_duration: None, ..each.limits },
                ..each
            }),
            jobs: how.jobs.or(config.jobs).unwrap_or_else(refrain_engine::usual_jobs),
            waves_before: 0,
            mirror: !mirror.is_empty(),
            pipeline: how.pipeline || config.pipeline.unwrap_or_default(),
            tune: how.tune || config.tune.unwrap_or_default(),
            fleet: None,
            verifications: Some(of_tasks(&source).map(|it| it.command).collect()),
        };
        if let Some(path) = spec.mirror.then(|| refrain_engine::plan_left_to_others(&spec)).flatten() {
            notes.push(format!("{path} is not Refrain's, and stays as it is"));
        }
        Ok(Self { service, settings, dir, source, spec, notes, commands, source_args })
    }

    /// The same, if it can be run as it is.
    pub fn runnable(context: &Context, request: RunPlan, note: Note<'_>) -> Result<Self, RequestError> {
        let mut prepared = Self::of(context, request, note)?;
        context.typed.check_loop(&prepared.spec.each)?;
        let source = &prepared.source;
        let errors: Vec<_> = source.problems.iter().filter(|problem| problem.is_error()).collect();
        if let Some((first, more)) = errors.split_first() {
            let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
            let error = format!("{}: {first}{more}", source.file.path);
            let check = format!("refrain plan check{}", prepared.source_args.as_words());
            return Err(RequestError::usage(error)
                .hint(format!("{check} lists all that is wrong; nothing was begun")));
        }
        prepared.check_verification()?;
        let odd: Vec<_> = source.problems.iter().map(ToString::to_string).collect();
        prepared.notes.extend(odd);
        if prepared.service.lacks_identity(&prepared.spec.each) {
            prepared.notes.push(NO_COMMITTER.to_owned());
        }
        Ok(prepared)
    }

    /// Refuses commands of the repository that are not trusted.
    pub fn check_trust(&self, context: &Context) -> Result<(), RequestError> {
        trust::check(context, &self.service, &self.commands, Some(&self.source_args))
    }

    /// Refuses verifications of tasks with a program that is missing.
    fn check_verification(&self) -> Result<(), RequestError> {
        let graph = &self.source.graph;
        let to_do =
            graph.tasks().iter().enumerate().filter(|(at, _)| graph.standing(*at) == TaskReadiness::ToDo);
        for (_, task) in to_do.filter(|(_, task)| task.verification.is_some()) {
            let each = &self.spec.each;
            let mut gates = self.spec.loop_spec(task, 1, &each.worktree, String::new()).gates;
            gates.retain(|gate| !each.gates.contains(gate));
            self.service.check_gates(each, &gates).map_err(|error| match error {
                EngineError::GateProgram(error) => {
                    let owner = format!("task {}: {}", task.id, error.owner);
                    EngineError::GateProgram(GateProgramError { owner, ..error })
                }
                error => error,
            })?;
        }
        Ok(())
    }

    /// Specifications that are longer than they may be.
    pub fn over_budget(&self, texts: &Texts<'_>) -> Vec<String> {
        let graph = &self.source.graph;
        let warning = |at: usize| {
            let brief = texts.brief(graph, at);
            Some(brief.over_budget(&graph.tasks()[at].id, self.spec.brief.max_tokens)?.to_string())
        };
        let mut warnings: Vec<String> = self.to_do().filter_map(warning).collect();
        let more = warnings.len().saturating_sub(NAMED);
        warnings.truncate(NAMED);
        if more > 0 {
            warnings.push(format!("{more} more specifications are too long"));
        }
        warnings
    }

    /// The tasks that a run would take on, by their places in the graph.
    pub fn to_do(&self) -> impl Iterator<Item = usize> {
        self.source.graph.waves().iter().flatten().copied()
    }

    /// The tasks in words, if there are any and all are done.
    pub fn done_tasks(&self) -> Option<String> {
        let graph = &self.source.graph;
        let all = graph.tasks().len();
        let is_done = |at| matches!(graph.standing(at), TaskReadiness::Done | TaskReadiness::InParts);
        (all > 0 && (0..all).all(is_done)).then(|| match all {
            1 => "the only task is".to_owned(),
            all => format!("all {all} tasks are"),
        })
    }

    pub fn texts(&self, context: &Context) -> Result<Texts<'_>, RequestError> {
        Texts::read(&self.spec).map_err(|error| unreadable(context, &self.spec, &error))
    }
}

/// The error for a file of the command line that cannot be used in a prompt.
fn unreadable(context: &Context, spec: &PlanSpec, error: &DiskError) -> RequestError {
    let flag = if spec.brief.document.as_ref() == Some(&error.path) { "--plan" } else { "--spec-file" };
    let path = error.path.strip_prefix(&context.dir).unwrap_or(&error.path);
    let path = if path.as_str().is_empty() { Utf8Path::new(".") } else { path };
    let why = format!(" {path}: {}; accepted: a readable file of UTF-8 text", error.source);
    RequestError::usage(Message::from(flag).then(why))
}

/// Makes sure that a gate decides about each task, and about what has landed, if that is possible; returns what was
/// chosen and by whom, and the commands of it that the repository names.
fn prove(
    work: &mut WorkArgs,
    args: &SpecArgs,
    source: &Source,
    settings: &Settings,
    service: &Service,
    dir: &Utf8Path,
) -> Result<(Vec<String>, Vec<RepositoryCommand>), RequestError> {
    if let Some(command) = &args.verify {
        work.gates.add("verify", command)?;
        return Ok((Vec::new(), Vec::new()));
    }
    if let Some(command) = &source.verification {
        work.gates.add("verify", command)?;
        let from = source.file.path.to_string();
        let note = format!("{from} says what proves a task: {command}");
        return Ok((vec![note], vec![RepositoryCommand { command: command.clone(), from }]));
    }
    if let Some(command) = &settings.config.plan.verify {
        work.gates.add("verify", command)?;
        return Ok((Vec::new(), Vec::new()));
    }
    if work.gates.decide(&settings.config) {
        return Ok((Vec::new(), Vec::new()));
    }
    if let Some(cargo) = trust::of_cargo(source, dir) {
        let command = &cargo.command;
        work.gates.add("verify", command)?;
        let note = format!("no gate is given; as there is a Cargo.toml, the gate is {command}");
        return Ok((vec![note], vec![cargo]));
    }
    let offered: Vec<GateSpec> = service.offer(dir)?.gates.into_iter().filter(|gate| gate.hard).collect();
    if offered.is_empty() {
        let effect = match of_tasks(source).next() {
            None => "claims are accepted, and the result is unverified",
            Some(_) if source.graph.unverified().is_none() => "the verification of each task decides",
            Some(_) => {
                "the verification of a task decides if it has one; else its claim is accepted, unverified"
            }
        };
        let note = format!("no gate is given or found in the project's files: {effect} (--verify CMD)");
        return Ok((vec![note], Vec::new()));
    }
    let commands = repository_command::of_gates(&offered).collect();
    let mut chosen = Vec::new();
    for gate in offered {
        chosen.push(gate.check.to_string());
        work.gates.add(gate.name.as_str(), &gate.check.to_string())?;
    }
    let chosen = chosen.join("; ");
    Ok((
        vec![format!("no gate is given; the gate of each task is what the project's files offer: {chosen}")],
        commands,
    ))
}

/// The commands of the tasks to do that have one of their own.
fn of_tasks(source: &Source) -> impl Iterator<Item = RepositoryCommand> {
    let graph = &source.graph;
    let to_do = graph.tasks().iter().enumerate().filter(|(at, _)| graph.standing(*at) == TaskReadiness::ToDo);
    let from = source.file.path.to_string();
    let commands = to_do.filter_map(|(_, task)| task.verification.clone());
    commands.map(move |command| RepositoryCommand { command, from: from.clone() })
}
