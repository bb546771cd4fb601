use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_engine::Service;

use crate::{Action, Context, RequestError};

/// Moves the loop; returns where it lies then.
pub fn archive(context: &Context, service: &Service, id: &LoopId) -> Result<Utf8PathBuf, RequestError> {
    context.check_on(Action::Archive, service, id)?;
    Ok(service.archive(id)?)
}
