//! The outer process: makes the namespaces, starts process 1, and ends as the program ended. Without namespaces it starts
//! the program itself.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use refrain_core::sandbox::{Mechanism, Policy};
use refrain_proc::OWN_PROGRAM;
use refrain_proc::keeper::{FrameReader, send};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getegid, geteuid, pidfd_open, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::cgroup::Cgroup;
use crate::layer::{LARGEST, Layer};
use crate::messages::{
    FromInit, HELPER_VERB, NO_SANDBOX, Plan, RecordFolders, Reply, complain, parent_socket,
};
use crate::probe::machine;
use crate::protected::originals::Originals;
use crate::protected::placeholders::Placeholders;
use crate::protected::records::{Record, Start};
use crate::refusal::{At, Cause, Refusal, Step};
use crate::system::paths;
use crate::{files, init, system};

/// What process 1 needs to make the sandbox. They are dropped before the program starts.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    // An overlay opens its working folder, whose mode lets no user in.
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SYS_RESOURCE);

pub(crate) fn run() -> u8 {
    let Some(socket) = parent_socket() else { return NO_SANDBOX };
    run_plan(&socket).unwrap_or_else(|refusal| {
        complain(&refusal);
        let cause = Cause::of(&refusal, &machine());
        if cause == Cause::Path {
            complain(&cause.remedy(&refusal));
        }
        let _ = send(&socket, &Reply::Refused(refusal), &[]);
        NO_SANDBOX
    })
}

fn run_plan(socket: &UnixStream) -> Result<u8, Refusal> {
    let mut reader = FrameReader::default();
    let plan: Plan = read(socket, &mut reader).at(Step::Plan)?;
    let [stdin] = reader.take_fds().at(Step::Plan)?;
    let policy = paths::resolve(&plan.policy);
    let plan = Plan { policy: policy.clone(), ..plan };
    // The whole group gets the signals of a stop: the program decides about them, not this process.
    let unheeded = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::clone(&unheeded)).at(Step::Plan)?;
    }
    for folder in &policy.make {
        // In a folder that the user owns, and nothing is replaced.
        paths::make_folder(folder).at_path(Step::Plan, folder)?;
    }
    let folders = plan.records.clone();
    let (record, originals, placeholders) = protect(&policy, folders.as_ref())?;
    // Without a layer the caches are read-only.
    let layer = policy.cache_layer.as_ref().and_then(|layer| Layer::open(layer).ok());
    let end = match policy.mechanism {
        Mechanism::Namespaces => {
            let cgroup = cgroup(&policy)?;
            let (init, channel) = enter(plan, &stdin, cgroup.as_ref(), socket)?;
            wait(init, &channel, socket)
        }
        Mechanism::Files => {
            let program = files::start(plan, stdin)?;
            let _ = send(socket, &Reply::Ready, &[]);
            files::wait(program, &policy).map_or(End::Code(None), |status| match status.signal() {
                Some(signal) => End::Signal(signal),
                None => End::Code(status.code()),
            })
        }
    };
    drop(placeholders);
    let restored = originals.restore().report();
    if let Some(layer) = layer {
        layer.close(LARGEST);
    }
    if let (Err(_), Some(record)) = (&restored, record) {
        // No git and no program of the loop runs before that is done.
        record.keep();
    }
    restored?;
    Ok(match end {
        End::Code(Some(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Code(None) => NO_SANDBOX,
        End::Signal(signal) => end_by(signal),
    })
}

/// Makes the placeholders, and records what is at protected places.
pub(crate) fn protect(
    policy: &Policy,
    folders: Option<&RecordFolders>,
) -> Result<(Option<Record>, Originals, Placeholders), Refusal> {
    let start = folders.map(Start::new).transpose()?;
    let others = start.as_ref().map(|start| start.others.as_slice()).unwrap_or_default();
    let to_be_made = Originals::placeholders(policy, others);
    // They are removed also if this process is killed now.
    let before = Originals::of_placeholders(to_be_made.clone());
    let mut record = start.as_ref().map(|start| start.record(&before)).transpose()?;
    let placeholders = Placeholders::make(&to_be_made)?;
    let mut originals = Originals::read(policy, others, to_be_made);
    if let Some(record) = &mut record {
        record.replace(&mut originals)?;
    }
    Ok((record, originals, placeholders))
}

/// How the program ended; without a code if it was not started, or was lost.
enum End {
    Code(Option<i32>),
    Signal(i32),
}

/// The cgroup of the policy's bounds. One that is not required may be missing, as when the loop is resumed elsewhere.
fn cgroup(policy: &Policy) -> Result<Option<Cgroup>, Refusal> {
    if policy.bounds.is_none() {
        return Ok(None);
    }
    match Cgroup::new(&policy.bounds, policy.processes) {
        Ok(cgroup) => Ok(Some(cgroup)),
        Err(error) if policy.bounds.is_required => Err(error).at(Step::Cgroup),
        Err(error) => {
            complain(&format_args!("memory is not bounded: {error}"));
            Ok(None)
        }
    }
}

/// Makes the namespaces, and starts process 1 in them.
fn enter(
    plan: Plan,
    stdin: &OwnedFd,
    cgroup: Option<&Cgroup>,
    runner: &UnixStream,
) -> Result<(Child, UnixStream), Refusal> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let parent = rustix::process::getppid();
    system::unshare(UnshareFlags::NEWUSER).at(Step::UserNamespace)?;
    // `no` is needed to map the group.
    write("/proc/self/setgroups", "deny").at(Step::UserMap)?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1")).at(Step::UserMap)?;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1")).at(Step::UserMap)?;
    system::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWNET)
        .at(Step::Namespaces)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Namespaces)?;
    if rustix::process::getppid() != parent {
        return Err(io::Error::other("the supervisor process is gone")).at(Step::Plan);
    }
    let own = rustix::thread::capabilities(None).at(Step::Capabilities)?;
    let sets = CapabilitySets { inheritable: own.permitted & NEEDED, ..own };
    rustix::thread::set_capabilities(None, sets).at(Step::Capabilities)?;
    for capability in NEEDED.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true).at(Step::Capabilities)?;
    }
    let (channel, theirs) = UnixStream::pair().at(Step::Plan)?;
    #[expect(clippy::disallowed_methods, reason = "it starts itself in the namespaces that it made")]
    let child = Command::new(OWN_PROGRAM)
        .args([HELPER_VERB, init::WORD])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .at(Step::Namespaces)?;
    // Before it gets its plan, and starts anything.
    cgroup.map_or(Ok(()), |cgroup| cgroup.add(child.id())).at(Step::Cgroup)?;
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).at(Step::Namespaces)?;
    let _ = send(runner, &Reply::Init, &[handle.as_fd()]);
    send(&channel, &plan, &[stdin.as_fd()]).at(Step::Plan)?;
    Ok((child, channel))
}

/// Reads one message.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    socket: &UnixStream,
    reader: &mut FrameReader,
) -> io::Result<T> {
    loop {
        if let Some(message) = reader.next()? {
            return Ok(message);
        }
        if !reader.fill(socket)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the kernel: nothing has to survive a crash")]
fn write(path: &str, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Hands on what process 1 sends, until it is gone.
fn wait(mut init: Child, channel: &UnixStream, runner: &UnixStream) -> End {
    let mut reader = FrameReader::default();
    let mut end = None;
    // The socket closes when process 1 is gone, however it ended.
    while let Ok(message) = read::<FromInit>(channel, &mut reader) {
        match message {
            FromInit::Reply(reply) => {
                let fds: Vec<OwnedFd> = match &reply {
                    Reply::Listening(_) => reader.take_fds::<1>().map(Vec::from).unwrap_or_default(),
                    Reply::Refused(refusal) => {
                        complain(refusal);
                        Vec::new()
                    }
                    Reply::Init | Reply::Ready => Vec::new(),
                };
                // A runner that is gone closes its end, and the supervisor process ends this one.
                let _ = send(runner, &reply, &fds.iter().map(AsFd::as_fd).collect::<Vec<_>>());
            }
            FromInit::Exited(_) | FromInit::Killed(_) => end = Some(message),
        }
    }
    let _ = init.wait();
    match end {
        Some(FromInit::Exited(code)) => End::Code(code),
        Some(FromInit::Killed(signal)) => End::Signal(signal),
        Some(FromInit::Reply(_)) | None => End::Code(None),
    }
}

/// Ends this process by a signal, as the program ended; returns if that does not work.
fn end_by(signal: i32) -> u8 {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX)
}
