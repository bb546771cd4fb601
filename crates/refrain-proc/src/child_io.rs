//! A program that is driven over its standard input and output, in a process group of its own, so that a signal to
//! the caller's group does not end it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::system::is_gone_within;

/// A program with a pipe at each end. Its standard error is ours. It is ended on drop.
#[derive(Debug)]
pub struct ChildPipes {
    child: Child,
}

impl ChildPipes {
    /// Starts `program` in our working folder and environment.
    pub fn start(program: &str, args: &[String]) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((Self { child }, stdin, stdout)),
            _ => Err(io::Error::other("a program without pipes")),
        }
    }

    /// Waits for its end up to `grace`, then kills it and its group.
    pub fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return Err(io::Error::other("a program without a pid")) };
        if !is_gone_within(pid, grace)? {
            // Not reaped yet, so the number is still its own.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for ChildPipes {
    fn drop(&mut self) {
        let _ = self.end(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn sh(script: &str) -> (ChildPipes, ChildStdin, ChildStdout) {
        ChildPipes::start("sh", &["-c".to_owned(), script.to_owned()]).unwrap()
    }

    #[test]
    fn a_piped_child_is_served_until_its_input_is_closed() {
        let (mut piped, mut stdin, mut stdout) = sh("cat; exit 3");
        stdin.write_all(b"hello").unwrap();
        drop(stdin);
        let mut said = String::new();
        stdout.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
        assert_eq!(piped.end(Duration::from_secs(60)).unwrap().code(), Some(3));
        assert_eq!(piped.end(Duration::ZERO).unwrap().code(), Some(3), "said again, it is the same");
    }

    #[test]
    fn a_child_that_stays_is_killed_with_its_group() {
        let (mut piped, _stdin, mut stdout) = sh("cat /dev/zero >/dev/null & echo; wait");
        stdout.read_exact(&mut [0]).unwrap();
        assert_eq!(piped.end(Duration::ZERO).unwrap().code(), None);
        // Its descendant held the pipe open too.
        assert_eq!(stdout.read(&mut [0]).unwrap(), 0);
    }
}
