//! Parts of the status of a loop, each from its state alone.

pub(crate) mod approval;
pub(crate) mod damage;
pub(crate) mod iteration;
pub(crate) mod overrun;
pub(crate) mod pip;
pub(crate) mod progress;
pub(crate) mod publication;
pub(crate) mod remote_copy;
pub(crate) mod sandbox;
pub(crate) mod saved_work;
pub(crate) mod usage;
