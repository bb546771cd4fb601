//! The programs that run a loop: Refrain, the six lines of shell that one would write by hand, or a floor.

use std::ffi::OsString;

use crate::bench::measure::sandbox::{LOOP, Sandbox};
use crate::bench::measure::tools::Tools;
use crate::failure::Result;
use crate::files::write;

/// The loop that needs no program. Its state is a counter file, its output log holds the last iteration.
pub(crate) const SHELL_LOOP: &str = r#"i=0
while [ $i -lt "$1" ]; do
  i=$((i+1)); echo $i > .iteration
  claude -p "$(cat PROMPT.md)" > out.txt 2>&1
  grep -q '<promise>COMPLETE</promise>' out.txt && break
done
true
"#;

/// One way to run the mock agent again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Refrain,
    Shell,
    FloorSync2,
    FloorNoSync,
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refrain => "Refrain",
            Self::Shell => "shell loop",
            Self::FloorSync2 => "sync2 floor",
            Self::FloorNoSync => "nosync floor",
        }
    }

    /// The exit code of a loop that runs into its cap.
    pub(crate) fn code_at_cap(self) -> i32 {
        if self == Self::Refrain { 10 } else { 0 }
    }

    /// The command line for so many iterations; also prepares the sandbox.
    pub(crate) fn prepare(self, tools: &Tools, sandbox: &Sandbox, iterations: u32) -> Result<Vec<OsString>> {
        let n = iterations.to_string();
        let floor =
            |mode: &str| vec![tools.floor.clone().into(), "mock_agent".into(), n.clone().into(), mode.into()];
        Ok(match self {
            Self::Refrain => start(tools, iterations),
            Self::Shell => {
                let script = sandbox.note("loop.sh");
                write(&script, SHELL_LOOP)?;
                vec!["bash".into(), script.into(), n.into()]
            }
            Self::FloorSync2 => floor("sync2"),
            Self::FloorNoSync => floor("nosync"),
        })
    }
}

/// `refrain start` on the mock agent.
pub(crate) fn start(tools: &Tools, iterations: u32) -> Vec<OsString> {
    let iterations = iterations.to_string();
    let mut words = vec![tools.refrain.clone().into_os_string()];
    words.extend(
        [
            "start",
            "--command",
            "mock_agent -p",
            "--prompt",
            "Do the next item of the plan.",
            "--max-iterations",
            &iterations,
            "--name",
            LOOP,
            "--quiet",
        ]
        .map(OsString::from),
    );
    words
}
