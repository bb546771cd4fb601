//! `refrain plan show`.

use std::process::ExitCode;

use refrain_core::plan::brief::{Brief, ToldTask, prompt, verification};
use refrain_core::plan::{Task, TaskRef, task_loop};
use refrain_core::spec::{AgentKind, AgentSpec, Limits, OutputFormat, Permissions, PromptMode};
use refrain_core::text::nearest;
use refrain_core::{LoopId, Spec, prompt as loops};
use refrain_engine::Service;

use super::source::SourceArgs;
use super::spec_args::SpecArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;

/// Show exactly what the agent of a task will be told
///
/// That is the first prompt of its loop. Where gates fail before the first iteration, what they say follows it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The task's id
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// Print an object, with the parts and their tokens
    #[arg(long)]
    json: bool,
}

/// Says what is told.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let source = args.source.read(context)?;
    let texts = args.spec.read(context, &args.source, &source)?;
    let (tag, tasks) = (&source.file.tag, source.graph.tasks());
    let Some(at) = tasks.iter().position(|task| task.id.as_str() == args.task) else {
        return Err(no_task(&args.task, tag, tasks));
    };
    let task = &tasks[at];
    let brief = Brief::of(&source.graph, at, texts.sources());
    let warning = brief.over_budget(&task.id, args.spec.max_spec_tokens);
    // The plan that a run would make: there may be none yet.
    let plan = LoopId::derived(tag, 0);
    let about = TaskRef { plan, tag: tag.clone(), id: task.id.clone(), title: task.title.clone(), round: 1 };
    let proof = verification(task, &texts.verification);
    let told = prompt(task, tag, &brief, None);
    let told = loops::first(&task_loop(common(&context.service()?), about, told, proof));
    if args.json {
        let file = source.file.path.as_str();
        out::print_json(&ToldTask::of((file, tag, task), &brief, args.spec.max_spec_tokens, told))?;
    } else {
        out::print_whole(&told)?;
        if out::terminal_width().is_some() {
            out::print("\n");
        }
    }
    if let Some(warning) = warning {
        out::tell_line("", &format!("refrain: warning: {warning}"));
    }
    Ok(Code::Done.into())
}

fn no_task(asked: &str, tag: &str, tasks: &[Task]) -> CliError {
    let error = CliError::new(Code::NotFound, format!("there is no task {asked} in {tag}"));
    match nearest(asked, tasks.iter().map(|task| task.id.as_str())) {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error.hint("refrain plan waves shows those that there are"),
    }
}

/// What loops of a plan have in common, as far as their agents are told of it: nothing depends on which agent that is.
fn common(service: &Service) -> Spec {
    let project = service.project();
    Spec {
        id: LoopId::derived("", 0),
        task: None,
        agent: AgentSpec {
            kind: AgentKind::Generic,
            program: String::new(),
            args: Vec::new(),
            prompt_mode: PromptMode::Auto,
            env: Default::default(),
            clean_env: false,
            model: None,
            permissions: Permissions::default(),
            output_format: OutputFormat::default(),
            price: None,
        },
        prompt: String::new(),
        iteration_context: true,
        promise: None,
        limits: Limits {
            max_iterations: None,
            max_duration: None,
            timeout: None,
            idle_timeout: None,
            pause: None,
            max_cost: None,
            max_tokens: None,
            retry_for: None,
        },
        project: project.root.clone(),
        worktree: project.worktree.clone(),
        working_dir: project.worktree.clone(),
        git: Default::default(),
        gates: Vec::new(),
        protect: Default::default(),
        clean_checkout: false,
        stuck: Default::default(),
        critique: None,
        caps: Default::default(),
        keep_failed: false,
        mirrors: Vec::new(),
        depth: 0,
        output_cap: Spec::OUTPUT_CAP,
    }
}
