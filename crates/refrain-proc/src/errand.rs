//! Sending a program on an errand: it gets a text, has so long, and nobody waits for what it starts.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::system::is_gone_within;

/// A program to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Errand<'a> {
    /// What to start; no shell splits it.
    pub argv: &'a [String],
    /// Set over the environment that is there.
    pub env: &'a [(&'a str, &'a str)],
    /// Where it starts.
    pub dir: &'a Path,
    /// What it can read on its standard input: short, so that a pipe holds it.
    pub text: &'a str,
    /// How long it has; then it is killed with its group.
    pub limit: Duration,
}

/// How much of its complaints is read.
const COMPLAINT: usize = 4 << 10;

impl Errand<'_> {
    /// Sends it and waits for its end.
    ///
    /// # Errors
    /// Where it cannot be started, does not end in time, or ends with another code than 0; the text says which, and what
    /// it complained of last.
    pub fn run(&self) -> io::Result<()> {
        let Some((program, args)) = self.argv.split_first() else {
            return Err(io::Error::other("no program"));
        };
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let mut child = Command::new(program)
            .args(args)
            .current_dir(self.dir)
            .envs(self.env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read it is not the worse for that.
            let _ = stdin.write_all(self.text.as_bytes());
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a program without a pid"))?;
        let in_time = is_gone_within(pid, self.limit)?;
        if !in_time {
            // Not reaped yet, so the number is still its own.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let status = child.wait()?;
        if !in_time {
            return Err(io::Error::other(format!("it did not end within {} s", self.limit.as_secs())));
        }
        if status.success() {
            return Ok(());
        }
        let mut complaint = vec![0; COMPLAINT];
        let length = match child.stderr.take() {
            // What it left running may hold the pipe open: only what is there already is read.
            Some(mut stderr) if rustix::io::ioctl_fionbio(&stderr, true).is_ok() => {
                stderr.read(&mut complaint).unwrap_or_default()
            }
            _ => 0,
        };
        let complaint = String::from_utf8_lossy(&complaint[..length]);
        let last = complaint.trim().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        Err(io::Error::other(format!("it ended with {status}{last}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(script: &str, limit: Duration) -> io::Result<()> {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let (env, dir) = ([("WHAT", "errand")], std::env::temp_dir());
        Errand { argv: &argv, env: &env, dir: &dir, text: "a text\n", limit }.run()
    }

    #[test]
    fn it_gets_its_text_and_says_what_went_wrong() {
        let long = Duration::from_secs(60);
        send("read -r text && test \"$text $WHAT\" = 'a text errand'", long).unwrap();
        let failed = send("echo first >&2; echo 'no such host' >&2; exit 6", long).unwrap_err().to_string();
        assert!(failed.contains('6') && failed.ends_with(": no such host"), "{failed}");
        let missing = Errand {
            argv: &["/no/such/program".to_owned()],
            env: &[],
            dir: Path::new("/"),
            text: "",
            limit: long,
        };
        assert_eq!(missing.run().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nobody_waits_for_one_that_stays_nor_for_what_it_leaves() {
        let late = send("exec sleep 1000", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(late.contains("did not end"), "{late}");
        send("sleep 3 & exit 0", Duration::from_secs(60)).unwrap();
        let failed = send("sleep 3 & exit 1", Duration::from_secs(60)).unwrap_err().to_string();
        assert!(failed.contains('1'), "{failed}");
    }
}
