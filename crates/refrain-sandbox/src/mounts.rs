//! What the sandbox sees of the file system: everything read-only, except for what the policy says.
//!
//! Every source is opened before anything is mounted, so that no mount can change the meaning of a path. Each folder that
//! may be written and each protected path becomes a mount point, which cannot be renamed or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{CacheLayer, Policy};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
    unmount,
};

use crate::protected::originals;
use crate::refusal::{At, Refusal, Step, kernel};
use crate::system::paths::{is_missing, open, with_targets};
use crate::system::set_attributes;

const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NO_SUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
/// What every file system of the sandbox has, except for its own devices.
const HARMLESS: MountAttrFlags = NO_SUID.union(NO_DEVICES);

/// Devices that programs need.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of `/proc` that change the machine, and that root could write.
const PROC_READ_ONLY: [&str; 8] = ["sys", "sysrq-trigger", "irq", "bus", "acpi", "fs", "scsi", "mtrr"];
/// A place for the new root until it is the root.
const STAGES: [&str; 3] = ["/tmp", "/mnt", "/var"];

/// What is at a path.
enum MountSource {
    /// A part of the machine's file system, opened.
    Tree(OwnedFd),
    /// A folder of its own, empty at first, that may be written.
    Private,
    /// An empty folder instead of what is there.
    HiddenFolder,
    /// An empty file instead of what is there.
    HiddenFile,
}

/// The folders and files that may be written, by their paths in the sandbox: for Landlock.
pub(crate) type Writable = Vec<Utf8PathBuf>;

/// Makes the file system of the sandbox the root of this process, which is alone in its mount namespace.
pub(crate) fn enter(policy: &Policy) -> Result<Writable, Refusal> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at(Step::Mounts)?;
    let mut places: BTreeMap<Utf8PathBuf, MountSource> = BTreeMap::new();
    let mut writable: Writable = ["/dev", "/proc"].map(Utf8PathBuf::from).into();
    for path in policy.private.iter().filter(|path| is_real_folder(path)) {
        writable.push(path.clone());
        places.insert(path.clone(), MountSource::Private);
    }
    for path in &policy.hide {
        let Ok(found) = path.symlink_metadata() else { continue };
        let place = if found.is_dir() { MountSource::HiddenFolder } else { MountSource::HiddenFile };
        places.insert(path.clone(), place);
    }
    for path in &policy.caches {
        let Some(layer) = policy.cache_layer.as_ref().filter(|_| is_real_folder(path)) else { continue };
        // A layer that cannot be made leaves the user's cache read-only, also in a folder that is written.
        let tree = match layered(path, layer) {
            Ok(tree) => {
                writable.push(path.clone());
                tree
            }
            Err(_) => tree(path, HARMLESS | READ_ONLY).at_path(Step::Mounts, path)?,
        };
        places.insert(path.clone(), MountSource::Tree(tree));
    }
    let mut written = BTreeSet::new();
    for path in &policy.write {
        // A link that is no folder of the policy's any more.
        let Some(tree) = tree_if_there(path, HARMLESS)?.filter(|tree| !is_link(tree)) else { continue };
        writable.push(path.clone());
        written.insert(path.clone());
        places.insert(path.clone(), MountSource::Tree(tree));
    }
    for path in policy.read_only.iter().chain(&originals::programs(policy)).chain(&policy.show) {
        for path in with_targets(path, policy).at_path(Step::Mounts, path)? {
            let Some(tree) = tree_if_there(&path, HARMLESS | READ_ONLY)? else { continue };
            places.insert(path, MountSource::Tree(tree));
        }
    }
    for path in Vec::from_iter(places.keys().cloned()) {
        for folder in between(&path, &written, &places) {
            let tree = tree(&folder, HARMLESS).at_path(Step::Mounts, &folder)?;
            places.insert(folder, MountSource::Tree(tree));
        }
    }
    let devices: Vec<_> = DEVICES.iter().map(|name| (*name, open_device(name))).collect();
    let root = tree("/".into(), HARMLESS | READ_ONLY).at(Step::Mounts)?;
    change_root(&root).at(Step::Root)?;
    mount_proc(policy.processes).at(Step::Proc)?;
    mount_devices(devices).at(Step::Devices)?;
    let mut sealed = Vec::new();
    let mut fresh: Vec<Utf8PathBuf> = Vec::new();
    for (path, place) in places {
        if !prepare(&path, &place, &fresh).at_path(Step::Mounts, &path)? {
            continue;
        }
        let (mount, is_fresh) = match place {
            MountSource::Tree(tree) => (tree, false),
            MountSource::Private => {
                // They share the machine's memory: alone each would get half of it.
                let size = match path.as_str() {
                    "/tmp" => "50%",
                    "/dev/shm" => "25%",
                    _ => "10%",
                };
                (empty("1777", Some(size)).at_path(Step::Mounts, &path)?, true)
            }
            MountSource::HiddenFolder => {
                sealed.push(path.clone());
                (empty("755", Some("64k")).at_path(Step::Mounts, &path)?, true)
            }
            MountSource::HiddenFile => {
                (tree("/dev/.hidden".into(), HARMLESS | READ_ONLY).at(Step::Mounts)?, false)
            }
        };
        attach(&mount, &path).at_path(Step::Mounts, &path)?;
        if is_fresh {
            fresh.push(path);
        }
    }
    for path in sealed.iter().map(|path| path.as_path()).chain(["/dev".into()]) {
        let mount = open(path).at_path(Step::Mounts, path)?;
        set_attributes(mount, READ_ONLY, false).at_path(Step::Mounts, path)?;
    }
    Ok(writable)
}

/// The folders between a mount point and the folder around it that is written: one that is no mount point could be
/// renamed, and another put in its place.
fn between(
    path: &Utf8Path,
    written: &BTreeSet<Utf8PathBuf>,
    places: &BTreeMap<Utf8PathBuf, MountSource>,
) -> Vec<Utf8PathBuf> {
    let mut folders = Vec::new();
    for around in path.ancestors().skip(1) {
        if written.contains(around) {
            return folders;
        }
        if places.contains_key(around) {
            break;
        }
        folders.push(around.to_owned());
    }
    Vec::new()
}

fn is_real_folder(path: &Utf8Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// A copy of what is at a path; none if there is nothing, or if a link leads there.
fn tree_if_there(path: &Utf8Path, attributes: MountAttrFlags) -> Result<Option<OwnedFd>, Refusal> {
    match tree(path, attributes) {
        Ok(tree) => Ok(Some(tree)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error).at_path(Step::Mounts, path),
    }
}

fn is_link(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
}

/// A copy of what is at a path, with all that is mounted below it.
fn tree(path: &Utf8Path, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(open(path)?, "", flags)?;
    set_attributes(&tree, attributes, true)?;
    Ok(tree)
}

fn open_device(name: &str) -> io::Result<OwnedFd> {
    // Read-only is the file, not the device: root could take the rights to it from the machine.
    tree(&Utf8Path::new("/dev").join(name), NO_SUID | READ_ONLY)
}

fn attach(mount: impl AsFd, path: &Utf8Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", open(path)?, "", flags)?)
}

/// A file system of its own, not attached yet.
fn new_file_system(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn empty(mode: &str, size: Option<&str>) -> io::Result<OwnedFd> {
    let options: Vec<_> = [("mode", mode)].into_iter().chain(size.map(|size| ("size", size))).collect();
    new_file_system("tmpfs", &options, HARMLESS)
}

/// A cache of the user, with what the loop writes kept in a folder of the loop.
fn layered(cache: &Utf8Path, layer: &CacheLayer) -> io::Result<OwnedFd> {
    let name: String = cache.as_str().chars().map(|c| if c == '/' { '+' } else { c }).collect();
    let files = |folder: &Utf8Path| folder.join(&name).join("files");
    let (upper, work) = (files(&layer.folder), layer.folder.join(&name).join("work"));
    for folder in [&upper, &work] {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // The folder as it is now, whatever is put in its place meanwhile.
    let opened = open(cache)?;
    let cache = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let base = layer.base.as_deref().map(files).filter(|base| is_real_folder(base));
    let paths = [Some(upper.as_str()), Some(work.as_str()), base.as_ref().map(|it| it.as_str())];
    if paths.into_iter().flatten().any(|path| path.contains([':', ',', '\\'])) {
        return Err(Errno::INVAL.into());
    }
    let lower = base.map_or_else(|| cache.clone(), |base| format!("{base}:{cache}"));
    let places = [("lowerdir", lower.as_str()), ("upperdir", upper.as_str()), ("workdir", work.as_str())];
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in places {
        fsconfig_set_string(&context, name, value)?;
    }
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, HARMLESS)?)
}

fn change_root(root: &OwnedFd) -> io::Result<()> {
    let stage = STAGES.into_iter().find(|stage| is_real_folder(Utf8Path::new(stage)));
    let stage = stage.ok_or_else(|| io::Error::other("none of /tmp, /mnt and /var is a folder"))?;
    attach(root, stage.into())?;
    rustix::process::chdir(stage)?;
    rustix::process::pivot_root(".", ".")?;
    // The old root lies on the new one.
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

fn mount_proc(processes: u32) -> io::Result<()> {
    let proc = new_file_system("proc", &[], HARMLESS | MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    attach(proc, "/proc".into())?;
    limit_processes(processes);
    for name in PROC_READ_ONLY {
        let path = Utf8Path::new("/proc").join(name);
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink()) {
            attach(tree(&path, HARMLESS | READ_ONLY)?, &path)?;
        }
    }
    Ok(())
}

/// Since Linux 6.14 a PID namespace has a limit of its own, which counts for root too. Before that the file is the
/// machine's, and is not touched.
fn limit_processes(processes: u32) {
    if kernel() >= (6, 14) {
        #[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
        let _ = fs::write("/proc/sys/kernel/pid_max", processes.to_string());
    }
}

/// A `/dev` of its own: root could open the machine's disks.
fn mount_devices(devices: Vec<(&str, io::Result<OwnedFd>)>) -> io::Result<()> {
    attach(new_file_system("tmpfs", &[("mode", "755")], NO_SUID)?, "/dev".into())?;
    for (name, device) in devices {
        let Ok(device) = device else { continue };
        let path = Utf8Path::new("/dev").join(name);
        create_file(&path, 0o666)?;
        attach(device, &path)?;
    }
    let links = [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
    for (name, target) in links.into_iter().chain([("ptmx", "pts/ptmx")]) {
        symlink(target, Utf8Path::new("/dev").join(name))?;
    }
    create_file("/dev/.hidden".into(), 0o000)?;
    for name in ["pts", "shm"] {
        fs::create_dir(Utf8Path::new("/dev").join(name))?;
    }
    let options = [("ptmxmode", "0666"), ("mode", "0620")];
    let terminals = new_file_system("devpts", &options, NO_SUID | MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    attach(terminals, "/dev/pts".into())
}

fn create_file(path: &Utf8Path, mode: u32) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path.as_str(), flags, Mode::from_raw_mode(mode)) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the mount point in a folder of the sandbox's own. Anywhere else it exists, or there is none.
fn prepare(path: &Utf8Path, place: &MountSource, fresh: &[Utf8PathBuf]) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(true);
    }
    if !fresh.iter().any(|folder| path.starts_with(folder)) {
        return Ok(false);
    }
    let is_folder = match place {
        // What is hidden is not there.
        MountSource::HiddenFolder | MountSource::HiddenFile => return Ok(false),
        MountSource::Private => true,
        MountSource::Tree(tree) => FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir(),
    };
    let parent = if is_folder { path } else { path.parent().unwrap_or(path) };
    DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    if !is_folder {
        create_file(path, 0o600)?;
    }
    Ok(true)
}
