use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Command;

use refrain_app::{Code, Context, RequestError};

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain man
  refrain man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder to write all pages into; it is created if it is missing
    dir: Option<Utf8PathBuf>,
}

/// Every verb with the synopsis of its help: the one that is generated for the page names all options, but not their
/// values.
fn with_usage(verb: Command) -> Command {
    let mut verb = verb.mut_subcommands(with_usage);
    let usage = verb.render_usage().to_string();
    verb.override_usage(usage.trim_start_matches("Usage: ").to_owned())
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let mut definition = crate::cli::definition().disable_help_subcommand(true);
    definition.build();
    let definition = with_usage(definition);
    let failed = |error: std::io::Error| {
        RequestError::new(Code::Failed, format!("the manual cannot be written: {error}"))
    };
    match &args.dir {
        Some(dir) => {
            let dir = context.dir.join(dir);
            let written =
                std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(definition, &dir));
            written.map_err(|error| {
                let error = format!("the manual cannot be written into {dir}: {error}");
                RequestError::new(Code::Failed, error).hint("name a folder that you may write to")
            })?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(definition).render(&mut text).map_err(failed)?;
            out::print_raw(&text);
        }
    }
    Ok(Code::Done.into())
}
