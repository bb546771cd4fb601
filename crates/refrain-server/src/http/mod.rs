//! The HTTP server: [`RequestHandler`](crate::RequestHandler) for browsers and for other programs.
//!
//! [`Server`] listens and enforces limits on every connection, so that a slow or hostile client costs others at most
//! one connection slot. `guard` authenticates; `routes` is the table of the API, and `api` implements it; `live` is the
//! event stream; `pages` is the dashboard.

mod api;
mod app_state;
mod coalesce;
mod connections;
mod failure;
mod guard;
mod listener;
mod live;
mod login;
mod openapi;
mod pages;
mod parameters;
mod routes;

pub use app_state::{new_token, revoke_token, revoke_tokens, tokens};
pub use listener::address::{Address, AddressError, Way};
pub use listener::server::{HttpError, Server};
pub use listener::stop::Stop;
pub use listener::tls::{Tls, TlsError};
pub use openapi::openapi;
