//! `refrain man`.

use std::process::ExitCode;

use camino::Utf8PathBuf;

use crate::error::{CliError, Code};
use crate::out;

/// Print the manual page, or write the pages of all verbs into a folder
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to write them
    dir: Option<Utf8PathBuf>,
}

/// Prints or writes them.
pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let definition = crate::cli::definition();
    let failed =
        |error: std::io::Error| CliError::new(Code::Failed, format!("the manual cannot be written: {error}"));
    match &args.dir {
        Some(dir) => clap_mangen::generate_to(definition, dir).map_err(failed)?,
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(definition).render(&mut text).map_err(failed)?;
            out::print_raw(&text);
        }
    }
    Ok(Code::Done.into())
}
