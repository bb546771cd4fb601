//! What each kind of process may read, write and reach.

mod agents;
mod git;
mod places;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use agents::{
    CLAUDE_CONFIG, CLAUDE_DEBUG, agent_caches, agent_data, agent_hidden, agent_home, agent_layers,
    agent_placeholder, agent_sessions,
};
use git::{
    ALTERNATES, GIT_MADE, GIT_OF_COMMITS, GIT_PLACEHOLDERS, GIT_PROTECTED, MODULES, WORKTREE_PROTECTED,
};
use places::{CACHES, HIDDEN, HIDDEN_OF_SYSTEM, PRIVATE, SHARED_MEMORY, SHOWN_OF_SYSTEM, SHOWN_TO_RESOLVE};

use super::{Bounds, Host, Mechanism, SandboxMode, SandboxSpec, agent_hosts};
use crate::spec::AgentKind;

/// A kind of process of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The agent, a reviewer or a critic.
    Agent(AgentKind),
    /// A gate that is a command.
    Gate,
    /// A git of Refrain that runs hooks or filters.
    Git,
}

/// The folder for temporary files that holds the repository, if that is hidden with it: no program in a sandbox sees the
/// machine's own, and only namespaces can show a part of it.
#[must_use]
pub fn hidden_repository(mode: SandboxMode, repository: &Utf8Path) -> Option<&'static str> {
    let is_hidden = mode == SandboxMode::Files;
    PRIVATE.into_iter().find(|folder| is_hidden && repository.starts_with(folder))
}

/// The places of one loop on this machine. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub home: Utf8PathBuf,
    /// The folder that the process works in, if it is a checkout of its own that is not `worktree`.
    pub checkout: Option<Utf8PathBuf>,
    /// Its git folders, if it is a linked worktree of the project: what Refrain's git checks out for a task of a plan.
    pub checkout_git: Option<GitFolders>,
    pub worktree: Utf8PathBuf,
    /// None outside of a repository.
    pub git: Option<GitFolders>,
    /// Git folders of submodules.
    pub modules: Vec<Utf8PathBuf>,
    /// Refrain's data, state and configuration of the user.
    pub own: Vec<Utf8PathBuf>,
    /// Credentials that are elsewhere than usual.
    pub credentials: Vec<Utf8PathBuf>,
    /// Files of Refrain that the process reads, such as its prompt.
    pub show: Vec<Utf8PathBuf>,
    /// Agents' homes that the environment names, such as `CODEX_HOME`.
    pub agent_homes: Vec<(AgentKind, Utf8PathBuf)>,
    /// Agents' caches that the environment names.
    pub agent_caches: Vec<(AgentKind, Utf8PathBuf)>,
    /// The folder of the loop that keeps what it writes into caches.
    pub cache_layers: Option<Utf8PathBuf>,
    /// The name of the verification that the process is a part of, if nothing of another one may have an effect on it.
    pub verification: Option<String>,
    /// A folder for temporary files, where the process has no `/tmp` of its own.
    pub temporary: Option<Utf8PathBuf>,
}

/// The git folders of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFolders {
    pub own: Utf8PathBuf,
    /// The one that all worktrees share; the same as `own` in a plain clone.
    pub common: Utf8PathBuf,
}

/// Where what a process writes into caches of the user is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLayer {
    pub folder: Utf8PathBuf,
    /// The layer of another process below it.
    pub base: Option<Utf8PathBuf>,
    /// Whether all others beside it are removed, as far as no process uses them.
    pub is_alone: bool,
}

impl CacheLayer {
    /// What an agent writes into a cache, no gate and no other agent runs; and what a gate writes there that runs the work of an
    /// agent, no later gate.
    fn of(role: Role, layers: &Utf8Path, verification: Option<&str>) -> Self {
        let layer = |name: &str, base: Option<&str>| Self {
            folder: layers.join(name),
            base: base.map(|base| layers.join(base)),
            is_alone: verification.is_some(),
        };
        match (role, verification) {
            (Role::Agent(_), None) => layer("agent", None),
            (Role::Agent(_), Some(name)) => layer(&format!("judges/{name}"), None),
            (Role::Gate, None) => layer("gate", None),
            (Role::Gate, Some(name)) => layer(&format!("gates/{name}"), Some("gate")),
            (Role::Git, _) => Self { is_alone: false, ..layer("git", None) },
        }
    }
}

/// What one process may do. Deeper paths count before those that contain them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub mechanism: Mechanism,
    pub write: Vec<Utf8PathBuf>,
    /// Cannot be written, renamed or removed; without namespaces, files are put back when the process has ended. One that
    /// is missing, and that the process creates, is put aside then.
    pub read_only: Vec<Utf8PathBuf>,
    /// Folders whose programs are protected likewise, and their folders that hold some: settings of the agent may name them.
    pub programs_in: Vec<Utf8PathBuf>,
    /// Folders that the agent writes all the time, in which no program is looked for.
    #[serde(default)]
    pub data: Vec<Utf8PathBuf>,
    /// Folders in which no new symbolic link stays, and whether it is looked for below them: a program outside would write
    /// where it leads.
    pub no_links: Vec<(Utf8PathBuf, bool)>,
    pub hide: Vec<Utf8PathBuf>,
    /// Can be read although they are in a hidden folder.
    pub show: Vec<Utf8PathBuf>,
    /// Written as a layer of the loop's own over the user's folder.
    pub caches: Vec<Utf8PathBuf>,
    pub cache_layer: Option<CacheLayer>,
    /// The folder for temporary files, made before the process and removed after it.
    pub temporary: Option<Utf8PathBuf>,
    /// Empty folders of the process's own.
    pub private: Vec<Utf8PathBuf>,
    /// Folders that are made if they are missing, so that they can be protected.
    pub make: Vec<Utf8PathBuf>,
    /// Files that are made if they are missing, so that they can be protected, and removed after the process: with their
    /// content, which changes nothing. Without a content it is an empty folder.
    #[serde(default)]
    pub placeholders: Vec<(Utf8PathBuf, Option<String>)>,
    pub hosts: Vec<Host>,
    pub localhost: Vec<u16>,
    pub processes: u32,
    #[serde(default)]
    pub bounds: Bounds,
}

impl Policy {
    /// Whether a path in one of the folders of programs is protected if it is a program, or a folder that holds one. What
    /// another rule is about is not.
    #[must_use]
    pub fn protects_programs_at(&self, path: &Utf8Path) -> bool {
        let rules =
            [&self.write, &self.hide, &self.show, &self.read_only, &self.caches, &self.private, &self.data];
        !rules.into_iter().flatten().any(|rule| rule == path)
    }

    /// Whether a path is not seen: the rule that is nearest to it decides.
    #[must_use]
    pub fn hides(&self, path: &Utf8Path) -> bool {
        let nearest = |lists: &[&[Utf8PathBuf]]| {
            let rules = lists.iter().flat_map(|rules| rules.iter());
            rules.filter(|rule| path.starts_with(rule)).map(|rule| rule.components().count()).max()
        };
        nearest(&[&self.hide, &self.private])
            > nearest(&[&self.write, &self.read_only, &self.show, &self.caches])
    }
}

/// The policy of a process of that kind.
#[must_use]
pub fn policy(spec: &SandboxSpec, role: Role, places: &Places) -> Policy {
    let home = |names: &[&str]| below(&places.home, names);
    let mut policy = Policy {
        write: spec.write.clone(),
        hide: [
            home(&HIDDEN),
            places.credentials.clone(),
            places.own.clone(),
            spec.hide.clone(),
            paths(&HIDDEN_OF_SYSTEM),
        ]
        .concat(),
        show: [places.show.clone(), paths(&SHOWN_OF_SYSTEM)].concat(),
        caches: home(&CACHES),
        cache_layer: places
            .cache_layers
            .as_ref()
            .map(|layers| CacheLayer::of(role, layers, places.verification.as_deref())),
        private: paths(&PRIVATE),
        processes: spec.processes,
        bounds: spec.bounds,
        localhost: spec.localhost.clone(),
        ..Policy::default()
    };
    let checkout = places.checkout.as_ref().filter(|_| !matches!(role, Role::Agent(_)));
    policy.write.extend(checkout.cloned());
    if checkout.is_none() || role == Role::Git {
        policy.write.push(places.worktree.clone());
    }
    protect_git(&mut policy, role, places);
    if let (Role::Git, Some(GitFolders { own, .. }), Some(checkout)) = (role, &places.checkout_git, checkout)
    {
        policy.show.retain(|path| path != own);
        policy.write.push(own.clone());
        policy.read_only.extend(below(own, &WORKTREE_PROTECTED));
        policy.read_only.push(checkout.join(".git"));
    }
    for kind in AgentKind::ALL {
        let (names, run_later) = agent_home(kind);
        let with_own = |names, more: &[(AgentKind, Utf8PathBuf)]| {
            let own = more.iter().filter(|(of, _)| *of == kind).map(|(_, path)| path.clone());
            home(names).into_iter().chain(own).collect::<Vec<_>>()
        };
        let homes = with_own(names, &places.agent_homes);
        let mut caches = with_own(agent_caches(kind), &places.agent_caches);
        if role == Role::Agent(kind) {
            let in_homes = |names| homes.iter().flat_map(|home| below(home, names)).collect::<Vec<_>>();
            caches.extend(in_homes(agent_layers(kind)));
            policy.make.extend(caches.iter().cloned());
            match spec.mechanism {
                Mechanism::Namespaces => {
                    let own = in_homes(agent_sessions(kind));
                    policy.make.extend(own.iter().cloned());
                    policy.private.extend(own);
                    policy.caches.extend(caches);
                }
                Mechanism::Files => policy.write.extend(caches),
            }
            let run_later = in_homes(run_later);
            policy.placeholders.extend(run_later.iter().cloned().filter_map(agent_placeholder));
            policy.read_only.extend(run_later);
            let hidden = in_homes(agent_hidden(kind));
            policy.placeholders.extend(hidden.iter().map(|path| (path.clone(), None)));
            policy.hide.extend(hidden);
            policy.programs_in.clone_from(&homes);
            policy.data = in_homes(agent_data(kind));
            policy.no_links.extend(homes.iter().map(|home| (home.clone(), false)));
            let data = policy.data.iter().filter(|path| path.file_name() != Some(CLAUDE_DEBUG));
            policy.no_links.extend(data.map(|path| (path.clone(), true)));
            // The agent would make them when it is first run.
            policy.make.extend(homes.iter().cloned());
            policy.write.extend(homes);
        } else {
            policy.hide.extend(homes);
            policy.hide.extend(caches);
        }
    }
    if role != Role::Agent(AgentKind::Claude) {
        policy.hide.extend(home(&[CLAUDE_CONFIG]));
    }
    if let Role::Agent(kind) = role {
        policy.hosts = [agent_hosts(kind), spec.hosts.clone()].concat();
    } else {
        policy.hosts.clone_from(&spec.hosts);
    }
    if spec.mechanism == Mechanism::Files {
        limit_to_files(&mut policy, role, places);
    }
    for list in [&mut policy.write, &mut policy.read_only, &mut policy.hide, &mut policy.show] {
        list.sort();
        list.dedup();
    }
    policy
}

/// What is hidden below a folder of the user's home, by its path in there: a variable can name another folder instead.
pub fn hidden_below(folder: &str) -> impl Iterator<Item = &'static Utf8Path> {
    HIDDEN.iter().filter_map(move |path| Utf8Path::new(path).strip_prefix(folder).ok())
}

fn paths(names: &[&str]) -> Vec<Utf8PathBuf> {
    below(Utf8Path::new("/"), names)
}

fn below(dir: &Utf8Path, names: &[&str]) -> Vec<Utf8PathBuf> {
    names.iter().map(|name| dir.join(name)).collect()
}

/// The same without namespaces: there are no mounts, so nothing lies over a folder, and no part of a folder that may be
/// written is protected. Of a git folder only what commits need is written.
fn limit_to_files(policy: &mut Policy, role: Role, places: &Places) {
    policy.mechanism = Mechanism::Files;
    // Programs need shared memory: without mounts it is that of the machine.
    policy.private.retain(|path| path != SHARED_MEMORY);
    policy.hide.append(&mut policy.private);
    policy.show.extend(paths(&SHOWN_TO_RESOLVE));
    policy.caches.clear();
    policy.cache_layer = None;
    policy.hosts.clear();
    policy.localhost.clear();
    policy.bounds = Bounds::default();
    policy.placeholders.clear();
    if let Some(git) = &places.git {
        policy.write.retain(|path| *path != git.common && !places.modules.contains(path));
        policy.make.retain(|path| !path.starts_with(&git.common));
        if role != Role::Gate {
            policy.write.extend(below(&git.common, &GIT_OF_COMMITS));
            policy.make.push(git.common.join("logs"));
        }
    } else {
        // A `.git` of its own could not be protected.
        policy.write.retain(|path| *path != places.worktree);
        if let (Role::Git, Some(git)) = (role, &places.checkout_git) {
            policy.write.extend(below(&git.common, &GIT_OF_COMMITS));
        }
    }
    policy.temporary.clone_from(&places.temporary);
    policy.write.extend(places.temporary.clone());
    policy.make.extend(places.temporary.clone());
    // The process could replace a folder in another one by a link.
    let all = policy.write.clone();
    policy.write.retain(|path| !all.iter().any(|other| path != other && path.starts_with(other)));
    // What is hidden if it is there cannot be hidden if the process makes it.
    policy.read_only.extend(policy.hide.iter().cloned());
    policy.read_only.retain(|path| policy.write.iter().any(|folder| path.starts_with(folder)));
}

/// The agent and Refrain's git commit; what runs or decides in a git folder stays as it is. A gate writes no git folder.
fn protect_git(policy: &mut Policy, role: Role, places: &Places) {
    // A `.git` file decides which git folder may be written when the next process starts. A plain clone's is the folder itself.
    let link = places.worktree.join(".git");
    let Some(GitFolders { own, common }) = &places.git else {
        policy.read_only.push(link);
        return;
    };
    policy.hide.push(common.join("refrain"));
    if role == Role::Gate {
        policy.read_only.extend([link, own.clone(), common.clone()]);
        return;
    }
    policy.write.extend([common.clone(), own.clone()]);
    policy.make.extend(below(common, &GIT_MADE));
    for folder in [common].into_iter().chain(&places.modules) {
        policy
            .placeholders
            .extend(GIT_PLACEHOLDERS.map(|(name, text)| (folder.join(name), text.map(str::to_owned))));
    }
    if own != common {
        policy.placeholders.push((own.join("config.worktree"), Some(String::new())));
    }
    policy.read_only.extend(below(common, &GIT_PROTECTED));
    if link != *own {
        policy.read_only.push(link);
    }
    if own != common {
        policy.read_only.extend(below(own, &WORKTREE_PROTECTED));
        // What the user has checked out.
        policy.read_only.extend(below(common, &["HEAD", "index"]));
    }
    // A program of the user's git writes where a link leads, wherever in a git folder it is.
    let own = (own != common).then_some(own);
    policy.no_links.extend([common].into_iter().chain(own).map(|folder| (folder.clone(), true)));
    for folder in [common].into_iter().chain(own).chain(&places.modules) {
        policy.read_only.push(folder.join(ALTERNATES));
        // What in there is no git folder now can be made one: `git submodule update` would take it as it is.
        policy.read_only.push(folder.join(MODULES));
        policy.placeholders.push((folder.join(MODULES), None));
    }
    for module in &places.modules {
        policy.write.push(module.clone());
        policy.read_only.extend(below(module, &GIT_PROTECTED));
        policy.placeholders.extend(below(module, &GIT_MADE).into_iter().map(|path| (path, None)));
    }
}
