//! The rules of one loop, by table and by property. What a whole run does under crashes is in `simulation`.

mod allowance;
mod approval;
mod asking;
mod blocked;
mod carried;
mod deadlines;
mod deciding;
mod gates;
pub(crate) mod journal;
mod journals;
mod judges;
mod notices;
mod order;
mod outcomes;
mod properties;
mod protection;
mod provider_waits;
mod publishing;
mod remembering;
mod reporting;
mod repository;
mod sessions;
mod stops;
mod sums;
mod tasks;
mod trouble;
mod until;
