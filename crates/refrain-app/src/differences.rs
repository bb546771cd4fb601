//! What a loop or plan has changed.

use refrain_core::LoopId;
use refrain_core::view::Status;
use refrain_engine::{Differences, Service};

use crate::RequestError;

/// The changes of the loop or plan so far, or of one iteration of a loop.
pub fn diff(service: &Service, id: &LoopId, iteration: Option<u32>) -> Result<Differences, RequestError> {
    if iteration.is_some() {
        check_iteration(&service.status(id)?, iteration)?;
    }
    Ok(service.differences_of(id, iteration)?)
}

/// Refuses an iteration that the loop does not have.
pub fn check_iteration(status: &Status, iteration: Option<u32>) -> Result<(), RequestError> {
    let Some(n) = iteration.filter(|n| !status.iterations.iter().flatten().any(|it| it.n == *n)) else {
        return Ok(());
    };
    let error = format!("iteration {n}: loop {} has no such iteration; accepted: ", status.id);
    Err(RequestError::usage(match status.iteration {
        0 => format!("{error}none, as it has not begun one"),
        last => format!("{error}1 to {last}"),
    }))
}
