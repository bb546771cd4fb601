//! Following a loop: its events and what its agent prints, in order, read from disk. Used by the terminal that started
//! the loop and by `watch` alike; a slow reader holds nothing up and nothing is kept in memory for it.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use refrain_agents::output_parser::Stream;
use refrain_core::agent::AgentEvent;
use refrain_core::event::{Event, Identity};
use refrain_core::gate::Check;
use refrain_core::spec::AgentSpec;
use refrain_core::view::Status;
use refrain_core::{AttemptId, LoopId, LoopState, Record, Spec};
use refrain_files::OFlags;
use refrain_proc::{identity, output};
use refrain_store::journal::{Journal, JournalError};
use refrain_store::{DiskError, LoopDir};

use super::journal_reader::JournalReader;
use crate::child::judge_spec;
use crate::driver::liveness::look;
use crate::driver::progress::LiveProgress;
use crate::driver::recovery;
use crate::{EngineError, Service};

/// How much of an agent's earlier output a new follower shows, in bytes.
const CATCH_UP: u64 = 8 << 10;
/// How much output that is no stream of events is shown while it is printed, in bytes of each log: a terminal is no
/// place for more.
const MOST_SHOWN: u64 = 1 << 20;

#[derive(Debug)]
pub enum FollowEvent {
    Event(Box<Record>),
    /// An event of before: needed for the state of the loop, not to be shown again.
    Past(Box<Record>),
    /// Something that the agent of this attempt said, in its stream of events.
    Said(AgentEvent),
    Output {
        stderr: bool,
        /// The bytes, cut anywhere.
        bytes: Vec<u8>,
    },
    /// A new follower has shown all that was there before; what comes is news.
    Joined,
    /// Nothing, for as long as the follower's patience lasts.
    Quiet,
}

/// Reads a loop as it happens. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct Follower {
    dir: LoopDir,
    reader: JournalReader<Event>,
    logs: Vec<Log>,
    runner: Option<Identity>,
    /// The attempt whose gates are run; of iteration 0 those that come before the first.
    last_attempt: AttemptId,
    /// The loop's specification, once it was read.
    spec: Option<Box<Spec>>,
    raw: bool,
    /// Standard error is shown beside a stream, too.
    all: bool,
    /// The stream of the attempt that is followed, and what it said and was not seen yet.
    stream: Option<Stream>,
    said: VecDeque<AgentEvent>,
    /// Events up to this one are of before.
    past: u64,
    /// What the first look finds is of before, too.
    joins: bool,
    /// The next report is that it has caught up.
    joined: bool,
    /// After how long nothing is worth a look of its own.
    patience: Option<Duration>,
    /// The journal was read once.
    looked: bool,
    /// Everything that was there when this began has been seen.
    caught_up: bool,
    over: bool,
}

/// Whether the record says that an attempt, a gate or a critic is over.
fn ends_attempt(record: &Record) -> bool {
    matches!(
        record.event,
        Event::AttemptFinished(_)
            | Event::GateFinished(_)
            | Event::CritiqueFinished(_)
            | Event::RunnerStarted { .. }
    )
}

#[derive(Debug)]
struct Log {
    path: Utf8PathBuf,
    stderr: bool,
    at: u64,
    shown: u64,
}

impl Follower {
    /// The same, with streams of events as they are.
    #[must_use]
    pub fn raw(self) -> Self {
        Self { raw: true, ..self }
    }

    /// The same, but earlier events are only [`FollowEvent::Past`]: needed, but not shown as if they happened now.
    #[must_use]
    pub fn joining(self) -> Self {
        Self { joins: true, ..self }
    }

    /// The same, with [`FollowEvent::Quiet`] whenever nothing new came for this long.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Follows a loop that this process drives, from event `past` on. Sees only what is committed.
    pub(crate) fn of_own(journal: &Journal, live_progress: Arc<LiveProgress>, past: u64) -> Self {
        Self::new(journal.dir().clone(), JournalReader::of_own(journal, live_progress), past)
    }

    /// Follows a loop that another process drives, or that has no runner, from its first event on; with all that its
    /// agents printed, or else only what they print from now on.
    pub(crate) fn of(dir: LoopDir, all_output: bool) -> Result<Self, DiskError> {
        let reader = JournalReader::of(dir.clone())?;
        Ok(Self { caught_up: all_output, all: all_output, ..Self::new(dir, reader, 0) })
    }

    fn new(dir: LoopDir, reader: JournalReader<Event>, past: u64) -> Self {
        // In the runner's own process nothing was there before but what is past.
        let caught_up = reader.files().is_none();
        Self {
            dir,
            reader,
            logs: Vec::new(),
            runner: None,
            last_attempt: AttemptId::BEFORE,
            spec: None,
            raw: false,
            all: false,
            stream: None,
            said: VecDeque::new(),
            past,
            joins: false,
            joined: false,
            patience: None,
            looked: false,
            caught_up,
            over: false,
        }
    }

    /// The next thing to be seen; none once the loop has stopped, or its runner is gone.
    pub fn look(&mut self) -> Result<Option<FollowEvent>, JournalError> {
        let until = self.patience.map(|patience| Instant::now() + patience);
        loop {
            if let Some(record) = self.reader.queue.front() {
                // The agent's output comes before the event of its end.
                if ends_attempt(record)
                    && let Some(output) = self.read_logs().or_else(|| self.end_stream())
                {
                    return Ok(Some(output));
                }
                if let Some(record) = self.reader.queue.pop_front() {
                    self.note(&record);
                    let past = record.seq <= self.past;
                    let record = Box::new(record);
                    return Ok(Some(if past {
                        FollowEvent::Past(record)
                    } else {
                        FollowEvent::Event(record)
                    }));
                }
            }
            if std::mem::take(&mut self.joined) {
                return Ok(Some(FollowEvent::Joined));
            }
            if self.over {
                return Ok(None);
            }
            let snapshot = self.reader.read()?;
            // The first look finds earlier events; all later ones are news.
            let first = !std::mem::replace(&mut self.looked, true);
            self.caught_up |= !first;
            if first && self.joins {
                self.past = self.reader.queue.back().map_or(self.past, |last| last.seq);
                self.joined = true;
            }
            if !self.reader.queue.is_empty() {
                continue;
            }
            if let Some(output) = self.read_logs() {
                return Ok(Some(output));
            }
            if snapshot.over {
                return Ok(None);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(Some(FollowEvent::Quiet));
            }
            self.reader.wait(snapshot, left);
            // A dead runner writes no more; but its last lines are still to be read.
            let is_dead = || self.runner.as_ref().is_none_or(|it| identity::is_alive(it) == Some(false));
            if self.reader.files().is_some() && is_dead() {
                self.reader.read()?;
                self.over = self.reader.queue.is_empty();
            }
        }
    }

    /// The status of the loop with this state, and which of its processes live.
    pub fn status(&self, state: &LoopState) -> Status {
        look(&self.dir, state)
    }

    fn note(&mut self, record: &Record) {
        if let Event::LoopStarted(started) = &record.event {
            self.spec = Some(Box::new(started.spec.clone()));
        }
        if let Event::RunnerStarted { runner, .. } = &record.event {
            self.runner = Some(runner.clone());
        }
        if ends_attempt(record) {
            self.logs.clear();
            self.stream = None;
        }
        // A loop that was resumed since has not stopped.
        if let Event::LoopEnded(_) = record.event {
            self.over = self.reader.queue.is_empty();
        }
        // The output of attempts that were over before the follower came need not scroll by.
        let is_seen = (record.seq > self.past || self.joins)
            && (self.caught_up || !self.reader.queue.iter().any(ends_attempt));
        if let Event::AttemptStarted(id) = record.event {
            self.last_attempt = id;
            if is_seen {
                self.open_logs(id);
            }
        }
        if let Event::GateStarted { gate, run } = &record.event
            && is_seen
        {
            let path = self.dir.attempt(self.last_attempt).gate(gate, *run);
            let reviewer = self.spec.as_ref().and_then(|spec| {
                let gate = spec.gates.iter().find(|known| known.name == *gate)?;
                match &gate.check {
                    Check::Review(review) => Some(review.agent.clone()),
                    Check::Command(_) => None,
                }
            });
            self.open_judge(path, reviewer);
        }
        if let Event::CritiqueStarted { .. } = &record.event
            && is_seen
        {
            let critic = self.spec.as_ref().and_then(|spec| Some(spec.critique.as_ref()?.critic.clone()));
            self.open_judge(self.dir.attempt(self.last_attempt).critique(), critic);
        }
    }

    /// Opens the log of a gate or a critic; if that is an agent, its stream is read.
    fn open_judge(&mut self, path: Utf8PathBuf, agent: Option<AgentSpec>) {
        let agent = agent.filter(|agent| agent.streams() && !self.raw);
        let spec = self.spec.as_deref().zip(agent).map(|(spec, agent)| Spec { agent, ..spec.clone() });
        let dialect = spec.and_then(|spec| recovery::dialect(&spec, &judge_spec::told(&path)));
        self.logs = vec![Log { path, stderr: false, at: 0, shown: 0 }];
        self.watch_logs();
        let joins = self.logs.first().is_some_and(|log| log.at > 0);
        self.stream =
            dialect.map(|dialect| if joins { Stream::joined(dialect) } else { Stream::new(dialect) });
    }

    /// Watches the logs, and skips what was in them before.
    fn watch_logs(&mut self) {
        let Some(notice) = self.reader.files() else { return };
        for log in &mut self.logs {
            log.path.parent().into_iter().for_each(|dir| notice.watch(dir));
            notice.watch(&log.path);
            if !self.caught_up {
                let found = std::fs::metadata(&log.path);
                let found = found.or_else(|_| std::fs::metadata(output::excerpt_of(&log.path)));
                let length = found.map_or(0, |meta| meta.len());
                log.at = length.saturating_sub(CATCH_UP);
            }
        }
    }

    fn open_logs(&mut self, id: AttemptId) {
        let dir = self.dir.attempt(id);
        let streams = self.spec.as_ref().is_some_and(|spec| spec.agent.streams());
        self.logs = [(dir.stdout(streams), false), (dir.stderr(), true)]
            .map(|(path, stderr)| Log { path, stderr, at: 0, shown: 0 })
            .into();
        self.watch_logs();
        let spec = self.spec.as_deref().filter(|spec| spec.agent.streams());
        let joins = self.logs.first().is_some_and(|log| log.at > 0);
        self.stream = spec.filter(|_| !self.raw).and_then(|spec| {
            let dialect = recovery::dialect(spec, &dir.prompt())?;
            Some(if joins { Stream::joined(dialect) } else { Stream::new(dialect) })
        });
    }

    /// Something that was printed and not yet seen.
    fn read_logs(&mut self) -> Option<FollowEvent> {
        loop {
            if let Some(event) = self.said.pop_front() {
                return Some(FollowEvent::Said(event));
            }
            match (self.read_bytes()?, &mut self.stream) {
                (FollowEvent::Output { stderr: false, bytes }, Some(stream)) => {
                    stream.push(&bytes, &mut |event| self.said.push_back(event));
                }
                // Beside a stream it is noise on a screen; what matters of it is in the attempt's end.
                (FollowEvent::Output { stderr: true, .. }, Some(_)) if !self.all => {}
                (sight, _) => return Some(sight),
            }
        }
    }

    /// The event in the stream's unfinished last line.
    fn end_stream(&mut self) -> Option<FollowEvent> {
        self.stream.take()?.end(&mut |event| self.said.push_back(event));
        self.said.pop_front().map(FollowEvent::Said)
    }

    fn read_bytes(&mut self) -> Option<FollowEvent> {
        let is_bounded = !self.all && self.stream.is_none();
        self.logs.iter_mut().find_map(|log| log.read(is_bounded))
    }
}

impl Log {
    /// What was printed since the last look.
    fn read(&mut self, is_bounded: bool) -> Option<FollowEvent> {
        if is_bounded && self.shown > MOST_SHOWN {
            return None;
        }
        // A log is made by its first byte, and of one from another machine an excerpt may be here.
        let file = refrain_files::open(&self.path, OFlags::RDONLY);
        let excerpt = || refrain_files::open(&output::excerpt_of(&self.path), OFlags::RDONLY);
        let mut file = file.or_else(|_| excerpt()).ok()?;
        file.seek(SeekFrom::Start(self.at)).ok()?;
        let mut bytes = Vec::new();
        let read = file.take(64 << 10).read_to_end(&mut bytes).ok()?;
        self.at += read as u64;
        self.shown += read as u64;
        if is_bounded && self.shown > MOST_SHOWN {
            let more = format!(
                "\n[... what is printed from here on is omitted here; all of it: {} ...]\n",
                self.path
            );
            bytes.extend_from_slice(more.as_bytes());
        }
        (read > 0).then_some(FollowEvent::Output { stderr: self.stderr, bytes })
    }
}

impl Service {
    /// Follows any loop from its first event on; with all that its agents printed, or only what they print from now on.
    pub fn follow(&self, id: &LoopId, all_output: bool) -> Result<Follower, EngineError> {
        Ok(Follower::of(self.locate(id)?.dir, all_output)?)
    }
}
