use std::process::ExitCode;

use camino::Utf8PathBuf;
use refrain_app::options::kinds::AgentName;
use refrain_app::plan::new_plan::{NewPlan, new_plan};
use refrain_app::{Code, Context, RequestError};
use refrain_engine::config::Command;

use super::preview::check;
use crate::out;

/// Have an agent write a plan for you to edit
///
/// The agent only reads the repository, at its last commit. Its plan is written to a new file and checked as refrain plan check
/// does. No task is run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan new \"Add a JSON output to every command\"
  refrain plan new --agent codex --plan docs/port.md \"Port the parser\"")]
pub(crate) struct Args {
    /// What is to be done, in words
    #[arg(value_name = "IDEA", required = true)]
    idea: Vec<String>,
    /// The new file [default: PLAN.md]
    #[arg(long, value_name = "FILE", default_value = "PLAN.md", hide_default_value = true)]
    plan: Utf8PathBuf,
    /// Which agent writes it [default: the configured one, else claude]
    #[arg(long, value_name = "KIND", value_parser = AgentName)]
    agent: Option<String>,
    /// What to run instead of the agent's own program
    #[arg(long, short, value_name = "CMD ARGS")]
    command: Option<Command>,
    /// Which model it uses [default: its own choice]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
}

/// Has the plan written, and prints what is wrong with it.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let Args { idea, plan: file, agent, command, model } = args;
    let request = NewPlan { idea: idea.join(" "), file, agent, command, model };
    let prepared = new_plan(context, &request, &mut out::tell_note)?;
    let checked = check::check(context, &prepared)?;
    check::print(&checked, &prepared, false)?;
    let file = shlex::try_quote(request.file.as_str()).unwrap_or_default();
    let trust = match prepared.check_trust(context) {
        Ok(()) => String::new(),
        Err(_) => format!("refrain trust --plan {file}, then "),
    };
    out::print(&match checked.ok {
        true => format!("next: edit {file}, then {trust}refrain plan run --plan {file}\n"),
        false => format!("next: correct {file}, then refrain plan check --plan {file}\n"),
    });
    Ok(if checked.ok { Code::Done } else { Code::Failed }.into())
}
