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
const MISSING: [i64; 8] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Its flags are in memory, where a filter cannot look. Libraries use `clone` then.
    libc::SYS_clone3,
];
/// The kinds of sockets that there are: local, IPv4, IPv6, and questions about the network.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Tracing of a process that is not a child.
const TRACING: [u32; 2] = [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE];
/// Typing into a terminal in the name of the user.
const TYPING: [u64; 2] = [libc::TIOCSTI, 0x541c];
/// System calls of the x32 interface have this bit.
const X32: i64 = 0x4000_0000;

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
    let tracing = TRACING.map(|request| rule([(0, Dword, Eq, u64::from(request))]));
    rules.insert(libc::SYS_ptrace, tracing.into_iter().collect::<io::Result<_>>()?);
    Ok(with_x32(rules))
}

fn missing() -> Rules {
    with_x32(MISSING.into_iter().map(|call| (call, Vec::new())).collect())
}

fn with_x32(mut rules: Rules) -> Rules {
    if cfg!(target_arch = "x86_64") {
        let more: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(more);
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
