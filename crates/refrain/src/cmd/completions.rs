//! `refrain completions`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::error::{CliError, Code};
use crate::out;

/// Print a shell's completions
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

/// Prints them.
pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli::definition(), "refrain", &mut text);
    out::print_raw(&text);
    Ok(Code::Done.into())
}
