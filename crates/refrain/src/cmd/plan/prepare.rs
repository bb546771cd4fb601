//! From what a person typed and configured to a plan's specification: what `plan run` starts is what `plan show` and
//! `plan check` look at.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::GateSpec;
use refrain_core::plan::file::Shape;
use refrain_core::plan::{PlanLimits, PlanSpec, Standing};
use refrain_core::promise::Promise;
use refrain_core::spec::Limits;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::{Chosen, Settings};
use refrain_engine::{DiskError, EngineError, GateProgramError, Service, Texts};

use super::run::HowArgs;
use super::source::{Source, SourceArgs};
use super::spec_args::SpecArgs;
use crate::cli::Context;
use crate::cmd::adapted::{Adapted, Difference};
use crate::cmd::heading;
use crate::cmd::start::work::WorkArgs;
use crate::cmd::start::{self, resolve};
use crate::error::CliError;

/// All that a plan's specification is made of.
pub(super) struct Asked {
    pub(super) source: SourceArgs,
    pub(super) spec: SpecArgs,
    pub(super) how: HowArgs,
    pub(super) name: Option<LoopId>,
    pub(super) work: WorkArgs,
}

/// What a plan would be run with, for verbs that only look at it.
#[derive(Debug, clap::Args)]
pub(super) struct LookArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// The plan's id, as it will be given to plan run
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    #[command(flatten)]
    work: Adapted<WorkArgs, OnlyProof>,
}

/// Of options that change nothing of what is told but for those about gates: accepted, so that the line of `plan run` will do,
/// and not offered.
#[derive(Debug)]
struct OnlyProof;

impl Difference for OnlyProof {
    fn of(arg: clap::Arg) -> clap::Arg {
        let is_told = arg.get_help_heading() == Some(heading::PROOF);
        arg.hide(!is_told)
    }
}

impl LookArgs {
    /// What `plan run` would make of the same.
    pub(super) fn prepare(self, context: &Context) -> Result<Prepared, CliError> {
        let Self { source, spec, name, work } = self;
        let (how, work) = (HowArgs::default(), work.args);
        Prepared::of(context, Asked { source, spec, how, name, work })
    }
}

/// A plan that could be run.
pub(super) struct Prepared {
    pub(super) service: Service,
    pub(super) settings: Settings,
    pub(super) dir: Utf8PathBuf,
    pub(super) source: Source,
    pub(super) spec: PlanSpec,
    /// What was chosen where nobody said, and by whom.
    pub(super) notes: Vec<String>,
}

impl Prepared {
    /// Reads the tasks and makes a specification of all that was said; nothing is begun.
    pub(super) fn of(context: &Context, asked: Asked) -> Result<Self, CliError> {
        let Asked { source: source_args, spec, how, name, mut work } = asked;
        let dir = work.working_dir.as_ref().map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
        if !dir.is_dir() {
            return Err(CliError::usage(format!("--working-dir {dir}: there is no such folder")));
        }
        let service = Service::open(&dir, context.host.clone())?;
        let mut settings = settings(context, &service, &mut work)?;
        start::mention_what_does_not_count(&settings);
        let why = "the tasks of a plan wait for no person: accepted are loops";
        resolve::forget_approval(&mut settings, why);
        let source = source_args.read(context)?;
        let brief = spec.brief(context, &source_args)?;
        let mut notes = prove(&mut work, &spec, &source, &settings, &service, &dir)?;
        let is_asked = work.gates.require_approval;
        let (each, more) = resolve::common(context, &work, &settings, &service, &dir)?;
        notes.extend(more);
        resolve::refuse_approval(&each, is_asked, &settings, why)?;
        let spec = PlanSpec {
            id: name.unwrap_or_else(|| LoopId::derived(&source.file.tag, 0)),
            tag: source.file.tag.clone(),
            tasks: source.file.path.clone(),
            brief,
            limits: PlanLimits {
                per_task: how.max_iterations_per_task.unwrap_or(PlanLimits::PER_TASK),
                total: how.max_total_iterations.unwrap_or(PlanLimits::TOTAL),
                max_cost: each.limits.max_cost,
                max_duration: each.limits.max_duration,
            },
            // Money and time are the plan's: it gives its tasks a share.
            each: Box::new(Spec {
                promise: Some(Promise::of_task()),
                limits: Limits { max_cost: None, max_duration: None, ..each.limits },
                ..each
            }),
            jobs: how.jobs.unwrap_or_else(refrain_engine::usual_jobs),
            pipeline: how.pipeline,
            tune: how.tune,
        };
        Ok(Self { service, settings, dir, source, spec, notes })
    }

    /// Refuses what tasks themselves say proves them, where its program is not there.
    pub(super) fn check_verification(&self) -> Result<(), CliError> {
        let graph = &self.source.graph;
        let to_do = graph.tasks().iter().enumerate().filter(|(at, _)| graph.standing(*at) == Standing::ToDo);
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

    /// What the agents are told.
    pub(super) fn texts(&self, context: &Context) -> Result<Texts<'_>, CliError> {
        Texts::read(&self.spec).map_err(|error| unreadable(context, &self.spec, &error))
    }
}

/// A file that was named on the command line, and cannot be told.
fn unreadable(context: &Context, spec: &PlanSpec, error: &DiskError) -> CliError {
    let flag = if spec.brief.document.as_ref() == Some(&error.path) { "--plan" } else { "--spec-file" };
    let path = error.path.strip_prefix(&context.dir).unwrap_or(&error.path);
    let path = if path.as_str().is_empty() { Utf8Path::new(".") } else { path };
    CliError::usage(format!("{flag} {path}: {}; accepted is a readable file of UTF-8 text", error.source))
}

/// What is configured. Where nothing says who works, it is Claude Code: seed 001 knows no other.
fn settings(context: &Context, service: &Service, work: &mut WorkArgs) -> Result<Settings, CliError> {
    let choose = |work: &WorkArgs| {
        let chosen = Chosen { agent: work.agent.as_deref(), command: work.command.is_some() };
        service.settings(chosen, context.inside.is_none())
    };
    let settings = choose(work)?;
    let start = &settings.config.start;
    let is_said = work.agent.is_some() || work.command.is_some();
    if is_said || start.agent.is_some() || start.command.is_some() {
        return Ok(settings);
    }
    work.agent = Some("claude".to_owned());
    Ok(choose(work)?)
}

/// Sees to it that something decides about each task, and about what has landed, where that is possible; returns what was
/// chosen and by whom.
fn prove(
    work: &mut WorkArgs,
    args: &SpecArgs,
    source: &Source,
    settings: &Settings,
    service: &Service,
    dir: &Utf8Path,
) -> Result<Vec<String>, CliError> {
    if let Some(command) = args.verify.as_ref().or(source.verification.as_ref()) {
        work.gates.add("verify", command)?;
        let by = if args.verify.is_some() { return Ok(Vec::new()) } else { &source.file.path };
        return Ok(vec![format!("{by} says what proves a task: {command}")]);
    }
    if work.gates.decide(&settings.config) {
        return Ok(Vec::new());
    }
    let is_scud = source.file.shape != Shape::Markdown;
    if is_scud && dir.join("Cargo.toml").is_file() {
        const CARGO: &str = "cargo check && cargo test";
        work.gates.add("verify", CARGO)?;
        return Ok(vec![format!("nothing says what proves a task; as there is a Cargo.toml, it is {CARGO}")]);
    }
    let offered: Vec<GateSpec> = service.offer(dir)?.gates.into_iter().filter(|gate| gate.hard).collect();
    if offered.is_empty() {
        let note = "nothing says what proves a task, nor do the project's files: what the agents claim lands, unverified";
        return Ok(vec![format!("{note} (--verify CMD)")]);
    }
    let mut chosen = Vec::new();
    for gate in offered {
        chosen.push(gate.check.to_string());
        work.gates.add(gate.name.as_str(), &gate.check.to_string())?;
    }
    let chosen = chosen.join("; ");
    Ok(vec![format!("nothing says what proves a task; the project's files offer {chosen}")])
}
