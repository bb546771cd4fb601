//! Loops on the fleet: the real programs, and a real server on loopback with leases of seconds. A machine is a home, a
//! clone and notes of its own. The tests need a server, and are therefore ignored: `cargo xtask e2e fleet` runs them.

mod lab;
mod link;
mod loops;
mod operations;
mod outages;
mod plans;
mod requests;
mod setup;
mod shared;
