//! The binary: under its own name the command line, under the keeper's name the keeper.

mod cli;
mod cmd;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod help;
mod notifier;
mod notify;
mod ntfy;
mod out;
mod pager;
mod plan;
mod render;
mod report;
mod run;
mod slack;
mod telemetry;
mod unknown_verb;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    if name == refrain_engine::keeper::KEEPER_NAME {
        return ExitCode::from(u8::from(refrain_engine::keeper::run().is_err()));
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == refrain_engine::sandbox::SANDBOX_VERB) {
        let words: Vec<String> = std::env::args().skip(2).collect();
        return ExitCode::from(refrain_engine::sandbox::run_helper(&words));
    }
    refrain_engine::heed_signals();
    let code = cli::run();
    refrain_engine::end_tools();
    code
}
