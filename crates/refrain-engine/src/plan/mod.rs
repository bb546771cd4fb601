//! Plans: their journal, the loops of their tasks, all in this process, and their git steps. The next step is decided
//! in `refrain_core::plan`; here it is done, and recorded.

mod asking;
mod drive;
mod follow;
mod landing;
mod looking;
mod round;
mod runner;
mod service;
mod status;
mod statuses;
mod told;
mod tuner;
mod verify;
mod work;

pub use follow::PlanFollower;
pub use runner::PlanRunner;
pub use status::usual_jobs;
pub use told::{Texts, read_told};
