//! Foreign texts that are read or written to the byte: task scripts and manifests, state files of other systems.

pub mod detect;
pub mod mirror;
pub mod splice;
