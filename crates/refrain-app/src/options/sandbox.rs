//! The options that say in which sandbox the agent and its gates run.

use std::num::NonZeroU32;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use refrain_core::sandbox::{Bounds, Host, Mechanism, SandboxMode, SandboxSpec};
use refrain_engine::config::keys::Sandbox;

use super::{heading, values};

// The sandbox of the agent and its gates.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = heading::PLACE)]
pub struct SandboxArgs {
    /// Run the agent and its gates in a sandbox: on (also without a value), auto, files or off, the default
    ///
    /// They write the worktree and the caches of build tools, do not see your credentials, and reach the hosts of the
    /// agent's provider alone. With `auto` the loop starts without a sandbox where the machine has none. `files` is for
    /// containers without namespaces: it limits which files they read and write, and not the network; it needs --worktree.
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub sandbox: Option<When>,
    /// Run them with your own rights, whatever is configured
    #[arg(long, conflicts_with = "sandbox")]
    pub no_sandbox: bool,
    /// Let the sandbox reach this host too: NAME, NAME:PORT or NAME:PORT=ADDRESS
    #[arg(long, value_name = "HOST")]
    pub sandbox_host: Vec<Host>,
    /// Let the sandbox reach this port of the machine's own loopback address
    #[arg(long, value_name = "PORT", value_parser = |text: &str| values::whole_number(text, 1..=u16::MAX))]
    pub sandbox_localhost: Vec<u16>,
}

/// Whether there is a sandbox.
#[derive(Clone, Copy, Debug)]
pub struct When(SandboxMode);

impl ValueEnum for When {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(SandboxMode::On), Self(SandboxMode::Auto), Self(SandboxMode::Files), Self(SandboxMode::Off)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

impl SandboxArgs {
    /// A sandbox, whatever is configured.
    pub(crate) fn on() -> Self {
        Self { sandbox: Some(When(SandboxMode::On)), ..Self::default() }
    }

    /// The mode and the sandbox that is asked for: what the options leave out, the configuration says.
    #[must_use]
    pub fn resolve(&self, config: &Sandbox) -> (SandboxMode, SandboxSpec) {
        let asked =
            if self.no_sandbox { Some(SandboxMode::Off) } else { self.sandbox.map(|When(mode)| mode) };
        let mode = asked.or(config.mode).unwrap_or_default();
        let (hosts, localhost) = match mode {
            // Its network is not limited.
            SandboxMode::Files => (Vec::new(), Vec::new()),
            SandboxMode::Off | SandboxMode::Auto | SandboxMode::On => (
                [&*self.sandbox_host, config.hosts.as_deref().unwrap_or_default()].concat(),
                [&*self.sandbox_localhost, config.localhost.as_deref().unwrap_or_default()].concat(),
            ),
        };
        let spec = SandboxSpec {
            mechanism: if mode == SandboxMode::Files { Mechanism::Files } else { Mechanism::Namespaces },
            hosts,
            localhost,
            write: config.write.clone().unwrap_or_default(),
            hide: config.hide.clone().unwrap_or_default(),
            processes: config.processes.unwrap_or(SandboxSpec::PROCESSES),
            bounds: Bounds {
                memory: config.memory,
                cpus: config.cpus.map(NonZeroU32::get),
                is_required: mode == SandboxMode::On && (config.memory.is_some() || config.cpus.is_some()),
            },
        };
        (mode, spec)
    }

    /// Whether they say what is reached.
    pub(crate) fn has_network(&self) -> bool {
        !self.sandbox_host.is_empty() || !self.sandbox_localhost.is_empty()
    }
}
