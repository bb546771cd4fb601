//! What was sent to others: the cursors of webhooks and Slack, and the proposals and plugins that were written for
//! agents.

pub mod plugins;
pub mod proposals;
pub mod slack;
pub mod webhook;
