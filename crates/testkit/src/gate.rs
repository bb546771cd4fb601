//! A gate at which an agent waits until the test lets it pass: a FIFO that the test holds open, so that neither side is
//! lost, whichever comes first.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A FIFO. In an agent's script: `read -r _ < "$GATES/<name>"`.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    held: File,
}

impl Gate {
    pub(crate) fn new(path: PathBuf) -> Self {
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO can be made");
        let held = OpenOptions::new().read(true).write(true).open(&path).expect("a FIFO can be opened");
        Self { path, held }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets one agent pass: a waiting one, or the next one.
    pub fn let_one_pass(&self) {
        (&self.held).write_all(b"\n").expect("the FIFO is held open");
    }
}
