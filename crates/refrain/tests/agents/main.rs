//! Loops over the real agent programs: the binary from outside, each program as installed, and a scripted model that
//! records their requests. Results differ from program to program; the table is in `docs/reference/agents.md`.
//!
//! The tests need the programs, so `cargo xtask e2e agents` runs them. A test's name contains the program and the case;
//! tests named `main_job` or `proves_a_python_package` are the smoke test, with one plan.

#[cfg(test)]
mod adoption;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod main_job;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod proving;
#[cfg(test)]
mod reviewing;
#[cfg(test)]
mod sandboxed;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod trouble;
#[cfg(test)]
mod work;
