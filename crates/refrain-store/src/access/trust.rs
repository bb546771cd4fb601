//! What of a project the user trusts: its `refrain.toml` and the commands that its files name, each by the project and
//! the exact content (design.md section 6). One small file each in the user's state home, out of the repository's
//! reach: content that was not trusted has no file there.

use std::fs;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_files::IfThere;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disk::atomic::{encode, make_dir};
use crate::{DiskError, OnPath, write_atomic};

#[derive(Clone, Debug)]
pub struct Trust {
    dir: Utf8PathBuf,
}

/// One trusted content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedContent {
    /// The project, by the folder of its main worktree: its linked worktrees hold the same file.
    #[schemars(with = "String")]
    pub project: Utf8PathBuf,
    /// The BLAKE3 hash of the content, in hexadecimal.
    pub hash: String,
    /// The command; none if it is the `refrain.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Since when.
    pub at: Timestamp,
    /// Whether a start has named it to the user.
    #[serde(default)]
    pub announced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The text of the project's `refrain.toml`.
    File(&'a str),
    /// One shell command that a file of the project names.
    Command(&'a str),
}

impl Content<'_> {
    /// Its hash. No text of a file is a command: it has no zero byte.
    pub fn hash(self) -> String {
        let hash = match self {
            Self::File(text) => blake3::hash(text.as_bytes()),
            Self::Command(command) => blake3::hash(format!("command\0{command}").as_bytes()),
        };
        hash.to_hex().to_string()
    }
}

impl Trust {
    pub fn new(state_home: &Utf8Path) -> Self {
        Self { dir: state_home.join("trust") }
    }

    /// Whether this content of the project was trusted. What cannot be read is no trust.
    pub fn is_trusted(&self, project: &Utf8Path, content: Content<'_>) -> bool {
        let hash = content.hash();
        let found = self.read(&self.place(project, &hash));
        found.is_some_and(|found| found.project == project && found.hash == hash)
    }

    /// Trusts this content from now on. After a crash it is trusted or not, never half.
    pub fn grant(
        &self,
        project: &Utf8Path,
        content: Content<'_>,
        at: Timestamp,
    ) -> Result<TrustedContent, DiskError> {
        let command = match content {
            Content::File(_) => None,
            Content::Command(command) => Some(command.to_owned()),
        };
        let trusted = TrustedContent {
            project: project.to_owned(),
            hash: content.hash(),
            command,
            at,
            announced: false,
        };
        self.write(&self.place(project, &trusted.hash), &trusted)?;
        Ok(trusted)
    }

    /// What of the project is trusted and was not named to the user yet. From now on it counts as named.
    pub fn announce(&self, project: &Utf8Path) -> Vec<TrustedContent> {
        let new =
            |(_, trusted): &(Utf8PathBuf, TrustedContent)| trusted.project == project && !trusted.announced;
        let mut new: Vec<_> = self.all().into_iter().filter(new).collect();
        new.sort_by_key(|(_, trusted)| trusted.at);
        for (path, trusted) in &mut new {
            trusted.announced = true;
            // What cannot be noted is named again.
            let _ = self.write(path, trusted);
        }
        new.into_iter().map(|(_, trusted)| trusted).collect()
    }

    fn write(&self, path: &Utf8Path, trusted: &TrustedContent) -> Result<(), DiskError> {
        make_dir(&self.dir)?;
        write_atomic(path, &encode(path, trusted)?)
    }

    /// Trusts no content of the project any more; returns how many it did.
    pub fn revoke(&self, project: &Utf8Path) -> Result<usize, DiskError> {
        let of_project = self.all().into_iter().filter(|(_, trusted)| trusted.project == project);
        let mut count = 0;
        for (path, _) in of_project {
            fs::remove_file(&path).if_there().on("remove", &path)?;
            count += 1;
        }
        Ok(count)
    }

    /// Everything that is trusted, by project, oldest first.
    pub fn list(&self) -> Vec<TrustedContent> {
        let mut all: Vec<_> = self.all().into_iter().map(|(_, trusted)| trusted).collect();
        all.sort_by(|a, b| (&a.project, a.at).cmp(&(&b.project, b.at)));
        all
    }

    fn all(&self) -> Vec<(Utf8PathBuf, TrustedContent)> {
        let entries = self.dir.read_dir_utf8().into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().to_owned());
        paths.filter_map(|path| self.read(&path).map(|trusted| (path, trusted))).collect()
    }

    fn read(&self, path: &Utf8Path) -> Option<TrustedContent> {
        // Where there is no home, the state home is a place that all users can write to.
        let own = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.uid() == own)?;
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn place(&self, project: &Utf8Path, hash: &str) -> Utf8PathBuf {
        let name = blake3::hash(format!("{project}\0{hash}").as_bytes()).to_hex();
        self.dir.join(format!("{}.json", &name[..32]))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::Content::{Command, File};
    use super::*;

    #[test]
    fn an_exact_content_of_one_project_is_trusted_until_that_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let trust = Trust::new(home);
        let (here, there) = (Utf8Path::new("/here"), Utf8Path::new("/there"));
        assert!(!trust.is_trusted(here, File("a = 1")) && trust.list().is_empty());
        assert_eq!(trust.revoke(here).unwrap(), 0);

        trust.grant(here, File("a = 1"), Timestamp::from_second(10).unwrap()).unwrap();
        trust.grant(here, File("a = 2"), Timestamp::from_second(20).unwrap()).unwrap();
        trust.grant(there, File("a = 1"), Timestamp::from_second(5).unwrap()).unwrap();
        assert!(
            trust.is_trusted(here, File("a = 1")) && trust.is_trusted(here, File("a = 2")),
            "two branches of a project"
        );
        assert!(!trust.is_trusted(here, File("a = 1\n")) && !trust.is_trusted(there, File("a = 2")));
        assert!(!trust.is_trusted(here, Command("a = 1")), "a file is no command");
        let listed = trust.list();
        let projects: Vec<_> = listed.iter().map(|it| (it.project.as_str(), it.at.as_second())).collect();
        assert_eq!(projects, [("/here", 10), ("/here", 20), ("/there", 5)]);

        for file in fs::read_dir(home.join("trust")).unwrap().flatten() {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        trust.grant(here, Command("make"), Timestamp::from_second(30).unwrap()).unwrap();
        assert!(trust.is_trusted(here, Command("make")) && !trust.is_trusted(here, Command("make x")));
        let named =
            |trust: &Trust| trust.announce(here).iter().map(|it| it.at.as_second()).collect::<Vec<_>>();
        assert_eq!((named(&trust), named(&trust)), (vec![10, 20, 30], vec![]), "each is named once");
        assert_eq!(trust.revoke(here).unwrap(), 3);
        assert!(!trust.is_trusted(here, File("a = 1")) && trust.is_trusted(there, File("a = 1")));
    }

    #[test]
    fn a_record_that_was_moved_or_broken_is_no_trust() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(Utf8Path::from_path(dir.path()).unwrap());
        let (here, there) = (Utf8Path::new("/here"), Utf8Path::new("/there"));
        trust.grant(here, File("a"), Timestamp::UNIX_EPOCH).unwrap();
        let record = trust.place(here, &File("a").hash());
        fs::copy(&record, trust.place(there, &File("a").hash())).unwrap();
        assert!(!trust.is_trusted(there, File("a")));
        crate::write_atomic(&record, b"{").unwrap();
        assert!(!trust.is_trusted(here, File("a")) && trust.list().len() == 1);
    }
}
