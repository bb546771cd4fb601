//! Trust in a project's settings and commands, the keys of the API, and signatures of journals.

pub mod keys;
pub mod signing;
pub mod trust;
