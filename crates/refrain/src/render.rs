//! How loops and their events are shown on a terminal.

pub(crate) mod agent_text;
pub(crate) mod commits;
pub(crate) mod event_text;
pub(crate) mod folding;
pub(crate) mod gates;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod markdown;
pub(crate) mod narrator;
pub(crate) mod phrase;
pub(crate) mod progress;
pub(crate) mod publication;
pub(crate) mod screen;
pub(crate) mod table;
