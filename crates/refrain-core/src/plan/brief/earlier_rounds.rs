//! What happened in an earlier round of a task, for the agent of the next one.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::prompt::fenced;
use crate::text::{cut_middle, inline_code, printable, squeeze};

/// How much of a side of a conflict the prompt quotes, in bytes.
const SIDE: usize = 8 << 10;
/// How much of a verification's output the prompt quotes, in bytes.
const OUTPUT: usize = 6 << 10;
/// How much of a refinement the prompt quotes, in bytes.
const REFINEMENT: usize = 16 << 10;
/// How much of the reason why a task was not done the prompt quotes, in bytes.
const REASON: usize = 1 << 10;
const MOST_GATES: usize = 3;
const MOST_FILES: usize = 50;

/// Why a task is worked on once more. All of it is text of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Again {
    /// What it made and what landed meanwhile change the same places.
    Conflict {
        /// The files that hold conflict markers.
        files: Vec<String>,
        /// What it had changed in them, as a diff.
        ours: String,
        /// What landed in them meanwhile, as a diff.
        theirs: String,
    },
    /// Together with what had landed it failed the verification, and was taken out again.
    Refused(FailedCommand),
    /// It was tried before, and was not done.
    Tried {
        /// Why not, in a line.
        reason: String,
        /// The gates that failed last: what each runs, and what it printed.
        failed: Vec<FailedCommand>,
        /// Its work from then is in the checkout.
        has_work: bool,
    },
    /// A person or a reviewer says how to go on.
    Refined {
        /// What they say.
        text: String,
    },
}

/// A command of a gate that failed, and its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCommand {
    /// The command.
    pub command: String,
    /// What it printed.
    pub output: String,
}

impl FailedCommand {
    fn quoted(&self) -> String {
        let command = inline_code(&squeeze(&printable(&self.command)));
        quoted(&format!("The command {command} printed:"), &self.output, OUTPUT)
    }
}

impl Again {
    pub(super) fn section(&self) -> String {
        match self {
            Self::Conflict { files, ours, theirs } => conflict(files, ours, theirs),
            Self::Refused(failed) => format!(
                "NOT LANDED: your work on this task passed by itself, but failed the verification together with what other \
                 tasks had landed, and was taken out again. Your checkout holds what has landed, with your work on top: make \
                 both work together.{}",
                failed.quoted()
            ),
            Self::Tried { reason, failed, has_work } => {
                let work = match has_work {
                    true => " Your checkout holds what has landed, with the work of that try on top.",
                    false => "",
                };
                let failed: String = failed.iter().take(MOST_GATES).map(FailedCommand::quoted).collect();
                format!(
                    "TRIED BEFORE: another agent tried this task, and it was not done: {}.{work}{failed}",
                    cut_middle(&squeeze(&printable(reason)), REASON).trim_end_matches('.')
                )
            }
            Self::Refined { text } => format!(
                "REFINEMENT: this task was tried before, and did not come to its end. Where this differs from what stands \
                 above, this counts:\n\n{}",
                cut_middle(printable(text).trim(), REFINEMENT)
            ),
        }
    }
}

fn conflict(files: &[String], ours: &str, theirs: &str) -> String {
    let mut text = String::from(
        "CONFLICT: your work on this task was done, but other tasks that landed meanwhile changed the same places. Your \
         checkout holds what has landed, with your work merged in, and git's conflict markers (with what was there before behind `|||||||`) stand in:",
    );
    for file in files.iter().take(MOST_FILES) {
        let _ = write!(text, "\n- {}", squeeze(&printable(file)));
    }
    if files.len() > MOST_FILES {
        let _ = write!(text, "\n- and {} more", files.len() - MOST_FILES);
    }
    text.push_str(
        "\n\nResolve every one of them so that both sides do what they were made for, take the markers out, and see that the \
         verification passes.",
    );
    text.push_str(&quoted("What you had changed there:", ours, SIDE));
    text.push_str(&quoted("What landed there meanwhile:", theirs, SIDE));
    text
}

/// A text under its words, in a fence that it cannot close; nothing if it is empty.
fn quoted(words: &str, text: &str, most: usize) -> String {
    match printable(text).trim_matches('\n') {
        "" => String::new(),
        text => format!("\n\n{words}\n\n{}", fenced(&cut_middle(text, most))),
    }
}
