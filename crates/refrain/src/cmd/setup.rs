//! Verbs about this machine, the configuration and the program itself.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod promise;
pub(crate) mod trust;
