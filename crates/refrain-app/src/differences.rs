//! What a loop or plan has changed.

use refrain_core::LoopId;
use refrain_core::view::Status;
use refrain_engine::{Differences, LoopPatch, Service};

use crate::{Code, RequestError};

/// The changes of the loop or plan so far, or of one iteration of a loop.
pub fn diff(service: &Service, id: &LoopId, iteration: Option<u32>) -> Result<Differences, RequestError> {
    check_iteration_of(service, id, iteration)?;
    Ok(service.differences_of(id, iteration)?)
}

/// The same as a patch for `git apply`.
pub fn patch(service: &Service, id: &LoopId, iteration: Option<u32>) -> Result<LoopPatch, RequestError> {
    check_iteration_of(service, id, iteration)?;
    let patch = service.patch_of(id, iteration)?;
    patch.map_err(|note| RequestError::new(Code::Failed, format!("{id}: {note}")))
}

fn check_iteration_of(service: &Service, id: &LoopId, iteration: Option<u32>) -> Result<(), RequestError> {
    match iteration {
        Some(_) => check_iteration(&service.status(id)?, iteration),
        None => Ok(()),
    }
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
