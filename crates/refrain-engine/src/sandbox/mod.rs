//! Puts a child into the sandbox of its loop: what it gets is decided in `core::sandbox`, the namespaces are made in
//! `refrain-sandbox`, and its network is served here.

mod places;
mod proxy;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::{environment, generic};
use refrain_core::Spec;
use refrain_core::sandbox::{self, PROXY_PORT, Policy, Role, SandboxSpec};
use refrain_core::spec::Permissions;
use refrain_proc::tool::Confinement;
use refrain_proc::{Job, OWN_PROGRAM, Stdin};
use refrain_sandbox::{Cause, HELPER_VERB, Plan, Refusal};

use crate::Host;

pub(crate) use proxy::RefusedHosts;
pub use refrain_sandbox::run as run_helper;

/// The first word of the command line of a helper of the sandbox.
pub const SANDBOX_VERB: &str = HELPER_VERB;

/// A child that is about to get into a sandbox.
pub(crate) struct Confined<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) role: Role,
    pub(crate) host: &'a Host,
    /// The data folder of the loop.
    pub(crate) loop_dir: &'a Utf8Path,
}

/// The specification as its agent gets it: the sandbox takes the place of the agent's own questions and confinement.
pub(crate) fn unquestioned(mut spec: Spec) -> Spec {
    if spec.sandbox.is_some() && spec.agent.permissions == Permissions::Auto {
        spec.agent.permissions = Permissions::Full;
    }
    spec
}

impl Confined<'_> {
    /// The job in the sandbox of its loop; the job itself if the loop has none.
    pub(crate) fn job<L>(&self, job: Job<L>, refused: &RefusedHosts) -> io::Result<Job<L>> {
        let inherited = environment::base(self.spec, self.host.env.iter().cloned());
        self.job_in(job, inherited, None, refused)
    }

    /// The same, in an environment, with a folder that it writes.
    fn job_in<L>(
        &self,
        mut job: Job<L>,
        inherited: Vec<(OsString, OsString)>,
        folder: Option<&Utf8Path>,
        refused: &RefusedHosts,
    ) -> io::Result<Job<L>> {
        let Some(sandbox) = &self.spec.sandbox else { return Ok(job) };
        let mut plan = self.plan(sandbox, &job, inherited);
        plan.policy.write.extend(folder.map(Utf8Path::to_owned));
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
            let is_given = self.spec.agent.env.contains_key(&name);
            sandbox::passes(self.role, &name, is_given).then_some((name, value))
        });
        let env = of_user.chain(sandbox::proxy_variables()).chain(job.env.iter().cloned()).collect();
        let is_shown = |word: &&String| Utf8Path::new(word).starts_with(self.loop_dir);
        let show = job.argv.iter().filter(is_shown).map(Utf8PathBuf::from).collect();
        let places = places::places(self.spec, self.host, &job.dir, (show, Some(self.loop_dir)));
        let policy = sandbox::policy(sandbox, self.role, &places);
        plan(job.argv.clone(), job.dir.clone(), env, policy)
    }
}

/// The sandbox of the programs that Refrain's git runs for the loop: hooks and filters.
pub(crate) fn of_git(spec: &Spec, host: &Host, loop_dir: &Utf8Path) -> Option<Confinement> {
    spec.sandbox.as_ref()?;
    let (spec, host, loop_dir) = (spec.clone(), host.clone(), loop_dir.to_owned());
    Some(Confinement::new(move |job, env, folder| {
        let confined = Confined { spec: &spec, role: Role::Git, host: &host, loop_dir: &loop_dir };
        confined.job_in(job, env.to_vec(), Some(folder), &RefusedHosts::default())
    }))
}

fn plan(argv: Vec<String>, dir: Utf8PathBuf, env: Vec<(String, String)>, policy: Policy) -> Plan {
    let listen = std::iter::once(PROXY_PORT).chain(policy.localhost.iter().copied()).collect();
    Plan { argv, dir, env, policy, listen }
}

/// Whether this machine can have the sandbox of a loop: it is made once, for the loop's agent.
///
/// # Errors
/// Why not, for a person.
pub fn probe(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Result<(), NoSandbox> {
    probe_policy(host, agent_policy(host, spec, sandbox), &spec.working_dir)
}

fn agent_policy(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Policy {
    let places = places::places(spec, host, &spec.working_dir, (Vec::new(), None));
    sandbox::policy(sandbox, Role::Agent(spec.agent.kind), &places)
}

/// The agent's program, if the sandbox of the loop hides it.
#[must_use]
pub fn hidden_program(host: &Host, spec: &Spec, sandbox: &SandboxSpec) -> Option<Utf8PathBuf> {
    let env = environment::base(spec, host.env.iter().cloned());
    let program = Utf8PathBuf::try_from(generic::locate(spec, &env).ok()?).ok()?;
    let policy = agent_policy(host, spec, sandbox);
    let target = program.canonicalize_utf8().unwrap_or_else(|_| program.clone());
    [program, target].into_iter().find(|path| policy.hides(path))
}

/// Whether this machine can have any sandbox: nothing in it may be written.
///
/// # Errors
/// Why not, for a person.
pub fn probe_machine(host: &Host) -> Result<(), NoSandbox> {
    let policy = Policy { processes: SandboxSpec::PROCESSES, ..Policy::default() };
    probe_policy(host, policy, "/".into())
}

fn probe_policy(host: &Host, policy: Policy, dir: &Utf8Path) -> Result<(), NoSandbox> {
    let plan = plan(Vec::new(), dir.to_owned(), Vec::new(), policy);
    refrain_sandbox::probe(&host.program, &plan).map_err(|(cause, refusal)| NoSandbox { cause, refusal })
}

/// Why there is no sandbox.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {refusal}", .cause.why())]
pub struct NoSandbox {
    pub cause: Cause,
    pub refusal: Refusal,
}
