//! The requests that every protocol offers. They block, and belong on a thread that may block.

mod acting;
mod address;
mod answer;
mod handovers;
mod hearing;
mod overview;
mod places;
mod reading;
mod refusal;
mod seeing;
mod starting;
mod wanted;
mod watching;

#[cfg(test)]
pub(crate) mod tests;

use camino::Utf8PathBuf;
use refrain_app::Context;
use refrain_engine::EngineError;

pub(crate) use address::{Address, Part};
pub(crate) use answer::{
    Answered, Discarded, Listing, LoopView, Merged, Progress, Reported, StartResult, Status, Steered, Stopped,
};
pub use handovers::Handovers;
pub(crate) use hearing::{Activity, Line};
pub(crate) use overview::{Entry, LIST_PAGE, Overview, OverviewFilter, ProjectSettings};
pub(crate) use reading::{Round, UsageOf, Verified, addresses};
pub(crate) use refusal::{Refusal, RefusalKind};
pub(crate) use seeing::name as project_name;
pub(crate) use starting::{COMMAND, Forecasts};
pub(crate) use wanted::{List, LoopParams, Steer, Stop, ToolDiff, ToolMerge, WithWait};
pub(crate) use watching::{Difference, Filter, LogPart, LoopAddress, ProjectView, SearchPage};

/// The entry point of all protocols: the folders that a person opened, and the projects in them.
#[derive(Clone, Debug)]
pub struct Desk {
    context: Context,
    handovers: Handovers,
    /// Canonical paths, at least one; the first is used for requests that name no folder.
    roots: Vec<Utf8PathBuf>,
    /// Every project that Refrain has worked in is open too, also those of later.
    everywhere: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error("{0}: there is no such folder")]
    NoFolder(Utf8PathBuf),
    #[error(transparent)]
    Engine(#[from] EngineError),
}
