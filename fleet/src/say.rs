//! Words for the person at the terminal.

use std::io::{Write, stderr, stdout};

/// A line about what happens. The worker works even if it is not read.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// What was asked for.
pub(crate) fn print(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
