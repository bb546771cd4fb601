//! Loops on the fleet: the real programs, and a real server on loopback with leases of seconds. A machine is a home, a
//! clone and notes of its own. The tests need a server, and are therefore ignored: `cargo xtask e2e fleet` runs them.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod fairness;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod loops;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod upgrades;
