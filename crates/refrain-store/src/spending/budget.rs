//! The ledger of the money that all loops of a user share, on disk: one file in the user's state home, and a lock. What
//! it adds up to is the core's business ([`refrain_core::budget`]).

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::budget::{Ledger, VERSION};
use refrain_files::IfThere;

use crate::disk::atomic::{encode, make_dir, open_private};
use crate::{DiskError, OnPath, write_atomic};

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{path} does not say what loops spent: {why}; correct it, or remove it to count from nothing")]
    Damaged { path: Utf8PathBuf, why: String },
}

#[derive(Clone, Debug)]
pub struct LedgerFile {
    dir: Utf8PathBuf,
}

impl LedgerFile {
    pub fn new(state_home: &Utf8Path) -> Self {
        Self { dir: state_home.join("limits") }
    }

    fn path(&self) -> Utf8PathBuf {
        self.dir.join("budget.json")
    }

    /// The ledger as it is now; if there is none yet, nothing was spent.
    pub fn read(&self) -> Result<Ledger, LedgerError> {
        let path = self.path();
        let Some(bytes) = fs::read(&path).if_there().on("read", &path)? else { return Ok(Ledger::default()) };
        let damaged = |why: String| LedgerError::Damaged { path: path.clone(), why };
        let ledger: Ledger = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        match ledger.version() {
            VERSION => Ok(ledger),
            other => Err(damaged(format!("its version is {other}, this program knows {VERSION}"))),
        }
    }

    /// Changes the ledger; no other process changes it meanwhile. After a crash or a power loss it is as it was or as
    /// it is to be; once this returns, as it is to be. What does not change it costs no write.
    /// Errors: [`LedgerError`]; the ledger is then as it was.
    pub fn change<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> Result<T, LedgerError> {
        make_dir(&self.dir)?;
        let lock = self.dir.join("budget.lock");
        let held = open_private(&lock)?;
        held.lock().on("lock", &lock)?;
        let before = self.read()?;
        let mut ledger = before.clone();
        let result = change(&mut ledger);
        if ledger != before {
            let path = self.path();
            write_atomic(&path, &encode(&path, &ledger)?)?;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use refrain_core::agent::Usd;
    use refrain_core::budget::{Caps, Reservation};
    use refrain_core::event::{Identity, Process};

    use super::*;

    fn wish(of: usize, run: u64) -> Reservation {
        Reservation {
            of: format!("/p/{of}").into(),
            run,
            project: "/p".into(),
            day: date(2026, 11, 21),
            runner: Identity {
                process: Process { pid: 1, start: 1 },
                boot: "boot".into(),
                host: "host".into(),
            },
            amount: Usd(7),
        }
    }

    #[test]
    fn many_at_once_spend_all_there_is_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let file = LedgerFile::new(Utf8Path::from_path(dir.path()).unwrap());
        let caps = Caps { day: Some(Usd(200)), ..Caps::default() };
        let spend = |of: usize| {
            let turn = |n| {
                let wish = wish(of, n);
                let of = wish.of.clone();
                let allowed = file.change(|ledger| ledger.reserve(wish, &caps)).unwrap().unwrap().amount;
                file.change(|ledger| ledger.settle(&of, n, Some(allowed))).unwrap();
                allowed.0
            };
            (0..20).map(turn).sum::<u64>()
        };
        let spent: u64 = std::thread::scope(|scope| {
            let spend = &spend;
            let all = [1, 2, 3].map(|of| scope.spawn(move || spend(of)));
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(spent, 200);
        let ledger = file.read().unwrap();
        assert!(ledger.open().is_empty());
        assert_eq!(ledger.left(&caps, "/p", date(2026, 11, 21)).unwrap().by.spent, Usd(200));
    }

    #[test]
    fn a_damaged_ledger_is_an_error_with_a_remedy_and_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = LedgerFile::new(Utf8Path::from_path(dir.path()).unwrap());
        assert_eq!(file.read().unwrap(), Ledger::default());
        for (text, why) in [
            ("", "EOF while parsing"),
            ("{}", "missing field `version`"),
            (r#"{"version":1,"days":{},"projects":{},"open":[],"more":1}"#, "unknown field `more`"),
            (r#"{"version":2,"days":{},"projects":{},"open":[]}"#, "its version is 2"),
        ] {
            make_dir(&file.dir).unwrap();
            write_atomic(&file.path(), text.as_bytes()).unwrap();
            let error = file.change(|ledger| *ledger = Ledger::default()).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("remove it to count from nothing"), "{error}");
            assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
        }
    }
}
