//! The two system calls that have no safe wrapper.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use rustix::mount::MountAttrFlags;
use rustix::thread::UnshareFlags;

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
