//! `refrain start`: from what a person typed and configured to a specification ([`resolve`]), and then to a running loop.

mod kinds;
pub(super) mod others;
pub(super) mod resolve;
mod stuck;
pub(super) mod work;

use std::process::ExitCode;
use std::str::FromStr;

use clap::ArgGroup;
use refrain_core::mirror::Mirror;
use refrain_core::text::printable;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::{Chosen, ProjectFile, Settings};
use refrain_engine::{Runner, Service, left_to_others};

pub(super) use self::kinds::Match;
use self::work::{PromiseArgs, TaskArgs, WorkArgs};

use crate::cli::Context;
use crate::cmd::gate_args::GateArgs;
use crate::cmd::git_args::GitArgs;
use crate::cmd::heading;
use crate::cmd::plan::run::{self as plan, ByTag};
use crate::cmd::until_args::UntilArgs;
use crate::error::CliError;
use crate::run::{self, ShowArgs};
use crate::values;

/// Start a loop
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source"), after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// The loop's id; made up from the command where it is left out
    #[arg(help_heading = heading::RUN, long, value_name = "ID")]
    name: Option<LoopId>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    promise: PromiseArgs,
    #[command(flatten)]
    until: UntilArgs,
    /// How many iterations at most, 1 to 200; 20 where it is left out
    #[arg(help_heading = heading::COST, long, short, value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    max_iterations: Option<u32>,
    #[command(flatten)]
    git: GitArgs,
    #[command(flatten)]
    plan: ByTag,
    #[command(flatten)]
    show: ShowArgs,
    /// Show it in the files of another system too: ralph, synthex, descartes, randroid
    #[arg(help_heading = heading::SHOWN, long, value_name = "SYSTEM", value_parser = Mirror::from_str)]
    mirror: Vec<Mirror>,
}

impl Args {
    /// The same with what was said in a session.
    pub(super) fn in_session(mut self, gates: GateArgs, until: UntilArgs, most: Option<u32>) -> Self {
        self.work.gates = gates;
        Self { until, max_iterations: most, ..self }
    }
}

// In short lines: one that a narrow terminal breaks cannot be copied.
const EXAMPLES: &str = "Examples:
  refrain start --agent claude \\
    --max-cost 5 \"Fix the tests.\"
  refrain start --agent codex \\
    --gate \"cargo test\" \\
    --soft-gate \"cargo clippy\" \\
    --git-workflow commit \\
    --prompt-file TASK.md
  refrain start --command ./agent.sh \\
    --max-iterations 10 \\
    --timeout 20m --detach \\
    \"Fix the tests.\"

What is left out here, the configuration says: refrain config show. All about it: docs/configuration.md";

/// Starts the loop and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    if args.plan.asked() {
        let Args { task, name, work, promise, until, max_iterations, git, mirror, plan, show } = args;
        if let Some(mirror) = mirror.first() {
            return Err(CliError::usage(format!("--mirror {mirror}: not with a plan: accepted is a loop")));
        }
        if let Some(flag) = until.given() {
            return Err(CliError::usage(format!("{flag}: not with a plan, which ends with its tasks")));
        }
        plan::refuse_what_loops_have(&task, &promise, &git)?;
        return plan::run_plan(context, plan.into_parts(), name, max_iterations, work, show);
    }
    let dir = match &args.work.working_dir {
        Some(dir) => context.dir.join(dir),
        None => context.dir.clone(),
    };
    if !dir.is_dir() {
        return Err(CliError::usage(format!("--working-dir {dir}: there is no such folder")));
    }
    if args.show.detach {
        run::may_detach(context)?;
    }
    let service = Service::open(&dir, context.host.clone())?;
    let chosen = Chosen { agent: args.work.agent.as_deref(), command: args.work.command.is_some() };
    let settings = service.settings(chosen, context.inside.is_none())?;
    mention_what_does_not_count(&settings);
    let named = args.name.clone();
    let (spec, notes) = resolve::spec(context, &args, &settings, &service, &dir)?;
    // Who needs a worktree for itself has it.
    let is_shared = spec.git.shared || spec.needs_worktree_alone();
    let notes = Notes::of(&service, &spec, notes);
    let runner = service.start(spec, named)?;
    if !is_shared {
        mention_neighbours(&runner);
    }
    if !args.show.quiet {
        notes.tell(runner.id());
    }
    let show = args.show.or_configured(&settings.config.notify);
    match show.detach {
        true => run::detached(context, &service, runner, dir.as_str(), &show),
        false => run::in_foreground(context, runner, &show),
    }
}

/// What a person should know of a loop that is beginning.
pub(super) struct Notes {
    notes: Vec<String>,
    /// The version of its program, and those that were tested.
    untested: Option<(String, String)>,
}

impl Notes {
    /// `notes`, and what there is to say of the loop's program.
    pub(super) fn of(service: &Service, spec: &Spec, notes: Vec<String>) -> Self {
        let notes = notes.into_iter().chain(not_shown(spec)).collect();
        Self { notes, untested: service.untested(spec) }
    }

    /// Says them.
    pub(super) fn tell(&self, id: &LoopId) {
        for note in &self.notes {
            crate::out::tell(&format!("note: {}\n", printable(note).replace('\n', " ")));
        }
        if let Some((version, tested)) = &self.untested {
            let program = format!("loop {id} runs a program of version {version}");
            crate::out::tell_line("", &format!("note: {program}; Refrain was tested with {tested}"));
        }
    }
}

/// What a person should know of files that a loop would be shown in, and that are somebody else's.
pub(super) fn not_shown(spec: &Spec) -> impl Iterator<Item = String> {
    left_to_others(spec).into_iter().map(|path| {
        let next = "resume --from goes on with what another system began there";
        format!("{path} is not Refrain's and stays as it is: the loop is not shown there; {next}")
    })
}

/// What somebody configured and this loop goes without: a file that nobody trusts.
pub(super) fn mention_what_does_not_count(settings: &Settings) {
    if let ProjectFile::Untrusted(path) = &settings.project_file {
        crate::out::tell_line(
            "",
            &format!(
                "note: {path} is not trusted and counts as not there; refrain trust shows what it would allow"
            ),
        );
    }
}

/// Loops that neither commit nor have gates may share a worktree; but whoever starts the second should know of the first.
fn mention_neighbours(runner: &Runner) {
    let neighbours = runner.neighbours();
    if !neighbours.is_empty() {
        let names = neighbours.join(", ");
        crate::out::tell_line(
            "",
            &format!(
                "note: {names} may be running in {} too; --share-worktree says that this is meant",
                runner.worktree()
            ),
        );
    }
}
