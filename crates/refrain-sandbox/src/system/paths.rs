//! Paths that lead through no symbolic link: wherever an agent may write, one of another sandbox can make a link at any time.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{Mechanism, Policy};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

/// How many symbolic links a protected path may lead through.
const MOST_LINKS: u32 = 16;

/// The policy with each path as it is reached through no link. The user may reach a folder that is written through links of
/// their own; what lies in it is where it says.
pub(crate) fn resolve(policy: &Policy) -> Policy {
    let is_outermost =
        |path: &&Utf8PathBuf| !policy.write.iter().any(|other| *path != other && path.starts_with(other));
    let roots: Vec<_> =
        policy.write.iter().filter(is_outermost).map(|path| (path.clone(), existing(path))).collect();
    let place = |path: &Utf8PathBuf| {
        let root = roots.iter().find_map(|(root, real)| Some((path.strip_prefix(root).ok()?, real)));
        match (root, path.parent(), path.file_name()) {
            (Some((inside, real)), ..) => real.components().chain(inside.components()).collect(),
            (None, Some(parent), Some(name)) => existing(parent).join(name),
            (None, ..) => path.clone(),
        }
    };
    let places = |paths: &[Utf8PathBuf]| paths.iter().map(place).collect();
    // Most are not there: one question says so. Without namespaces their folders count too.
    let is_mounted = policy.mechanism == Mechanism::Namespaces;
    let hidden = |path: &Utf8PathBuf| match is_mounted && !path.exists() {
        true => path.clone(),
        false => existing(path),
    };
    let resolved = Policy {
        write: places(&policy.write),
        read_only: places(&policy.read_only),
        programs_in: places(&policy.programs_in),
        data: places(&policy.data),
        caches: Vec::new(),
        no_links: policy.no_links.iter().map(|(path, is_deep)| (place(path), *is_deep)).collect(),
        hide: policy.hide.iter().map(hidden).collect(),
        show: places(&policy.show),
        private: places(&policy.private),
        make: places(&policy.make),
        placeholders: policy.placeholders.iter().map(|(path, text)| (place(path), text.clone())).collect(),
        ..policy.clone()
    };
    // A cache that is a link may be the user's, but it opens nothing that is hidden.
    let is_inside = |path: &Utf8PathBuf| roots.iter().any(|(root, _)| path.starts_with(root));
    let cache = |path: &Utf8PathBuf| if is_inside(path) { place(path) } else { existing(path) };
    let caches = policy.caches.iter().map(cache).filter(|path| !resolved.hides(path)).collect();
    Policy { caches, ..resolved }
}

/// A path without symbolic links in the part of it that exists.
pub(crate) fn existing(path: &Utf8Path) -> Utf8PathBuf {
    match (path.canonicalize_utf8(), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => existing(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

/// A path, and if it is a symbolic link, each path that it leads to and that the sandbox shows. Empty if there is nothing.
pub(crate) fn with_targets(path: &Utf8Path, policy: &Policy) -> io::Result<Vec<Utf8PathBuf>> {
    let (mut paths, mut next) = (Vec::new(), path.to_owned());
    for _ in 0..MOST_LINKS {
        let Ok(found) = next.symlink_metadata() else { return Ok(paths) };
        paths.push(next.clone());
        if !found.is_symlink() {
            return Ok(paths);
        }
        let target = next.parent().unwrap_or(&next).join(next.read_link_utf8()?);
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else { return Ok(paths) };
        let Ok(parent) = parent.canonicalize_utf8() else { return Ok(paths) };
        next = parent.join(name);
        // An agent could have made the link, to see what is hidden.
        if policy.hides(&next) {
            return Ok(paths);
        }
    }
    Err(io::Error::other("it leads through too many symbolic links"))
}

/// A path, to name it: a link at its end is itself what is opened.
pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(CWD, path.as_ref(), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// The same. A folder on the way that its owner may not enter is opened: a program can take that right from all later
/// sandboxes.
fn reach(path: &Path) -> io::Result<OwnedFd> {
    match (open(path), path.parent()) {
        (Err(error), Some(above)) if is_denied(&error) => {
            open_to_owner(&reach(above)?)?;
            open(path)
        }
        (opened, _) => opened,
    }
}

/// What is at a path; none if nothing is, or if a link leads there.
pub(crate) fn kind(path: impl AsRef<Path>) -> Option<FileType> {
    let (folder, name) = parent(path.as_ref()).ok()?;
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// Opens a file, or a folder to list it.
pub(crate) fn open_file(path: impl AsRef<Path>, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let open = |folder: &OwnedFd, name: &OsStr| rustix::fs::openat(folder, name, flags, mode);
    Ok(File::from(in_folder(path.as_ref(), open)?))
}

/// Makes a folder, and those that it lies in.
pub(crate) fn make_folder(path: &Utf8Path) -> io::Result<()> {
    if kind(path).is_some() {
        return Ok(());
    }
    // The root has no name.
    if let Some(above) = path.parent().filter(|above| above.parent().is_some()) {
        make_folder(above)?;
    }
    match make_one_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes a folder that is missing, in one that is there.
pub(crate) fn make_one_folder(path: &Utf8Path) -> io::Result<()> {
    let make = |folder: &OwnedFd, name: &OsStr| rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777));
    in_folder(path.as_std_path(), make)?;
    // The folder around it can say which rights new ones have.
    open_to_owner(&open(path)?)
}

/// Makes a symbolic link.
pub(crate) fn link(target: &OsStr, path: impl AsRef<Path>) -> io::Result<()> {
    in_folder(path.as_ref(), |folder, name| rustix::fs::symlinkat(target, folder, name))
}

/// Removes a file or a link, or with `REMOVEDIR` an empty folder.
pub(crate) fn remove(path: impl AsRef<Path>, flags: AtFlags) -> io::Result<()> {
    in_folder(path.as_ref(), |folder, name| rustix::fs::unlinkat(folder, name, flags))
}

/// Gives a file or folder the first of the names that nothing has. The folder is made writable if its owner took that away.
pub(crate) fn rename(path: &Utf8Path, names: impl Iterator<Item = String>) -> io::Result<Utf8PathBuf> {
    let (folder, name) = parent(path.as_std_path())?;
    open_to_owner(&folder)?;
    for new in names {
        match rustix::fs::renameat_with(&folder, name, &folder, &new, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(path.with_file_name(new)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("no name is free"))
}

/// Puts another file of the same folder in the place of one.
pub(crate) fn replace(path: &Utf8Path, by: &Utf8Path) -> io::Result<()> {
    let by = by.file_name().unwrap_or_default();
    in_folder(path.as_std_path(), |folder, name| rustix::fs::renameat(folder, by, folder, name))
}

/// Lets the owner of a folder write it.
pub(crate) fn open_to_owner(folder: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // A descriptor that only names the folder has no other way.
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        rustix::fs::chmod(path, (mode | Mode::RWXU) & Mode::from_raw_mode(0o7777))?;
    }
    Ok(())
}

/// Does something in the folder that a path lies in, which is made writable if its owner took that away.
fn in_folder<T>(path: &Path, act: impl Fn(&OwnedFd, &OsStr) -> Result<T, Errno>) -> io::Result<T> {
    let (folder, name) = parent(path)?;
    match act(&folder, name) {
        Err(Errno::ACCESS) => {
            open_to_owner(&folder)?;
            Ok(act(&folder, name)?)
        }
        done => Ok(done?),
    }
}

pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ACCESS.raw_os_error())
}

/// Whether an error says that nothing is at a path, or that a link leads there.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    let missing = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|errno| missing.contains(&errno))
}

/// The folder that a path lies in, and its name there.
pub(crate) fn parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((reach(parent)?, name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_in_a_written_folder_is_reached_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        for folder in ["git/modules", "secret/hooks", "dotfiles"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("secret"), root.join("git/modules/planted")).unwrap();
        symlink(root.join("dotfiles"), root.join("home")).unwrap();
        symlink(root.join("dotfiles"), root.join("cache")).unwrap();
        symlink(root.join("secret"), root.join("leads")).unwrap();
        let policy = Policy {
            write: vec![root.join("git"), root.join("git/modules/planted"), root.join("home")],
            read_only: vec![root.join("git/modules/planted/hooks"), root.join("home/settings.json")],
            hide: vec![root.join("secret")],
            caches: vec![root.join("cache"), root.join("leads"), root.join("git/modules/planted")],
            ..Policy::default()
        };
        let resolved = resolve(&policy);
        assert_eq!(
            resolved.write,
            [root.join("git"), root.join("git/modules/planted"), root.join("dotfiles")],
            "the user's own link is followed, one in what is written is not"
        );
        assert_eq!(resolved.read_only[1], root.join("dotfiles/settings.json"));
        assert_eq!(
            resolved.caches,
            [root.join("dotfiles"), root.join("git/modules/planted")],
            "a cache that leads to what is hidden is none"
        );
        assert_eq!(kind(&resolved.read_only[0]), None);
        assert_eq!(kind(&resolved.write[1]), Some(FileType::Symlink));
        assert!(make_folder(&root.join("git/modules/planted/new")).is_err());
        assert!(open_file(root.join("git/modules/planted/x"), OFlags::CREATE, Mode::RUSR).is_err());
        assert_eq!(std::fs::read_dir(root.join("secret")).unwrap().count(), 1, "nothing was made there");
    }

    #[test]
    fn no_names_and_no_mode_keep_a_file_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        for name in ["planted", "planted-1", "planted-2"] {
            File::create(root.join(name)).unwrap();
        }
        rustix::fs::chmod(root.as_str(), Mode::RUSR | Mode::XUSR).unwrap();
        let aside = rename(&root.join("planted"), (1..).map(|number| format!("planted-{number}"))).unwrap();
        assert_eq!(aside, root.join("planted-3"));
        assert_eq!(kind(root.join("planted")), None);
    }
}
