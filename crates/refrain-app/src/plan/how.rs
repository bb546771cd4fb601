//! How the tasks of a plan are worked on.

use refrain_core::values;

// How the tasks of a plan are worked on.
#[derive(Debug, Default, clap::Args)]
pub struct HowArgs {
    /// How many tasks are worked on at a time, 1 to 64; as many as cores and memory allow, 8 at most, where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::jobs)]
    pub jobs: Option<u32>,
    /// Start a task as soon as its own dependencies have landed, and not with its wave
    #[arg(long)]
    pub pipeline: bool,
    /// How many iterations one task may take; 3 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    pub max_iterations_per_task: Option<u32>,
    /// How many iterations all tasks may take together; 100 where it is left out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::iteration)]
    pub max_total_iterations: Option<u32>,
    /// Have a task that is used up wait for words of yours (refrain plan tune) in place of being blocked
    #[arg(long)]
    pub tune: bool,
}
