//! `refrain plan tune`: shows what a failed task received, its output and its failures, and sets advice for its next
//! agent, written by the user or proposed by another agent.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use camino::Utf8PathBuf;
use owo_colors::OwoColorize;
use refrain_app::plan::edit_tasks::check_open;
use refrain_app::plan::tune as app;
use refrain_app::resolve::agents;
use refrain_app::resolve::prompt::read;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::plan::tune::{LastRound, TriedAttempt, TriedGate};
use refrain_core::plan::{PlanGrant, PlanState, Stage, TaskId, TaskState};
use refrain_core::spec::AgentSpec;
use refrain_core::text::{printable, squeeze};
use refrain_core::view::plan::PlanStatus;
use refrain_engine::Service;
use refrain_engine::config::AgentChoice;
use schemars::JsonSchema;
use serde::Serialize;

use super::selection;
use crate::render::phrase;
use crate::run::ShowArgs;
use crate::{out, values};

/// Help a task that its agent could not finish
///
/// Shows the prompts, the results and the failures. An agent that can only read proposes advice for the next attempt; on a terminal
/// you accept it, edit it in your $EDITOR, or reject it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan tune 3
  refrain plan tune 3 --words \"Use the pool of src/db.rs.\" --resume")]
pub(crate) struct Args {
    /// The plan, then the task; each may be omitted if only one is possible
    #[arg(value_name = "ID|TASK", num_args = 0..=2)]
    which: Vec<String>,
    /// The plan; the same as ID
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    /// The tag of its tasks
    #[arg(long, value_name = "TAG", conflicts_with = "name")]
    tag: Option<String>,
    /// Your advice for the next attempt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["words_file", "accept", "reviewer"])]
    words: Option<String>,
    /// The file that holds your advice
    #[arg(long, value_name = "FILE", conflicts_with_all = ["accept", "reviewer"])]
    words_file: Option<Utf8PathBuf>,
    /// The agent that proposes the advice: an agent's name or a command [default: the plan's own agent, in a new session]
    #[arg(long, value_name = "KIND|CMD")]
    reviewer: Option<String>,
    /// Accept the proposed advice
    #[arg(long)]
    accept: bool,
    /// Resume the plan with the advice
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// What `--json` prints where nothing is resumed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TuneOutput {
    /// The version of this shape.
    schema: u32,
    /// The plan.
    plan: LoopId,
    /// How the task was tried.
    tried: LastRound,
    /// What its next agent will be told; null where nothing was said or taken.
    words: Option<String>,
}

/// Shows the failed attempts, gets the advice, and records it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let (plan, task_id) = which_task(args, &service)?;
    let has_tunable = |state: PlanState| state.tasks.iter().any(TaskState::may_be_tuned);
    let is_candidate =
        |plan: &PlanStatus| plan.status.has_stopped() && service.plan(&plan.id).is_ok_and(has_tunable);
    let id = selection::only(
        &service,
        (plan.as_ref(), args.tag.as_deref()),
        ("refrain plan tune", "no plan here has stopped with a blocked task"),
        is_candidate,
    )?;
    let state = service.plan(&id)?;
    let task = task(task_id, &state)?;
    // Before a reviewer is paid.
    check_open(&service, &id)?;
    let tried = service
        .tried(&state, &task)?
        .ok_or_else(|| RequestError::new(Code::Refused, format!("task {task} of {id} was not tried yet")))?;
    let source = source(context, &service, args, &state)?;
    if !args.show.quiet && !args.show.json {
        out::print(&text(&tried));
    }
    let words = match source {
        AdviceSource::Own(words) => Some(words),
        AdviceSource::Reviewer(reviewer) => propose(context, &service, args, (&state, &tried), &reviewer)?,
    };
    if let Some(words) = &words {
        app::tune(context, &service, &id, &app::Tune { task: task.clone(), text: words.clone() })?;
    }
    if args.resume && words.is_some() {
        return super::resume::resume(context, &service, (&id, true), &PlanGrant::default(), &args.show);
    }
    if args.show.json {
        out::print_json(&TuneOutput { schema: 1, plan: id, tried, words })?;
    } else if words.is_some() {
        out::print(&format!("task {task} will be told so; refrain plan resume {id} continues\n"));
    } else {
        let next = "--words TEXT says it in your own words, --accept takes a proposal";
        out::print(&format!("nothing was recorded; {next}\n"));
    }
    Ok(Code::Done.into())
}

/// The plan and the task that are named. A word alone is a plan where there is one of that id.
fn which_task(args: &Args, service: &Service) -> Result<(Option<LoopId>, Option<TaskId>), RequestError> {
    let plan = |text: &str| text.parse::<LoopId>().map_err(|error| RequestError::usage(error.to_string()));
    let task = |text: &str| text.parse::<TaskId>().map_err(|error| RequestError::usage(error.to_string()));
    let (id, of) = match args.which.as_slice() {
        [] => (None, None),
        [word] if args.name.is_none() && plan(word).is_ok_and(|id| service.locate_plan(&id).is_ok()) => {
            (Some(plan(word)?), None)
        }
        [word] => (None, Some(task(word)?)),
        [id, word, ..] => (Some(plan(id)?), Some(task(word)?)),
    };
    match (id, &args.name, &args.tag) {
        (Some(id), Some(name), _) if id != *name => {
            Err(RequestError::usage(format!("--name {name}: {id} is another plan; leave one of them out")))
        }
        (Some(id), _, Some(tag)) => Err(RequestError::usage(format!(
            "--tag {tag}: plan {id} is named already; leave one of them out"
        ))),
        (id, name, _) => Ok((id.or_else(|| name.clone()), of)),
    }
}

fn task(named: Option<TaskId>, state: &PlanState) -> Result<TaskId, RequestError> {
    let id = &state.spec.id;
    let ids = |is_meant: fn(&&TaskState) -> bool| -> Vec<TaskId> {
        state.tasks.iter().filter(is_meant).map(|task| task.card.id.clone()).collect()
    };
    let mut tried = ids(|task| matches!(task.stage, Stage::Stopped(_)));
    if tried.is_empty() {
        // Those that were tuned before: other words replace the first.
        tried = ids(|task| task.may_be_tuned());
    }
    let list = tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let Some(task) = named else {
        return match tried.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(RequestError::new(Code::Refused, format!("no task of {id} was tried in vain"))),
            _ => Err(RequestError::usage(format!("TASK is needed: accepted: {list}"))),
        };
    };
    match state.task(&task) {
        Some(found) if found.may_be_tuned() => Ok(task),
        Some(found) => {
            let why = not_tuned(found);
            let error = format!("task {task} of {id} {why}; accepted: one that was tried in vain");
            let error = RequestError::new(Code::Refused, error);
            Err(if tried.is_empty() { error } else { error.hint(format!("those are: {list}")) })
        }
        None => Err(RequestError::new(Code::NotFound, format!("there is no task {task} in {id}"))
            .hint(format!("refrain plan status {id} shows those that there are"))),
    }
}

/// Why nothing is said about a task.
fn not_tuned(task: &TaskState) -> &'static str {
    match task.stage {
        Stage::Landed { .. } => "is done",
        Stage::Out if task.is_met() => "is done",
        Stage::Out => "is not for this plan to do",
        Stage::Proven { .. } => "is verified, and about to land",
        Stage::Running(_) => "is not over",
        Stage::Waiting(_) | Stage::Stopped(_) => "is still to be tried",
    }
}

enum AdviceSource {
    /// The user's own words.
    Own(String),
    /// The agent that proposes some.
    Reviewer(AgentSpec),
}

/// Where the advice comes from, before anything is printed.
fn source(
    context: &Context,
    service: &Service,
    args: &Args,
    state: &PlanState,
) -> Result<AdviceSource, RequestError> {
    let own = match (&args.words, &args.words_file) {
        (Some(words), _) => Some(words.clone()),
        (None, Some(file)) => Some(read(&format!("--words-file {file}"), &context.dir.join(file))?),
        (None, None) => None,
    };
    if let Some(words) = own {
        return match words.trim().is_empty() {
            true => {
                Err(RequestError::usage("the words are empty; accepted: what the next agent is to be told"))
            }
            false => Ok(AdviceSource::Own(words)),
        };
    }
    let each = &state.spec.each;
    let settings = service.settings(AgentChoice::default(), context.has_variables())?;
    let worker = (&each.agent, &each.limits);
    let reviewer = agents::judge("--reviewer", args.reviewer.as_deref(), None, worker, &settings)?;
    Ok(AdviceSource::Reviewer(reviewer))
}

/// Words that an agent proposes and the user takes or changes.
fn propose(
    context: &Context,
    service: &Service,
    args: &Args,
    (state, tried): (&PlanState, &LastRound),
    reviewer: &AgentSpec,
) -> Result<Option<String>, RequestError> {
    out::tell_line("", &format!("{} is asked what to do differently", reviewer.program));
    let proposed = match service.propose(state, tried, reviewer)? {
        Ok(words) => words,
        Err(said) => {
            let said = refrain_core::text::squeeze(&printable(&said));
            let error = format!("{} proposed nothing after REFINEMENT: {said}", reviewer.program);
            return Err(RequestError::new(Code::Failed, error).hint("--words TEXT says it in your own words"));
        }
    };
    out::tell(&format!("{}\n{}\n", "It proposes:".bold(), indented(&proposed)));
    if args.accept {
        return Ok(Some(proposed));
    }
    let is_watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !is_watched {
        out::tell_line("", "--accept takes it");
        return Ok(None);
    }
    choose(context, proposed)
}

fn choose(context: &Context, proposed: String) -> Result<Option<String>, RequestError> {
    loop {
        out::tell("Take it, edit it, or leave it? [t/e/L] ");
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        read.map_err(|error| RequestError::usage(format!("the answer cannot be read: {error}")))?;
        match answer.trim() {
            "t" | "T" => return Ok(Some(proposed)),
            "e" | "E" => return edited(context, &proposed).map(Some),
            "" | "l" | "L" => return Ok(None),
            _ => {}
        }
    }
}

/// The text after the user changed it in their editor.
fn edited(context: &Context, proposed: &str) -> Result<String, RequestError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        RequestError::new(Code::Failed, format!("{what}: {error}"))
    };
    let file = tempfile::Builder::new().prefix("refrain-tune-").suffix(".md").tempfile();
    let mut file = file.map_err(|error| failed("no file can be made to be edited", &error))?;
    file.write_all(proposed.as_bytes()).map_err(|error| failed("it cannot be written", &error))?;
    let words = values::editor(context)?.unwrap_or_else(|| vec!["vi".to_owned()]);
    let path = file.path().to_string_lossy();
    if values::open(context, &words, Some(&path), &context.dir)? != ExitCode::SUCCESS {
        return Err(RequestError::new(
            Code::Failed,
            format!("{} failed; nothing was recorded", words.join(" ")),
        ));
    }
    let text =
        std::fs::read_to_string(file.path()).map_err(|error| failed("it cannot be read again", &error))?;
    match text.trim().is_empty() {
        true => Err(RequestError::usage("the words are empty; nothing was recorded")),
        false => Ok(text),
    }
}

fn text(tried: &LastRound) -> String {
    let LastRound { task, title, reason, id_of_loop, told, attempts, diff } = tried;
    let reason = squeeze(&printable(reason));
    let mut text = format!(
        "{} {}\n  {reason}; its loop is {id_of_loop}\n\n{}\n{}\n",
        format!("Task {task}:").bold(),
        printable(title),
        "It was told".bold(),
        indented(told)
    );
    for TriedAttempt { attempt, said, failed } in attempts {
        text.push_str(&format!("\n{}\n{}\n", format!("Attempt {attempt} said").bold(), indented(said)));
        for TriedGate { gate, printed } in failed {
            text.push_str(&format!("{}\n{}\n", format!("gate {gate} failed").yellow(), indented(printed)));
        }
    }
    if !diff.trim().is_empty() {
        text.push_str(&format!("\n{}\n{}\n", "It changed".bold(), indented(diff)));
    }
    text.push('\n');
    text
}

/// At most so many lines of one text are shown: `refrain logs` has all of it.
const SHOWN: usize = 40;

fn indented(text: &str) -> String {
    let text = printable(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let more = lines.len().saturating_sub(SHOWN);
    let shown = lines.iter().skip(more).map(|line| format!("  {line}"));
    let more = (more > 0).then(|| format!("  {} {more} lines before", phrase::in_charset("…")));
    more.into_iter().chain(shown).collect::<Vec<_>>().join("\n")
}
