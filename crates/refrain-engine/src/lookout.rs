//! Looking out over all loops and plans of several projects at once: that something was recorded, or printed, and where. What
//! it was is read by whoever wants to know. Nothing is looked at while nothing happens.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::{AttemptId, LoopId};
use refrain_store::journal::{self, Mark};
use refrain_store::notice::Notice;
use refrain_store::{LoopDir, RunnerLock};

use crate::{EngineError, Service};

/// How long before a moment something may have been dated that was on disk only after it, in seconds.
const SLACK: i64 = 10;

/// Something new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The project, by its own name.
    pub project: String,
    /// The loop, or the plan.
    pub id: LoopId,
    /// What is new of it.
    pub what: Novelty,
}

/// What is new of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// Something was recorded.
    Recorded(Mark),
    /// Its agent printed something.
    Printed(AttemptId),
}

/// Watches loops. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct Lookout {
    notice: Notice,
    /// By the path that is watched.
    journals: BTreeMap<Utf8PathBuf, Watched>,
    outputs: BTreeMap<Utf8PathBuf, Printing>,
    /// The folders that loops and plans lie in.
    shelves: BTreeMap<Utf8PathBuf, Service>,
}

#[derive(Debug)]
struct Watched {
    project: String,
    id: LoopId,
    dir: LoopDir,
    /// How much of it is known.
    at: u64,
}

#[derive(Debug)]
struct Printing {
    journal: Utf8PathBuf,
    attempt: AttemptId,
    length: u64,
}

impl Lookout {
    /// Over these projects, from now on.
    ///
    /// # Errors
    /// [`EngineError`] where no notices can be had.
    pub fn new(services: &[Service]) -> Result<Self, EngineError> {
        let mut lookout = Self {
            notice: Notice::new()?,
            journals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            shelves: BTreeMap::new(),
        };
        lookout.cover(services);
        Ok(lookout)
    }

    /// Looks out over these projects as well.
    pub fn cover(&mut self, services: &[Service]) {
        for service in services {
            let project = &service.project;
            // Those of plans lie beside those of loops.
            let shelves = [project.loops(), project.data.join("plans")];
            for shelf in shelves {
                let is_known = self.shelves.contains_key(&shelf);
                if !is_known {
                    self.notice.watch(&shelf);
                    self.shelves.insert(shelf.clone(), service.clone());
                }
                self.find(&shelf, service, is_known);
            }
        }
    }

    /// What was recorded in these loops since then, oldest first: maybe a little more, never less.
    #[must_use]
    pub fn since(&self, then: Timestamp) -> Vec<News> {
        let then = then.as_second().saturating_sub(SLACK);
        let touched = |watched: &&Watched| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(watched.dir.journal()).is_ok_and(|meta| meta.mtime() >= then)
        };
        let mut news = Vec::new();
        for watched in self.journals.values().filter(touched) {
            let marks = journal::marks(&watched.dir, 0).map(|(marks, _)| marks).unwrap_or_default();
            news.extend(
                marks.into_iter().filter(|mark| mark.at.as_second() >= then).map(|mark| watched.news(mark)),
            );
        }
        news.sort_by_key(|it| match &it.what {
            Novelty::Recorded(mark) => Some((mark.at, mark.seq)),
            Novelty::Printed(_) => None,
        });
        news
    }

    /// Waits for a change, at most so long; what is new.
    pub fn wait(&mut self, at_most: Duration) -> Vec<News> {
        let touched = self.notice.wait_for(Some(at_most));
        let mut news = Vec::new();
        for path in &touched {
            if let Some(service) = self.shelves.get(path).cloned() {
                self.find(path, &service, true);
            }
        }
        // Those that were just found have something to say, and nobody has noticed.
        let fresh = self.journals.iter().filter(|(_, watched)| watched.at == 0).map(|(path, _)| path.clone());
        let paths: Vec<_> =
            fresh.chain(touched.iter().filter(|path| self.journals.contains_key(*path)).cloned()).collect();
        for path in paths {
            self.read(&path, &mut news);
        }
        for path in touched {
            let Some(printing) = self.outputs.get_mut(&path) else { continue };
            let length = fs::metadata(&path).map_or(0, |meta| meta.len());
            if length != printing.length
                && let Some(watched) = self.journals.get(&printing.journal)
            {
                printing.length = length;
                let (project, id) = (watched.project.clone(), watched.id.clone());
                news.push(News { project, id, what: Novelty::Printed(printing.attempt) });
            }
        }
        news
    }

    /// Loops, or plans, on a shelf that are not watched yet; what was recorded of them is news where they are `new`.
    fn find(&mut self, shelf: &Utf8Path, service: &Service, new: bool) {
        for entry in shelf.read_dir_utf8().into_iter().flatten().flatten() {
            let Ok(id) = entry.file_name().parse::<LoopId>() else { continue };
            let dir = LoopDir(entry.into_path());
            let path = dir.journal();
            if self.journals.contains_key(&path) {
                continue;
            }
            let at = if new { 0 } else { fs::metadata(&path).map_or(0, |meta| meta.len()) };
            // Where its first line is not there yet, it will be noticed when it is.
            self.notice.watch(&path);
            let project = service.project.own_name();
            // Of the many that nobody drives nothing needs to be read.
            let is_driven = !RunnerLock::is_free(&dir);
            self.journals.insert(path.clone(), Watched { project, id: id.clone(), dir, at });
            if !new
                && is_driven
                && let Ok(Some(attempt)) = service.attempt_at_work(&id)
            {
                let _ = self.hear(service, &path, attempt);
            }
        }
    }

    fn read(&mut self, path: &Utf8PathBuf, news: &mut Vec<News>) {
        let Some(watched) = self.journals.get_mut(path) else { return };
        let Ok((marks, at)) = journal::marks(&watched.dir, watched.at) else {
            // It was archived, or deleted; or it has only just begun.
            if !watched.dir.0.is_dir() {
                self.journals.remove(path);
                self.notice.forget(path);
            }
            return;
        };
        watched.at = at;
        let (shelf, id) = (watched.dir.0.parent().map(ToOwned::to_owned), watched.id.clone());
        let started =
            marks.iter().any(|mark| mark.name == "attempt.started" || mark.name == "attempt.spawned");
        let ended = marks.iter().any(|mark| mark.name == "attempt.finished" || mark.name == "loop.ended");
        news.extend(marks.into_iter().map(|mark| watched.news(mark)));
        if ended {
            let gone: Vec<_> = self.outputs.extract_if(.., |_, it| it.journal == *path).collect();
            gone.iter().for_each(|(output, _)| self.notice.forget(output));
        }
        if started
            && let Some(service) = shelf.and_then(|shelf| self.shelves.get(&shelf).cloned())
            && let Ok(Some(attempt)) = service.attempt_at_work(&id)
        {
            news.extend(self.hear(&service, path, attempt));
        }
    }

    /// Hears what an attempt prints; that it has printed already.
    fn hear(&mut self, service: &Service, journal: &Utf8PathBuf, attempt: AttemptId) -> Option<News> {
        let watched = self.journals.get(journal)?;
        let spec = service.spec(&watched.id).ok()?;
        let output = watched.dir.attempt(attempt).stdout(spec.agent.streams());
        if self.outputs.contains_key(&output) {
            return None;
        }
        self.notice.watch(&output);
        let length = fs::metadata(&output).map_or(0, |meta| meta.len());
        let (project, id) = (watched.project.clone(), watched.id.clone());
        self.outputs.insert(output, Printing { journal: journal.clone(), attempt, length });
        (length > 0).then_some(News { project, id, what: Novelty::Printed(attempt) })
    }
}

impl Watched {
    fn news(&self, mark: Mark) -> News {
        News { project: self.project.clone(), id: self.id.clone(), what: Novelty::Recorded(mark) }
    }
}
