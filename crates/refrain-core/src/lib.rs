//! The core of Refrain: what a loop, a plan, a gate and a journal event are, and what happens next.
//!
//! Functions over values: no I/O, no clock, no randomness, no async. Time, ids and observations come in as arguments. A
//! loop is the fold of its [`event`]s ([`LoopState`]); [`next_step`] returns the smallest thing to do next, and
//! refrain-engine does it. Everything the product decides is decided, and tested, here.
//!
//! Not here: files and journals on disk (refrain-store), git (refrain-git), forges (refrain-forge), agents' streams
//! (refrain-agents).

// A new kind of event, step or end must be looked at wherever one is decided on.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod budget;
pub mod evolution;
pub mod fingerprint;
pub mod gate;
pub mod git;
pub mod r#loop;
mod machine;
pub mod memory;
mod model;
mod newtype;
pub mod plan;
pub mod promise;
pub mod prompt;
pub mod protect;
pub mod review;
pub mod sandbox;
mod serde_default;
pub mod session;
#[cfg(test)]
mod simulation;
pub mod stuck;
pub mod view;

pub use model::{agent, event, glob, hex, ids, mirror, price, signature, spec, splice, text, values, work};

pub use event::{Event, Record};
pub use ids::{AttemptId, LoopId, RequestId};
pub use r#loop::{ChildId, Live, LoopState, Step, next_step};
pub use machine::{
    Damage, Ended, Lifecycle, MAX_STEERING, Machine, MachineEnd, Refusal, SharedEvent, check_steering,
};
pub use spec::Spec;
