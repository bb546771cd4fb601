//! The two pipes to an agent's program, as lines for the protocol crate. Each has a thread of its own: a program that
//! does not read must not prevent us from reading its output, nor from stopping it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc as blocking;
use std::thread;

use futures_util::{Sink, Stream, sink, stream};
use tokio::sync::mpsc;

/// A longer line is no message.
const LONGEST: u64 = 32 << 20;
const WAITING: usize = 64;

/// Passes on the lines that look like messages. Others go to `junk`: they are meant for people, and the crate would
/// answer them.
pub(super) fn incoming(
    from: ChildStdout,
    mut junk: impl FnMut(Vec<u8>) + Send + 'static,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let (sender, mut lines) = mpsc::channel(WAITING);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        // Reads to the end, even without a receiver: a full pipe must not block a program that is exiting.
        while let Ok(Some(line)) = line(&mut from) {
            match String::from_utf8(line) {
                Ok(line) if line.starts_with('{') => {
                    let _ = sender.blocking_send(Ok(line));
                }
                Ok(line) if line.is_empty() => {}
                Ok(line) => junk(line.into_bytes()),
                Err(error) => junk(error.into_bytes()),
            }
        }
    });
    stream::poll_fn(move |context| lines.poll_recv(context))
}

/// Sends our messages. A program that no longer reads them is no error here: its end is detected elsewhere.
pub(super) fn outgoing(mut to: ChildStdin) -> impl Sink<String, Error = io::Error> + Send + 'static {
    let (sender, lines) = blocking::channel::<String>();
    thread::spawn(move || {
        for line in lines {
            if writeln!(to, "{line}").and_then(|()| to.flush()).is_err() {
                break;
            }
        }
    });
    sink::unfold(sender, |sender, line| async move {
        let _ = sender.send(line);
        Ok(sender)
    })
}

/// The next line, trimmed; an overlong line is cut.
fn line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if from.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
        from.skip_until(b'\n')?;
        // Replaced by text that is no message, so it is reported as junk.
        line = b"a line that is too long".to_vec();
    }
    Ok(Some(line.trim_ascii().to_vec()))
}
