//! The real agent programs: which versions the tests are for, where they are kept, and how each is run so that it knows no
//! account, no home and no network but the scripted model.

mod program;
mod real;

pub use program::Agent;
pub use real::Real;
