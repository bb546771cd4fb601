//! `refrain plan run`, and `start --scud-tag` (seed 001): from what a person typed and configured to a plan's specification,
//! and then to a running plan.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::gate::GateSpec;
use refrain_core::plan::{PlanLimits, PlanSpec};
use refrain_core::promise::Promise;
use refrain_core::spec::Limits;
use refrain_core::{Spec, values as core_values};
use refrain_engine::Service;
use refrain_engine::config::{Chosen, Settings};

use super::drive;
use super::rehearsal;
use super::source::{Source, SourceArgs};
use super::spec_args::{SpecArgs, SpecTexts};
use crate::cli::Context;
use crate::cmd::adapted::{Adapted, Difference};
use crate::cmd::git_args::GitArgs;
use crate::cmd::heading;
use crate::cmd::start::work::{PromiseArgs, TaskArgs, WorkArgs};
use crate::cmd::start::{self, resolve};
use crate::error::CliError;
use crate::out;
use crate::run::{self, ShowArgs};

/// Work on the tasks of a plan until every one is proven done and has landed
///
/// Each task is a loop with an agent of its own, in a worktree of its own. What is proven lands on a line of commits; what is
/// complete, wave by wave, is handed over to your branch. Without --agent or --command it runs Claude Code.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    plan: RunArgs,
    /// The same as --max-total-iterations
    #[arg(help_heading = heading::COST, long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration, conflicts_with = "max_total_iterations")]
    max_iterations: Option<u32>,
    /// The plan's id; made up from the tag where it is left out
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    task: Adapted<TaskArgs, Refused>,
    #[command(flatten)]
    promise: Adapted<PromiseArgs, Refused>,
    #[command(flatten)]
    git: Adapted<GitArgs, Refused>,
    #[command(flatten)]
    show: ShowArgs,
}

const EXAMPLES: &str = "Examples:
  refrain plan run --tag my-feature \\
    --plan docs/my-feature.md \\
    --spec-file ARCHITECTURE.md \\
    --verify \"cargo check && cargo test\"
  refrain plan run --plan PLAN.md \\
    --jobs 4 --max-cost 20 --detach";

/// How the tasks of a plan are worked on.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// How many tasks are worked on at a time, 1 to 64; as many as cores and memory allow, 8 at most, where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Start a task as soon as its own dependencies have landed, and not with its wave
    #[arg(long)]
    pipeline: bool,
    /// How many iterations one task may take; 3 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take together; 100 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = core_values::iteration)]
    max_total_iterations: Option<u32>,
    /// Have a task that is used up wait for words of yours (refrain plan tune) in place of being blocked
    #[arg(long)]
    tune: bool,
    /// Show what would be done, and do nothing of it
    #[arg(long)]
    dry_run: bool,
}

/// Of options that loops have and plans do not: accepted, so that the refusal can say why, and not offered.
#[derive(Debug)]
pub(crate) struct Refused;

impl Difference for Refused {
    fn of(arg: clap::Arg) -> clap::Arg {
        arg.hide(true)
    }
}

/// Whose tasks, where `start` is to work on a plan.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = heading::PLAN)]
pub(crate) struct ByTag {
    /// Work on all tasks of this tag, as refrain plan run does; needs neither --command nor --prompt
    #[arg(long, value_name = "TAG")]
    scud_tag: Option<String>,
    /// The plan that the tasks belong to, in Markdown
    #[arg(long, value_name = "FILE", requires = "scud_tag")]
    plan: Option<Utf8PathBuf>,
    #[command(flatten)]
    run: Adapted<RunArgs, WithTag>,
}

/// Of options that mean nothing without a tag.
#[derive(Debug)]
pub(crate) struct WithTag;

impl Difference for WithTag {
    fn of(arg: clap::Arg) -> clap::Arg {
        arg.requires("scud_tag").help_heading(heading::PLAN)
    }
}

impl ByTag {
    /// Whose tasks, and how, where a plan is asked for.
    pub(crate) fn asked(&self) -> bool {
        self.scud_tag.is_some()
    }

    /// What `plan run` would have been told.
    pub(crate) fn into_parts(self) -> (SourceArgs, RunArgs) {
        (SourceArgs { tag: self.scud_tag, plan: self.plan }, self.run.args)
    }
}

/// Works on the plan.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    let Args { source, plan, max_iterations, name, work, task, promise, git, show } = args;
    refuse_what_loops_have(&task.args, &promise.args, &git.args)?;
    run_plan(context, (source, plan), name, max_iterations, work, show)
}

/// Refuses what a plan says for itself.
pub(in crate::cmd) fn refuse_what_loops_have(
    task: &TaskArgs,
    promise: &PromiseArgs,
    git: &GitArgs,
) -> Result<(), CliError> {
    let prompts =
        "its tasks say what is to be done; accepted are --plan and --spec-file, which every agent is told";
    let promises = "the agents of its tasks claim with TASK_COMPLETE";
    let own =
        "every task has a worktree and a branch of its own, and what landed is handed over to your branch";
    let said = [
        (!task.words.is_empty(), "PROMPT", prompts),
        (task.prompt.is_some(), "--prompt", prompts),
        (task.prompt_file.is_some(), "--prompt-file", prompts),
        (task.prompt_name.is_some(), "--prompt-name", prompts),
        (promise.completion_promise.is_some(), "--completion-promise", promises),
        (promise.no_promise, "--no-promise", promises),
        (promise.promise_match.is_some(), "--promise-match", promises),
    ];
    let said = said.into_iter().chain(git.given().into_iter().map(|flag| (true, flag, own)));
    match said.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, flag, why)) => Err(CliError::usage(format!("{flag}: not with a plan: {why}"))),
        None => Ok(()),
    }
}

/// Starts the plan and drives it, here or in a process of its own.
pub(in crate::cmd) fn run_plan(
    context: &Context,
    (source_args, args): (SourceArgs, RunArgs),
    name: Option<LoopId>,
    max_iterations: Option<u32>,
    mut work: WorkArgs,
    show: ShowArgs,
) -> Result<ExitCode, CliError> {
    let dir = work.working_dir.as_ref().map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    if !dir.is_dir() {
        return Err(CliError::usage(format!("--working-dir {dir}: there is no such folder")));
    }
    if show.detach {
        run::may_detach(context)?;
    }
    let service = Service::open(&dir, context.host.clone())?;
    let settings = settings(context, &service, &mut work)?;
    start::mention_what_does_not_count(&settings);
    let source = source_args.read(context)?;
    let errors: Vec<_> = source.problems.iter().filter(|problem| problem.is_error()).collect();
    if let Some((first, more)) = errors.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        let error = format!("{}: {first}{more}", source.file.path);
        return Err(
            CliError::usage(error).hint("refrain plan check lists all that is wrong; nothing was begun")
        );
    }
    let texts = args.spec.read(context, &source_args, &source)?;
    let mut notes = prove(&mut work, &args, &texts, &source, &settings, &service, &dir)?;
    let (each, more) = resolve::common(context, &work, &settings, &service, &dir)?;
    notes.extend(more);
    let spec = PlanSpec {
        id: name.clone().unwrap_or_else(|| LoopId::derived(&source.file.tag, 0)),
        tag: source.file.tag.clone(),
        tasks: source.file.path.clone(),
        brief: args.spec.brief(context, &source_args)?,
        limits: PlanLimits {
            per_task: args.max_iterations_per_task.unwrap_or(PlanLimits::PER_TASK),
            total: args.max_total_iterations.or(max_iterations).unwrap_or(PlanLimits::TOTAL),
            max_cost: each.limits.max_cost,
            max_duration: each.limits.max_duration,
        },
        // Money and time are the plan's: it gives its tasks a share.
        each: Box::new(Spec {
            promise: Some(Promise::of_task()),
            limits: Limits { max_cost: None, max_duration: None, ..each.limits },
            ..each
        }),
        jobs: args.jobs.unwrap_or_else(refrain_engine::usual_jobs),
        pipeline: args.pipeline,
        tune: args.tune,
    };
    if args.dry_run {
        return rehearsal::show(&spec, &source, &texts, &notes, show.json);
    }
    notes.extend(source.problems.iter().map(ToString::to_string));
    notes.extend(rehearsal::over_budget(&spec, &source, &texts));
    let runner = service.start_plan(spec, name.as_ref())?;
    if !show.quiet {
        notes.iter().for_each(|note| out::tell_line("", &format!("note: {note}")));
    }
    let show = show.or_configured(&settings.config.notify);
    match show.detach {
        true => drive::detached(context, &service, runner, dir.as_str(), &show),
        false => drive::in_foreground(context, &service, runner, &show),
    }
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
    args: &RunArgs,
    texts: &SpecTexts,
    source: &Source,
    settings: &Settings,
    service: &Service,
    dir: &Utf8Path,
) -> Result<Vec<String>, CliError> {
    if let Some(command) = texts.verification.first() {
        work.gates.add("verify", command)?;
        let by = if args.spec.verify.is_some() { return Ok(Vec::new()) } else { &source.file.path };
        return Ok(vec![format!("{by} says what proves a task: {command}")]);
    }
    if work.gates.decide(&settings.config) {
        return Ok(Vec::new());
    }
    let is_scud = source.file.shape != refrain_core::plan::file::Shape::Markdown;
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
