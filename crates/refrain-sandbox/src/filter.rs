//! The seccomp filters: system calls that a program in the sandbox does not get.

use std::collections::BTreeMap;
use std::io;

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Refused: they need rights that no program here has, or reach out of the sandbox.
const REFUSED: [i64; 31] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];
/// Said not to exist, so that programs do without.
const MISSING: [i64; 9] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Their flags are in memory, where a filter cannot look. Libraries use `clone` and `openat` then.
    libc::SYS_clone3,
    libc::SYS_openat2,
];
/// The kinds of sockets that there are: local, IPv4, IPv6, and questions about the network.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Tracing of a process that is not a child.
const TRACING: [u32; 2] = [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE];
/// `F_SETLEASE` and `F_SETDELEG`: a lease on a file that a program can only read delays all others that open the file. And
/// `F_NOTIFY`, which sends signals for a folder.
const LEASES: [u64; 3] = [1024, 1026, 1040];
/// Typing into a terminal in the name of the user.
const TYPING: [u64; 2] = [libc::TIOCSTI, 0x541c];
/// System calls of the x32 interface have this bit, and some have numbers of their own.
const X32: i64 = 0x4000_0000;
const OWN_OF_X32: [(i64, i64); 5] = [
    (libc::SYS_ioctl, 514),
    (libc::SYS_ptrace, 521),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
];
/// `IOPRIO_WHO_PROCESS`.
const IO_OF_PROCESS: u64 = 1;
/// A file that runs as its owner, or as its group, would outlive the sandbox. A filter does not see if it is a folder.
const SET_IDS: [u64; 2] = [0o4000, 0o2000];
const FCHMODAT2: i64 = 452;
/// Which argument of a system call is the mode of a file, and which says if a file is created.
const MODES: [(i64, u8, Option<u8>); 5] = [
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (FCHMODAT2, 2, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_openat, 3, Some(2)),
];
#[cfg(target_arch = "x86_64")]
const OLD_MODES: [(i64, u8, Option<u8>); 4] = [
    (libc::SYS_chmod, 1, None),
    (libc::SYS_creat, 1, None),
    (libc::SYS_mknod, 1, None),
    (libc::SYS_open, 2, Some(1)),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_MODES: [(i64, u8, Option<u8>); 0] = [];

/// Restricts this process and all that it starts.
pub(crate) fn apply() -> io::Result<()> {
    for (rules, error) in [(refused()?, libc::EPERM), (missing(), libc::ENOSYS)] {
        let action = SeccompAction::Errno(error.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused() -> io::Result<Rules> {
    let mut rules: Rules = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let users = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(call, vec![rule([(0, Qword, MaskedEq(users), users)])?]);
    }
    let other = |family: i32| (0, Dword, Ne, u64::from(family.unsigned_abs()));
    rules.insert(libc::SYS_socket, vec![rule(FAMILIES.map(other))?]);
    rules.insert(
        libc::SYS_ioctl,
        TYPING.map(|request| rule([(1, Dword, Eq, request)])).into_iter().collect::<io::Result<_>>()?,
    );
    let leases = LEASES.map(|command| rule([(1, Dword, Eq, command)]));
    rules.insert(libc::SYS_fcntl, leases.into_iter().collect::<io::Result<_>>()?);
    let tracing = TRACING.map(|request| rule([(0, Dword, Eq, u64::from(request))]));
    rules.insert(libc::SYS_ptrace, tracing.into_iter().collect::<io::Result<_>>()?);
    // Limits and priorities of other processes: without namespaces those of the user are among them.
    let (this, of_process) = (0, u64::from(libc::PRIO_PROCESS));
    rules.insert(libc::SYS_prlimit64, vec![rule([(0, Dword, Ne, this), (2, Qword, Ne, 0)])?]);
    for (call, of_process) in [(libc::SYS_setpriority, of_process), (libc::SYS_ioprio_set, IO_OF_PROCESS)] {
        rules.insert(call, vec![rule([(0, Dword, Ne, of_process)])?, rule([(1, Dword, Ne, this)])?]);
    }
    for (call, mode, flags) in MODES.into_iter().chain(OLD_MODES) {
        let creating =
            [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(|flag| u64::from(flag.unsigned_abs()));
        let of_call = rules.entry(call).or_default();
        for set in SET_IDS.map(|bit| (mode, Dword, MaskedEq(bit), bit)) {
            match flags {
                None => of_call.push(rule([set])?),
                Some(flags) => {
                    for flag in creating {
                        of_call.push(rule([set.clone(), (flags, Dword, MaskedEq(flag), flag)])?);
                    }
                }
            }
        }
    }
    Ok(with_x32(rules))
}

fn missing() -> Rules {
    with_x32(MISSING.into_iter().map(|call| (call, Vec::new())).collect())
}

fn with_x32(mut rules: Rules) -> Rules {
    if cfg!(target_arch = "x86_64") {
        let more: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        let own = OWN_OF_X32.iter().filter_map(|(call, own)| Some((own | X32, rules.get(call)?.clone())));
        let own: Vec<_> = own.collect();
        rules.extend(more.into_iter().chain(own));
    }
    rules
}

/// A rule that holds if all of its conditions do: which argument, its size, how it is compared, and with what.
fn rule<const COUNT: usize>(
    conditions: [(u8, SeccompCmpArgLen, SeccompCmpOp, u64); COUNT],
) -> io::Result<SeccompRule> {
    let conditions: Result<Vec<_>, _> = conditions
        .into_iter()
        .map(|(argument, size, operator, value)| SeccompCondition::new(argument, size, operator, value))
        .collect();
    SeccompRule::new(conditions.map_err(io::Error::other)?).map_err(io::Error::other)
}
