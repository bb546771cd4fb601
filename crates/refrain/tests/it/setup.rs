//! The machine, the configuration, and what is kept over projects.

pub(crate) mod catalog;
pub(crate) mod configuration;
pub(crate) mod doctor;
pub(crate) mod evolution;
pub(crate) mod init;
pub(crate) mod memory;
pub(crate) mod projects;
