//! What the loops of a fleet share, and what the server can filter them by.

pub(crate) mod accounts;
pub(crate) mod labels;
pub(crate) mod logs;
pub(crate) mod money;
