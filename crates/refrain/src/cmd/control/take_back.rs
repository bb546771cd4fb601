use std::process::ExitCode;

use refrain_app::verbs::Slow;
use refrain_app::verbs::take_back::{TakeBack, take_back};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::ids::RequestId;
use refrain_core::r#loop::QueuedEffect;
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_engine::Brief;

use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain take-back docs-3f9c
  refrain take-back docs-3f9c 1796000000000-0badcafe")]
pub(crate) struct Args {
    /// Which loop
    id: Option<LoopId>,
    /// Which request: a name that `status` shows as queued [default: the last one]
    request: Option<RequestId>,
}

/// Candidates without an id: loops that may have a queued request.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled | StatusWord::Moved)
}

/// Returns once the loop has received it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain take-back", "every loop here is completed, cancelled or moved"),
        is_candidate,
    )?;
    let asked = TakeBack { request: args.request.clone() };
    let taken = take_back(context, &service, &id, &asked, Slow::Note(&mut out::tell_slow))?;
    out::print(&match taken.effect {
        QueuedEffect::Steer => {
            format!("{id}: taken back: {}\n", printable(taken.text.as_deref().unwrap_or_default()))
        }
        QueuedEffect::Pause => format!("{id} does not pause after this iteration: the pause is taken back\n"),
        QueuedEffect::Cancel => format!("{id} is not cancelled: the cancel is taken back\n"),
    });
    Ok(Code::Done.into())
}
