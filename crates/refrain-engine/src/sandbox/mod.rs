//! Puts a child into the sandbox of its loop: what it gets is decided in `core::sandbox`, the namespaces are made in
//! `refrain-sandbox`, and its network is served here.

mod places;
mod proxy;
mod registries;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::{environment, generic};
use refrain_core::Spec;
use refrain_core::gate::Check;
use refrain_core::protect::first_program;
use refrain_core::sandbox::{self, Bounds, Mechanism, PROXY_PORT, Policy, Role, SandboxMode, SandboxSpec};
use refrain_core::spec::Permissions;
use refrain_git::GitError;
use refrain_proc::program::in_path;
use refrain_proc::tool::{Confinement, ToolFolders};
use refrain_proc::{Job, OWN_PROGRAM, Stdin};
use refrain_sandbox::{HELPER_VERB, Plan, RecordFolders, Refusal};
use refrain_store::Project;
use refrain_store::config::keys::Sandbox;

use crate::Host;

pub use places::leads_through;
pub(crate) use proxy::RefusedHosts;
pub use refrain_sandbox::{Cause, run as run_helper};
pub use registries::{Registries, registries};

/// The first word of the command line of a helper of the sandbox.
pub const SANDBOX_VERB: &str = HELPER_VERB;

/// A child that is about to get into a sandbox.
pub(crate) struct ConfinedChild<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) role: Role,
    pub(crate) host: &'a Host,
    /// The data folder of the loop.
    pub(crate) loop_dir: &'a Utf8Path,
    /// The verification that it is a part of, if nothing of another one may have an effect on it.
    pub(crate) verification: Option<String>,
}

/// The specification as its agent gets it: the sandbox takes the place of the agent's own questions and confinement.
pub(crate) fn unquestioned(mut spec: Spec) -> Spec {
    if spec.sandbox.is_some() && spec.agent.permissions == Permissions::Auto {
        spec.agent.permissions = Permissions::Full;
    }
    spec
}

impl ConfinedChild<'_> {
    /// The job in the sandbox of its loop; the job itself if the loop has none.
    pub(crate) fn job<L>(&self, job: Job<L>, refused: &RefusedHosts) -> io::Result<Job<L>> {
        let inherited = environment::base(self.spec, self.host.env.iter().cloned());
        self.job_in(job, inherited, ToolFolders::default(), refused)
    }

    /// The same, in an environment, with folders of its own.
    fn job_in<L>(
        &self,
        mut job: Job<L>,
        inherited: Vec<(OsString, OsString)>,
        folders: ToolFolders,
        refused: &RefusedHosts,
    ) -> io::Result<Job<L>> {
        let Some(sandbox) = &self.spec.sandbox else { return Ok(job) };
        let mut plan = self.plan(sandbox, &job, inherited);
        plan.policy.write.extend(folders.written);
        plan.policy.show.extend(folders.read);
        let stdin = std::mem::take(&mut job.stdin).open()?;
        let (socket, theirs) = UnixStream::pair()?;
        proxy::serve(socket, plan, stdin, (proxy::upstream(&self.host.env), refused.clone()))?;
        Ok(Job {
            argv: [OWN_PROGRAM, HELPER_VERB].map(str::to_owned).into(),
            dir: "/".into(),
            stdin: Stdin::Socket(theirs.into()),
            ..job
        })
    }

    fn plan<L>(&self, sandbox: &SandboxSpec, job: &Job<L>, inherited: Vec<(OsString, OsString)>) -> Plan {
        let of_user = inherited.into_iter().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            let agent = &self.spec.agent;
            let is_given = agent.env.contains_key(&name) || agent.env_names.contains(&name);
            sandbox::passes(self.role, &name, is_given).then_some((name, value))
        });
        let is_shown = |word: &&String| Utf8Path::new(word).starts_with(self.loop_dir);
        let show = job.argv.iter().filter(is_shown).map(Utf8PathBuf::from).collect();
        let mut places = places::places(self.spec, self.host, &job.dir, (show, Some(self.loop_dir)));
        places.verification.clone_from(&self.verification);

        let policy = sandbox::policy(sandbox, self.role, &places);
        let own = match policy.mechanism {
            Mechanism::Namespaces => sandbox::proxy_variables(),
            Mechanism::Files => sandbox::temporary_variables(&policy),
        };
        let env = of_user.chain(own).chain(job.env.iter().cloned()).collect();
        let records =
            Some(RecordFolders { of_loop: records(self.loop_dir), of_user: records(&self.host.state_home) });
        Plan { records, ..plan(job.argv.clone(), job.dir.clone(), env, policy) }
    }
}

/// The sandbox of the programs that Refrain's git runs for the loop: hooks and filters.
pub(crate) fn of_git(spec: &Spec, host: &Host, loop_dir: &Utf8Path) -> Option<Confinement> {
    spec.sandbox.as_ref()?;
    let (spec, host, loop_dir) = (spec.clone(), host.clone(), loop_dir.to_owned());
    Some(Confinement::new(move |job, env, folders| {
        let (spec, host, loop_dir) = (&spec, &host, &loop_dir);
        let confined = ConfinedChild { spec, role: Role::Git, host, loop_dir, verification: None };
        confined.job_in(job, env.to_vec(), folders, &RefusedHosts::default())
    }))
}

fn plan(argv: Vec<String>, dir: Utf8PathBuf, env: Vec<(String, String)>, policy: Policy) -> Plan {
    let proxy = (policy.mechanism == Mechanism::Namespaces).then_some(PROXY_PORT);
    let listen = proxy.into_iter().chain(policy.localhost.iter().copied()).collect();
    Plan { argv, dir, env, policy, listen, records: None }
}

/// Where the sandboxes of a loop, or of the user, record what was at protected places before.
fn records(folder: &Utf8Path) -> Utf8PathBuf {
    folder.join("sandboxes")
}

/// Puts aside what an agent of the loop left at protected places, if its sandbox was killed with its runner. Where that
/// cannot be done, no git of Refrain may look.
pub(crate) fn restore_left(loop_dir: &Utf8Path) -> Result<(), GitError> {
    let failed = refrain_sandbox::restore_left(&records(loop_dir)).failed;
    if failed.is_empty() { Ok(()) } else { Err(GitError::Protected(failed.join("; "))) }
}

/// Whether this machine can have the sandbox of a loop: it is made once, for the loop's agent. Where its own worktree is
/// still to be made, or was removed, the project is where it is tried.
///
/// # Errors
/// Why not, for a person.
pub fn probe(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Result<(), NoSandbox> {
    let mut spec = spec.clone();
    if spec.git.checkout.is_own_worktree() && !spec.worktree.exists() {
        (spec.worktree, spec.working_dir) = (spec.project.clone(), spec.project.clone());
    }
    let of_user = records(&host.state_home);
    // Restored by the next one, if it is killed.
    let records = RecordFolders { of_loop: of_user.join("probes"), of_user };
    probe_policy(host, agent_policy(host, &spec, sandbox), &spec.working_dir, Some(records))
}

fn agent_policy(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Policy {
    role_policy(host, spec, sandbox, Role::Agent(spec.agent.kind))
}

fn role_policy(host: &Host, spec: &Spec, sandbox: &SandboxSpec, role: Role) -> Policy {
    let spec = Spec { sandbox: Some(sandbox.clone()), ..spec.clone() };
    let places = places::places(&spec, host, &spec.working_dir, (Vec::new(), None));
    sandbox::policy(sandbox, role, &places)
}

/// The bounds of a new loop: those of the user, if this machine holds them or they are required; otherwise most of the
/// machine's memory, if it holds that.
#[must_use]
pub fn bounds(sandbox: &SandboxSpec) -> Bounds {
    let Bounds { is_required, .. } = sandbox.bounds;
    match sandbox.mechanism {
        Mechanism::Files => Bounds::default(),
        Mechanism::Namespaces if is_required => sandbox.bounds,
        Mechanism::Namespaces => refrain_sandbox::held_bounds(&sandbox.bounds),
    }
}

/// The sandbox of a loop that comes from another machine, as far as the user of this one allows it. If that user asks for
/// more than the loop had, it comes with why this machine cannot make it, if it cannot; with `auto`, the loop gets none then.
pub(crate) fn moved(
    host: &Host,
    spec: &Spec,
    project: &Project,
    config: &Sandbox,
) -> (Option<SandboxSpec>, Option<NoSandbox>) {
    let mode = config.mode.unwrap_or_default();
    let asked = match mode {
        SandboxMode::Off => None,
        SandboxMode::Files => Some(Mechanism::Files),
        SandboxMode::Auto | SandboxMode::On => Some(Mechanism::Namespaces),
    };
    let (sandbox, mechanism) = match (&spec.sandbox, asked) {
        (None, None) => return (None, None),
        (None, Some(mechanism)) => (None, mechanism),
        // Of both kinds, namespaces limit more.
        (Some(sandbox), Some(Mechanism::Namespaces))
            if mode == SandboxMode::On && sandbox.mechanism == Mechanism::Files =>
        {
            (Some(sandbox), Mechanism::Namespaces)
        }
        (Some(sandbox), _) => {
            return (Some(sandbox.moved_to(&of_user(host, sandbox.mechanism, config))), None);
        }
    };
    let mut own = of_user(host, mechanism, config);
    let there = in_project(spec, project);
    if own.has_network() && config.registries.unwrap_or(true) {
        own.hosts.extend(registries(host, &there).hosts);
    }
    let own = match sandbox {
        None => own,
        Some(files) => {
            let (hosts, localhost) = (own.hosts.clone(), own.localhost.clone());
            SandboxSpec { mechanism, hosts, localhost, ..files.clone() }.moved_to(&own)
        }
    };
    let missing = probe(host, &there, &own).err();
    let is_dropped = missing.is_some() && mode == SandboxMode::Auto;
    ((!is_dropped).then_some(own), missing)
}

/// Whether this machine can have the sandbox of a loop that comes to it.
pub(crate) fn probe_moved(host: &Host, spec: &Spec, project: &Project) -> Result<(), NoSandbox> {
    spec.sandbox.as_ref().map_or(Ok(()), |sandbox| probe(host, &in_project(spec, project), sandbox))
}

/// Its worktree is made later: as with a new loop, this project is where its sandbox is tried.
fn in_project(spec: &Spec, project: &Project) -> Spec {
    let (worktree, working_dir) = (project.worktree.clone(), project.worktree.clone());
    Spec { worktree, working_dir, ..spec.clone() }
}

/// The sandbox that the user of this machine configured, of this kind.
fn of_user(host: &Host, mechanism: Mechanism, config: &Sandbox) -> SandboxSpec {
    let paths =
        |paths: &Option<Vec<Utf8PathBuf>>| places::absolute(&host.env, paths.as_deref().unwrap_or_default());
    let own = SandboxSpec {
        mechanism,
        hosts: config.hosts.clone().unwrap_or_default(),
        localhost: config.localhost.clone().unwrap_or_default(),
        write: paths(&config.write),
        hide: paths(&config.hide),
        processes: config.processes.unwrap_or(SandboxSpec::PROCESSES),
        bounds: Bounds { memory: config.memory, cpus: config.cpus.map(NonZeroU32::get), is_required: false },
    };
    SandboxSpec { bounds: bounds(&own), ..own }
}

/// The agent as the owner of a path.
pub const AGENT: &str = "the agent";

/// What a command of the loop needs, and its sandbox hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenPath {
    /// [`AGENT`], or `gate NAME`.
    pub owner: String,
    pub path: Utf8PathBuf,
    /// Whether it is the program of the command, which cannot be started without it.
    pub is_program: bool,
}

/// What the commands of a loop need, and its sandbox would hide.
#[must_use]
pub fn hidden(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Vec<HiddenPath> {
    let env = environment::base(spec, host.env.iter().cloned());
    let program = generic::locate(spec, &env).ok().and_then(|path| Utf8PathBuf::try_from(path).ok());
    let agent = agent_policy(host, spec, sandbox);
    let gate = role_policy(host, spec, sandbox, Role::Gate);
    let row = |owner: String, is_program| move |path| HiddenPath { owner, path, is_program };
    let of_agent = program.and_then(|path| hidden_path(&agent, path)).map(row(AGENT.to_owned(), true));
    let of_gates = spec.gates.iter().flat_map(|it| {
        let Check::Command(command) = &it.check else { return Vec::new() };
        let owner = format!("gate {}", it.name);
        let first = first_program(command);
        let program = first.as_ref().and_then(|name| match name.contains('/') {
            true => Some(spec.working_dir.join(name)),
            false => Utf8PathBuf::try_from(in_path(name, &env)?).ok(),
        });
        let words = shlex::split(command).unwrap_or_default().into_iter();
        let words = words.filter(|word| word.starts_with('/') && Some(word) != first.as_ref());
        let words = words.map(Utf8PathBuf::from).filter(|path| path.is_file());
        let program = program.into_iter().map(|path| (path, true));
        let all = program.chain(words.map(|path| (path, false)));
        all.filter_map(|(path, is_program)| Some(row(owner.clone(), is_program)(hidden_path(&gate, path)?)))
            .collect()
    });
    of_agent.into_iter().chain(of_gates).collect()
}

/// The path, or what it leads to, if the policy hides it.
fn hidden_path(policy: &Policy, path: Utf8PathBuf) -> Option<Utf8PathBuf> {
    let target = path.canonicalize_utf8().unwrap_or_else(|_| path.clone());
    [path, target].into_iter().find(|path| policy.hides(path))
}

/// Whether this machine can have any sandbox of that kind: nothing in it may be written.
///
/// # Errors
/// Why not, for a person.
pub fn probe_machine(host: &Host, mechanism: Mechanism) -> Result<(), NoSandbox> {
    let policy = Policy { mechanism, processes: SandboxSpec::PROCESSES, ..Policy::default() };
    probe_policy(host, policy, "/".into(), None)
}

fn probe_policy(
    host: &Host,
    policy: Policy,
    dir: &Utf8Path,
    records: Option<RecordFolders>,
) -> Result<(), NoSandbox> {
    let plan = Plan { records, ..plan(Vec::new(), dir.to_owned(), Vec::new(), policy) };
    refrain_sandbox::probe(&host.program, &plan).map_err(|(cause, refusal)| NoSandbox { cause, refusal })
}

/// Why there is no sandbox.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {refusal}", .cause.why())]
pub struct NoSandbox {
    pub cause: Cause,
    pub refusal: Refusal,
}
