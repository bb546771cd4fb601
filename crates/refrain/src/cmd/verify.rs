//! `refrain verify`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_engine::{EngineError, JournalError, Verdict as Found};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

/// Check every byte of a loop's journal
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one, where it is left out
    id: Option<LoopId>,
    /// Print the verdict as an object
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Verdict {
    /// The loop.
    id: LoopId,
    /// Whether every byte is as it was written.
    intact: bool,
    /// How many records stand and fit.
    records: u64,
    /// What is wrong with the first record that is not; null where all are.
    problem: Option<String>,
    /// Bytes of a last line that was cut off while it was written; the next writer puts them aside.
    torn_bytes: u64,
}

/// Says that it is intact, or fails with the first line that is not.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain verify", |_| true)?;
    let found = service.verify(&id);
    if args.json {
        let (verdict, code) = match found {
            Ok(Found { records, torn }) => {
                (Verdict { id, intact: true, records, problem: None, torn_bytes: torn }, Code::Done)
            }
            Err(EngineError::Journal(error @ JournalError::Damaged { line, .. })) => {
                let problem = Some(error.to_string());
                (
                    Verdict { id, intact: false, records: line.saturating_sub(1), problem, torn_bytes: 0 },
                    Code::Failed,
                )
            }
            Err(error) => return Err(error.into()),
        };
        out::print_json(&verdict)?;
        return Ok(code.into());
    }
    let found = found?;
    out::print(&format!("{}: {} records, every byte as it was written\n", id, found.records));
    if found.torn > 0 {
        out::print(&format!("  its tail was torn: {} bytes of a last write are no record\n", found.torn));
    }
    Ok(Code::Done.into())
}
