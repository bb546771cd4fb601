//! Whether this machine can have a sandbox: one is made, and a program runs in it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use refrain_proc::keeper::{FrameReader, send};

use crate::messages::{HELPER_VERB, Plan, Reply};
use crate::refusal::{At, Cause, Machine, Refusal, Step, kernel};

/// Makes the sandbox of a plan, with a program that does nothing. Nothing is left.
///
/// # Errors
/// Why there is none, and what the machine says about it.
pub fn probe(program: &Path, plan: &Plan) -> Result<(), (Cause, Refusal)> {
    let plan = Plan { argv: ["/bin/sh", "-c", ":"].map(str::to_owned).into(), ..plan.clone() };
    run(program, &plan).map_err(|refusal| (Cause::of(&refusal, &machine()), refusal))
}

fn run(program: &Path, plan: &Plan) -> Result<(), Refusal> {
    if !cfg!(target_os = "linux") {
        return Err(io::Error::from(io::ErrorKind::Unsupported)).at(Step::Helper);
    }
    let (socket, theirs) = UnixStream::pair().at(Step::Helper)?;
    let stdin = fs::File::open("/dev/null").at(Step::Helper)?;
    #[expect(clippy::disallowed_methods, reason = "the binary itself, for one moment")]
    let helper = Command::new(program)
        .arg(HELPER_VERB)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .at(Step::Helper)?;
    // A plan may be larger than what a socket takes before it is read; a helper that cannot read it says why.
    let sent = send(&socket, plan, &[stdin.as_fd()]);
    let output = helper.wait_with_output().at(Step::Helper)?;
    sent.at(Step::Helper)?;
    let mut reader = FrameReader::default();
    loop {
        let reply: Option<Reply> = reader.next().at(Step::Helper)?;
        match reply {
            Some(Reply::Refused(refusal)) => return Err(refusal),
            Some(Reply::Init | Reply::Listening(_) | Reply::Ready) => {}
            None if !reader.fill(&socket).at(Step::Helper)? => break,
            None => {}
        }
    }
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.lines().next().unwrap_or("it ended without a word").to_owned()))
        .at(Step::Helper)
}

/// What the machine says about namespaces.
#[must_use]
pub(crate) fn machine() -> Machine {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Machine {
        is_linux: cfg!(target_os = "linux"),
        is_root: refrain_proc::identity::is_root(),
        most_namespaces: number("/proc/sys/user/max_user_namespaces"),
        may_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        has_apparmor: fs::read_to_string("/sys/module/apparmor/parameters/enabled")
            .is_ok_and(|text| text.starts_with('Y')),
        is_filtered: status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2')),
        kernel: kernel(),
    }
}
