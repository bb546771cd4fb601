//! `cargo xtask bench`: what Refrain costs, against the floors of the machine it runs on.
//!
//! Machines are shared and noisy, and a wall figure of another run says nothing. So every comparison is a ratio inside
//! one run, whose rounds alternate between the program and its floor; the ratio of a CPU figure is the median of the
//! pairwise ratios, that of a wall figure compares the tenth percentiles. CPU and counts are what is judged first.
//!
//! [`tools`] builds what is needed, [`sandbox`] gives every run a fresh repository and environment, [`sample`]
//! measures one run, the subjects below ask one question each, [`report`] shows the answers and [`page`] keeps them.

mod loops;
mod measure;
mod page;
mod report;
mod suite;
mod surfaces;

pub(crate) use suite::{Options, run};
