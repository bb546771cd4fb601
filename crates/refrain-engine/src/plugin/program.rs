//! Whether the shell of an agent finds the program that the agent's plugin calls.

use std::path::Path;
use std::time::Duration;

use refrain_proc::probe;

use crate::chain;

/// How long the program may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a shell without a profile cannot run this command; none if it can.
pub(super) fn problem(program: &str) -> Option<String> {
    let quoted = match shlex::try_quote(program) {
        Ok(quoted) => quoted,
        Err(error) => return Some(error.to_string()),
    };
    let call = format!("exec {quoted} --version");
    let env = [("PATH".into(), "/usr/bin:/bin".into())];
    match probe::ask(Path::new("/bin/sh"), &["-c", &call], Path::new("/"), &env, PATIENCE) {
        Ok(answer) if answer.code == Some(0) && answer.stdout.starts_with("refrain ") => None,
        Ok(answer) => {
            let said = answer.stderr.lines().next_back().unwrap_or("it is another program");
            Some(said.to_owned())
        }
        Err(error) => Some(chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_a_shell_does_not_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o'p/refrain");
        let program = path.to_str().unwrap();
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        assert!(problem(program).unwrap().contains("not found"));
        std::fs::write(&path, "#!/bin/sh\necho refrain 1.0\n").unwrap();
        assert!(problem(program).unwrap().contains("ermission denied"));
        #[expect(clippy::disallowed_methods, reason = "it is a test's own")]
        let done = std::process::Command::new("chmod").arg("755").arg(&path).status().unwrap();
        assert!(done.success());
        assert_eq!(problem(program), None);
        assert_eq!(problem("/bin/true").as_deref(), Some("it is another program"));
    }
}
