//! Any agent that speaks the Agent Client Protocol (ACP, JSON-RPC lines, version 1). Measured with the ACP modes of
//! OpenCode 1.18.33 and Gemini CLI 0.61.0, and with the adapters claude-agent-acp 0.49.0 and codex-acp 2.6.0.
//!
//! A conversation needs both directions, but an agent of ours reads a file and prints a stream. So what the keeper starts is
//! our own binary again, the bridge (`acp-bridge`): it reads the prompt from its standard input, starts the agent's program
//! with a pipe at each end, talks to it through the protocol's own crate, and prints our events as JSON, one a line. The
//! program is in a process group of its own: a stop reaches the bridge, which has the agent cancel its turn.
//!
//! * A session is opened anew for each attempt and prompted once, so what a session used is what the attempt used.
//!   OpenCode's count of tokens is that of its last model call, so none is reported of it; its cost is whole.
//! * Questions are answered with yes for `auto` and `full`, with no for `agent`. `auto` leaves the agent's mode, and with
//!   that its confinement, as it is; `full` sets the one mode without questions that it offers.
//! * No files and no terminals are offered: with files offered, Gemini fails to write a new one.
//! * codex-acp stays when its input is closed and is killed; the others leave by themselves.

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
