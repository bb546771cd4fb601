//! The protocols: how each encodes messages of the user, the tools and the model.
//!
//! [`ModelRequest`] is a decoded request, [`Reply`] the answer; [`speak`] picks the protocol, and each file below it reads a
//! request, writes a whole answer, and writes a stream of [`Event`]s.

mod anthropic;
mod chat;
mod gemini;
mod parts;
mod responses;
mod speak;

pub(super) use parts::{Event, ModelRequest, Reply};
pub(super) use speak::{events, read, whole};
