//! The type of a subject, and its inputs.

use crate::bench::measure::tools::Tools;
use crate::bench::report::Row;
use crate::failure::Result;
use crate::workspace::Workspace;

pub(crate) struct Bench {
    pub(crate) workspace: Workspace,
    pub(crate) tools: Tools,
    pub(crate) smoke: bool,
}

impl Bench {
    /// One size for a measuring run, another for a smoke run.
    pub(crate) fn pick<T>(&self, measuring: T, smoke: T) -> T {
        if self.smoke { smoke } else { measuring }
    }
}

/// A subject: measures, and fails if the program does not behave.
pub(crate) type Subject = fn(&Bench) -> Result<Vec<Row>>;
