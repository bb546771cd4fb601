use std::process::ExitCode;

use camino::Utf8PathBuf;
use refrain_app::{Code, Context, RequestError};
use refrain_server::{RequestHandler, mcp};

use crate::cmd::connect::serve::{HANDOVER, not_open};
use crate::run;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain mcp
  refrain mcp --root ~/projects")]
pub(crate) struct Args {
    /// A folder that loops may work in; may be repeated [default: the current project]
    #[arg(long, value_name = "DIR")]
    root: Vec<Utf8PathBuf>,
}

/// Serves one client until it goes away.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let handler = RequestHandler::open(context, &args.root).map_err(not_open)?;
    let (runtime, handovers) = (run::runtime()?, handler.handovers());
    let served = runtime.block_on(mcp::serve_stdio(handler));
    handovers.wait(HANDOVER);
    // The client is gone: requests that still wait for a loop are dropped.
    runtime.shutdown_background();
    served
        .map_err(|error| RequestError::new(Code::Failed, format!("the client began no session: {error}")))?;
    Ok(Code::Done.into())
}
