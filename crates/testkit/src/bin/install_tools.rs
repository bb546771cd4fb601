//! Installs the npm packages that the tests need, by name: the real agent programs, and `axe`, for `cargo xtask e2e`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the people who build Refrain")]

use std::process::ExitCode;

use testkit::{Agent, install_axe};

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for name in &names {
        let done = match Agent::ALL.into_iter().find(|agent| agent.name() == name) {
            Some(agent) => agent.install(),
            None if name == "axe" => install_axe(),
            None => Err(format!("there is no agent {name}; there are {:?}", Agent::ALL.map(Agent::name))),
        };
        match done {
            Ok(said) => println!("{said}"),
            Err(error) => {
                eprintln!("{name} could not be installed: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
