//! The protocols: how each encodes messages of the user, the tools and the model.
//!
//! [`Said`] is a decoded request, [`Reply`] the answer; [`speak`] picks the protocol, and each file below it reads a
//! request, writes a whole answer, and writes a stream of [`Event`]s.

mod anthropic;
mod chat;
mod gemini;
mod parts;
mod responses;
mod speak;

pub(super) use parts::{Event, Reply, Said};
pub(super) use speak::{events, read, whole};
