//! The binary: under its own name the command line, under the keeper's name the keeper.

mod cli;
mod cmd;
mod committed;
#[cfg(test)]
mod effects;
mod gated;
mod herald;
mod lines;
mod live;
mod narrator;
mod notify;
mod out;
mod phrase;
mod plan;
mod progress;
mod published;
mod report;
mod run;
mod said;
mod screen;
mod slack;
mod table;
mod telemetry;
mod telling;
mod unknown_verb;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    if name == refrain_engine::keeper::KEEPER_NAME {
        return ExitCode::from(u8::from(refrain_engine::keeper::run().is_err()));
    }
    cli::run()
}
