//! How a plan is shown to people: its status ([`board`]) and its events ([`telling`]), as text. When they are shown is
//! decided in `cmd::plan` and [`screen`].

pub(crate) mod board;
pub(crate) mod left;
pub(crate) mod screen;
#[cfg(test)]
mod story;
pub(crate) mod telling;
