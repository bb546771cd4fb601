//! The loop that a verb reads.

use refrain_app::resolve::remote_copy::reading;
use refrain_app::{Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{Service, chain};

use crate::{out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// The loop or plan [default: the one touched last]
    pub(crate) id: Option<LoopId>,
    #[command(flatten)]
    pub(crate) place: RemoteArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoteArgs {
    /// Read the loop as this git remote has it: a name, a path or an address
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
}

impl Selection {
    /// The loop or plan, and the service that reads it.
    pub(crate) fn open(&self, context: &Context, verb: &str) -> Result<(Service, LoopId), RequestError> {
        let service = context.service()?;
        self.place.check(self.id.as_ref(), verb)?;
        let id = values::latest(&service, self.id.as_ref(), verb)?;
        Ok((self.place.open(context, &service, &id)?, id))
    }
}

impl RemoteArgs {
    /// Refuses a remote without an ID: the loop touched last here need not be there.
    pub(crate) fn check(&self, id: Option<&LoopId>, verb: &str) -> Result<(), RequestError> {
        let (Some(at), None) = (&self.at, id) else { return Ok(()) };
        let at = shlex::try_quote(at).unwrap_or_default();
        let error = RequestError::usage(format!("{} --at {at} needs the ID of a loop", values::bare(verb)));
        Err(error.hint(format!("refrain list --at {at} shows those at the remote")))
    }

    /// The service that reads this loop or plan. If it is on another machine, a note says how old the copy is.
    pub(crate) fn open(
        &self,
        context: &Context,
        service: &Service,
        id: &LoopId,
    ) -> Result<Service, RequestError> {
        let reading = reading(context, service, id, self.at.as_deref())?;
        if let Some(failure) = &reading.failure {
            out::tell_note(chain(failure));
        }
        match reading.copy() {
            Some(copy) => out::tell_note(format!("{id}: {}", copy.age(refrain_engine::now()))),
            None if reading.failure.is_some() => out::tell_note(format!("{id}: as it left this machine")),
            None => {}
        }
        Ok(reading.service)
    }
}
