//! Process 1 of the sandbox: mounts, restricts itself, starts the program, reaps, and ends everything when the program has
//! ended.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use refrain_proc::keeper::{FrameReader, send};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, wait};
use rustix::thread::UnshareFlags;

use crate::messages::{FromInit, NO_SANDBOX, Plan, Reply, parent_socket};
use crate::outer::read;
use crate::refusal::{At, Refusal, Step};
use crate::{loopback, mounts, program, system};

pub(crate) const WORD: &str = "init";

/// The time for what the program left running to end by itself.
const GRACE: Duration = Duration::from_millis(200);

pub(crate) fn run() -> u8 {
    let Some(socket) = parent_socket() else { return NO_SANDBOX };
    match start(&socket) {
        Ok(Ok(program)) => {
            let end = reap(program);
            let _ = send(&socket, &end, &[]);
            end_others();
            0
        }
        Ok(Err(code)) => {
            let _ = send(&socket, &FromInit::Exited(Some(i32::from(code))), &[]);
            0
        }
        Err(refusal) => {
            let _ = send(&socket, &FromInit::Reply(Reply::Refused(refusal)), &[]);
            NO_SANDBOX
        }
    }
}

/// The program; if it cannot be executed, the exit code for that.
fn start(socket: &UnixStream) -> Result<Result<Pid, u8>, Refusal> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Namespaces)?;
    let mut reader = FrameReader::default();
    let plan: Plan = read(socket, &mut reader).at(Step::Plan)?;
    let [stdin]: [OwnedFd; 1] = reader.take_fds().at(Step::Plan)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Capabilities)?;
    loopback::bring_up().at(Step::Loopback)?;
    for port in &plan.listen {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).at(Step::Loopback)?;
        let reply = FromInit::Reply(Reply::Listening(*port));
        send(socket, &reply, &[listener.as_fd()]).at(Step::Loopback)?;
    }
    system::unshare(UnshareFlags::NEWNS).at(Step::Mounts)?;
    let writable = mounts::enter(&plan.policy)?;
    system::give_up_capabilities().at(Step::Capabilities)?;
    send(socket, &FromInit::Reply(Reply::Ready), &[]).at(Step::Plan)?;
    let dir = plan.dir.clone();
    let child = program::start(plan, stdin, &writable).at_path(Step::Program, &dir)?;
    Ok(child.map(|child| Pid::from_child(&child)))
}

/// Waits for the program, and reaps whatever ends before it.
fn reap(program: Pid) -> FromInit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                return match status.terminating_signal() {
                    Some(signal) => FromInit::Killed(signal),
                    None => FromInit::Exited(status.exit_status()),
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return FromInit::Exited(None),
        }
    }
}

/// Asks what the program left to end. When this process ends, the kernel kills what is still there.
fn end_others() {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if pid != 1
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => {
                let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                let _ = rustix::event::poll(&mut [], Some(&pause));
            }
            Err(_) => return,
        }
    }
}
