//! Parts of the status of a loop, each from its state alone.

pub(crate) mod approval;
pub(crate) mod damaged;
pub(crate) mod iteration;
pub(crate) mod overran;
pub(crate) mod pip;
pub(crate) mod progress;
pub(crate) mod published;
pub(crate) mod saved;
pub(crate) mod spent;
