use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use camino::Utf8PathBuf;
use rstest::rstest;

use super::*;

/// A folder that is Refrain's, and one of another owner, with a file in it.
struct Folders {
    _dir: tempfile::TempDir,
    own: Utf8PathBuf,
    other: Utf8PathBuf,
}

fn folders() -> Folders {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
    let (own, other) = (root.join("own"), root.join("other"));
    for folder in [&own, &other] {
        fs::create_dir(folder).unwrap();
    }
    write(&other.join("kept"), b"kept").unwrap();
    Folders { _dir: dir, own, other }
}

impl Folders {
    fn assert_other_is_as_it_was(&self) {
        assert_eq!(fs::read_dir(&self.other).unwrap().count(), 1);
        assert_eq!(fs::read(self.other.join("kept")).unwrap(), b"kept");
    }
}

#[test]
fn a_missing_folder_is_made_and_a_file_is_replaced_in_it() {
    let at = folders();
    let path = at.own.join("a/b/file");
    write(&path, b"one").unwrap();
    let folder = Folder::make(path.parent().unwrap()).unwrap();
    folder.replace("file", b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    folder.replace_unsynced("file", b"three").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"three");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing stays beside it");
    assert_eq!(fs::metadata(at.own.join("a")).unwrap().mode() & 0o777, 0o700);
    remove(&path).unwrap();
    remove(&path).unwrap();
    assert!(!path.exists());
    assert_eq!(open(&path, OFlags::RDONLY).unwrap_err().kind(), ErrorKind::NotFound);
}

#[rstest]
#[case("link/deeper/new")]
#[case("link/much/deeper/new")]
fn nothing_is_written_behind_a_link(#[case] path: &str) {
    let at = folders();
    symlink(&at.other, at.own.join("link")).unwrap();
    let path = at.own.join(path);
    let error = write(&path, b"new").unwrap_err().to_string();
    assert!(error.contains("own/link is a symbolic link"), "{error}");
    assert!(remove(&at.own.join("link/kept")).is_err());
    assert!(open(&at.own.join("link/kept"), OFlags::RDONLY).is_err());
    at.assert_other_is_as_it_was();
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_never_opened() {
    let at = folders();
    let (path, kept) = (at.own.join("file"), at.other.join("kept"));
    let folder = Folder::open(&at.own).unwrap();
    let put: [fn(&Folder) -> io::Result<()>; 3] = [
        |folder| folder.create("file")?.write_all(b"new"),
        |folder| folder.replace("file", b"new"),
        |folder| folder.replace_unsynced("file", b"new"),
    ];
    let links: [fn(&Utf8Path, &Utf8Path) -> io::Result<()>; 2] =
        [|kept, path| symlink(kept, path), |kept, path| fs::hard_link(kept, path)];
    for link in links {
        for put in put {
            let _ = fs::remove_file(&path);
            link(&kept, &path).unwrap();
            put(&folder).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            at.assert_other_is_as_it_was();
        }
    }
    fs::remove_file(&path).unwrap();
    symlink(&kept, &path).unwrap();
    assert!(folder.file("file", OFlags::WRONLY).is_err());
    assert!(folder.file("file", OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).is_err());
    at.assert_other_is_as_it_was();
}

#[test]
fn a_folder_that_is_open_is_the_same_whatever_takes_its_place() {
    let at = folders();
    let folder = Folder::open(&at.own).unwrap();
    let moved = at.own.with_file_name("moved");
    fs::rename(&at.own, &moved).unwrap();
    symlink(&at.other, &at.own).unwrap();
    folder.replace("file", b"new").unwrap();
    folder.create("another").unwrap();
    folder.remove("kept").unwrap();
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 2);
    at.assert_other_is_as_it_was();
}

#[test]
fn a_link_or_file_in_place_of_an_own_folder_is_replaced_not_followed() {
    let at = folders();
    let folder = Folder::open(&at.own).unwrap();
    symlink(&at.other, at.own.join("link")).unwrap();
    write(&at.own.join("file"), b"").unwrap();
    for name in ["link", "file"] {
        assert!(folder.reclaim(name).unwrap().is_none());
        folder.reclaim_or_make(name).unwrap().create("new").unwrap();
        assert!(at.own.join(name).join("new").is_file());
    }
    symlink(&at.other, at.own.join("fourth")).unwrap();
    write(&at.own.join("fourth/kept"), b"new").unwrap();
    assert_eq!(fs::read(at.own.join("fourth/kept")).unwrap(), b"new");
    fs::remove_dir_all(at.own.join("fourth")).unwrap();
    symlink(&at.other, at.own.join("another")).unwrap();
    symlink(at.other.join("kept"), at.own.join("third")).unwrap();
    folder.remove_links(|name| name == b"third").unwrap();
    assert_eq!(fs::read_dir(&at.own).unwrap().count(), 3);
    folder.remove_links(|_| false).unwrap();
    assert_eq!(fs::read_dir(&at.own).unwrap().count(), 2);
    symlink(&at.other, at.own.join("gone")).unwrap();
    folder.remove_folder("gone").unwrap();
    folder.remove_folder("link").unwrap();
    assert!(!at.own.join("link").exists());
    at.assert_other_is_as_it_was();
}

#[test]
fn a_fifo_is_not_waited_for() {
    let at = folders();
    let folder = Folder::open(&at.own).unwrap();
    assert!(folder.make_fifo("fifo").unwrap() && !folder.make_fifo("fifo").unwrap());
    for flags in [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR] {
        assert!(folder.file("fifo", flags).is_err(), "{flags:?}");
    }
    folder.create("fifo").unwrap();
    assert!(at.own.join("fifo").is_file());
}

#[rstest]
#[case("")]
#[case("..")]
#[case("../other/kept")]
fn a_name_is_no_path(#[case] name: &str) {
    let at = folders();
    let folder = Folder::open(&at.own).unwrap();
    assert!(folder.create(name).is_err() && folder.remove(name).is_err() && folder.reclaim(name).is_err());
    at.assert_other_is_as_it_was();
}

#[test]
fn only_a_regular_file_that_is_not_too_large_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(dir.path()).unwrap();
    File::create(dir.join("file")).unwrap().write_all(b"12345").unwrap();
    std::os::unix::fs::symlink("file", dir.join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join("device")).unwrap();
    assert!(Folder::open(&dir.canonicalize_utf8().unwrap()).unwrap().make_fifo("fifo").unwrap());
    File::create(dir.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    for name in ["file", "link"] {
        assert_eq!(read_text(&dir.join(name)).unwrap(), "12345", "{name}");
        assert_eq!(read_regular(&dir.join(name), 4).unwrap_err().kind(), ErrorKind::FileTooLarge, "{name}");
    }
    for name in ["fifo", "device", "sparse", "."] {
        assert!(read_regular(&dir.join(name), 5).is_err(), "{name}");
        assert!(read_text(&dir.join(name)).is_err(), "{name}");
    }
    assert_eq!(read_regular(&dir.join("missing"), 5).unwrap_err().kind(), ErrorKind::NotFound);
}
