//! What a loop is and what it decides.
//!
//! Functions over values: no I/O, no clock, no randomness, no async. Time, ids and whatever was seen outside come in as
//! arguments. A loop is the fold of its [`event`]s ([`LoopState`]); [`next_step`] says the smallest thing to do next;
//! somebody else does it. Everything the product decides is decided, and tested, here.

// A new kind of event, step or end must be looked at wherever one is decided on.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod agent;
pub mod budget;
pub mod context;
pub mod detect;
pub mod event;
pub mod evolution;
pub mod excerpt;
pub mod fingerprint;
pub mod gate;
pub mod git;
pub mod glob;
pub mod hex;
pub mod ids;
pub mod r#loop;
mod machine;
pub mod memory;
pub mod mirror;
pub mod mode;
pub mod notice;
pub mod plan;
pub mod price;
pub mod promise;
pub mod prompt;
pub mod protect;
pub mod pull_request;
pub mod report;
pub mod review;
pub mod seal;
pub mod session;
pub mod signature;
#[cfg(test)]
mod simulation;
pub mod spec;
pub mod splice;
pub mod state_file;
pub mod stuck;
pub mod summary;
pub mod text;
pub mod trace;
pub mod usage;
pub mod values;
pub mod view;
pub mod work;

pub use event::{Event, Record};
pub use ids::{AttemptId, LoopId, RequestId};
pub use r#loop::{ChildId, Live, LoopState, Step, next_step};
pub use machine::{
    Damage, Ended, Lifecycle, MAX_STEERING, Machine, MachineEnd, Refusal, SharedEvent, check_steering,
};
pub use spec::Spec;
