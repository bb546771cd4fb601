//! What was told to others: how far webhooks and Slack came, and the proposals and plugins that were written for agents.

pub mod plugins;
pub mod proposals;
pub mod slack;
pub mod webhook;
