//! Printing. A reader that went away is no error: whatever was to be done is done all the same.

use std::io::Write;

use serde::Serialize;

use crate::error::{CliError, Code};

/// Prints on standard output; colour only on a terminal and without `NO_COLOR`.
pub(crate) fn print(text: &str) {
    let _ = anstream::stdout().lock().write_all(text.as_bytes());
}

/// Says on standard error.
pub(crate) fn tell(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Prints bytes on standard output as they are.
pub(crate) fn print_raw(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).is_ok()
}

/// Prints one JSON value, readable, on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::new(Code::Failed, error.to_string()))?;
    print(&format!("{text}\n"));
    Ok(())
}
