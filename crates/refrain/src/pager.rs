//! Long texts on a terminal: the pager that the environment names.

use std::io::{Seek, Write};

use refrain_app::{Code, Context, RequestError};
use refrain_core::text::visible;
use refrain_engine::chain;
use refrain_engine::tool::Tool;

use crate::out;

/// Shows a text in the pager that the environment names, `less` by default; prints it if standard output is no terminal.
pub(crate) fn page(context: &Context, text: &str) -> Result<(), RequestError> {
    if out::terminal_width().is_none() || !show(context, "less -FRX", text)? {
        out::print(text);
    }
    Ok(())
}

/// Shows a text in the pager that the environment names, or in this one; false if that is none, or fails.
pub(crate) fn show(context: &Context, less: &str, text: &str) -> Result<bool, RequestError> {
    let pager = context.variable("PAGER").unwrap_or(less);
    if pager == "cat" || context.variable("TERM") == Some("dumb") {
        return Ok(false);
    }
    let failed = |error: std::io::Error| RequestError::new(Code::Failed, format!("the pager: {error}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    let shown =
        if out::is_coloured() { text.to_owned() } else { anstream::adapter::strip_str(text).to_string() };
    file.write_all(visible(&shown).as_bytes()).and_then(|()| file.rewind()).map_err(failed)?;
    // The variable is a command of the user's shell, as everywhere; the text is only its input. The pager decides what
    // Ctrl-C means, not the shell around it.
    let script = format!("trap : INT; {pager}");
    let shell = context.outside(Tool::own("sh", context.dir.as_std_path()).args(["-c", &script]));
    shell
        .at_terminal(file.into())
        .map_err(|error| RequestError::new(Code::Failed, format!("the pager: {}", chain(&error))))
}
