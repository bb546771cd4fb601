//! How the tasks of a plan are worked on.

use refrain_core::values;

// How the tasks of a plan are worked on.
#[derive(Debug, Default, clap::Args)]
pub struct HowArgs {
    /// How many tasks run at a time, 1 to 64 [default: as cores and memory allow, at most 8]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::jobs)]
    pub jobs: Option<u32>,
    /// Start a task as soon as its own dependencies are merged, without waiting for its wave
    #[arg(long)]
    pub pipeline: bool,
    /// How many iterations one task may take [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    pub max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take in total [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::iteration)]
    pub max_total_iterations: Option<u32>,
    /// Let a task that reaches its limit wait for refrain plan tune instead of being blocked
    #[arg(long)]
    pub tune: bool,
}
