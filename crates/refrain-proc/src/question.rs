//! Asking a program something that it answers in a moment: which version it is, whether somebody is logged in. Its standard
//! input is empty, it gets no terminal, its words are bounded, and one that does not answer in time is ended.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// How much of an answer is kept, in bytes.
const MOST: u64 = 1 << 20;
/// How long a program that was killed is waited for.
const LAST: Duration = Duration::from_millis(500);

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it printed on standard output, at most a mebibyte of it.
    pub stdout: String,
    /// And on standard error.
    pub stderr: String,
}

/// Asks `program` with exactly this environment, and waits for at most `limit`. It is started in a process group of its own,
/// which is killed once the time is over.
///
/// # Errors
/// Where it cannot be started; [`io::ErrorKind::TimedOut`] where it did not end in time.
pub fn ask(
    program: &Path,
    args: &[&str],
    dir: &Path,
    env: &[(OsString, OsString)],
    limit: Duration,
) -> io::Result<Answer> {
    #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (sender, answers) = mpsc::channel();
    // Whoever holds the pipes open beyond the time holds up these threads, and nobody else.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || {
        let errors = std::thread::spawn(move || read(stderr));
        let stdout = read(stdout);
        let stderr = errors.join().unwrap_or_default();
        let answer = child.wait().map(|status| Answer { code: status.code(), stdout, stderr });
        // Nobody listens any more once the time is over.
        let _ = sender.send(answer);
    });
    if let Ok(answer) = answers.recv_timeout(limit) {
        return answer;
    }
    if let Some(group) = group {
        // Hardly reaped yet, or the answer would be here: the number is still its own.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = answers.recv_timeout(LAST);
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", limit.as_secs_f32())))
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was read before an error counts; the rest is drained, so that nobody hangs on a full pipe.
        let _ = pipe.by_ref().take(MOST).read_to_end(&mut bytes);
        let _ = io::copy(&mut pipe, &mut io::sink());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sh(script: &str, limit: Duration) -> io::Result<Answer> {
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("ONLY".into(), "this".into())];
        ask(Path::new("/bin/sh"), &["-c", script], Path::new("/"), &env, limit)
    }

    #[test]
    fn an_answer_is_what_was_printed_and_the_code() {
        let answer = sh("echo $ONLY $HOME; pwd; cat; echo no >&2; exit 3", Duration::from_secs(10)).unwrap();
        let expected = Answer { code: Some(3), stdout: "this\n/\n".into(), stderr: "no\n".into() };
        assert_eq!(answer, expected);
        assert!(ask(Path::new("/no/such"), &[], Path::new("/"), &[], LAST).is_err());
    }

    #[test]
    fn more_than_is_kept_is_drained() {
        let answer = sh("head -c 5000000 /dev/zero; echo done >&2", Duration::from_secs(10)).unwrap();
        assert_eq!((answer.stdout.len(), answer.stderr.as_str()), (1 << 20, "done\n"));
    }

    #[test]
    fn who_does_not_answer_is_ended_with_all_it_started() {
        let began = Instant::now();
        let error = sh("sleep 1000 & exec sleep 1000", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
