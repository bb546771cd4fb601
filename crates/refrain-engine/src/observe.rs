//! Readers of journals that decide nothing: lists, details and events for surfaces; notices, webhooks and telemetry.

pub(crate) mod detail;
pub(crate) mod file_watch;
pub(crate) mod follow;
pub(crate) mod journal_reader;
pub(crate) mod journal_watcher;
pub(crate) mod known_loops;
pub(crate) mod live_list;
pub(crate) mod notifier;
pub(crate) mod slack;
pub(crate) mod telemetry;
pub(crate) mod webhook;
