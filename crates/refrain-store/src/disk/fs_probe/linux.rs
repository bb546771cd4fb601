//! Linux: the magic numbers of its file systems.

use camino::Utf8Path;
use rustix::fs::statfs;

/// The name of the network file system that `dir` lies on; none if it is not known to be one. From `linux/magic.h`.
pub fn network(dir: &Utf8Path) -> Option<&'static str> {
    // The type's width differs between machines, its bits do not.
    let magic = statfs(dir.as_std_path()).ok()?.f_type as u32;
    match magic {
        0x6969 => Some("NFS"),
        0xff53_4d42 => Some("CIFS"),
        0xfe53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}
