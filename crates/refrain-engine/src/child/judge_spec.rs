//! The specification of a judge, and the file of its prompt.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::judge::judge;
use refrain_core::spec::AgentSpec;
use refrain_core::{LoopState, Spec};

/// The loop, as if this agent worked in it: only reading, and with nothing to claim.
pub(crate) fn judging(state: &LoopState, agent: &AgentSpec) -> Spec {
    Spec { agent: judge(agent), promise: None, ..state.spec.clone() }
}

/// The file with a judge's prompt, beside its log.
pub(crate) fn told(log: &Utf8Path) -> Utf8PathBuf {
    log.with_extension("prompt.md")
}
