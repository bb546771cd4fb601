//! Watches all loops and plans of several projects at once, and reports that something was recorded or printed, and
//! where. Subscribers read what it was. Nothing is read while nothing happens.
//!
//! The system's watches are limited: of the loops without a runner only the ones that were touched last are watched. A
//! runner that resumes another loop notifies the watcher of the folder of all loops (`store/notice`), which then looks
//! which journals have grown.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::{AttemptId, LoopId, LoopState};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{self, Mark};
use refrain_store::project::projects;
use refrain_store::{LoopDir, Project, RunnerLock};

use crate::{EngineError, Service};

/// How many are watched at most, besides those that are driven.
const WATCHED: usize = 1000;
/// How often paths without a watch are checked.
const WITHOUT: Duration = Duration::from_secs(2);
/// By how many seconds a file's time may precede its write to disk.
const SLACK: i64 = 10;

#[derive(Clone, Debug)]
pub enum News {
    Recorded(LoopRef, Mark),
    Printed(LoopRef, AttemptId),
    /// Loops went, or came from elsewhere: a list is to be made anew.
    Listed,
}

#[derive(Clone, Debug)]
pub struct LoopRef {
    pub service: Arc<Service>,
    pub id: LoopId,
    pub(crate) dir: LoopDir,
}

/// Watches loops. Blocks; belongs on a thread of its own.
pub struct JournalWatcher {
    notice: Notice,
    open: Box<dyn Fn() -> Vec<Service> + Send>,
    hears: bool,
    list: Option<Utf8PathBuf>,
    /// The folders that loops and plans come to, or go to.
    folders: BTreeMap<Utf8PathBuf, Arc<Service>>,
    journals: BTreeMap<Utf8PathBuf, Journal>,
    outputs: BTreeMap<Utf8PathBuf, Printing>,
    /// How many without a runner are watched; how many may be before some are let go of.
    bound: usize,
    most: usize,
    /// The paths without a watch, and the time of the last check.
    without: BTreeSet<Utf8PathBuf>,
    looked: Instant,
}

#[derive(Debug)]
struct Journal {
    whose: LoopRef,
    at: u64,
    is_watched: bool,
}

#[derive(Debug)]
struct Printing {
    journal: Utf8PathBuf,
    attempt: AttemptId,
    length: u64,
}

impl JournalWatcher {
    /// Watches the projects that `open` returns, from now on; also what agents print if it `hears`.
    pub fn new(open: impl Fn() -> Vec<Service> + Send + 'static, hears: bool) -> Result<Self, EngineError> {
        Self::bounded(Box::new(open), hears, WATCHED)
    }

    fn bounded(
        open: Box<dyn Fn() -> Vec<Service> + Send>,
        hears: bool,
        bound: usize,
    ) -> Result<Self, EngineError> {
        let mut lookout = Self {
            notice: Notice::new()?,
            open,
            hears,
            list: None,
            folders: BTreeMap::new(),
            journals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            bound,
            most: bound + bound / 8,
            without: BTreeSet::new(),
            looked: Instant::now(),
        };
        lookout.cover();
        Ok(lookout)
    }

    /// Waits for a change, at most `at_most`, and returns the news.
    pub fn wait(&mut self, at_most: Option<Duration>) -> Vec<News> {
        let due = (!self.without.is_empty()).then(|| WITHOUT.saturating_sub(self.looked.elapsed()));
        let mut touched = self.notice.wait_for(at_most.into_iter().chain(due).min());
        // However much happens to what is watched.
        if self.looked.elapsed() >= WITHOUT {
            touched.extend(self.try_again());
        }
        let mut news = Vec::new();
        if self.list.as_ref().is_some_and(|list| touched.contains(list)) && self.cover() {
            news.push(News::Listed);
        }
        let is_touched = |(folder, service): (&Utf8PathBuf, &Arc<Service>)| {
            touched.contains(folder).then(|| (service.project.data.clone(), Arc::clone(service)))
        };
        let services: BTreeMap<_, _> = self.folders.iter().filter_map(is_touched).collect();
        services.values().for_each(|service| self.look_again(service, &mut news));
        for path in &touched {
            self.read(path, &mut news);
            self.listen(path, &mut news);
        }
        self.release();
        news
    }

    /// Begins to look out over what is open and was not yet; whether there is any.
    fn cover(&mut self) -> bool {
        let mut found = Vec::new();
        for service in (self.open)().into_iter().map(Arc::new) {
            if self.list.is_none() {
                let list = projects::list(&service.host.data_home);
                self.watch(&list);
                self.list = Some(list);
            }
            if self.folders.contains_key(&service.project.loops()) {
                continue;
            }
            for folder in folders(&service.project) {
                self.watch(&folder);
                self.folders.insert(folder, Arc::clone(&service));
            }
            found.extend(journals(&service));
        }
        let is_new = !found.is_empty();
        // The last touched first.
        found.sort_by_key(|(_, meta)| Reverse((meta.mtime(), meta.mtime_nsec())));
        for (number, (whose, meta)) in found.into_iter().enumerate() {
            let (path, is_driven) = (whose.dir.journal(), !RunnerLock::is_free(&whose.dir));
            let journal = Journal { whose, at: meta.len(), is_watched: false };
            self.journals.insert(path.clone(), journal);
            if number < self.bound || is_driven {
                self.watch(&path);
                // The content from before the watch is no news.
                let length = fs::metadata(&path).map_or(0, |meta| meta.len());
                self.journals.entry(path.clone()).and_modify(|journal| journal.at = length);
            }
            if is_driven {
                let _ = self.hear(&path);
            }
        }
        is_new
    }

    /// Finds loops that came to a project, went from it, or have grown without a watch.
    fn look_again(&mut self, service: &Arc<Service>, news: &mut Vec<News>) {
        let (mut there, mut grown) = (BTreeSet::new(), Vec::new());
        for (whose, meta) in journals(service) {
            let path = whose.dir.journal();
            let known = self.journals.entry(path.clone());
            let journal = known.or_insert(Journal { whose, at: 0, is_watched: false });
            if !journal.is_watched && (journal.at != meta.len() || meta.len() == 0) {
                grown.push(path.clone());
            }
            there.insert(path);
        }
        let is_gone = |path: &Utf8PathBuf, journal: &mut Journal| {
            journal.whose.service.project.data == service.project.data && !there.contains(path)
        };
        let gone: Vec<_> = self.journals.extract_if(.., is_gone).map(|(path, _)| path).collect();
        gone.iter().for_each(|path| self.forget(path, news));
        for path in grown {
            self.watch(&path);
            self.read(&path, news);
        }
    }

    /// What was recorded since the last time.
    fn read(&mut self, path: &Utf8Path, news: &mut Vec<News>) {
        let Some(journal) = self.journals.get_mut(path) else { return };
        let whose = journal.whose.clone();
        let Ok((marks, at)) = journal::marks(&whose.dir, journal.at) else {
            // It was archived, or deleted.
            if path.try_exists().is_ok_and(|is_there| !is_there) {
                self.journals.remove(path);
                self.forget(path, news);
            }
            return;
        };
        journal.at = at;
        let has = |names: [&str; 2]| marks.iter().any(|mark| names.contains(&mark.name.as_str()));
        let (started, ended) =
            (has(["attempt.started", "attempt.spawned"]), has(["attempt.finished", "loop.ended"]));
        news.extend(marks.into_iter().map(|mark| News::Recorded(whose.clone(), mark)));
        if ended {
            self.hear_no_more(path);
        }
        if started {
            news.extend(self.hear(path));
        }
    }

    /// Starts to watch the output of an attempt; returns the news that it has printed already.
    fn hear(&mut self, path: &Utf8Path) -> Option<News> {
        let whose = self.journals.get(path).filter(|_| self.hears)?.whose.clone();
        let state: LoopState = journal::read(&whose.dir).ok()?.state;
        let attempt = state.in_flight()?.id;
        let output = whose.dir.attempt(attempt).stdout(state.spec.agent.streams());
        if self.outputs.contains_key(&output) {
            return None;
        }
        self.watch(&output);
        let length = fs::metadata(&output).map_or(0, |meta| meta.len());
        self.outputs.insert(output, Printing { journal: path.to_owned(), attempt, length });
        (length > 0).then_some(News::Printed(whose, attempt))
    }

    fn listen(&mut self, output: &Utf8Path, news: &mut Vec<News>) {
        let Some(printing) = self.outputs.get_mut(output) else { return };
        let length = fs::metadata(output).map_or(0, |meta| meta.len());
        if length != printing.length
            && let Some(journal) = self.journals.get(&printing.journal)
        {
            printing.length = length;
            news.push(News::Printed(journal.whose.clone(), printing.attempt));
        }
    }

    fn hear_no_more(&mut self, journal: &Utf8Path) {
        let over: Vec<_> = self.outputs.extract_if(.., |_, it| it.journal == journal).collect();
        over.iter().for_each(|(output, _)| self.unwatch(output));
    }

    /// Watches a path, or checks it from time to time if the system has no watch left.
    fn watch(&mut self, path: &Utf8Path) {
        let is_watched = self.notice.try_watch(path);
        if is_watched {
            self.without.remove(path);
        } else {
            self.notice.forget(path);
            self.without.insert(path.to_owned());
        }
        if let Some(journal) = self.journals.get_mut(path) {
            journal.is_watched = is_watched;
        }
    }

    fn unwatch(&mut self, path: &Utf8Path) {
        self.notice.forget(path);
        self.without.remove(path);
    }

    /// Watches what there were no watches for, if there are now; which paths these were, as any may have changed.
    fn try_again(&mut self) -> BTreeSet<Utf8PathBuf> {
        self.looked = Instant::now();
        let without = std::mem::take(&mut self.without);
        without.iter().for_each(|path| self.watch(path));
        without
    }

    fn forget(&mut self, path: &Utf8Path, news: &mut Vec<News>) {
        self.unwatch(path);
        self.hear_no_more(path);
        if !matches!(news.last(), Some(News::Listed)) {
            news.push(News::Listed);
        }
    }

    /// Gives watches of loops without a runner back if there are too many: those that were touched last keep theirs.
    fn release(&mut self) {
        let mut watched: Vec<_> = self.journals.iter().filter(|(_, journal)| journal.is_watched).collect();
        if watched.len() <= self.most {
            return;
        }
        watched.sort_by_cached_key(|(path, _)| fs::metadata(path).and_then(|meta| meta.modified()).ok());
        let too_many = watched.len() - self.bound;
        let is_idle = |(_, journal): &&(&Utf8PathBuf, &Journal)| RunnerLock::is_free(&journal.whose.dir);
        let idle = watched.iter().take(too_many).filter(is_idle).map(|(path, _)| (*path).clone());
        let idle: Vec<_> = idle.collect();
        self.most = watched.len() - idle.len() + self.bound / 8;
        for path in idle {
            self.notice.forget(&path);
            self.journals.entry(path).and_modify(|journal| journal.is_watched = false);
        }
    }
}

impl fmt::Debug for JournalWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookout").field("folders", &self.folders.keys()).finish_non_exhaustive()
    }
}

/// What was recorded in these projects since then, oldest first: maybe a little more, never less; none if it is more
/// than `most`. Nothing is watched for it.
pub fn recorded_since(services: Vec<Service>, then: Timestamp, most: usize) -> Option<Vec<News>> {
    let then = then.as_second().saturating_sub(SLACK);
    let mut found = Vec::new();
    for service in services.into_iter().map(Arc::new) {
        for (whose, _) in journals(&service).filter(|(_, meta)| meta.mtime() >= then) {
            let marks = journal::marks(&whose.dir, 0).map(|(marks, _)| marks).unwrap_or_default();
            let marks = marks.into_iter().filter(|mark| mark.at.as_second() >= then);
            found.extend(marks.map(|mark| (whose.clone(), mark)));
            if found.len() > most {
                return None;
            }
        }
    }
    found.sort_by_key(|(_, mark)| (mark.at, mark.seq));
    Some(found.into_iter().map(|(whose, mark)| News::Recorded(whose, mark)).collect())
}

/// The folders of a project that loops and plans come to, or go to.
fn folders(project: &Project) -> [Utf8PathBuf; 3] {
    let [loops, plans] = shelves(project);
    [loops, plans, project.archive()]
}

/// Those in which they are; plans lie beside loops.
fn shelves(project: &Project) -> [Utf8PathBuf; 2] {
    [project.loops(), project.data.join("plans")]
}

/// The loops and plans of a project that have begun, and what is to be seen of their journals from outside.
fn journals(service: &Arc<Service>) -> impl Iterator<Item = (LoopRef, Metadata)> {
    let entries = shelves(&service.project).into_iter().flat_map(|shelf| shelf.read_dir_utf8()).flatten();
    entries.flatten().filter_map(|entry| {
        let id = entry.file_name().parse().ok()?;
        let dir = LoopDir(entry.into_path());
        // One that has not begun is reported when it does.
        let meta = fs::metadata(dir.journal()).ok()?;
        Some((LoopRef { service: Arc::clone(service), id, dir }, meta))
    })
}
