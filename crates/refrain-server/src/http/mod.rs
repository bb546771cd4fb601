//! The door over HTTP: what [`Desk`](crate::Desk) can be asked, for browsers and for other programs.
//!
//! [`Server`] listens and holds every connection against its bounds; nothing that a client does, or leaves undone, costs
//! anybody else more than one of its places. `guard` lets in whom it may; `routes` is the table of what programs can ask, and
//! `api` does it; `live` is the stream of what happens; `pages` is what a person sees.

mod api;
mod app_state;
mod coalesce;
mod failure;
mod guard;
mod guests;
mod listener;
mod live;
mod login;
mod openapi;
mod pages;
mod routes;
mod words;

pub use app_state::{new_token, revoke_token, revoke_tokens, tokens};
pub use listener::address::{Address, AddressError, Way};
pub use listener::server::{HttpError, Server};
pub use listener::stop::Stop;
pub use listener::tls::{Tls, TlsError};
pub use openapi::openapi;
