//! The program from outside, as a user or a script runs it: sessions with the real binary, each in its own sandbox.
//! Agents are small shell scripts. Every module is listed here; one binary holds them all.

#[cfg(test)]
mod adapters;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod surfaces;

use testkit::Sandbox;

/// A sandbox for this build of the program, in a repository.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_refrain"))
}

/// A sandbox for this build of the program, in a plain folder.
fn plain_folder() -> Sandbox {
    Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"))
}

/// The agent's claim, alone on a line.
const CLAIM: &str = "echo '<promise>COMPLETE</promise>'";
