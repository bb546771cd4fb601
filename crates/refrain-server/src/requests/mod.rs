//! The requests that every protocol offers. They block, and belong on a thread that may block.

mod actions;
mod activity;
mod address;
mod answer;
mod folders;
mod handovers;
mod overview;
mod parameters;
mod refusal;
mod start;
mod status;
mod stored_data;
mod views;

#[cfg(test)]
pub(crate) mod tests;

use camino::Utf8PathBuf;
use refrain_app::Context;
use refrain_engine::{EngineError, KnownLoops};

pub(crate) use activity::{Activity, Line};
pub(crate) use address::{Address, Part};
pub(crate) use answer::{
    AnswerResult, DiscardSummary, Listing, LoopView, MergeSummary, Progress, Reported, StartResult, Status,
    SteerResult, StopResult,
};
pub use handovers::Handovers;
pub(crate) use overview::{Entry, LIST_PAGE, Overview, OverviewFilter, ProjectSettings};
pub(crate) use parameters::{List, LoopParams, Steer, Stop, ToolDiff, ToolMerge, WithWait};
pub(crate) use refusal::{Refusal, RefusalKind};
pub(crate) use start::{COMMAND, Forecasts};
pub(crate) use status::name as project_name;
pub(crate) use stored_data::{UsageOf, addresses};
pub(crate) use views::{Difference, LogPart, LoopAddress, ProjectView};

/// The entry point of all protocols: the folders that a person opened, and the projects in them.
#[derive(Clone, Debug)]
pub struct RequestHandler {
    context: Context,
    handovers: Handovers,
    /// Canonical paths, at least one; the first is used for requests that name no folder.
    roots: Vec<Utf8PathBuf>,
    /// Every project that Refrain has worked in is open too, also those of later.
    everywhere: bool,
    /// What lists need again and again.
    known: KnownLoops,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}: there is no such folder")]
    NoFolder(Utf8PathBuf),
    #[error(transparent)]
    Engine(#[from] EngineError),
}
