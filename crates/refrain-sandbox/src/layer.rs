//! The loop's layer over the user's caches: it can be removed like any folder, and it does not grow for ever.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};

use refrain_core::sandbox::CacheLayer;

use crate::messages::complain;

/// The largest layer that is kept when its process has ended: 10 GiB.
const LARGEST: u64 = 10 << 30;
/// Of the numbers of blocks that the system reports.
const BLOCK: u64 = 512;

/// A layer in use.
pub(crate) struct Layer {
    folder: Utf8PathBuf,
    /// Shared by all sandboxes that use it.
    lock: File,
}

impl Layer {
    pub(crate) fn open(layer: &CacheLayer) -> io::Result<Self> {
        let folder = &layer.folder;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = File::open(folder)?;
        lock.lock_shared()?;
        let beside = folder.parent().filter(|_| layer.removes_others).map(Utf8Path::read_dir_utf8);
        for entry in beside.into_iter().flatten().flatten().flatten().filter(|it| it.path() != folder) {
            // What is left of one that was not removed now, the next one removes.
            if let Ok(lock) = File::open(entry.path())
                && lock.try_lock().is_ok()
            {
                make_removable(entry.path());
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Self { folder: folder.clone(), lock })
    }

    /// Removes it if it is too large, and no other sandbox uses it.
    pub(crate) fn close(self) {
        if self.lock.try_lock().is_ok() && make_removable(&self.folder) > LARGEST {
            let removed = fs::remove_dir_all(&self.folder);
            let end =
                removed.map_or_else(|error| format!("it stays: {error}"), |()| "it is removed".to_owned());
            complain(&format_args!("{} is larger than {} GiB; {end}", self.folder, LARGEST >> 30));
        }
    }
}

/// Opens each folder to its owner: the kernel leaves some that cannot be listed, and tools some that cannot be written.
/// Returns how much room they all take, in bytes.
fn make_removable(folder: &Utf8Path) -> u64 {
    let (mut bytes, mut open) = (0_u64, vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = path.symlink_metadata() else { continue };
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK));
            if metadata.is_dir() {
                let mode = metadata.permissions().mode();
                if mode & 0o700 != 0o700 {
                    let _ = fs::set_permissions(path, Permissions::from_mode(mode | 0o700));
                }
                open.push(path.to_owned());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_can_be_removed_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let folder = root.join("a/b");
        fs::create_dir_all(&folder).unwrap();
        fs::copy("/proc/self/exe", folder.join("file")).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        for (path, mode) in [(&folder, 0o000), (&root.join("a"), 0o555)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let size = fs::metadata("/proc/self/exe").unwrap().len();
        let counted = make_removable(root);
        assert!(counted >= size && counted < size + (1 << 20), "{counted} {size}");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir_all(root.join("a")).unwrap();
    }
}
