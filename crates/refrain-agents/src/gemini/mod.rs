//! Gemini CLI: `gemini --output-format stream-json`. Measured with 0.61.0.
//!
//! * It runs itself again as a child with a larger heap, and then ignores signals to its own pid;
//!   `GEMINI_CLI_NO_RELAUNCH` makes it one process. SIGINT and SIGTERM both end it, with exit code 0 and without a
//!   result, so the default ladder will do. Its tools live on after either: the keeper's sweep ends them.
//! * A run often leaves `projects.json.lock` in its home, and the next run waits 13 s for it. A caller that starts
//!   one run after another removes that lock once no gemini of that home is alive: [`lock`] returns its path.
//! * Exit code 0 is no success: it comes with an interrupted run, with one whose output was cut (no result then), and
//!   with a result that is an error. A failed request's exit code is its HTTP status modulo 256.
//! * It echoes the prompt, and past about 190 kB of it its own output is cut. That cannot be prevented from outside;
//!   the reader reports it.
//! * It expands `@path` in a prompt to that file's content. A prompt is never rewritten here, so its author must know
//!   this.

mod checkup;
mod faults;
mod launch;
mod reader;
mod wire;

pub(crate) use faults::Notices;
pub(crate) use launch::Gemini;
pub use launch::lock;
