//! The cost of a loop or a plan.

pub(crate) mod agents;
pub(crate) mod cancel;
pub(crate) mod confined;
pub(crate) mod idle;
pub(crate) mod iteration;
pub(crate) mod lingering;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod plan_run;
pub(crate) mod repository;
pub(crate) mod sessions;
