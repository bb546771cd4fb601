//! Short questions to a program, such as its version or whether a user is logged in. Each is a [`Tool`] with a short
//! time limit and little output, and any exit code.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::tool::{Tool, ToolError};

/// The longest answer, in bytes.
const MOST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeOutput {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Asks `program` with this environment, in the C locale, and waits for at most `limit`.
/// Errors: If it cannot be started, does not end in time or prints more than a mebibyte.
pub fn ask(
    program: &Path,
    args: &[&str],
    dir: &Path,
    env: &[(OsString, OsString)],
    limit: Duration,
) -> Result<ProbeOutput, ToolError> {
    let done = Tool::new(program, dir).args(args).env(env).limit(limit).most(MOST).run()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(ProbeOutput { code: done.status.code(), stdout: text(&done.stdout), stderr: text(&done.stderr) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_returns_the_output_and_the_exit_code() {
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("ONLY".into(), "this".into())];
        let limit = Duration::from_secs(60);
        let words = ["-c", "echo $ONLY $HOME; pwd; cat; echo no >&2; exit 3"];
        let answer = ask(Path::new("/bin/sh"), &words, Path::new("/"), &env, limit).unwrap();
        let expected = ProbeOutput { code: Some(3), stdout: "this\n/\n".into(), stderr: "no\n".into() };
        assert_eq!(answer, expected);
        assert!(ask(Path::new("/no/such"), &[], Path::new("/"), &[], limit).is_err());
    }
}
