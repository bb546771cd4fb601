use std::process::ExitCode;

use refrain_app::verbs::Slow;
use refrain_app::verbs::answer::{AnswerOutcome, answer};
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;

use crate::cmd::connect::fleet;
use crate::cmd::control::steer::steering;
use crate::cmd::launch::resume;
use crate::out;
use crate::run::ShowArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain answer docs-3f9c \"Use the staging database.\"
  refrain answer docs-3f9c --detach \"Skip that file.\"")]
pub(crate) struct Args {
    /// Which loop
    id: LoopId,
    /// The answer, at most 8192 bytes
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Hands the text over and drives the loop, here or in a process of its own.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    if args.show.detach {
        context.check(Action::Detach)?;
    }
    let (id, text) = (&args.id, steering(&args.words, "refrain answer")?);
    let request = || text.check().map(|()| FleetRequest::Answer { text: text.text.clone() });
    if let Some(code) = fleet::ask(context, &service, (id, Action::Answer), request)? {
        return Ok(code);
    }
    match answer(context, &service, id, &text, Slow::Note(&mut out::tell_slow))? {
        AnswerOutcome::Runner(runner) => resume::drive_resumed(context, &service, *runner, &args.show),
        AnswerOutcome::Sent => {
            out::print(&format!("{id} gets the answer with its next attempt\n"));
            Ok(Code::Done.into())
        }
    }
}
