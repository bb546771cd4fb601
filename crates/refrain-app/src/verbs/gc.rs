//! Removing what loops left that nothing needs any more.

use refrain_core::view::garbage::Garbage;
use refrain_engine::{Service, chain};

use crate::{Action, Context, RequestError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptGarbage {
    pub garbage: Garbage,
    pub why: String,
}

/// Removes these; returns those that stay. One that cannot be removed hinders no other.
pub fn collect(
    context: &Context,
    service: &Service,
    all: &[Garbage],
) -> Result<Vec<KeptGarbage>, RequestError> {
    context.check(Action::CollectGarbage)?;
    let remove = |garbage: &Garbage| {
        let why = service.remove_garbage(garbage).unwrap_or_else(|error| Some(chain(&error)))?;
        Some(KeptGarbage { garbage: garbage.clone(), why })
    };
    let kept = all.iter().filter_map(remove).collect();
    service.remove_empty_folders();
    Ok(kept)
}
