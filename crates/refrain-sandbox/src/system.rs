//! The three system calls that have no safe wrapper, the capabilities, and paths without links.

pub(crate) mod paths;

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

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
    #[expect(unsafe_code, reason = "neither rustix nor nix has close_range")]
    // SAFETY: no descriptor is closed, and the arguments are numbers.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
