//! Words for the person at the terminal.

use std::io::{Write, stderr, stdout};

/// A line about what happens. If nobody reads it, the worker works all the same.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// What was asked for.
pub(crate) fn print(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
