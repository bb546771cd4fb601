//! Words for the person at the terminal.

use std::io::{Write, stderr, stdout};

/// A line about what happens. The worker works even if it is not read.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// The same of any bytes.
pub(crate) fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()
}

/// What was asked for.
pub(crate) fn print(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
