//! Verified work: gates, protection, approval, and attempts to cheat them.

pub(crate) mod approval;
pub(crate) mod cheats;
pub(crate) mod clean_checkout;
pub(crate) mod forged;
pub(crate) mod gates;
pub(crate) mod hostile_project;
pub(crate) mod links;
pub(crate) mod missing_gates;
pub(crate) mod planted_git;
pub(crate) mod red_team;
pub(crate) mod removed;
pub(crate) mod secrets;
pub(crate) mod success_command;
pub(crate) mod sums;
