//! Agents: what they receive, what they print, and those that judge.

pub(crate) mod acp_bridge;
pub(crate) mod agents;
pub(crate) mod coming_from;
pub(crate) mod critique;
pub(crate) mod modes;
pub(crate) mod plugins;
pub(crate) mod progress;
pub(crate) mod prompt_text;
pub(crate) mod prompts;
pub(crate) mod provider_waits;
pub(crate) mod reviewers;
pub(crate) mod session_agents;
pub(crate) mod sessions;
