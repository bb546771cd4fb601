//! Moving a stopped loop into the archive.

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_engine::Service;

use crate::error::Message;
use crate::{Action, Context, RequestError};

/// Moves the loop; returns where it lies then.
pub fn archive(context: &Context, service: &Service, id: &LoopId) -> Result<Utf8PathBuf, RequestError> {
    context.check_on(Action::Archive, service, id)?;
    if service.has_plan(id) {
        let error = format!("{id} is a plan, which stays where it is; accepted by refrain archive are loops");
        let list = format!("refrain list --plan {id} shows those of its tasks; ");
        let name = "another plan takes another --name";
        return Err(RequestError::usage(error).hint(Message::from(list).then(name)));
    }
    Ok(service.archive(id)?)
}
