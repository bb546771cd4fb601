//! OpenCode: `opencode run --format json`. Measured with 1.18.33.
//!
//! * It waits for ever on an open standard input, and wraps an argument that has a space in quotes that the model
//!   sees: the prompt is a file on standard input.
//! * Its stream has no last event; the end is the exit. Usage and cost come with each model call and are added up, so
//!   the totals of an interrupted attempt are right up to that point.
//! * It retries silently, for minutes: only a silence limit ends that.
//! * A permission that its configuration says to ask for is refused, and that ends the run at once, with exit code 0.
//! * Its tools live on after any signal: the keeper's sweep ends them. SIGINT and SIGTERM both end it without a word,
//!   so the default ladder will do.

mod checkup;
mod faults;
mod launch;
mod reader;
pub(crate) mod session;
mod wire;

pub(crate) use launch::{OpenCode, reading};
