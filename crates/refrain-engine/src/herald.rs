//! Who tells of a loop what a person wants to hear who looks elsewhere: an observer on a thread of its own. It reads the
//! journal and can change nothing about the loop. A webhook is told at least once, from a cursor that is kept beside the
//! journal: what was not delivered when the loop's runner ends is for the next one, or for `resume --all`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use refrain_core::notice::{Lookout, Notice};
use refrain_core::spec::Millis;
use refrain_core::{LoopState, Record};
use refrain_store::journal::Tail;
use refrain_store::webhook::Told;
use refrain_store::{LoopDir, RunnerLock};
use tokio::runtime::{Builder, Runtime};

use crate::pulse::{Beat, Pulse};
use crate::redact::Redactor;
use crate::webhook::{PATIENCE, Undelivered, Webhook};
use crate::{EngineError, Runner, Service};

/// How long a runner goes on trying once its loop has stopped.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Somebody who tells of a loop, as long as that is driven here.
#[derive(Debug)]
pub struct Herald(JoinHandle<Option<String>>);

impl Herald {
    /// Waits until all is told, or that has to be left for later, and answers with why.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        // If it panicked, nothing more is told; the loop is what it is.
        self.0.join().unwrap_or(None)
    }
}

impl Runner {
    /// Has `tell` told of what happens from here on, and the webhook of that and of all that is owed to it. `longest` is how
    /// long a wait may be that nobody is told of.
    ///
    /// # Errors
    /// Where no thread of that kind can be made.
    pub fn herald(
        &self,
        longest: Option<Millis>,
        webhook: Option<Webhook>,
        mut tell: impl FnMut(&Notice) + Send + 'static,
    ) -> io::Result<Herald> {
        let (dir, pulse, past) = (self.journal.dir().clone(), Arc::clone(&self.pulse), self.past);
        let mut post = webhook.map(|webhook| Post::begin(webhook, &dir, past)).transpose()?;
        let mut watch = Watch { tail: Tail::of(&self.journal), state: None, lookout: Lookout::new(longest) };
        Ok(Herald(spawn(move || {
            loop {
                let beat = pulse.beat();
                // What cannot be understood, the runner itself says.
                for notice in watch.look(beat.journal).unwrap_or_default() {
                    if notice.seq > past {
                        tell(&notice);
                    }
                    post.iter_mut().for_each(|post| post.take(&notice));
                }
                if beat.over {
                    let seen = watch.state.as_ref().map_or(0, |state| state.seq);
                    return post.and_then(|post| post.finish(&dir, Told { seq: seen, bytes: beat.journal }));
                }
                wait(&pulse, beat, post.as_mut(), &dir);
            }
        })))
    }
}

/// Tries what is due, then waits for the next event or the next try.
fn wait(pulse: &Pulse, beat: Beat, post: Option<&mut Post>, dir: &LoopDir) {
    let patience = post.and_then(|post| {
        if post.wait().is_some_and(|wait| wait.is_zero()) {
            post.deliver(dir, PATIENCE);
        }
        post.wait()
    });
    let until = patience.map(|patience| Instant::now() + patience);
    let mut seen = beat;
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return;
        }
        let now = pulse.wait(seen, left);
        // What is printed is nothing to it.
        if now.journal != beat.journal || now.over {
            return;
        }
        seen = now;
    }
}

impl Service {
    /// Tells the webhook what it is owed by loops that nobody drives. Answers with why something is still owed; after the first
    /// that it does not take nothing more is tried.
    ///
    /// # Errors
    /// [`EngineError`] where the loops cannot be looked at.
    pub fn deliver_owed(
        &self,
        longest: Option<Millis>,
        webhook: &Webhook,
    ) -> Result<Option<String>, EngineError> {
        for dir in self.project.loop_dirs()? {
            let Some(told) = Told::read(&dir) else { continue };
            let bytes = std::fs::metadata(dir.journal()).map_or(0, |meta| meta.len());
            // Its runner sees to that.
            if bytes == told.bytes || RunnerLock::try_take(&dir)?.is_none() {
                continue;
            }
            let mut watch = Watch { tail: Tail::new(&dir), state: None, lookout: Lookout::new(longest) };
            // One that is damaged is told by whoever asks for it.
            let Ok(notices) = watch.look(bytes) else { continue };
            let begun = Post::begin(webhook.clone(), &dir, 0);
            let mut post = begun.map_err(|error| EngineError::Process("nothing can be sent", error))?;
            notices.iter().for_each(|notice| post.take(notice));
            let seen = watch.state.as_ref().map_or(0, |state| state.seq);
            if let Some(why) = post.finish(&dir, Told { seq: seen, bytes }) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }
}

/// Reads a journal for notices.
struct Watch {
    tail: Tail,
    state: Option<LoopState>,
    lookout: Lookout,
}

impl Watch {
    /// The notices of what came since the last look, as far as so many bytes.
    fn look(&mut self, bytes: u64) -> Result<Vec<Notice>, refrain_store::JournalError> {
        let records = self.tail.next(bytes)?;
        Ok(records.iter().filter_map(|record| self.see(record)).collect())
    }

    fn see(&mut self, record: &Record) -> Option<Notice> {
        match &mut self.state {
            None => {
                self.state = LoopState::begin(record).ok();
                None
            }
            // One that does not fit was not written by us; whoever reads it whole says so.
            Some(state) => {
                state.apply(record).ok()?;
                let notice = self.lookout.see(record, state)?;
                Some(redacted(notice, state))
            }
        }
    }
}

/// The notice without secrets: it leaves the machine, and agents and providers wrote words of it.
fn redacted(notice: Notice, state: &LoopState) -> Notice {
    let redactor = Redactor::new(&state.spec, []);
    let clean = |text: String| redactor.clean(&text);
    Notice { reason: clean(notice.reason), summary: notice.summary.map(clean), ..notice }
}

/// What a webhook is owed.
struct Post {
    webhook: Webhook,
    runtime: Runtime,
    told: Told,
    owed: VecDeque<Notice>,
    delays: ExponentialBackoff,
    /// Not before then.
    next: Instant,
    /// Why the last try came to nothing.
    trouble: Option<String>,
    /// The receiver does not want it: it is not asked again from here.
    is_refused: bool,
}

impl Post {
    /// Events up to `past` are nothing to a webhook that was never told of the loop.
    fn begin(webhook: Webhook, dir: &LoopDir, past: u64) -> io::Result<Self> {
        let told = Told::read(dir).unwrap_or_else(|| {
            let told = Told { seq: past, bytes: 0 };
            // Without it what is owed is forgotten should this process die; nothing else depends on it.
            let _ = told.write(dir);
            told
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (owed, next, delays) = (VecDeque::new(), Instant::now(), delays());
        Ok(Self { webhook, runtime, told, owed, delays, next, trouble: None, is_refused: false })
    }

    fn take(&mut self, notice: &Notice) {
        if notice.seq > self.told.seq {
            self.owed.push_back(notice.clone());
        }
    }

    /// How long until the next try; none where there is none.
    fn wait(&self) -> Option<Duration> {
        let is_due = !self.owed.is_empty() && !self.is_refused;
        is_due.then(|| self.next.saturating_duration_since(Instant::now()))
    }

    /// Delivers what is owed, oldest first, until the receiver does not take one.
    fn deliver(&mut self, dir: &LoopDir, patience: Duration) {
        while let Some(notice) = self.owed.front() {
            match self.runtime.block_on(self.webhook.post(notice, patience)) {
                Ok(()) => {
                    self.told = Told { seq: notice.seq, bytes: 0 };
                    let _ = self.told.write(dir);
                    self.owed.pop_front();
                    (self.delays, self.trouble) = (delays(), None);
                }
                Err(Undelivered::Again(why, rest)) => {
                    let delay = self.delays.next().unwrap_or_default();
                    self.next = Instant::now() + rest.unwrap_or_default().max(delay);
                    self.trouble = Some(why);
                    return;
                }
                Err(Undelivered::Refused(why)) => {
                    (self.trouble, self.is_refused) = (Some(why), true);
                    return;
                }
            }
        }
    }

    /// The last tries, for a short while. `seen` is how far the journal was looked through.
    fn finish(mut self, dir: &LoopDir, seen: Told) -> Option<String> {
        let deadline = Instant::now() + AT_THE_END;
        while let Some(wait) = self.wait() {
            let left = deadline.saturating_duration_since(Instant::now());
            if wait >= left {
                break;
            }
            self.runtime.block_on(async { tokio::time::sleep(wait).await });
            self.deliver(dir, left.saturating_sub(wait).min(PATIENCE));
        }
        if self.owed.is_empty() {
            let _ = seen.write(dir);
            return None;
        }
        let why = self.trouble.unwrap_or_else(|| "there was no time".to_owned());
        Some(format!("{why}; it is told by the loop's next runner, or by refrain resume --all"))
    }
}

/// The pauses between tries, with something of chance in them.
fn delays() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_jitter()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(300))
        .without_max_times()
        .build()
}
