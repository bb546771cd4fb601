//! A program that ends with the one that started it, however that ends.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The hidden verb.
pub(crate) const VERB: &str = "guarded";

/// Becomes a program that the kernel ends when the process `parent` dies. It returns only if that fails.
pub(crate) fn become_program(parent: i32, program: &str, args: &[String]) -> io::Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(parent) {
        return Err(io::Error::other("the process that started it has ended"));
    }
    #[expect(clippy::disallowed_methods, reason = "this process becomes that program: none is started")]
    let error = std::process::Command::new(program).args(args).exec();
    Err(error)
}
