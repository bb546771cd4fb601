//! Loops to be read: those of this machine, and copies of those that a git remote has.

use refrain_core::LoopId;
use refrain_engine::{ListEntry, Reading, Service};

use crate::verbs::move_loop::check_remote;
use crate::{Context, RequestError};

/// The loop or plan as a verb reads it: as it is here, or, if it left or `at` names a remote, as that has it.
pub fn reading(
    context: &Context,
    service: &Service,
    id: &LoopId,
    at: Option<&str>,
) -> Result<Reading, RequestError> {
    let Some(remote) = at else { return Ok(service.reading(id)?) };
    check_remote("--at", remote)?;
    Ok(service.reading_at(id, (remote, &context.dir))?)
}

/// The loops that a remote has, last touched first.
pub fn list_at(context: &Context, service: &Service, remote: &str) -> Result<Vec<ListEntry>, RequestError> {
    check_remote("--at", remote)?;
    Ok(service.list_at((remote, &context.dir))?)
}
