//! Which gates and protections a repository offers (`--auto-gates`).
//!
//! Functions over a listing of paths and the texts of a few files that [`wanted`] names; whoever calls reads them. Every
//! ecosystem that is there is detected, also in folders: members of a workspace are covered by its root's command, others
//! get a gate each. Linters are soft gates. What a gate is, and whether its output proves anything, lives in [`gate`](crate::gate), what a protection means in
//! [`protect`](crate::protect).

mod draft;
mod golang;
mod listing;
mod node;
mod offer;
mod others;
mod python;
mod rust;
mod script;
mod tasks;
#[cfg(test)]
mod tests;

pub use draft::Offer;
pub use listing::{Listing, READ_AT_MOST, wanted};
pub use offer::offer;
