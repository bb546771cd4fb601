//! The machine, the configuration, and data shared by projects.

pub(crate) mod catalog;
pub(crate) mod configuration;
pub(crate) mod default_gates;
pub(crate) mod doctor;
pub(crate) mod evolution;
pub(crate) mod first_minutes;
pub(crate) mod init;
pub(crate) mod memory;
pub(crate) mod newcomer;
pub(crate) mod projects;
pub(crate) mod sandbox;
pub(crate) mod sandbox_git;
pub(crate) mod sandbox_homes;
pub(crate) mod sandbox_moves;
pub(crate) mod sandbox_verbs;
