//! Which project files the person trusts, by the project and the exact content (design.md section 6). One small file each
//! in the user's state home, out of the repository's reach: a content that was not trusted is not there, whoever wrote it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::make_dir;
use crate::{DiskError, OnPath, write_atomic};

/// What the person trusts.
#[derive(Clone, Debug)]
pub struct Trust {
    dir: Utf8PathBuf,
}

/// One trusted content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trusted {
    /// The project, by the folder of its main worktree: its linked worktrees hold the same file.
    #[schemars(with = "String")]
    pub project: Utf8PathBuf,
    /// The BLAKE3 hash of the file, in hexadecimal.
    pub hash: String,
    /// Since when.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

impl Trust {
    /// What is kept in this state home.
    #[must_use]
    pub fn new(state_home: &Utf8Path) -> Self {
        Self { dir: state_home.join("trust") }
    }

    /// Whether this content of the project's file was trusted. What cannot be read is no trust.
    #[must_use]
    pub fn is_trusted(&self, project: &Utf8Path, text: &str) -> bool {
        let hash = hash_of(text);
        let found = self.read(&self.place(project, &hash));
        found.is_some_and(|found| found.project == project && found.hash == hash)
    }

    /// Trusts this content from now on, whatever comes later. After a crash it is trusted or not, never half.
    ///
    /// # Errors
    /// [`DiskError`] where that cannot be kept.
    pub fn grant(&self, project: &Utf8Path, text: &str, at: Timestamp) -> Result<Trusted, DiskError> {
        let trusted = Trusted { project: project.to_owned(), hash: hash_of(text), at };
        let path = self.place(project, &trusted.hash);
        make_dir(&self.dir)?;
        let bytes = serde_json::to_vec(&trusted).map_err(std::io::Error::from).on("encode", &path)?;
        write_atomic(&path, &bytes)?;
        Ok(trusted)
    }

    /// Trusts no content of the project any more; returns how many it did.
    ///
    /// # Errors
    /// [`DiskError`] where one of them stays.
    pub fn revoke(&self, project: &Utf8Path) -> Result<usize, DiskError> {
        let of_project = self.all().into_iter().filter(|(_, trusted)| trusted.project == project);
        let mut count = 0;
        for (path, _) in of_project {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).on("remove", &path),
                _ => count += 1,
            }
        }
        Ok(count)
    }

    /// Everything that is trusted, by project, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Trusted> {
        let mut all: Vec<_> = self.all().into_iter().map(|(_, trusted)| trusted).collect();
        all.sort_by(|a, b| (&a.project, a.at).cmp(&(&b.project, b.at)));
        all
    }

    fn all(&self) -> Vec<(Utf8PathBuf, Trusted)> {
        let entries = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().to_owned());
        paths.filter_map(|path| self.read(&path).map(|trusted| (path, trusted))).collect()
    }

    fn read(&self, path: &Utf8Path) -> Option<Trusted> {
        // Where there is no home, the state home is a place that everybody can write to.
        let own = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.uid() == own)?;
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn place(&self, project: &Utf8Path, hash: &str) -> Utf8PathBuf {
        let name = blake3::hash(format!("{project}\0{hash}").as_bytes()).to_hex();
        self.dir.join(format!("{}.json", &name[..32]))
    }
}

fn hash_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_exact_content_of_one_project_is_trusted_until_that_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let trust = Trust::new(home);
        let (here, there) = (Utf8Path::new("/here"), Utf8Path::new("/there"));
        assert!(!trust.is_trusted(here, "a = 1") && trust.list().is_empty());
        assert_eq!(trust.revoke(here).unwrap(), 0);

        trust.grant(here, "a = 1", Timestamp::from_second(10).unwrap()).unwrap();
        trust.grant(here, "a = 2", Timestamp::from_second(20).unwrap()).unwrap();
        trust.grant(there, "a = 1", Timestamp::from_second(5).unwrap()).unwrap();
        assert!(
            trust.is_trusted(here, "a = 1") && trust.is_trusted(here, "a = 2"),
            "two branches of a project"
        );
        assert!(!trust.is_trusted(here, "a = 1\n") && !trust.is_trusted(there, "a = 2"));
        let listed = trust.list();
        let projects: Vec<_> = listed.iter().map(|it| (it.project.as_str(), it.at.as_second())).collect();
        assert_eq!(projects, [("/here", 10), ("/here", 20), ("/there", 5)]);

        for file in fs::read_dir(home.join("trust")).unwrap().flatten() {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(trust.revoke(here).unwrap(), 2);
        assert!(!trust.is_trusted(here, "a = 1") && trust.is_trusted(there, "a = 1"));
    }

    #[test]
    fn a_record_that_was_moved_or_broken_is_no_trust() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(Utf8Path::from_path(dir.path()).unwrap());
        let (here, there) = (Utf8Path::new("/here"), Utf8Path::new("/there"));
        trust.grant(here, "a", Timestamp::UNIX_EPOCH).unwrap();
        let record = trust.place(here, &hash_of("a"));
        fs::copy(&record, trust.place(there, &hash_of("a"))).unwrap();
        assert!(!trust.is_trusted(there, "a"));
        crate::write_atomic(&record, b"{").unwrap();
        assert!(!trust.is_trusted(here, "a") && trust.list().len() == 1);
    }
}
