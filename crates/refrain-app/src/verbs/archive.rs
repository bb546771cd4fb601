use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_engine::{EngineError, Service};

use crate::{Action, Code, Context, RequestError};

/// Moves the loop; returns where it lies then.
pub fn archive(context: &Context, service: &Service, id: &LoopId) -> Result<Utf8PathBuf, RequestError> {
    context.check_on(Action::Archive, service, id)?;
    service.archive(id).map_err(|error| match error {
        EngineError::IsPlan(_) => RequestError::new(Code::Usage, error.to_string())
            .hint(format!("refrain discard {id} archives a plan that has stopped, with its loops")),
        error => error.into(),
    })
}
