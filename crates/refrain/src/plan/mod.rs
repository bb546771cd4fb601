//! What people see of a plan: how it stands ([`board`]) and what happens to it ([`telling`]). Words only; who asks for them,
//! and when they are shown, is the business of `cmd::plan` and of [`screen`].

pub(crate) mod board;
pub(crate) mod left;
pub(crate) mod screen;
#[cfg(test)]
mod story;
pub(crate) mod telling;
