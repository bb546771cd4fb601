use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::report::{Check, Outcome, ReportFile, Subject, Verdict};
use refrain_engine::{ByKind, EngineError};

use super::selection::{ReadableId, RemoteArgs};
use super::whole_logs::bring;
use crate::out;

use crate::render::phrase;

#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "Examples:
  refrain verify docs-3f9c
  refrain verify docs-3f9c --report report.json")]
pub(crate) struct Args {
    /// The loop or plan [default: the one that the report is on, or the one touched last]
    id: Option<ReadableId>,
    #[command(flatten)]
    place: RemoteArgs,
    /// A report of refrain report --json to compare with the journal
    #[arg(long, value_name = "FILE")]
    report: Option<Utf8PathBuf>,
    /// Print the verdict as an object
    #[arg(long)]
    json: bool,
}

/// Prints what agrees, or fails with the differences.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let given = args.report.as_ref().map(|path| read(&context.dir.join(path), path)).transpose()?;
    let id = args.id.clone().or(given.as_ref().map(|given| given.id.clone().into()));
    let (service, id) = args.place.open(context, id.as_ref(), "refrain verify")?;
    if service.locate(&id).is_ok() {
        bring(context, &service, &id, None)?;
    }
    let found = service.verify(&id, given.as_ref()).map_err(|error| match error {
        EngineError::IsPlan(id) => {
            RequestError::usage(format!("--report: {id} is a plan; use it with a loop"))
                .hint(format!("refrain list --plan {id} shows those of its tasks"))
        }
        error => error.into(),
    })?;
    if args.json {
        out::print_json(&found)?;
    }
    match found {
        ByKind::Plan(verdicts) => Ok(of_plan(&verdicts, args.json)),
        ByKind::Loop(Verdict { problem: Some(problem), .. }) if !args.json => {
            let next = "nothing was changed; the other loops go on, and what its agent did is in your files";
            Err(RequestError::new(Code::Failed, problem).hint(next))
        }
        ByKind::Loop(verdict) => {
            if !args.json {
                out::print(&text(&verdict));
            }
            Ok(code(verdict.agrees))
        }
    }
}

/// The same for a plan's own journal and for each loop of its tasks.
fn of_plan(verdicts: &[Verdict], json: bool) -> ExitCode {
    for verdict in verdicts.iter().filter(|_| !json) {
        out::print(&match &verdict.problem {
            Some(problem) => format!("{}: DAMAGED: {}\n", verdict.id, printable(problem)),
            None => text(verdict),
        });
    }
    code(verdicts.iter().all(|verdict| verdict.agrees))
}

fn code(agrees: bool) -> ExitCode {
    if agrees { Code::Done } else { Code::Failed }.into()
}

fn read(path: &Utf8Path, given: &Utf8Path) -> Result<ReportFile, RequestError> {
    let refused = |why: String| {
        RequestError::usage(format!("--report {given}: {why}"))
            .hint("accepted: what refrain report --json prints")
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    ReportFile::read(&text).map_err(|why| refused(format!("it is no report: {why}")))
}

/// What agrees, by kind; then one line for each difference.
fn text(verdict: &Verdict) -> String {
    let Verdict { id, records, torn_bytes, checks, .. } = verdict;
    let exact = if *torn_bytes > 0 { "each" } else { "every byte" };
    let mut text = format!("{id}: {records} records, {exact} as it was written\n");
    let words = printable(verdict.signature.trim_start_matches("unsigned: "));
    text.push_str(&match (&verdict.unknown_signer, verdict.signed) {
        (Some(key), _) => format!(
            "  SIGNER NOT KNOWN: {words}: anyone could have written this journal\n    \
             if refrain doctor on the machine of the loop prints that key, trust it: signers = [\"{key}\"] under [trust] in your own config.toml\n"
        ),
        (None, Some(false)) => format!("  UNSIGNED: {words}\n"),
        (None, _) if words.is_empty() => String::new(),
        (None, _) => format!("  {words}\n"),
    });
    if *torn_bytes > 0 {
        text.push_str(&format!(
            "  its tail was torn: {torn_bytes} bytes of a write that was cut off follow, and are no record\n"
        ));
    }
    for subject in [Subject::File, Subject::Base, Subject::Tree, Subject::Commit, Subject::Report] {
        let of = |outcome| {
            let is_it = move |check: &&Check| check.subject == subject && check.outcome == outcome;
            checks.iter().filter(is_it)
        };
        let agreeing = u32::try_from(of(Outcome::Agrees).count()).unwrap_or(u32::MAX);
        if agreeing > 0 {
            text.push_str(&format!("  {}\n", agrees(subject, agreeing)));
        }
        for check in of(Outcome::Differs) {
            text.push_str(&format!("  DIFFERS: {}\n", about(check)));
        }
        for check in of(Outcome::Unchecked) {
            text.push_str(&format!("  not checked: {}\n", about(check)));
        }
    }
    let differs = || checks.iter().filter(|check| check.outcome == Outcome::Differs);
    let is_only_files = differs().next().is_some() && differs().all(|check| check.subject == Subject::File);
    if is_only_files && verdict.signed != Some(false) {
        text.push_str("  the journal itself is intact; only the files named above are not as it says\n");
    }
    text
}

fn agrees(subject: Subject, count: u32) -> String {
    let files = |one, many| phrase::counted(count, one, many);
    match subject {
        Subject::File => {
            format!("{} as sealed: logs, prompts, what the agent printed", files("file", "files"))
        }
        Subject::Base => "the commit that it began at is in the repository".to_owned(),
        Subject::Tree => "the verified tree is in the repository, with all that is in it".to_owned(),
        Subject::Commit => format!("{} in the repository, as recorded", files("commit", "commits")),
        Subject::Report => "the report says what the journal says".to_owned(),
    }
}

fn about(check: &Check) -> String {
    let what = match check.subject {
        Subject::File => "",
        Subject::Base => "the commit that it began at, ",
        Subject::Tree => "the verified tree, ",
        Subject::Commit => "commit ",
        Subject::Report => "the report ",
    };
    let why = check.why.as_deref().unwrap_or_default();
    printable(&format!("{what}{}: {why}", check.which)).replace('\n', " ")
}
