//! The real agent programs: the tested versions, where they are installed, and how each is run so that it has no
//! account, no home and no network but the scripted model.

mod program;
mod real;

pub use program::Agent;
pub use real::Real;
