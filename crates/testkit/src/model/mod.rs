//! A scripted model on loopback, for runs of the real agent programs: it speaks the protocols of all of them, answers
//! from a script, and keeps every request, so that a test can check what an agent really sent.
//!
//! [`Script`] is the list of answers, [`Model`] the server, [`Request`] what it received. Below, [`wire`] reads and
//! writes each protocol, [`refusal`] its error answers, [`tools`] finds the tool of a request that does what a turn
//! wants, [`http`] is as much of HTTP/1.1 as the programs use, [`connection`] serves one connection, and [`state`] is
//! what all connections share.

mod connection;
pub(crate) mod http;
mod refusal;
mod request;
mod script;
mod server;
mod state;
mod tools;
mod wire;

#[cfg(test)]
mod tests;

pub use connection::login;
pub use request::{ConnectionEnd, Protocol, Request, TakenTurn};
pub use script::{Script, Turn, Usage};
pub use server::Model;
