//! The door over HTTP: what [`Desk`](crate::Desk) can be asked, for browsers and for other programs.
//!
//! [`Server`] listens and holds every connection against its bounds; nothing that a client does, or leaves undone, costs
//! anybody else more than one of its places. `guard` lets in whom it may; `routes` is the table of what programs can ask, and
//! `api` does it; `live` is the stream of what happens; `pages` is what a person sees.

mod address;
mod api;
mod copies;
mod door;
mod failure;
mod guard;
mod guests;
mod live;
mod login;
mod openapi;
mod paced;
mod pages;
mod routes;
mod server;
mod stop;
mod tls;
mod words;

pub use address::{Address, AddressError, Way};
pub use door::{new_token, revoke_token, revoke_tokens, tokens};
pub use openapi::openapi;
pub use server::{HttpError, Server};
pub use stop::Stop;
pub use tls::{Tls, TlsError};
