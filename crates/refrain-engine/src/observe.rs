//! Readers of journals that decide nothing: lists, details and events for surfaces; notices, webhooks and telemetry.

pub(crate) mod file_watch;
pub(crate) mod follow;
pub(crate) mod glance;
pub(crate) mod herald;
pub(crate) mod journal_reader;
pub(crate) mod lookout;
pub(crate) mod roster;
pub(crate) mod slack;
pub(crate) mod telemetry;
pub(crate) mod webhook;
