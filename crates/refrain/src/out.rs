//! Printing. A closed reader is no error: the work continues.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use camino::Utf8Path;
use refrain_app::{Code, RequestError};
use refrain_core::LoopId;
use refrain_core::text::{printable, visible};
use refrain_core::view::to_continue;
use refrain_engine::{SlowRunner, write_atomic};
use serde::Serialize;

use crate::render::phrase;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

impl Target {
    /// Writes a text; colour only on a terminal and without `NO_COLOR`. False once the reader is gone.
    pub(crate) fn write(self, text: &str) -> bool {
        let write = |to: &mut dyn Write, text: &str| to.write_all(text.as_bytes()).and_then(|()| to.flush());
        let written = match self {
            Self::Stdout => write(&mut anstream::stdout().lock(), &shown(text, &std::io::stdout())),
            Self::Stderr => write(&mut anstream::stderr().lock(), &shown(text, &std::io::stderr())),
        };
        written.is_ok()
    }

    /// The width of the terminal in columns; none if the stream is no terminal.
    pub(crate) fn width(self) -> Option<usize> {
        const USUAL: usize = 80;
        let size = match self {
            Self::Stdout => rustix::termios::tcgetwinsize(std::io::stdout()),
            Self::Stderr => rustix::termios::tcgetwinsize(std::io::stderr()),
        };
        // A terminal whose size was never set reports 0.
        Some(size.ok()?.ws_col).map(|columns| if columns == 0 { USUAL } else { columns.into() })
    }
}

/// On a terminal no text of an agent turns the rest of a line round, and none of it is invisible.
fn shown<'a>(text: &'a str, to: &impl IsTerminal) -> Cow<'a, str> {
    if to.is_terminal() { visible(text) } else { Cow::Borrowed(text) }
}

/// The same of bytes that may be no text.
fn shown_bytes<'a>(bytes: &'a [u8], to: &impl IsTerminal) -> Cow<'a, [u8]> {
    if !to.is_terminal() {
        return Cow::Borrowed(bytes);
    }
    let chunks = bytes.utf8_chunks();
    Cow::Owned(chunks.flat_map(|it| [visible(it.valid()).as_bytes(), it.invalid()].concat()).collect())
}

/// The first error of standard output, if it is not that the reader is gone.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Whether a write to standard output succeeded.
fn is_printed(result: std::io::Result<()>) -> bool {
    let Err(error) = result else { return true };
    if error.kind() != ErrorKind::BrokenPipe {
        let _ = LOST.set(error);
    }
    false
}

/// Fails if a part of what was to be printed is lost.
pub(crate) fn check_printed() -> Result<(), RequestError> {
    LOST.get().map_or(Ok(()), |error| Err(unwritten(error)))
}

/// Prints on standard output; colour only on a terminal and without `NO_COLOR`.
pub(crate) fn print(text: &str) {
    print_part(text);
}

/// Prints a part of something long; `false` once the reader is gone.
pub(crate) fn print_part(text: &str) -> bool {
    let mut out = anstream::stdout().lock();
    is_printed(out.write_all(shown(text, &std::io::stdout()).as_bytes()).and_then(|()| out.flush()))
}

/// Prints on standard error what failed and what to do next; returns the exit code. A usage error is one line, with
/// the commands to choose from, if there are several, below it (contract.md).
pub(crate) fn report(error: &RequestError) -> ExitCode {
    if error.code() == Code::Usage {
        let line = error.line();
        let line = line.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        tell_line("", &format!("refrain: {line}"));
        error.choices().iter().for_each(|choice| tell_line("  ", choice));
        return error.code().into();
    }
    let message = error.message();
    let mut lines = message.lines().map(str::trim_end).filter(|line| !line.is_empty());
    tell_line("", &format!("refrain: {}", lines.next().unwrap_or_default()));
    // What git said has lines of its own. None of them can look like a message or a hint of Refrain's.
    lines.for_each(|line| tell_line("    ", &line.replace('\t', "  ")));
    for hint in error.hints() {
        tell_line("  ", &hint);
    }
    error.code().into()
}

pub(crate) fn tell_note(note: String) {
    tell_line("", &format!("note: {note}"));
}

/// Prints a line on standard error. On a terminal it is wrapped at the terminal's width, and continuation lines are
/// indented two columns after the margin.
pub(crate) fn tell_line(margin: &str, text: &str) {
    let text = printable(text).replace('\n', " ");
    tell(&(phrase::broken(margin, margin.len() + 2, &text, Target::Stderr.width()) + "\n"));
}

pub(crate) fn tell(text: &str) {
    let _ = anstream::stderr().lock().write_all(shown(text, &std::io::stderr()).as_bytes());
}

/// Reports that a runner has not answered for a while.
pub(crate) fn tell_slow(id: &LoopId, SlowRunner { pid, is_stopped }: SlowRunner) {
    let who = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let how = match pid.filter(|_| is_stopped) {
        Some(pid) => format!("is stopped; {} continues it", to_continue(pid)),
        None => "has not answered yet".to_owned(),
    };
    tell_line("", &format!("refrain: the runner of {id}{who} {how}; waiting for it"));
}

/// Prints bytes on standard output with their colours, as they are if that is no terminal.
pub(crate) fn print_raw(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    is_printed(out.write_all(&shown_bytes(bytes, &std::io::stdout())).and_then(|()| out.flush()))
}

/// Whether standard output takes colour: a terminal does, and a pipe if it is forced.
pub(crate) fn is_coloured() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// Whether this program's output is shown on a terminal.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal() || std::io::stdout().is_terminal()
}

/// The width of standard output's terminal in columns; none if it is no terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    Target::Stdout.width()
}

/// The height of the terminal in lines; none if standard output is no terminal or has no known height.
pub(crate) fn terminal_height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|lines| *lines > 0)
}

/// Prints one JSON value, readable, on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), RequestError> {
    result(serde_json::to_string_pretty(value))
}

/// Prints one JSON value on a line of its own.
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), RequestError> {
    result(serde_json::to_string(value))
}

/// Prints a text that a script or a file waits for, as it is.
pub(crate) fn print_whole(text: &str) -> Result<(), RequestError> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a text, without colour, to a file that the person named with an option. Replaces only what
/// `is_own` takes for the text of an earlier call.
#[expect(clippy::disallowed_methods, reason = "a device or a pipe needs no crash promise")]
pub(crate) fn write_file(
    dir: &Utf8Path,
    (option, file): (&str, &Utf8Path),
    (text, is_own): (&str, impl Fn(&str) -> bool),
) -> Result<(), RequestError> {
    let path = &dir.join(file);
    let has_content = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
    if has_content && !std::fs::read_to_string(path).is_ok_and(|before| is_own(&before)) {
        let error = format!("{option} {file}: it is not Refrain's, and stays as it is");
        return Err(RequestError::new(Code::Refused, error).hint("name a file that is not there yet"));
    }
    let text = anstream::adapter::strip_str(text).to_string();
    // A link of an agent would lead elsewhere: it is replaced. What is no file, such as /dev/stdout, is written as it is.
    let written = match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => std::fs::write(path, text).map_err(|error| error.to_string()),
        Ok(_) | Err(_) => write_atomic(path, text.as_bytes()).map_err(|error| error.source.to_string()),
    };
    written.map_err(|error| {
        RequestError::new(Code::Failed, format!("{path} cannot be written: {error}"))
            .hint("name a file in a folder that you may write to")
    })
}

/// Prints a JSON array of values that are text already, one a line.
pub(crate) fn print_json_array(values: impl Iterator<Item = impl fmt::Display>) -> Result<(), RequestError> {
    let mut out = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let mut before = "[";
    let print = || {
        for value in values {
            write!(out, "{before}\n{value}")?;
            before = ",";
        }
        writeln!(out, "{}", if before == "[" { "[]" } else { "\n]" })?;
        out.flush()
    };
    written(print())
}

/// A result that a script waits for: unlike progress, it fails if it cannot be written.
fn result(text: serde_json::Result<String>) -> Result<(), RequestError> {
    let text = text.map_err(|error| unwritten(&error))?;
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

fn written(result: std::io::Result<()>) -> Result<(), RequestError> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

fn unwritten(error: &dyn std::error::Error) -> RequestError {
    RequestError::new(Code::Failed, format!("the result cannot be written: {error}"))
}
