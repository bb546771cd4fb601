//! Which gates and protections a repository offers (`--auto-gates`), and whether a gate's output shows that it proved
//! anything.
//!
//! Functions over a listing of paths and the texts of a few files that [`wanted`] names; whoever calls reads them. Every
//! ecosystem that is there is detected, also in folders: members of a workspace are covered by its root's command, others
//! get a gate each. Linters are soft gates. What a gate is lives in [`gate`](crate::gate), what a protection means in
//! [`protect`](crate::protect).

mod draft;
mod golang;
mod listing;
mod node;
mod offer;
mod others;
mod outcome;
mod python;
mod rust;
mod tasks;
#[cfg(test)]
mod tests;

pub use draft::Offer;
pub use listing::{Listing, READ_AT_MOST, wanted};
pub use offer::offer;
pub use outcome::{cannot_run, found_no_test};
