//! The surfaces through which people and programs see loops.

pub(crate) mod caller;
pub(crate) mod completions;
pub(crate) mod docs;
pub(crate) mod mcp;
pub(crate) mod notifications;
pub(crate) mod ntfy;
pub(crate) mod report;
pub(crate) mod seeing;
pub(crate) mod serve;
pub(crate) mod slack;
pub(crate) mod telemetry;
pub(crate) mod terminal;
pub(crate) mod top;
pub(crate) mod webhooks;
