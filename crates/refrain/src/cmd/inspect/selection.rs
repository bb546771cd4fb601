//! The loop that a verb reads.

use std::str::FromStr;

use refrain_app::resolve::remote_copy::reading;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::ids::LoopIdError;
use refrain_engine::{Service, chain, id_of_archived};

use crate::{out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// The loop or plan [default: the one touched last]
    pub(crate) id: Option<ReadableId>,
    #[command(flatten)]
    pub(crate) place: RemoteArgs,
}

/// The id of a loop or plan. The name of its folder in the archive reaches an archived loop whose id another one has.
#[derive(Clone, Debug)]
pub(crate) struct ReadableId {
    pub(crate) id: LoopId,
    folder: Option<String>,
}

impl From<LoopId> for ReadableId {
    fn from(id: LoopId) -> Self {
        Self { id, folder: None }
    }
}

impl FromStr for ReadableId {
    type Err = LoopIdError;

    fn from_str(text: &str) -> Result<Self, LoopIdError> {
        match id_of_archived(text) {
            Some(id) => Ok(Self { id, folder: Some(text.to_owned()) }),
            None => text.parse().map(LoopId::into),
        }
    }
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
        self.place.open(context, self.id.as_ref(), verb)
    }
}

impl RemoteArgs {
    /// The loop or plan, and the service that reads it.
    pub(crate) fn open(
        &self,
        context: &Context,
        id: Option<&ReadableId>,
        verb: &str,
    ) -> Result<(Service, LoopId), RequestError> {
        let service = context.service()?;
        if let Some(ReadableId { id, folder: Some(folder) }) = id {
            if self.at.is_some() {
                let error = format!("--at {folder}: a remote has loops by their IDs alone; accepted: {id}");
                return Err(RequestError::usage(error));
            }
            let root = &service.project().root;
            let missing = || {
                RequestError::new(Code::NotFound, format!("no archived loop {folder} in {root}"))
                    .hint("refrain list --archived shows what there is")
            };
            return Ok((service.reading_archived(id, folder).ok_or_else(missing)?, id.clone()));
        }
        let id = id.map(|it| &it.id);
        self.check(id, verb)?;
        let id = values::latest(&service, id, verb)?;
        Ok((self.read(context, &service, &id)?, id))
    }

    /// Refuses a remote without an ID: the loop touched last here need not be there.
    fn check(&self, id: Option<&LoopId>, verb: &str) -> Result<(), RequestError> {
        let (Some(at), None) = (&self.at, id) else { return Ok(()) };
        let at = shlex::try_quote(at).unwrap_or_default();
        let error = RequestError::usage(format!("{} --at {at} needs the ID of a loop", values::bare(verb)));
        Err(error.hint(format!("refrain list --at {at} shows those at the remote")))
    }

    /// The service that reads this loop or plan. If it is on another machine, a note says how old the copy is.
    fn read(&self, context: &Context, service: &Service, id: &LoopId) -> Result<Service, RequestError> {
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
