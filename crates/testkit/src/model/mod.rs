//! A scripted model on loopback, for runs of the real agent programs: it speaks the protocols of all of them, answers as a
//! script says, and keeps what each request told it, so that a test can say what an agent was really asked.
//!
//! [`Script`] is what to answer, [`Model`] the server, [`Request`] what it saw. Below, [`wire`] reads and writes each
//! protocol, [`refusal`] its error answers, [`tools`] finds the tool of a request that does what a turn wants, [`http`] is
//! as much of HTTP/1.1 as the programs use, [`connection`] serves one of them, and [`state`] is what they all share.

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

pub use request::{Ending, Protocol, Request, Took};
pub use script::{Script, Turn, Usage};
pub use server::Model;
