//! How a plan is shown to people: its status ([`status_text`]) and its events ([`narrator`]), as text. When they are shown is
//! decided in `cmd::plan` and [`screen`].

pub(crate) mod leftovers;
pub(crate) mod named_file;
pub(crate) mod narrator;
pub(crate) mod screen;
#[cfg(test)]
mod scripted_plan;
pub(crate) mod status_text;
