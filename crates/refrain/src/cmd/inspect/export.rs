//! `refrain export`: a loop in another system's format.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::ValueEnum;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::mirror::Mirror;
use refrain_engine::{ByKind, Service, write_exported};

use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain export docs-3f9c --as json
  refrain export docs-3f9c --as descartes --output loop-state.json")]
pub(crate) struct Args {
    /// The loop [default: the only one]
    id: Option<LoopId>,
    /// The format
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    format: Format,
    /// Write it to FILE in place of standard output; one that Refrain did not write stays as it is
    #[arg(short, long, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// .synthex/loops/ID.json
    Synthex,
    /// .descartes/loop-state.json
    Descartes,
    /// .ralph_state.json
    Ralph,
    /// loop.local.md
    Randroid,
    /// .scud/loop-state.json, of a plan
    Scud,
    /// The object that refrain status --json prints
    Json,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(&service, args.id.as_ref(), ("refrain export", "there is none"), |_| true)?;
    let mirror = match args.format {
        Format::Synthex => Some(Mirror::Synthex),
        Format::Descartes => Some(Mirror::Descartes),
        Format::Ralph => Some(Mirror::Ralph),
        Format::Randroid => Some(Mirror::Randroid),
        Format::Scud | Format::Json => None,
    };
    let is_scud = matches!(args.format, Format::Scud);
    let text = match (matches!(service.find(&id)?, ByKind::Plan(_)), mirror) {
        (true, None) => service.export_plan(&id, is_scud)?,
        (true, Some(mirror)) => {
            let error =
                RequestError::usage(format!("--as {mirror}: {id} is a plan; accepted: scud and json"));
            return Err(error.hint(format!("refrain list --plan {id} shows the loops of its tasks")));
        }
        (false, _) if is_scud => {
            let error =
                format!("--as scud: {id} is a loop; accepted: synthex, descartes, ralph, randroid and json");
            return Err(RequestError::usage(error));
        }
        (false, mirror) => service.export(&id, mirror)?,
    };
    match &args.output {
        Some(path) if !write_exported(&context.dir.join(path), &text)? => {
            let error = format!("--output {path}: it is not Refrain's, and stays as it is");
            return Err(RequestError::new(Code::Refused, error).hint("name a file that is not there yet"));
        }
        Some(_) => {}
        None => out::print_whole(&text)?,
    }
    Ok(Code::Done.into())
}

/// Warns on standard error if Claude Code's own plugin has a loop here too.
pub(crate) fn advise(context: &Context, service: &Service) {
    if let Some(advice) = service.advisory(&context.dir) {
        out::tell(&format!("{advice}\n"));
    }
}
