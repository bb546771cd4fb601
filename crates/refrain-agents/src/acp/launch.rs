//! Starting an ACP agent: by our own binary, as the bridge to it.

use std::time::Duration;

use refrain_core::spec::Permissions;
use refrain_proc::{OWN_PROGRAM, Rung, StopLadder};

use super::dialect::Reader;
use crate::adapter::{Adapter, Call, Launch, StreamDecoder};
use crate::checkup::Checkup;
use crate::{args, opencode};

/// The subcommand that makes our binary the bridge.
pub const BRIDGE_VERB: &str = "acp-bridge";

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

#[derive(Clone, Copy, Debug)]
pub struct Acp;

impl Checkup for Acp {}

impl Adapter for Acp {
    fn tested(&self) -> &'static [&'static str] {
        &[]
    }

    /// The prompt always goes to the bridge's standard input: the agent gets it through the protocol, so the user's
    /// prompt mode has no meaning here. The model is set through the protocol too.
    fn launch(&self, call: &Call<'_>) -> Launch {
        let agent = &call.spec.agent;
        let permissions = match agent.permissions {
            Permissions::Auto => "auto",
            Permissions::Full => "full",
            Permissions::Agent => "agent",
            Permissions::ReadOnly => "read-only",
        };
        // The keeper, which starts it, is our own binary too. The path is not used, because it may be replaced while
        // a loop runs.
        let mut argv = [OWN_PROGRAM, BRIDGE_VERB, "--permissions", permissions].map(str::to_owned).to_vec();
        argv.extend(agent.model.iter().map(|model| format!("--model={model}")));
        argv.extend(["--".to_owned(), args::program(call)]);
        argv.extend(agent.args.iter().cloned());
        let env = match agent.permissions {
            // OpenCode allows everything unless it is configured otherwise; other agents ignore these variables.
            Permissions::ReadOnly => opencode::reading().into(),
            Permissions::Auto | Permissions::Full | Permissions::Agent => Vec::new(),
        };
        Launch { argv, env, stdin: Some(call.prompt.to_owned()) }
    }

    fn dialect(&self, _: &Call<'_>) -> Box<dyn StreamDecoder> {
        Box::new(Reader::default())
    }

    /// The bridge cancels the agent's turn, which may take 2 s, and exits; the agent's program is in no group of
    /// ours, and the keeper sweeps its leftovers.
    fn ladder(&self) -> StopLadder {
        let rung = |signal, seconds| Rung { signal, grace: Duration::from_secs(seconds) };
        StopLadder(vec![rung(SIGINT, 4), rung(SIGTERM, 2)])
    }
}
