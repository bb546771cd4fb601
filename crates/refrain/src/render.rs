//! How loops and their events are shown on a terminal.

pub(crate) mod committed;
pub(crate) mod gated;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod narrator;
pub(crate) mod phrase;
pub(crate) mod progress;
pub(crate) mod published;
pub(crate) mod said;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod telling;
