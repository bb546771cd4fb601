//! The system calls that have no safe wrapper, the capabilities, and paths without links.

pub(crate) mod paths;

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

/// The command that sets the signal for a broken lease (fcntl(2)).
const F_SETSIG: i32 = 10;

/// Moves this process into new namespaces. Flags for the table of descriptors are not accepted.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    let flags = flags & !UnshareFlags::FILES;
    #[expect(
        unsafe_code,
        reason = "unsafe only for a table of descriptors that threads share, which the line above excludes"
    )]
    // SAFETY: without FILES no descriptor changes its meaning in another thread.
    unsafe {
        rustix::thread::unshare_unsafe(flags)?;
    }
    Ok(())
}

/// Sets attributes of a mount, and with `is_deep` of all mounts below it.
pub(crate) fn set_attributes(mount: impl AsFd, set: MountAttrFlags, is_deep: bool) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: u64::from(set.bits()), attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if is_deep { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "neither rustix nor nix has mount_setattr")]
    // SAFETY: the path ends with a zero byte, and the kernel reads exactly the size of the structure that is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Files that the caller of Refrain left open do not get into the program: a folder would lead out of the sandbox.
pub(crate) fn close_others_on_exec() -> io::Result<()> {
    call(libc::SYS_close_range, [3, i64::from(u32::MAX), i64::from(libc::CLOSE_RANGE_CLOEXEC)])
}

/// Whether a process has a file open for writing, or a message with such a descriptor is on its way: the kernel gives no
/// lease then.
/// Errors: where that is not known: of another user's file, and where there are no leases, as on many network file systems.
pub(crate) fn is_open_for_writing(file: &File) -> io::Result<bool> {
    let fd = i64::from(file.as_raw_fd());
    let control =
        |command: i32, value: i32| call(libc::SYS_fcntl, [fd, i64::from(command), i64::from(value)]);
    // A program that opens the file in this moment causes a signal, which is one that is ignored.
    let lease = control(F_SETSIG, libc::SIGURG).and_then(|()| control(libc::F_SETLEASE, libc::F_RDLCK));
    match lease {
        Ok(()) => {
            let _ = control(libc::F_SETLEASE, libc::F_UNLCK);
            Ok(false)
        }
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// A system call whose arguments are numbers.
fn call(number: i64, [first, second, third]: [i64; 3]) -> io::Result<()> {
    #[expect(unsafe_code, reason = "neither rustix nor nix has close_range, and leases of files")]
    // SAFETY: the calls above close no descriptor, and the kernel reads no memory.
    let result = unsafe { libc::syscall(number, first, second, third) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Nothing that this process starts has a capability, or gets one.
pub(crate) fn give_up_capabilities() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last one that this kernel has.
            Err(Errno::INVAL) => break,
            // A plain user outside of a namespace, whose programs gain none of them.
            Err(Errno::PERM) if !geteuid().is_root() => break,
            Err(error) => return Err(error.into()),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
