//! `refrain start`: from what a person typed and configured to a specification ([`resolve`]), and then to a running loop.

mod kinds;
pub(super) mod others;
pub(super) mod prompt;
pub(super) mod resolve;
mod stuck;
pub(super) mod work;

use std::process::ExitCode;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;
use refrain_core::mirror::Mirror;
use refrain_core::text::printable;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::{Chosen, ProjectFile, Settings};
use refrain_engine::{Runner, Service, left_to_others};

pub(super) use self::kinds::Match;
use self::work::{PromiseArgs, TaskArgs, WordArgs, WorkArgs};

use crate::cli::Context;
use crate::cmd::gate_args::GateArgs;
use crate::cmd::git_args::GitArgs;
use crate::cmd::heading;
use crate::cmd::plan::run::{self as plan, ByTag};
use crate::cmd::until_args::UntilArgs;
use crate::error::CliError;
use crate::run::{self, ShowArgs};
use crate::values;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    mode: ModeArgs,
}

// Its way of working.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ModeArgs {
    /// Its way of working: research, implement, or one that the configuration has under this name; what it is about is the
    /// prompt, where there is one
    #[arg(help_heading = heading::RUN, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    mode: Option<String>,
}

impl ModeArgs {
    /// Whether there is one.
    pub(super) fn is_given(&self) -> bool {
        self.mode.is_some()
    }
}

// What a loop is started with, whatever its mode.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source"))]
pub(super) struct Options {
    #[command(flatten)]
    task: WordArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    plan: ByTag,
    #[command(flatten)]
    show: ShowArgs,
}

// What every verb takes that begins a loop: `start`, and `resume --from`.
#[derive(Debug, clap::Args)]
pub(super) struct BeginArgs {
    #[command(flatten)]
    pub(super) task: TaskArgs,
    /// Your own words on how to go about it, behind all else that the prompt says
    #[arg(help_heading = heading::RUN, long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    directions: Option<String>,
    /// The loop's id; made up from the command where it is left out
    #[arg(help_heading = heading::RUN, long, value_name = "ID")]
    pub(super) name: Option<LoopId>,
    #[command(flatten)]
    pub(super) work: WorkArgs,
    #[command(flatten)]
    pub(super) promise: PromiseArgs,
    #[command(flatten)]
    pub(super) until: UntilArgs,
    /// Stop after N iterations, 1 to 200 [default: 20]
    #[arg(help_heading = heading::COST, long, visible_alias = "iterations", short, value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    pub(super) max_iterations: Option<u32>,
    #[command(flatten)]
    git: GitArgs,
    /// Show it in the files of another system too: ralph, synthex, descartes, randroid
    #[arg(help_heading = heading::SHOWN, long, value_name = "SYSTEM", value_parser = Mirror::from_str)]
    mirror: Vec<Mirror>,
}

impl Args {
    /// The same with what was said in a session.
    pub(super) fn in_session(mut self, gates: GateArgs, until: UntilArgs, most: Option<u32>) -> Self {
        let begin = &mut self.options.begin;
        (begin.work.gates, begin.until, begin.max_iterations) = (gates, until, most);
        self
    }

    /// The same with what was said of a loop of another system.
    pub(super) fn of_another_system(mut self, begin: BeginArgs, mode: ModeArgs) -> Self {
        (self.options.begin, self.mode) = (begin, mode);
        self
    }

    /// A verb that is a mode: a number alone in place of a task is the maximum of iterations.
    pub(super) fn of_mode(mode: &str, mut options: Options) -> Result<Self, CliError> {
        if let [word] = options.task.words.as_slice()
            && is_number(word)
        {
            let begin = &mut options.begin;
            begin.max_iterations = Some(begin.until.at_most(word, begin.max_iterations)?);
            options.task.words.clear();
        }
        // A number before a task may be meant as the maximum, and a maximum that is not kept costs money.
        if let [word, _, ..] = options.task.words.as_slice()
            && is_number(word)
        {
            let error = format!(
                "{word}: accepted is a number alone, or a task; --iterations {word} sets the maximum of iterations beside a task"
            );
            return Err(CliError::usage(error));
        }
        Ok(Self { options, mode: ModeArgs { mode: Some(mode.to_owned()) } })
    }
}

/// Whether a word is nothing but digits.
pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
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
    if args.options.plan.asked() {
        let Options { begin, plan, show, .. } = args.options;
        let BeginArgs { name, work, max_iterations, .. } = begin;
        return plan::run_plan(context, plan.into_parts(), name, max_iterations, work, show);
    }
    let options = &args.options.begin;
    let dir = working_dir(context, &options.work)?;
    if args.options.show.detach {
        run::may_detach(context)?;
    }
    let service = Service::open(&dir, context.host.clone())?;
    let chosen = Chosen { agent: options.work.agent.as_deref(), command: options.work.command.is_some() };
    let settings = service.settings(chosen, context.inside.is_none())?;
    mention_what_does_not_count(&settings);
    let named = options.name.clone();
    let (spec, notes) = resolve::spec(context, &args, &settings, &service, &dir)?;
    launch(context, &service, (spec, named, notes), (args.options.show, &settings), &dir)
}

/// Where the loop works.
pub(super) fn working_dir(context: &Context, work: &WorkArgs) -> Result<Utf8PathBuf, CliError> {
    let dir = work.working_dir.as_ref().map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    match dir.is_dir() {
        true => Ok(dir),
        false => Err(CliError::usage(format!("--working-dir {dir}: there is no such folder"))),
    }
}

/// Starts the loop of this specification and drives it, here or in a process of its own.
pub(super) fn launch(
    context: &Context,
    service: &Service,
    (spec, named, notes): (Spec, Option<LoopId>, Vec<String>),
    (show, settings): (ShowArgs, &Settings),
    dir: &Utf8Path,
) -> Result<ExitCode, CliError> {
    context.typed.check_loop(&spec)?;
    // Who needs a worktree for itself has it.
    let is_shared = spec.git.shared || spec.needs_worktree_alone();
    let notes = Notes::of(service, &spec, notes);
    let runner = service.start(spec, named)?;
    if !is_shared {
        mention_neighbours(&runner);
    }
    if !show.quiet {
        notes.tell(runner.id());
        mention_memories(&runner);
    }
    let show = show.or_configured(&settings.config.notify);
    match show.detach {
        true => run::detached(context, service, runner, dir.as_str(), &show),
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

/// What it is told of earlier loops costs tokens in each iteration, and whoever pays for them should know.
pub(super) fn mention_memories(runner: &Runner) {
    if let Some(trouble) = runner.forgetful() {
        crate::out::tell_line("", &format!("note: {trouble}"));
    }
    let told = match runner.recalled() {
        0 => return,
        1 => "1 memory".to_owned(),
        count => format!("{count} memories"),
    };
    crate::out::tell_line("", &format!("note: it is told {told} of earlier loops; --memory off tells none"));
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
