use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::differences::{diff, patch};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::values::iteration;
use refrain_engine::{Differences, LoopPatch};

use super::selection::Selection;
use crate::out;
use crate::pager::page;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain diff docs-3f9c --stat
  refrain diff docs-3f9c > work.patch")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Show only the files and how many lines of each
    #[arg(long)]
    stat: bool,
    /// Show what this iteration changed, as far as it was committed or verified
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = iteration)]
    iteration: Option<u32>,
}

/// Prints the differences, on a terminal through the user's pager, else as the patch that `git apply` takes.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let (service, id) = args.selection.open(context, "refrain diff")?;
    if !args.stat && out::terminal_width().is_none() && !out::is_coloured() {
        return print_patch(&patch(&service, &id, args.iteration)?, &id);
    }
    let Differences { note, is_shown, stat, diff } = diff(&service, &id, args.iteration)?;
    if !is_shown {
        return Err(RequestError::new(Code::Failed, format!("{id}: {note}")));
    }
    out::tell_note(format!("{id}: {note}"));
    match if args.stat { stat } else { diff } {
        text if text.trim().is_empty() => out::tell_note("no differences to show".to_owned()),
        text if args.stat => out::print(&text),
        text => page(context, &coloured(&text))?,
    }
    Ok(Code::Done.into())
}

fn print_patch(patch: &LoopPatch, id: &LoopId) -> Result<ExitCode, RequestError> {
    let LoopPatch { note, bytes, is_whole } = patch;
    out::tell_note(format!("{id}: {note}"));
    if !is_whole {
        out::tell_note("what looks like a secret is not in the patch; [redacted] stands for it".to_owned());
    } else if bytes.is_empty() {
        out::tell_note("no differences to show".to_owned());
    }
    out::print_raw(bytes);
    Ok(Code::Done.into())
}

/// The patch in the colours of git.
pub(crate) fn coloured(patch: &str) -> String {
    let paint = |line: &str| match line.as_bytes() {
        [b'd', b'i', b'f', b'f', ..] | [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => {
            line.bold().to_string()
        }
        [b'@', b'@', ..] => line.cyan().to_string(),
        [b'+', ..] => line.green().to_string(),
        [b'-', ..] => line.red().to_string(),
        _ => line.to_owned(),
    };
    patch.lines().map(|line| paint(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_the_colours_of_git() {
        let painted = coloured("diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new\n same\n");
        let lines: Vec<_> = painted.lines().collect();
        assert!(lines[0].contains("\u{1b}[1m") && lines[1].contains("\u{1b}[36m"), "{painted:?}");
        assert!(lines[2].contains("\u{1b}[31m") && lines[3].contains("\u{1b}[32m"), "{painted:?}");
        assert_eq!(lines[4], " same");
    }
}
