//! The last step: the process restricts itself and becomes the program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use camino::Utf8PathBuf;
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::StatVfsMountFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::{NO_SANDBOX, complain, filter};

pub(crate) const WORD: &str = "program";

/// The program cannot be executed, and it is not found: as in a shell.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    pub(crate) writable: Vec<Utf8PathBuf>,
    pub(crate) processes: u32,
}

pub(crate) fn run(options: &str, argv: &[String]) -> u8 {
    let Some((program, args)) = argv.split_first() else { return NO_SANDBOX };
    let restricted = serde_json::from_str::<Options>(options).map_err(io::Error::other).and_then(restrict);
    if let Err(error) = restricted {
        complain(&error);
        return NO_SANDBOX;
    }
    #[expect(clippy::disallowed_methods, reason = "it becomes the program")]
    let error = Command::new(program).args(args).exec();
    complain(&format_args!("{program}: {error}"));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

fn restrict(options: Options) -> io::Result<()> {
    // Mounts that do not hold would be worse than none: nothing may run as if they did.
    if !rustix::fs::statvfs("/")?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(io::Error::other("its root is not read-only"));
    }
    let processes = Some(u64::from(options.processes));
    let limit = getrlimit(Resource::Nproc);
    if limit.current.is_none_or(|current| current > u64::from(options.processes)) {
        setrlimit(Resource::Nproc, Rlimit { current: processes, maximum: processes })?;
    }
    rustix::thread::set_no_new_privs(true)?;
    write_only(&options.writable).map_err(io::Error::other)?;
    filter::apply()
}

/// The second layer: the same list as the mounts, as far as this kernel has it.
fn write_only(writable: &[Utf8PathBuf]) -> Result<(), RulesetError> {
    let abi = ABI::V6;
    let writes = AccessFs::from_write(abi) & !AccessFs::IoctlDev;
    let mut ruleset = Ruleset::default().handle_access(writes)?.scope(Scope::from_all(abi))?.create()?;
    for path in writable {
        // A folder that is hidden in the sandbox cannot be opened, and needs no rule.
        let Ok(opened) = PathFd::new(path) else { continue };
        let accesses = if path.is_dir() { writes } else { writes & AccessFs::from_file(abi) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, accesses))?;
    }
    ruleset.restrict_self()?;
    Ok(())
}
