//! Running a tool for ourselves, like git: no shell, nothing to read, answers in a language that can be read.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// A tool that did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It could not be started.
    #[error("{program} cannot be started")]
    Missing {
        /// The tool.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// It said no.
    #[error("{command}: {complaint}")]
    Failed {
        /// What it was told.
        command: String,
        /// What it said.
        complaint: String,
    },
}

/// Runs `program` in `dir` and returns what it printed.
///
/// # Errors
/// [`ToolError`] where it cannot be started or ends with another code than 0.
pub fn run(program: &str, args: &[&str], dir: &Path) -> Result<String, ToolError> {
    #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ToolError::Missing { program: program.to_owned(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ToolError::Failed { command: format!("{program} {}", args.join(" ")), complaint })
}
