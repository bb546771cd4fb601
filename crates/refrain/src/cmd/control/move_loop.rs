use std::process::ExitCode;

use clap::ArgGroup;
use refrain_app::verbs::move_loop::{Move, MoveOutcome, move_loop};
use refrain_app::verbs::resume;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::signature::PublicKey;
use refrain_core::text::printable;
use refrain_core::view::{Kind, StatusWord};
use refrain_engine::{Brief, MovedAway, MovedHere, SandboxChange};

use crate::out;

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("place").required(true)), after_help = "Examples:
  refrain move docs-3f9c --to ssh://git@host/state.git
  refrain move docs-3f9c --from origin")]
pub(crate) struct Args {
    /// Which loop
    id: LoopId,
    /// Hand it over to this git remote: a name, a path or an address
    #[arg(long, value_name = "URL", group = "place")]
    to: Option<String>,
    /// Take it over from this git remote
    #[arg(long, value_name = "URL", group = "place")]
    from: Option<String>,
    /// Take along what is not committed in its worktree
    #[arg(long, conflicts_with = "from")]
    with_changes: bool,
    /// Accept the key of the machine that it left
    #[arg(long, value_name = "KEY", conflicts_with = "to")]
    signer: Option<PublicKey>,
}

/// Which loops it can mean.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    let can_continue = !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled);
    status.kind == Kind::Process && status.has_stopped() && can_continue
}

/// Moves the loop, and says what to type next.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let Args { id, to, from, with_changes, signer } = args;
    let request = match (to, from) {
        (Some(remote), _) => Move::To { remote, with_changes },
        (None, from) => Move::From { remote: from.unwrap_or_default(), signer },
    };
    match move_loop(context, &service, &id, &request)? {
        MoveOutcome::Away(MovedAway { url, key }) => {
            let url = printable(&url);
            out::print(&format!("{id} is at {url}, signed with key {key}\n"));
            out::tell_note(format!(
                "in a clone on another machine: refrain move {id} --from {url} --signer {key}"
            ));
        }
        MoveOutcome::Here(MovedHere { key, worktree, sandbox, .. }) => {
            out::print(&format!("{id} is here, in {worktree}; it left its machine signed with key {key}\n"));
            let resume = resume::command(&service, &id);
            let blocked = service.status(&id).ok().filter(|status| status.status == StatusWord::Blocked);
            let needs = blocked.and_then(|status| status.needs);
            let mut continues = needs.unwrap_or_else(|| format!("{resume} continues it"));
            match sandbox {
                SandboxChange::None => {}
                SandboxChange::Given => out::tell_note(format!(
                    "it runs in the sandbox that your [sandbox] mode asks for, which it did not have there; {resume} \
                     --no-sandbox continues it with your own rights"
                )),
                SandboxChange::Missing(why) => {
                    out::tell_note(format!(
                        "it runs without the sandbox that your [sandbox] mode asks for: {why}"
                    ));
                }
                SandboxChange::Required(error) => {
                    out::tell_note(format!(
                        "this machine cannot make the sandbox that your [sandbox] mode asks for: {error}"
                    ));
                    out::tell_note(error.cause.remedy(&error.refusal));
                    continues = format!("{resume} --no-sandbox continues it with your own rights");
                }
            }
            out::tell_note(continues);
        }
    }
    Ok(Code::Done.into())
}
