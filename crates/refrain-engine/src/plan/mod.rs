//! Plans: their journal, the loops of their tasks, all in this process, and their git steps. The next step is decided
//! in `refrain_core::plan`; here it is done, and recorded.

mod drive;
mod history;
pub(crate) mod landing;
mod outcome;
mod requests;
mod round;
mod runner;
mod service;
mod status;
mod statuses;
mod task_prompt;
mod tuner;
pub(crate) mod verify;
mod work;

use refrain_core::plan::PlanEvent;

use crate::observe::journal_reader::JournalReader;

pub use round::fleet::{FleetAsk, TaskFleet};
pub use runner::PlanRunner;
pub use status::usual_jobs;
pub use task_prompt::{Texts, read_told};

/// Follows a plan: its events, read from disk, for the terminal that started it and for `watch` alike.
pub type PlanFollower = JournalReader<PlanEvent>;
