//! The protocols: how each says what the user, the tools and the model have said.
//!
//! [`Said`] is what a request tells, [`Reply`] what is answered; [`speak`] picks the protocol, and each file below it reads
//! a request, writes a whole answer, and writes a stream of [`Event`]s.

mod anthropic;
mod chat;
mod gemini;
mod parts;
mod responses;
mod speak;

pub(super) use parts::{Event, Reply, Said};
pub(super) use speak::{events, read, whole};
