//! The details that protocol surfaces show of a loop beside its status: its goal, the agent's notes in `state.md`, and
//! changes of either. Secrets are taken out here, as in a report: what is shown leaves the machine.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::prompt::state_file::{self, WorkStatus};
use refrain_core::text::printable;
use refrain_core::view::Status;
use refrain_store::disk::notice::Notice;
use refrain_store::journal;
use refrain_store::project::projects;

use crate::driver::liveness::look;
use crate::service::LoopLocation;
use crate::service::notes::{is_completed, noted};
use crate::service::redact::Redactor;
use crate::{ByKind, EngineError, Service};

#[derive(Clone, Debug)]
pub struct DetailView {
    pub status: Status,
    pub goal: String,
    pub state_file: Utf8PathBuf,
    /// The content, less secrets and control characters; none if it is gone or is no file of its worktree's own.
    pub notes: Option<String>,
    /// The agent's own status in its `state.md`.
    pub says: Option<WorkStatus>,
    pub seq: u64,
    /// How long the journal was at least when that was read, in bytes.
    pub bytes: u64,
}

/// What takes secrets out of texts of a loop.
pub struct Screen(Redactor);

impl Screen {
    /// The text without them: a line that looks like one is omitted as a whole.
    pub fn clean(&self, text: &str) -> String {
        self.0.clean(text)
    }
}

impl Service {
    pub fn glance(&self, id: &LoopId) -> Result<DetailView, EngineError> {
        let LoopLocation { dir, .. } = self.locate(id)?;
        let bytes = fs::metadata(dir.journal()).map_or(0, |meta| meta.len());
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        let (spec, redactor) = (&state.spec, Redactor::new(&state.spec, []));
        let clean = |text: &str| redactor.clean(&printable(text));
        let (noted, status) = (noted(spec, &dir), look(&dir, &state));
        Ok(DetailView {
            status: Status {
                reason: clean(&status.reason),
                needs: status.needs.as_deref().map(clean),
                ..status
            },
            goal: clean(&spec.prompt),
            state_file: spec.state_file(),
            says: match is_completed(&state) {
                // The file follows once the runner goes.
                true => Some(WorkStatus::Done),
                false => noted.as_deref().and_then(|text| state_file::status(text, id)),
            },
            notes: noted.as_deref().map(clean),
            seq: state.seq,
            bytes,
        })
    }

    /// Takes secrets out of the texts about a loop, or a plan.
    pub fn screen(&self, id: &LoopId) -> Result<Screen, EngineError> {
        Ok(Screen(Redactor::new(&self.spec_of(id)?, [])))
    }

    /// The folder of the project that a loop, or a plan, works in: of one in a worktree of its own, the folder that it
    /// replaces.
    pub fn folder_of(&self, id: &LoopId) -> Result<Utf8PathBuf, EngineError> {
        let spec = self.spec_of(id)?;
        if !spec.worktree.starts_with(&self.host.state_home) {
            return Ok(spec.working_dir);
        }
        let inside = spec.working_dir.strip_prefix(&spec.worktree).unwrap_or(Utf8Path::new(""));
        // Joined to nothing, a path would end in a slash.
        Ok(if inside.as_str().is_empty() { spec.project } else { spec.project.join(inside) })
    }

    /// Says when a loop's, or a plan's, journal or its `state.md` changes.
    pub fn changes(&self, id: &LoopId) -> Result<Changes, EngineError> {
        let (dir, state_file) = match self.find(id)? {
            ByKind::Plan(dir) => (dir.clone(), dir.state_file()),
            ByKind::Loop(LoopLocation { dir, .. }) => {
                let state_file = journal::read(&dir)?.state.spec.state_file();
                (dir, state_file)
            }
        };
        let changes = Changes { notice: Notice::new()?, files: [dir.journal(), state_file], seen: [None; 2] };
        changes.files.iter().for_each(|file| changes.notice.watch(file));
        Ok(Changes { seen: changes.stamps(), ..changes })
    }

    /// The folders of all projects that Refrain has worked in and that are still there.
    pub fn known_projects(&self) -> Vec<Utf8PathBuf> {
        projects::listed(&self.host.data_home).into_iter().filter(|root| root.is_dir()).collect()
    }
}

/// Whether a file is another than when it was looked at: its inode, time and length.
type Stamp = Option<(u64, i64, i64, u64)>;

/// Watches a loop. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct Changes {
    notice: Notice,
    /// The journal, and `state.md`.
    files: [Utf8PathBuf; 2],
    seen: [Stamp; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailChange {
    pub journal: bool,
    /// Its `state.md`.
    pub state: bool,
}

impl Changes {
    /// Waits for a notice, at most `at_most`, and returns what has changed since the last call. Many changes are one
    /// answer.
    pub fn wait(&mut self, at_most: Duration) -> DetailChange {
        self.notice.wait(Some(at_most));
        let now = self.stamps();
        let [journal, state] = [0, 1].map(|file| now[file] != self.seen[file]);
        self.seen = now;
        DetailChange { journal, state }
    }

    fn stamps(&self) -> [Stamp; 2] {
        let stamp = |file: &Utf8PathBuf| {
            let meta = fs::metadata(file).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
        };
        self.files.each_ref().map(stamp)
    }
}
