//! The project's own tool, run as `cargo xtask …`: checks that the compiler and the linter lack, generated files,
//! benchmarks, and the tests that need more than Rust and git. It is no part of the product and uses none of its
//! crates: it runs the binary.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool for the people who build Refrain"
)]

mod bench;
mod check;
mod dist;
mod drawing;
mod e2e;
mod failure;
mod files;
mod generate;
mod lines;
mod pages;
mod process;
mod search;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks, generated files, benchmarks and end-to-end tests of Refrain.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check crate arrows, file sizes, forgotten tests, the purity of refrain-core, the pages, the wording, and generated files
    Check,
    /// Write the generated files below docs/
    Generate {
        /// Write nothing: name the files that are not current and fail if there are any
        #[arg(long)]
        check: bool,
    },
    /// Find the file to change, from the pages about the code: `cargo xtask where exit codes`
    Where {
        /// What you want to change, in your own words
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Count the Rust lines of each crate: production, tests, simulation
    Lines,
    /// Measure against the floors of the machine; every figure is a ratio inside one interleaved run
    Bench(bench::Options),
    /// Pack a binary for installation without Rust: tarball, Debian package, wheel, npm package, install script, SBOM
    Dist(dist::Options),
    /// Run the tests that need more than Rust and git: the real agent programs, a browser, a forge's own program
    E2e(e2e::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Check => check::run(),
        Task::Generate { check } => generate::run(check),
        Task::Where { words } => search::run(&words),
        Task::Lines => lines::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Dist(options) => dist::run(&options),
        Task::E2e(options) => e2e::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
