//! How loops end, and what they wait for.

pub(crate) mod allowance;
pub(crate) mod blocked;
pub(crate) mod deadlines;
pub(crate) mod missing;
pub(crate) mod outcomes;
pub(crate) mod provider_waits;
pub(crate) mod stops;
pub(crate) mod success;
pub(crate) mod trouble;
pub(crate) mod until;
