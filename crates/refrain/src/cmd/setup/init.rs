//! `refrain init`.

use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_engine::{Extras, Fate, Prepared};

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Targets for Make too: loop-research, loop-implement
    #[arg(long)]
    make: bool,
    /// Tasks for VS Code too
    #[arg(long)]
    vscode: bool,
    /// Write nothing, and print what would be written
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "Examples:
  refrain init --dry-run
  refrain init --make --vscode";

/// Prepares the project, and reports what was done to each file.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let files = service.init(Extras { make: args.make, vscode: args.vscode }, args.dry_run)?;
    let mut text: String = files.iter().map(|file| told(file, args.dry_run)).collect();
    let is_new = |file: &Prepared| file.path == "refrain.toml" && matches!(file.fate, Fate::Made(_));
    if !args.dry_run && files.iter().any(is_new) {
        text.push_str("next: uncomment in refrain.toml what you want, then refrain trust\n");
    }
    out::print(&text);
    Ok(Code::Done.into())
}

/// The result for a file; with its text in a dry run, or if the user has to write it.
fn told(Prepared { path, fate }: &Prepared, is_rehearsal: bool) -> String {
    let would = if is_rehearsal { "would be " } else { "" };
    let shown = |text: &str| -> String {
        let lines = printable(text);
        lines.lines().map(|line| format!("  + {line}").trim_end().to_owned() + "\n").collect()
    };
    let rehearsed = |text: &str| if is_rehearsal { shown(text) } else { String::new() };
    match fate {
        Fate::Made(text) => format!("{path}: {would}written\n{}", rehearsed(text)),
        Fate::Added(text) => format!("{path}: {would}added to, behind what it holds\n{}", rehearsed(text)),
        Fate::Left => format!("{path}: left as it is\n"),
        Fate::ByHand { why, text } => {
            format!("{path}: left as it is, as {why}; to be added by hand:\n{}", shown(text))
        }
    }
}
