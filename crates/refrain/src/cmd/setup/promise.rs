use std::io::Read;
use std::process::ExitCode;

use refrain_app::options::kinds;
use refrain_app::{Code, RequestError};
use refrain_core::promise::{MatchMode, Promise, PromiseText, scan};
use refrain_engine::config::keys::PROMISE;

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain promise < message.txt
  refrain promise --gated --completion-promise \"TESTS PASS\"")]
pub(crate) struct Args {
    /// The words that claim the work done
    #[arg(long, value_name = "TEXT", default_value = PROMISE, value_parser = refrain_app::options::values::promise)]
    completion_promise: PromiseText,
    /// Where the promise counts
    #[arg(long, default_value = "tag", value_name = "MODE", value_parser = kinds::promise_match())]
    promise_match: MatchMode,
    /// Read the message as a loop with a required gate does
    ///
    /// The tag may then also end the last line after other words.
    #[arg(long)]
    gated: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, RequestError> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| RequestError::usage(format!("stdin cannot be read: {error}")))?;
    let promise = Promise { text: args.completion_promise.clone(), mode: args.promise_match };
    let finding = scan(&promise, &String::from_utf8_lossy(&bytes), args.gated);
    if finding.claimed {
        out::print("a claim\n");
        return Ok(Code::Done.into());
    }
    match finding.near_miss {
        Some(miss) => out::print(&format!("no claim: {}\n", miss.hint())),
        None => out::print("no claim\n"),
    }
    Ok(Code::Failed.into())
}
