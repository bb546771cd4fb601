//! Any agent that speaks the Agent Client Protocol (ACP, JSON-RPC lines, version 1). Measured with the ACP modes of
//! OpenCode 1.18.33 and Gemini CLI 0.61.0, and with the adapters claude-agent-acp 0.49.0 and codex-acp 2.6.0.
//!
//! A conversation needs both directions, but an agent of ours reads a file and prints a stream. So the keeper starts
//! our own binary again, the bridge (`acp-bridge`): it reads the prompt from its standard input, starts the agent's
//! program with a pipe at each end, talks to it through the protocol's own crate, and prints our events as JSON
//! lines. The program is in a process group of its own: a stop reaches the bridge, which cancels the agent's turn.
//!
//! * Each attempt opens a new session and prompts it once, so the session's usage is the attempt's. OpenCode counts
//!   only the tokens of its last model call, so none are reported; its cost is complete.
//! * Questions are answered with yes for `auto` and `full`, with no for `agent`. `auto` leaves the agent's mode, and
//!   with that its confinement, as it is; `full` sets the one mode without questions that it offers.
//! * No files and no terminals are offered: with files offered, Gemini fails to write a new one.
//! * codex-acp does not exit when its input is closed and is killed; the others exit by themselves.

mod bridge;
#[cfg(test)]
mod bridge_tests;
mod conversation;
mod dialect;
mod faults;
mod launch;
mod map;
mod pipes;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wire;

pub use bridge::Bridge;
pub use launch::{Acp, BRIDGE_VERB};
