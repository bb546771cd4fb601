//! Saying to Refrain what a person would type. A surface that starts loops for somebody else says it so: configuration,
//! trust, the guard against loops in loops and every refusal are those of the command line then, and the runner is nobody's
//! child, whom the surface could take with it or would have to bury.

use std::time::Duration;

use camino::Utf8Path;
use refrain_proc::tool::{Tool, ToolError};

use crate::Host;

/// Longer than any verb takes that hands its work to a process of its own; git's answers are bounded in themselves.
const LIMIT: Duration = Duration::from_mins(5);

/// What a verb said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it told people.
    pub stderr: String,
}

/// Runs `refrain` in `dir` with these words, in the person's environment; it reads `input`.
///
/// # Errors
/// [`ToolError`] where it cannot be started, or does not end.
pub fn say(host: &Host, dir: &Utf8Path, words: &[String], input: &str) -> Result<Answer, ToolError> {
    let tool = Tool::own(&host.program, dir.as_std_path()).env(&host.env).args(words);
    let done = tool.input(input.as_bytes()).limit(LIMIT).run()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Answer { code: done.status.code(), stdout: text(&done.stdout), stderr: text(&done.stderr) })
}
