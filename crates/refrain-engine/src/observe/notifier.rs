//! Sends notices of a loop or a plan, from a thread of its own. It reads the journal and can change nothing in the
//! loop. A webhook gets each notice at least once, from a cursor beside the journal: what was not delivered when the
//! runner ends is left to the next one, or to `resume --all` ([`post`]).

mod post;

use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};

use refrain_core::plan::PlanState;
use refrain_core::spec::Millis;
use refrain_core::view::notice::{Notice, NoticeCheck, NoticeWatch};
use refrain_core::{LoopState, Machine, Record};
use refrain_store::journal::{Journal, Tail};
use refrain_store::outbox::webhook::DeliveredUpTo;
use refrain_store::{JournalError, LoopDir, RunnerLock};

use self::post::Post;
use crate::driver::progress::LiveProgress;
use crate::observe::webhook::{PATIENCE, Webhook};
use crate::service::redact::Redactor;
use crate::{EngineError, PlanRunner, Runner, Service};

/// Sends notices of a locally driven loop or plan.
#[derive(Debug)]
pub struct Notifier(JoinHandle<Option<String>>);

impl Notifier {
    /// Waits until all is sent, or has to be left for later, and answers with why.
    pub fn finish(self) -> Option<String> {
        // If it panicked, nothing more is sent; the loop is unaffected.
        self.0.join().unwrap_or(None)
    }
}

pub struct Audience {
    /// Waits that are longer are reported.
    pub longest: Option<Millis>,
    pub webhook: Option<Webhook>,
    /// Receives the notices of what happens from here on.
    pub tell: Box<dyn FnMut(&Notice) + Send>,
}

impl Runner {
    /// Starts sending notices of the loop.
    pub fn notifier(&self, audience: Audience) -> io::Result<Notifier> {
        notifier(&self.journal, Arc::clone(&self.live_progress), self.past, audience)
    }
}

impl PlanRunner {
    /// Starts sending notices of the plan.
    pub fn notifier(&self, audience: Audience) -> io::Result<Notifier> {
        let (journal, live_progress) = self.observed();
        notifier(journal, live_progress, journal.state().seq, audience)
    }
}

fn notifier<S>(
    journal: &Journal<S>,
    live_progress: Arc<LiveProgress>,
    past: u64,
    audience: Audience,
) -> io::Result<Notifier>
where
    S: NoticeCheck + Send + 'static,
    S::Event: Send,
{
    let Audience { longest, webhook, mut tell } = audience;
    let dir = journal.dir().clone();
    let mut post = webhook.map(|webhook| Post::begin(webhook, &dir, past)).transpose()?;
    let mut watch = Watch::<S>::new(Tail::of(journal), longest);
    Ok(Notifier(spawn(move || {
        loop {
            let snapshot = live_progress.snapshot();
            // The runner itself reports what cannot be parsed.
            for notice in watch.look(snapshot.journal).unwrap_or_default() {
                if notice.seq > past {
                    tell(&notice);
                }
                post.iter_mut().for_each(|post| post.take(&notice));
            }
            if snapshot.over {
                return post.and_then(|post| post.finish(&dir, watch.seen(snapshot.journal)));
            }
            // What is due is tried before it waits for the next event or the next try.
            let patience = post.as_mut().and_then(|post| {
                if post.wait().is_some_and(|wait| wait.is_zero()) {
                    post.deliver(&dir, PATIENCE);
                }
                post.wait()
            });
            live_progress.wait_for_records(snapshot, patience);
        }
    })))
}

impl Service {
    /// Sends the webhook what it is owed by loops and plans that have no runner. Returns why something is still owed;
    /// after the first notice that it does not take nothing more is tried.
    pub fn deliver_owed(
        &self,
        longest: Option<Millis>,
        webhook: &Webhook,
    ) -> Result<Option<String>, EngineError> {
        for dir in self.project.loop_dirs()? {
            if let Some(why) = deliver::<LoopState>(&dir, longest, webhook)? {
                return Ok(Some(why));
            }
        }
        for dir in self.project.plan_dirs()? {
            if let Some(why) = deliver::<PlanState>(&dir, longest, webhook)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }
}

/// Sends the webhook what it is owed of one journal, unless a runner drives its loop or plan.
fn deliver<S: NoticeCheck>(
    dir: &LoopDir,
    longest: Option<Millis>,
    webhook: &Webhook,
) -> Result<Option<String>, EngineError> {
    let Some(told) = DeliveredUpTo::read(dir) else { return Ok(None) };
    let bytes = std::fs::metadata(dir.journal()).map_or(0, |meta| meta.len());
    if bytes == told.bytes || !RunnerLock::is_free(dir) {
        return Ok(None);
    }
    let mut watch = Watch::<S>::new(Tail::new(dir), longest);
    // A damaged journal is reported when the loop itself is asked for.
    let Ok(notices) = watch.look(bytes) else { return Ok(None) };
    let begun = Post::begin(webhook.clone(), dir, 0);
    let mut post = begun.map_err(|error| EngineError::Process("nothing can be sent", error))?;
    notices.iter().for_each(|notice| post.take(notice));
    Ok(post.finish(dir, watch.seen(bytes)))
}

struct Watch<S: Machine> {
    tail: Tail<S::Event>,
    state: Option<S>,
    lookout: NoticeWatch,
}

impl<S: NoticeCheck> Watch<S> {
    fn new(tail: Tail<S::Event>, longest: Option<Millis>) -> Self {
        Self { tail, state: None, lookout: NoticeWatch::new(longest) }
    }

    /// How far it has looked: through `bytes` of the journal.
    fn seen(&self, bytes: u64) -> DeliveredUpTo {
        DeliveredUpTo { seq: self.state.as_ref().map_or(0, |state| state.seq), bytes }
    }

    /// The notices of what came since the last look, up to byte `bytes`.
    fn look(&mut self, bytes: u64) -> Result<Vec<Notice>, JournalError> {
        let records = self.tail.next(bytes)?;
        Ok(records.iter().filter_map(|record| self.see(record)).collect())
    }

    fn see(&mut self, record: &Record<S::Event>) -> Option<Notice> {
        let Some(state) = &mut self.state else {
            self.state = S::begin(record).ok();
            return None;
        };
        // A record that does not fit was not written by Refrain; a full read of the journal reports it.
        state.apply(record).ok()?;
        let notice = state.notice(record, &mut self.lookout)?;
        Some(redacted(notice, &Redactor::new(state.spec(), [])))
    }
}

/// The notice without secrets: it leaves the machine, and agents and providers wrote words of it.
fn redacted(notice: Notice, redactor: &Redactor) -> Notice {
    let clean = |text: String| redactor.clean(&text);
    Notice { reason: clean(notice.reason), summary: notice.summary.map(clean), ..notice }
}
