//! Which gates and protections a repository offers (`--auto-gates`).
//!
//! Functions over a listing of paths and the texts of the few files that [`wanted`] names; the caller reads them. Every
//! ecosystem is detected, also in folders: the root's command covers members of a workspace, other folders get a gate
//! each. Linters are soft gates. What a gate is, and whether its output proves anything, is in [`gate`](refrain_core::gate);
//! what a protection means is in [`protect`](refrain_core::protect).

mod draft;
mod golang;
mod listing;
mod new_tests;
mod node;
mod offer;
mod python;
mod rust;
mod script;
mod simple_ecosystems;
mod tasks;
#[cfg(test)]
mod tests;

pub use listing::{Listing, READ_AT_MOST, wanted};
pub use new_tests::new_tests;
pub use offer::offer;
