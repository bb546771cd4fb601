//! `refrain sandbox`: the sandbox of a loop.

use std::process::ExitCode;

use refrain_app::sandbox::allow_host;
use refrain_app::verbs::Slow;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::sandbox::Host;

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "Examples:
  refrain sandbox allow docs-3f9c packages.example.org
  refrain sandbox allow docs-3f9c db.internal:5432=10.0.0.7";

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Let the sandbox of a loop reach one more host
    ///
    /// It counts from the next run of the agent or of a gate on, and until the loop is over. [sandbox] hosts of your configuration
    /// allows a host to all new loops.
    #[command(after_help = EXAMPLES)]
    Allow {
        /// Which loop
        id: LoopId,
        /// The host: NAME, NAME:PORT or NAME:PORT=ADDRESS
        host: Host,
    },
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let Verb::Allow { id, host } = &args.verb;
    allow_host(context, &context.service()?, id, host, Slow::Note(&mut out::tell_slow))?;
    out::print(&format!("{id} reaches {host} from the next run of its agent or a gate on\n"));
    Ok(Code::Done.into())
}
