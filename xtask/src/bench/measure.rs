//! How one run is measured: processes, system calls, counts, statistics, and its sandbox.

pub(crate) mod counts;
pub(crate) mod proc_fs;
pub(crate) mod sample;
pub(crate) mod sandbox;
pub(crate) mod schedule;
pub(crate) mod stats;
pub(crate) mod strace;
pub(crate) mod tools;
