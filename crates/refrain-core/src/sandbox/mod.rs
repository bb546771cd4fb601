//! The sandbox of a loop: what was asked of it, and what each kind of its processes may read, write and reach. What a
//! policy means for the kernel is `refrain-sandbox`'s.

mod environment;
mod host;
mod policy;
mod registries;
mod request;
#[cfg(test)]
mod tests;

use crate::serde_default::is_default;
use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use environment::{BASIC_VARIABLES, PROXY_PORT, passes, proxy_variables, temporary_variables};
pub use host::{Host, HostError, agent_hosts};
pub use policy::{CacheLayer, GitFolders, Places, Policy, Role, hidden_below, hidden_repository, policy};
pub use registries::{PackageTool, hosts, project_files, registries_of};
pub use request::{ProxyDecision, RefusedHost, Request, answer, is_of_own_network, is_public};

/// What holds a process in its sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Namespaces, Landlock and seccomp.
    #[default]
    Namespaces,
    /// Landlock and seccomp, for machines without namespaces: files are limited, the network is not.
    Files,
}

/// Bounds that only a cgroup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// Bytes of memory of one process and all that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// How many CPUs they use at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Without them nothing starts: the user gave them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_required: bool,
}

impl Bounds {
    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.memory.is_none() && self.cpus.is_none()
    }
}

/// The sandbox of a loop, pinned when the loop starts.
#[serde_with::apply(Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxSpec {
    #[serde(default, skip_serializing_if = "is_default")]
    pub mechanism: Mechanism,
    /// Hosts that the agent may reach besides those of its provider.
    pub hosts: Vec<Host>,
    /// Ports of the machine's own loopback address that are forwarded.
    pub localhost: Vec<u16>,
    /// Folders and files that may be written besides the usual ones.
    #[schemars(with = "Vec<String>")]
    pub write: Vec<Utf8PathBuf>,
    /// Folders and files that are hidden besides the usual ones.
    #[schemars(with = "Vec<String>")]
    pub hide: Vec<Utf8PathBuf>,
    /// How many processes there may be at a time; [`Mechanism::Files`] does not limit those of root.
    pub processes: u32,
    /// The bounds that this machine held when the loop started.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub bounds: Bounds,
}

impl SandboxSpec {
    pub const PROCESSES: u32 = 4096;
    /// Fewer are refused: a shell with a build would not run.
    pub const FEWEST_PROCESSES: u32 = 320;

    /// The same on another machine, whose user has configured `own`: a path, a port or an address of the first machine can
    /// mean something else there, and counts only as far as that user allows it too.
    #[must_use]
    pub fn moved_to(&self, own: &Self) -> Self {
        let is_in =
            |path: &Utf8PathBuf, folders: &[Utf8PathBuf]| folders.iter().any(|it| path.starts_with(it));
        let write = self.write.iter().filter(|path| is_in(path, &own.write));
        let write = write.chain(own.write.iter().filter(|path| is_in(path, &self.write)));
        let mut moved = Self {
            mechanism: self.mechanism,
            hosts: self.hosts.clone(),
            localhost: self.localhost.clone(),
            write: write.cloned().collect(),
            hide: [&*self.hide, &own.hide].concat(),
            processes: self.processes.min(own.processes),
            bounds: Bounds {
                memory: least(self.bounds.memory, own.bounds.memory),
                cpus: least(self.bounds.cpus, own.bounds.cpus),
                is_required: self.bounds.is_required || own.bounds.is_required,
            },
        };
        moved.hosts.retain(|host| host.address.is_none() || own.hosts.contains(host));
        moved.localhost.retain(|port| own.localhost.contains(port));
        for paths in [&mut moved.write, &mut moved.hide] {
            paths.sort();
            paths.dedup();
        }
        moved
    }

    /// Whether it limits the network.
    #[must_use]
    pub fn has_network(&self) -> bool {
        self.mechanism == Mechanism::Namespaces
    }
}

/// The smaller bound; none if there is no bound.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

impl Default for SandboxSpec {
    fn default() -> Self {
        Self {
            mechanism: Mechanism::default(),
            hosts: Vec::new(),
            localhost: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            processes: Self::PROCESSES,
            bounds: Bounds::default(),
        }
    }
}

/// Whether a loop gets a sandbox.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SandboxMode {
    /// No sandbox.
    #[default]
    Off,
    /// A sandbox if this machine can have one; otherwise none, and a note.
    Auto,
    /// A sandbox that limits files, and not the network; without one the loop is not started.
    Files,
    /// A sandbox; without one the loop is not started.
    On,
}

impl SandboxMode {
    pub const ALL: [Self; 4] = [Self::Off, Self::Auto, Self::Files, Self::On];

    /// Whether it protects more than the other, on every machine.
    #[must_use]
    pub fn is_stricter_than(self, other: Self) -> bool {
        let rank = |mode| match mode {
            Self::Off => 0,
            Self::Auto | Self::Files => 1,
            Self::On => 2,
        };
        rank(self) > rank(other)
    }

    /// Its name in options and in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
