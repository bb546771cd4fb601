//! The door over HTTP: what [`Desk`](crate::Desk) can be asked, for browsers and for other programs.
//!
//! [`Server`] listens and holds every connection against its bounds; nothing that a client does, or leaves undone, costs
//! anybody else more than one of its places.

mod address;
mod server;

pub use address::{Address, AddressError};
pub use server::{HttpError, Server, Stop};
