//! The folders of Refrain's data: how much room there is, what the file system can do, and which users can read them.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::view::checkup::{Finding, Subject};
use refrain_store::disk::fs_probe::{self, DiskSpace, Privacy};

use super::cure::{Cure, Diagnosis};
use crate::{Service, chain};

/// With less room than this a loop will fail, and with less than that it may soon, in bytes.
const NO_ROOM: u64 = 100 << 20;
const LITTLE_ROOM: u64 = 1 << 30;
/// Files that may still be made: an attempt makes some ten, and its agent any number.
const FEW_FILES: u64 = 1000;

pub(super) fn look(service: &Service) -> Vec<Diagnosis> {
    let (host, project) = (service.host(), service.project());
    let homes = [&project.data, &host.state_home, &host.data_home];
    let grounds = on_devices(homes.map(|home| fs_probe::standing(home)));
    let mut found: Vec<Diagnosis> = Vec::new();
    for (dir, room) in grounds {
        match room {
            Ok(room) => found.extend([disk(&dir, room).into()]),
            Err(what) => found.push(Finding::warning(Subject::Disk, what, "look at that folder").into()),
        }
        found.extend(file_system(&dir).into_iter().map(Diagnosis::from));
    }
    found.extend(privacy(&homes));
    found
}

/// One folder of each file system, and how much room that has.
fn on_devices(dirs: [Utf8PathBuf; 3]) -> Vec<(Utf8PathBuf, Result<DiskSpace, String>)> {
    let mut grounds: Vec<(Utf8PathBuf, Result<DiskSpace, String>)> = Vec::new();
    for dir in dirs {
        let room = fs_probe::room(&dir).map_err(|error| chain(&error));
        let device = room.as_ref().ok().map(|room| room.device);
        let known = |(_, other): &(_, Result<DiskSpace, String>)| {
            device.is_some() && other.as_ref().ok().map(|room| room.device) == device
        };
        if !grounds.iter().any(known) {
            grounds.push((dir, room));
        }
    }
    grounds
}

fn disk(dir: &Utf8Path, room: DiskSpace) -> Finding {
    let (found, advice) =
        (format!("{} are free", size(room.bytes)), "make room: a full disk stops every loop on it");
    let finding = match (room.bytes, room.files) {
        (..NO_ROOM, _) => Finding::problem(Subject::Disk, found, advice),
        (..LITTLE_ROOM, _) => Finding::warning(Subject::Disk, found, advice),
        (_, Some(files @ ..FEW_FILES)) => {
            Finding::warning(Subject::Disk, format!("only {files} more files can be made"), advice)
        }
        _ => Finding::ok(Subject::Disk, found),
    };
    finding.about(dir.as_str())
}

pub(super) fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        ..LITTLE_ROOM => format!("{} MiB", bytes / MIB),
        _ => format!("{}.{} GiB", bytes / LITTLE_ROOM, bytes % LITTLE_ROOM * 10 / LITTLE_ROOM),
    }
}

fn file_system(dir: &Utf8Path) -> Vec<Finding> {
    let lacks = fs_probe::try_out(dir);
    let problems = lacks.iter().map(|lack| {
        let advice = match lack {
            fs_probe::MissingFeature::Writing(_) => "see who owns it and whether it is mounted to be written",
            fs_probe::MissingFeature::Locks(_) | fs_probe::MissingFeature::Fifos(_) => {
                "work in a project on a local disk, and let XDG_STATE_HOME name one"
            }
            fs_probe::MissingFeature::Notices(_) => "raise fs.inotify.max_user_instances (sysctl)",
        };
        Finding::problem(Subject::FileSystem, chain(lack), advice).about(dir.as_str())
    });
    let mut findings: Vec<_> = problems.collect();
    if let Some(network) = fs_probe::network(dir) {
        findings.push(
            Finding::warning(
                Subject::FileSystem,
                format!("{network}: its locks may not hold between machines"),
                "run the loops of a project on one machine only",
            )
            .about(dir.as_str()),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Subject::FileSystem, "locks, FIFOs and notices work").about(dir.as_str()));
    }
    findings
}

fn privacy(homes: &[&Utf8PathBuf; 3]) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for home in homes {
        match fs_probe::privacy(home) {
            Privacy::Missing | Privacy::Private => {}
            Privacy::Open(mode) => {
                let finding = Finding::warning(
                    Subject::Privacy,
                    format!("others may look into it (mode {mode:o}): prompts and output lie there"),
                    format!("refrain doctor --fix, or chmod 700 {home}"),
                );
                found.push(Diagnosis::with(finding.about(home.as_str()), Cure::MakePrivate((*home).clone())));
            }
            Privacy::Foreign(owner) => {
                let found_there = format!("it belongs to another user (number {owner})");
                let advice =
                    "give it back to its user, or name another folder with XDG_STATE_HOME and XDG_DATA_HOME";
                found.push(
                    Finding::problem(Subject::Privacy, found_there, advice).about(home.as_str()).into(),
                );
            }
        }
    }
    if found.is_empty() {
        let finding = Finding::ok(Subject::Privacy, "no other user may read Refrain's folders");
        return vec![finding.into()];
    }
    found
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Grade;

    use super::*;

    #[test]
    fn room_is_judged_in_bytes_and_in_files() {
        for (bytes, files, grade, found) in [
            (99 << 20, None, Grade::Problem, "99 MiB are free"),
            (100 << 20, None, Grade::Warning, "100 MiB are free"),
            (1 << 30, Some(1_000_000), Grade::Ok, "1.0 GiB are free"),
            ((5 << 30) + (1 << 29), None, Grade::Ok, "5.5 GiB are free"),
            (1 << 40, Some(12), Grade::Warning, "only 12 more files can be made"),
        ] {
            let finding = disk("/work".into(), DiskSpace { bytes, files, device: 1 });
            assert_eq!((finding.grade, finding.found.as_str()), (grade, found));
        }
    }
}
