//! The records of sandboxes: while a program runs, a file says what was at protected places before. It is for the case that
//! all processes that know it are killed, and for other sandboxes that start meanwhile: what the program planted is not the
//! user's.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Restored;
use super::originals::Originals;
use crate::messages::RecordFolders;
use crate::refusal::{At, Refusal, Step};

/// The ending of a record, and of a link to one.
const RECORD: &str = "json";
const LOCK: &str = "lock";

/// The start of a sandbox, from its look at protected places until its record is there. Sandboxes of a user start one after
/// the other: what a program plants is seen only together with the record that says what was there before.
pub(crate) struct Start<'a> {
    folders: &'a RecordFolders,
    /// What the sandboxes recorded that run, and those that were killed and not restored yet.
    pub(crate) others: Vec<Originals>,
    _lock: File,
}

impl<'a> Start<'a> {
    /// Restores what is left of the loop's killed sandboxes, and reads the records of all others.
    pub(crate) fn new(folders: &'a RecordFolders) -> Result<Self, Refusal> {
        restore_left(&folders.of_loop).report()?;
        let RecordFolders { of_loop, of_user } = folders;
        for folder in [of_loop, of_user] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.at_path(Step::Plan, folder)?;
        }
        let path = of_user.join(LOCK);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.and_then(|file| file.lock().map(|()| file)).at_path(Step::Plan, &path)?;
        let mut others = Vec::new();
        for link in records(of_user).at_path(Step::Plan, of_user)? {
            match fs::read(&link) {
                Ok(text) => others.push(serde_json::from_slice(&text).at_path(Step::Plan, &link)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let _ = fs::remove_file(&link);
                }
                Err(error) => return Err(error).at_path(Step::Plan, &link),
            }
        }
        Ok(Self { folders, others, _lock: lock })
    }

    /// Writes the record into a folder that the program does not see. It is removed with the value, and stays if this process
    /// is killed.
    pub(crate) fn record(&self, originals: &Originals) -> Result<Record, Refusal> {
        let RecordFolders { of_loop, of_user } = self.folders;
        let path = of_loop.join(format!("{}.{RECORD}", std::process::id()));
        let record = || -> io::Result<_> {
            let lock = Some(write(&path, originals)?);
            let mut record = Record { lock, path: path.clone(), link: None, copies: Vec::new() };
            // A process of another machine or container, with the same home, can have the same number.
            for number in 0_u64.. {
                let link = of_user.join(format!("{}-{number}.{RECORD}", std::process::id()));
                match symlink(&path, &link) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => {
                        made?;
                        record.link = Some(link);
                        break;
                    }
                }
            }
            Ok(record)
        };
        record().at_path(Step::Plan, &path)
    }
}

/// Writes a record whole. A process that reads it finds it locked.
fn write(path: &Utf8Path, originals: &Originals) -> io::Result<File> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.lock()?;
    file.write_all(&serde_json::to_vec(originals)?)?;
    fs::rename(new, path)?;
    Ok(file)
}

/// A record of a program that runs.
pub(crate) struct Record {
    path: Utf8PathBuf,
    /// To it, in the folder of all records of the user.
    link: Option<Utf8PathBuf>,
    copies: Vec<Utf8PathBuf>,
    lock: Option<File>,
}

impl Record {
    /// Replaces it, and copies what is too large for it.
    pub(crate) fn replace(&mut self, originals: &mut Originals) -> Result<(), Refusal> {
        originals.copy_large(|number, mut content| {
            let copy = self.path.with_extension(format!("{number}.copy"));
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&copy)?;
            self.copies.push(copy.clone());
            io::copy(&mut content, &mut file)?;
            Ok(copy)
        })?;
        self.lock = Some(write(&self.path, originals).at_path(Step::Plan, &self.path)?);
        Ok(())
    }

    /// Leaves the record for those that come later: they restore what is still to be restored.
    pub(crate) fn keep(mut self) {
        self.lock = None;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = fs::remove_file(&self.path);
            self.copies.iter().chain(&self.link).for_each(|path| drop(fs::remove_file(path)));
        }
    }
}

/// The same once process 1 of a sandbox is gone: when the outer process is killed, the others live a moment longer.
pub fn restore_after(init: Option<&OwnedFd>, folder: &Utf8Path) -> Restored {
    if let Some(init) = init {
        while matches!(poll(&mut [PollFd::new(init, PollFlags::IN)], None), Err(Errno::INTR)) {}
    }
    restore_left(folder)
}

/// Restores what the records in a folder say whose sandboxes were killed. A record stays until all of it is restored.
pub fn restore_left(folder: &Utf8Path) -> Restored {
    let mut restored = Restored::default();
    let unread = |path: &Utf8Path, error| format!("{path} cannot be read: {error}");
    let found = records(folder).unwrap_or_else(|error| {
        restored.failed.push(unread(folder, error));
        Vec::new()
    });
    for path in found {
        match restore_record(&path) {
            Ok(done) => {
                restored.lines.extend(done.lines);
                restored.failed.extend(done.failed);
            }
            Err(error) => restored.failed.push(unread(&path, error)),
        }
    }
    restored
}

fn records(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let entries = match folder.read_dir_utf8() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths: Vec<_> = entries.map(|entry| Ok(entry?.into_path())).collect::<io::Result<_>>()?;
    Ok(paths.into_iter().filter(|path| path.extension() == Some(RECORD)).collect())
}

/// Nothing if its program still runs, or if another process has restored it meanwhile.
fn restore_record(path: &Utf8Path) -> io::Result<Restored> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::default()),
        file => file?,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(Restored::default()),
        locked => locked?,
    }
    let (opened, now) = (file.metadata()?, path.metadata());
    if now.is_ok_and(|now| (now.dev(), now.ino()) != (opened.dev(), opened.ino())) {
        // It was replaced meanwhile, so its sandbox runs.
        return Ok(Restored::default());
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let originals = serde_json::from_slice::<Originals>(&text)?;
    let restored = originals.restore();
    if restored.failed.is_empty() {
        let _ = fs::remove_file(path);
        originals.copies().for_each(|path| drop(fs::remove_file(path)));
    }
    Ok(restored)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use refrain_core::sandbox::{Mechanism, Policy};

    use super::*;
    use crate::protected::placeholders::Placeholders;

    struct TestFolder {
        _dir: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    impl TestFolder {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
            Self { _dir: dir, root }
        }

        /// The records of a loop.
        fn records(&self, name: &str) -> RecordFolders {
            RecordFolders { of_loop: self.root.join(name), of_user: self.root.join("all") }
        }

        fn path(&self, name: &str) -> Utf8PathBuf {
            self.root.join(name)
        }

        fn write(&self, name: &str, text: &str) {
            File::create(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.path(name)).ok()
        }

        fn names(&self) -> Vec<String> {
            let entries = self.root.read_dir_utf8().unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_owned()).collect();
            names.retain(|name| !["one", "two", "all"].contains(&name.as_str()));
            names.sort();
            names
        }
    }

    /// A sandbox from its start to its end.
    struct Running {
        originals: Originals,
        placeholders: Placeholders,
        record: Record,
    }

    impl Running {
        fn start(policy: &Policy, folders: &RecordFolders) -> Self {
            let (record, originals, placeholders) = crate::outer::protect(policy, Some(folders)).unwrap();
            Self { originals, placeholders, record: record.unwrap() }
        }

        fn end(self) -> Vec<String> {
            drop(self.placeholders);
            let restored = self.originals.restore();
            assert_eq!(restored.failed, [""; 0]);
            restored.lines
        }

        /// As the kernel does with a killed process: the locks are gone, and what is there stays.
        fn kill(self) {
            self.record.keep();
            self.placeholders.kill();
        }
    }

    fn policy(mechanism: Mechanism, read_only: &[Utf8PathBuf]) -> Policy {
        Policy { mechanism, read_only: read_only.to_vec(), ..Policy::default() }
    }

    #[test]
    fn a_record_restores_what_killed_processes_left() {
        let place = TestFolder::new();
        let folders = place.records("one");
        place.write("kept", "mine");
        let policy = Policy {
            no_links: vec![(place.root.clone(), false)],
            ..policy(Mechanism::Files, &[place.path("kept"), place.path("planted")])
        };
        let sandbox = Running::start(&policy, &folders);
        place.write("kept", "of the agent");
        place.write("planted", "of the agent");
        symlink("/usr", place.path("link")).unwrap();
        assert_eq!(restore_left(&folders.of_loop).lines, [""; 0], "it runs");
        sandbox.kill();
        assert_eq!(restore_left(&folders.of_loop).lines.len(), 3);
        assert_eq!(place.text("kept").unwrap(), "mine");
        assert_eq!(place.names(), ["kept", "kept.refrain-refused-1", "planted.refrain-refused-1"]);
        place.write("planted", "of the user");
        assert_eq!(restore_left(&folders.of_loop).lines, [""; 0], "once");
        assert_eq!(fs::read_dir(&folders.of_loop).unwrap().count(), 0);
    }

    /// The agent of one loop plants it while the sandbox of another one starts.
    #[test]
    fn what_another_running_agent_planted_is_not_the_users() {
        let place = TestFolder::new();
        place.write("settings.json", "mine");
        place.write("status.sh", "mine");
        let of = |mechanism| Policy {
            no_links: vec![(place.root.clone(), false)],
            programs_in: vec![place.root.clone()],
            ..policy(mechanism, &[place.path("settings.json"), place.path(".config.json")])
        };
        for mechanism in [Mechanism::Namespaces, Mechanism::Files] {
            let one = Running::start(&of(Mechanism::Files), &place.records("one"));
            let plant = || {
                ["settings.json", "status.sh", ".config.json"]
                    .iter()
                    .for_each(|name| place.write(name, "evil"));
                symlink("/usr", place.path("link")).unwrap();
            };
            plant();
            let two = Running::start(&of(mechanism), &place.records("two"));
            assert_eq!(one.end().len(), 4);
            plant();
            assert_eq!(two.end().len(), 4, "{mechanism:?}");
            assert_eq!(place.text("settings.json").unwrap(), "mine");
            assert_eq!(place.text("status.sh").unwrap(), "mine");
            assert!(place.text(".config.json").is_none() && !place.path("link").is_symlink());
        }
        let three = Running::start(&of(Mechanism::Namespaces), &place.records("one"));
        place.write("settings.json", "of the user");
        assert_eq!(three.end(), [""; 0], "no other one runs, and its program could not change it");
        assert_eq!(place.text("settings.json").unwrap(), "of the user");
        assert_eq!(fs::read_dir(place.path("all")).unwrap().count(), 1, "the lock");
    }

    /// What no mount protects: links, where they lead, and files that no record holds.
    #[test]
    fn without_namespaces_links_and_large_files_are_put_back() {
        let place = TestFolder::new();
        let large = "x".repeat(3 << 20);
        let text = |name: &str| fs::read_link(place.path(name)).unwrap().to_str().unwrap().to_owned();
        let mine = || {
            let expected = place.text("real.json").as_deref() == Some("mine")
                && text("settings.json") == "real.json"
                && text("linked.sh") == "elsewhere/tool"
                && text("other") == "mine"
                && place.text("large.sh").is_some_and(|now| now == large);
            assert!(expected, "{:?}", place.names());
        };
        place.write("real.json", "mine");
        place.write("large.sh", &large);
        fs::create_dir(place.path("elsewhere")).unwrap();
        place.write("elsewhere/tool", "tool");
        fs::set_permissions(place.path("elsewhere/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let link = |target: &str, name: &str| symlink(target, place.path(name)).unwrap();
        link("real.json", "settings.json");
        link("elsewhere/tool", "linked.sh");
        link("mine", "other");
        let policy = Policy {
            write: vec![place.root.clone()],
            programs_in: vec![place.root.clone()],
            no_links: vec![(place.root.clone(), false)],
            ..policy(Mechanism::Files, &[place.path("settings.json")])
        };
        let attack = || {
            place.write("real.json", "evil");
            place.write("large.sh", &"y".repeat(3 << 20));
            for name in ["settings.json", "linked.sh", "other"] {
                fs::remove_file(place.path(name)).unwrap();
            }
            place.write("settings.json", "evil");
            link("real.json", "linked.sh");
            link("/usr", "other");
        };
        let start = |name| Running::start(&policy, &place.records(name));
        assert_eq!(start("one").end(), [""; 0]);
        mine();
        let one = start("one");
        attack();
        let two = start("two");
        assert_ne!(one.end(), [""; 0]);
        mine();
        attack();
        two.kill();
        assert_ne!(restore_left(&place.path("two")).lines, [""; 0]);
        mine();
        for folder in ["one", "two"] {
            assert_eq!(fs::read_dir(place.path(folder)).unwrap().count(), 0, "no copy is left");
        }
        File::create(place.path("huge.sh")).unwrap().set_len(300 << 20).unwrap();
        let refusal = crate::outer::protect(&policy, Some(&place.records("one"))).err().unwrap();
        let said = refusal.to_string();
        assert!(said.contains("/huge.sh: ") && said.contains("use --sandbox"), "{said}");
    }

    /// The program can hand what it opened to that of another sandbox, which writes when this one has ended.
    #[test]
    fn a_protected_file_that_is_open_for_writing_is_replaced() {
        let place = TestFolder::new();
        place.write("settings.json", "mine");
        place.write("other.json", "mine");
        let protected = [place.path("settings.json"), place.path("other.json")];
        let policy = Policy { write: vec![place.root.clone()], ..policy(Mechanism::Files, &protected) };
        let inode = |name: &str| place.path(name).metadata().unwrap().ino();
        let before = inode("other.json");
        let one = Running::start(&policy, &place.records("one"));
        let mut opened = File::options().append(true).open(place.path("settings.json")).unwrap();
        assert_eq!(one.end().len(), 1);
        opened.write_all(b"evil").unwrap();
        assert_eq!(place.text("settings.json").unwrap(), "mine");
        assert_eq!(inode("other.json"), before, "nothing has it open, and it is the same file");
    }

    /// What is written to the other name would be there too, in the next loop.
    #[test]
    fn a_second_name_of_a_protected_file_is_taken_away() {
        let place = TestFolder::new();
        place.write("settings.json", "mine");
        place.write("linked.json", "mine");
        fs::hard_link(place.path("linked.json"), place.path("of-the-user.json")).unwrap();
        let policy = Policy {
            write: vec![place.root.clone()],
            ..policy(Mechanism::Files, &[place.path("settings.json"), place.path("linked.json")])
        };
        let one = Running::start(&policy, &place.records("one"));
        fs::hard_link(place.path("settings.json"), place.path("data.json")).unwrap();
        assert_eq!(one.end().len(), 1);
        place.write("data.json", "evil");
        assert_eq!(place.text("settings.json").unwrap(), "mine");
        place.write("of-the-user.json", "new");
        assert_eq!(place.text("linked.json").unwrap(), "new", "the user's own name stays");
    }

    #[test]
    fn a_killed_sandbox_counts_until_it_is_restored() {
        let place = TestFolder::new();
        let policy = policy(Mechanism::Namespaces, &[place.path("planted")]);
        let one = Running::start(&policy, &place.records("one"));
        place.write("planted", "evil");
        one.kill();
        let two = Running::start(&policy, &place.records("two"));
        assert_eq!(restore_left(&place.path("one")).lines.len(), 1);
        place.write("planted", "evil");
        assert_eq!(two.end().len(), 1);
        place.write("planted", "of the user");
        assert_eq!(Running::start(&policy, &place.records("two")).end(), [""; 0]);
    }

    /// With the content of a placeholder, too.
    #[test]
    fn no_placeholder_removes_what_is_the_users() {
        let place = TestFolder::new();
        let all = [("settings.json", Some("{}\n")), (".env", Some("")), ("commands", None)];
        let placeholders = all.map(|(name, text)| (place.path(name), text.map(str::to_owned)));
        let paths = placeholders.clone().map(|(path, _)| path);
        let policy = Policy { placeholders: placeholders.into(), ..policy(Mechanism::Namespaces, &paths) };
        let without = Policy { placeholders: Vec::new(), ..policy.clone() };
        let without = Policy { mechanism: Mechanism::Files, ..without };
        let start = |policy: &Policy, name: &str| Running::start(policy, &place.records(name));
        let names = [".env", "commands", "settings.json"];

        let (one, two) = (start(&policy, "one"), start(&policy, "two"));
        assert_eq!(one.end(), [""; 0]);
        assert_eq!(place.names(), names, "the other sandbox needs them");
        let three = start(&without, "one");
        assert_eq!(two.end(), [""; 0]);
        place.write("settings.json", "evil");
        assert_eq!(three.end().len(), 1, "no placeholder is taken for the user's");
        assert_eq!(place.names(), ["settings.json.refrain-refused-1"]);
        fs::remove_file(place.path("settings.json.refrain-refused-1")).unwrap();
        start(&policy, "one").kill();
        let two = start(&policy, "two");
        assert_eq!(restore_left(&place.path("one")).lines, [""; 0]);
        assert_eq!(place.names(), names);
        two.end();
        assert_eq!(place.names(), [""; 0]);

        place.write("settings.json", "{}\n");
        place.write(".env", "");
        fs::create_dir(place.path("commands")).unwrap();
        let (one, two) = (start(&policy, "one"), start(&policy, "two"));
        assert_eq!((one.end(), place.names()), (Vec::new(), names.map(str::to_owned).into()));
        two.kill();
        assert_eq!(restore_left(&place.path("two")).lines, [""; 0]);
        assert_eq!(place.names(), names);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_no_restored_one() {
        let place = TestFolder::new();
        let folders = place.records("one");
        fs::create_dir(&folders.of_loop).unwrap();
        for text in ["", "{}", "{\"missing\":"] {
            place.write("one/1.json", text);
            assert!(restore_left(&folders.of_loop).failed[0].contains("1.json cannot be read"), "{text}");
            assert!(place.path("one/1.json").exists(), "{text}");
            assert!(Start::new(&folders).is_err(), "{text}");
        }
        assert!(restore_left(&place.path("one/1.json")).failed[0].contains("cannot be read"), "no folder");
        assert!(restore_left(&place.path("none")).failed.is_empty());
    }

    #[test]
    fn a_record_stays_until_all_of_it_is_restored() {
        let place = TestFolder::new();
        let folders = place.records("one");
        // A file that no other name can be given to: its own is as long as a name can be.
        let long = place.path(&"n".repeat(255));
        fs::create_dir(&folders.of_loop).unwrap();
        for (name, path) in [("1.json", place.path("planted")), ("2.json", long.clone())] {
            let originals = Originals::read(&policy(Mechanism::Namespaces, &[path]), &[], Vec::new());
            drop(write(&folders.of_loop.join(name), &originals).unwrap());
        }
        File::create(&long).unwrap();
        for _ in 0..2 {
            let restored = restore_left(&folders.of_loop);
            assert_eq!(restored.failed.len(), 1, "{restored:?}");
            assert!(restored.report().unwrap_err().to_string().contains("cannot be put back"));
        }
        fs::remove_file(&long).unwrap();
        assert!(restore_left(&folders.of_loop).failed.is_empty());
        assert_eq!(fs::read_dir(&folders.of_loop).unwrap().count(), 0);
    }
}
