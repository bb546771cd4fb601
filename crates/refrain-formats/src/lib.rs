//! Texts of other programs: what the files of a project offer as gates, and the state files of the five systems that
//! Refrain unites, read and written to the byte.
//!
//! Pure: texts in, texts and values out. Not here: where such files are and how they are written (refrain-engine), the
//! streams of agents (refrain-agents), task files (`refrain_core::plan`).

pub mod detect;
pub mod mirror;
