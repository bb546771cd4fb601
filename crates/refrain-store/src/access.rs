//! What counts and for whom: trust in a project's settings, the keys of the API, and signatures of journals.

pub mod keys;
pub mod signing;
pub mod trust;
