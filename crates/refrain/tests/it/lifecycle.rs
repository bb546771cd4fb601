//! Loops from their start to their end, with stops, limits and crashes.

pub(crate) mod at_once;
pub(crate) mod bad_values;
pub(crate) mod budgets;
pub(crate) mod finishing;
pub(crate) mod garbage;
pub(crate) mod golden_home;
pub(crate) mod journals;
pub(crate) mod main_job;
pub(crate) mod moving;
pub(crate) mod processes;
pub(crate) mod stopped;
pub(crate) mod stopping;
pub(crate) mod verbs;
