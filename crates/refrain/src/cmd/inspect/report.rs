use std::process::ExitCode;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::report::Report;
use refrain_core::view::sandbox;
use refrain_engine::ByKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::selection::Selection;
use crate::render::event_text::clock;
use crate::report::{Document, document, page, plan_document, text};
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain report docs-3f9c
  refrain report docs-3f9c --html --output report.html")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Print the report as an object
    #[arg(long)]
    json: bool,
    /// Print one page of HTML that needs nothing else
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Write it to FILE in place of standard output; one that Refrain did not write stays as it is
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = values::path)]
    output: Option<Utf8PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let (service, id) = args.selection.open(context, "refrain report")?;
    let sandbox = sandbox(&service.spec_of(&id)?);
    match service.report(&id)? {
        ByKind::Loop(report) => {
            let made = format!("Made by Refrain {} from the journal of loop {id}.", report.refrain.reported);
            given(context, &id, args, &report, &made, &|clock| {
                document(&report, service.archived_folder(&id), &sandbox, clock)
            })
        }
        ByKind::Plan(plan) => of_plan(context, plan, &sandbox, args),
    }
}

/// The object that is printed of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanReport {
    /// The version of this shape.
    schema: u32,
    /// How the plan stands.
    plan: PlanStatus,
    /// The reports on the loops of its tasks, a round after the other.
    loops: Vec<Report>,
}

/// The report of a plan: each task, and what proved it.
fn of_plan(
    context: &Context,
    refrain_engine::PlanReport { status: plan, rounds: reports }: refrain_engine::PlanReport,
    sandbox: &str,
    args: &Args,
) -> Result<ExitCode, RequestError> {
    let (id, version) = (&plan.id, &context.host.version);
    let made = format!("Made by Refrain {version} from the journals of plan {id} and its loops.");
    let loops = reports.iter().map(|(_, report)| report.clone()).collect();
    let object = PlanReport { schema: 1, plan: plan.clone(), loops };
    given(context, id, args, &object, &made, &|clock| plan_document(&plan, &reports, sandbox, clock))
}

type Clock = dyn Fn(Timestamp) -> String;

/// Prints the document or writes it to a file, in the requested format.
fn given(
    context: &Context,
    id: &LoopId,
    args: &Args,
    object: &impl Serialize,
    made: &str,
    document: &dyn Fn(&Clock) -> Document,
) -> Result<ExitCode, RequestError> {
    let failed = |error: &dyn std::fmt::Display| {
        RequestError::new(Code::Failed, format!("the report on {id} cannot be made: {error}"))
    };
    let is_shown = args.output.is_none();
    let text = if args.json {
        let text = serde_json::to_string_pretty(object).map_err(|error| failed(&error))?;
        format!("{text}\n")
    } else if args.html {
        page(&document(&utc), &format!("{made} Times are those of UTC.")).map_err(|error| failed(&error))?
    } else {
        text(&document(&clock), if is_shown { out::terminal_width() } else { None })
    };
    match &args.output {
        Some(path) => {
            let is_own = |before: &str| {
                before.starts_with("{\n  \"schema\": ")
                    || before.starts_with('<') && before.contains("Made by Refrain ")
                    || before.starts_with("Report on ")
            };
            out::write_file(&context.dir, ("--output", path), (&text, is_own))?;
        }
        // On a page and in an object nothing is a colour.
        None if args.json || args.html => out::print_whole(&text)?,
        None => out::print(&text),
    }
    Ok(Code::Done.into())
}

/// A time in UTC, the same for every reader.
fn utc(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
