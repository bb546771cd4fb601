//! `cargo xtask bench`: the cost of Refrain, against the floors of the machine it runs on.
//!
//! Machines are shared and noisy, and wall times of different runs cannot be compared. So every comparison is a ratio
//! inside one run, whose rounds alternate between the program and its floor; the ratio of a CPU figure is the median of
//! the pairwise ratios, that of a wall figure compares the tenth percentiles. CPU and counts are judged first.
//!
//! [`tools`] builds the programs, [`sandbox`] gives every run a fresh repository and environment, [`sample`] measures
//! one run, the subjects below ask one question each, [`report`] shows the answers and [`page`] keeps them.

mod loops;
mod measure;
mod page;
mod report;
mod suite;
mod surfaces;

pub(crate) use suite::{Options, run};
