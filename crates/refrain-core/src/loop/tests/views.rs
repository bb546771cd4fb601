pub(crate) mod notices;
pub(crate) mod prompts;
pub(crate) mod remembering;
pub(crate) mod reporting;
pub(crate) mod sums;
pub(crate) mod tasks;
