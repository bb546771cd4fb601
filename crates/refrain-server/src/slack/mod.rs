//! Slack: users start loops there and see them, each in one message that changes with the loop (seed-systems 6.5). It
//! is a surface like every other: requests go to the [`RequestHandler`], messages come from the journals by a cursor that is kept
//! beside each. If Slack or this process is down, no loop is harmed and no message is lost.
//!
//! [`command_parser`] and [`envelope`] parse what comes in, [`render`] renders a loop, [`next_action`] finds the next message: all
//! pure.
//! [`socket`] listens, [`api`] calls Slack, [`executor`] executes requests, [`sync`] keeps one loop's message current.

mod api;
mod command_parser;
mod envelope;
mod executor;
mod next_action;
mod render;
mod socket;
mod sync;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_app::{Caller, Context};
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_core::view::Kind;
use refrain_engine::config::keys;
use refrain_engine::{DiskError, Pending, Service, SlackTokenError, SlackTokens, Talk, now};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use self::api::{Api, Fault};
use self::envelope::Request;
use self::sync::SlackSync;
use crate::requests::{Handovers, OpenError, Refusal, RequestHandler};

/// How often loops are searched for pending messages: resumed ones, and those of an earlier process.
const SWEEP: Duration = Duration::from_secs(3);

/// A loop, by its project's data folder and its id.
type LoopKey = (Utf8PathBuf, LoopId);

/// Reports a problem to the user who runs this process.
pub type ProblemSink = Box<dyn Fn(&str) + Send + Sync>;

/// Why the connection to Slack is not possible.
#[derive(Debug, thiserror::Error)]
pub enum SlackError {
    #[error(transparent)]
    Token(#[from] SlackTokenError),
    #[error("[slack] projects cannot be opened")]
    RequestHandler(#[from] OpenError),
    /// The folder for pending requests cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("another process of this user speaks with Slack already; one is enough")]
    Taken,
    #[error("nothing can be sent from here")]
    Client(#[source] reqwest::Error),
}

pub struct Slack(SlackWorkspace);

struct SlackWorkspace {
    api: Api,
    handler: Arc<RequestHandler>,
    asked: Arc<Pending>,
    config: keys::Slack,
    since: Timestamp,
    say: ProblemSink,
    said: Mutex<String>,
    /// Held while the notes of a loop are changed.
    pen: tokio::sync::Mutex<()>,
    /// The loops that are reported, by the place of their journals.
    syncs: Mutex<BTreeMap<LoopKey, Arc<AtomicBool>>>,
    /// The loops that are not reported.
    passed_over: Mutex<BTreeSet<LoopKey>>,
    tasks: mpsc::UnboundedSender<SlackSync>,
    news: Mutex<Option<mpsc::UnboundedReceiver<SlackSync>>>,
}

impl Slack {
    pub fn is_wanted(config: &keys::Slack) -> bool {
        *config != keys::Slack::default()
    }

    /// Opens all that is needed before anything is sent: the tokens, the projects, and the lock against a second
    /// process of this user.
    /// Errors: [`SlackError`]; nothing was started then.
    pub fn open(context: &Context, config: keys::Slack, say: ProblemSink) -> Result<Self, SlackError> {
        let tokens = SlackTokens::of(&context.host)?;
        let asked = Pending::open(&context.host.state_home)?.ok_or(SlackError::Taken)?;
        let handler = RequestHandler::open(context, &config.projects)?.called_by(Caller::Slack);
        let api = Api::new(config.api_url.as_deref(), tokens).map_err(SlackError::Client)?;
        let (tasks, news) = mpsc::unbounded_channel();
        Ok(Self(SlackWorkspace {
            api,
            handler: Arc::new(handler),
            asked: Arc::new(asked),
            config,
            since: now(),
            say,
            said: Mutex::default(),
            pen: tokio::sync::Mutex::default(),
            syncs: Mutex::default(),
            passed_over: Mutex::default(),
            tasks,
            news: Mutex::new(Some(news)),
        }))
    }

    /// The requests that hand loops to runners of their own.
    pub fn handovers(&self) -> Handovers {
        self.0.handler.handovers()
    }

    /// Listens and posts until `stop` is set. Loops are not affected.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let slack = Arc::new(self.0);
        let news = slack.news.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut news) = news else { return };
        let (heard, mut requests) = mpsc::unbounded_channel();
        // Requests that an earlier process acknowledged but did not execute.
        for request in slack.asked.kept().unwrap_or_default() {
            let _ = heard.send(request);
        }
        let mut work = JoinSet::new();
        work.spawn(Arc::clone(&slack).greet());
        work.spawn(Arc::clone(&slack).listen(heard));
        work.spawn(Arc::clone(&slack).sweep());
        loop {
            tokio::select! {
                () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
                Some(request) = requests.recv() => drop(work.spawn(Arc::clone(&slack).serve(request))),
                Some(sync) = news.recv() => drop(work.spawn(SlackWorkspace::tell(sync))),
                Some(_) = work.join_next() => {}
            }
        }
    }
}

impl SlackWorkspace {
    async fn listen(self: Arc<Self>, requests: mpsc::UnboundedSender<Request>) {
        socket::listen(&self.api, Arc::clone(&self.asked), requests).await;
    }

    /// Reports at once what is wrong with the app: the socket listener only tries again.
    async fn greet(self: Arc<Self>) {
        for (token, known) in
            [("bot", self.api.knows_bot().await), ("app", self.api.open_socket().await.map(drop))]
        {
            match known {
                Err(Fault::Refused(why)) => {
                    self.complain(&format!("it does not take the token of the {token}: {why}"));
                }
                Err(Fault::Again(why, _)) => {
                    return self.complain(&format!("{why}; it is tried again"));
                }
                Ok(_) => {}
            }
        }
    }

    /// Looks again and again for loops whose message is not current.
    async fn sweep(self: Arc<Self>) {
        let mut rounds = interval(SWEEP);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            let slack = Arc::clone(&self);
            let Ok(unsynced) = spawn_blocking(move || slack.unsynced()).await else { return };
            for (service, id) in unsynced {
                self.follow(service, id);
            }
        }
    }

    /// The loops with pending messages; others are skipped from then on.
    fn unsynced(&self) -> Vec<(Service, LoopId)> {
        let (all, mut found) = (self.config.notify == Some(true), Vec::new());
        let mut passed_over = self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
        for service in self.handler.services() {
            for (id, talk) in service.untold(all).unwrap_or_default() {
                let place = (service.project().data.clone(), id.clone());
                if passed_over.contains(&place) {
                    continue;
                }
                // The handler of the request that started it is about to note the channel.
                if talk.is_none() && id.as_str().starts_with("slack-") {
                    continue;
                }
                if talk.is_some() || self.take_in(&service, &id) {
                    found.push((service.clone(), id));
                } else {
                    passed_over.insert(place);
                }
            }
        }
        found
    }

    /// Whether this channel is among the configured ones, if any are.
    fn hears(&self, channel: &str) -> bool {
        let channels = &self.config.channels;
        channels.is_empty() || channels.iter().any(|named| named == channel)
    }

    /// Registers a loop that was started elsewhere, so that its end is reported; false if it is not to be reported.
    fn take_in(&self, service: &Service, id: &LoopId) -> bool {
        let (Ok(status), Some(channel)) = (service.status(id), self.config.channels.first()) else {
            return false;
        };
        // Loops that ended before this was configured are not reported; a task is reported by its plan.
        let is_old = status.has_stopped() && status.started_at < self.since;
        let talk = Talk { channel: channel.clone(), only_ends: true, ..Talk::default() };
        !is_old && status.kind != Kind::Task && service.note_talk(id, &talk).is_ok()
    }

    /// Starts the task that reports a loop, or makes a running one look.
    fn follow(self: &Arc<Self>, service: Service, id: LoopId) {
        let poked = Arc::new(AtomicBool::new(false));
        let place = (service.project().data.clone(), id.clone());
        {
            let mut syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(told) = syncs.get(&place) {
                return told.store(true, Ordering::SeqCst);
            }
            syncs.insert(place, Arc::clone(&poked));
        }
        let _ = self.tasks.send(SlackSync { slack: Arc::clone(self), service, id, poked });
    }

    async fn tell(sync: SlackSync) {
        let slack = Arc::clone(&sync.slack);
        let place = (sync.service.project().data.clone(), sync.id.clone());
        sync.run().await;
        slack.syncs.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }

    /// Changes the notes of a loop, if there is a change.
    async fn note(
        &self,
        service: &Service,
        id: &LoopId,
        change: impl FnOnce(&mut Talk) + Send + 'static,
    ) -> bool {
        let _pen = self.pen.lock().await;
        let (service, id) = (service.clone(), id.clone());
        let noted = blocking(move || {
            let Some(mut talk) = service.talk(&id)? else { return Ok(false) };
            change(&mut talk);
            service.note_talk(&id, &talk)?;
            Ok::<_, refrain_engine::EngineError>(true)
        });
        noted.await.unwrap_or(false)
    }

    /// Reports a problem, once.
    fn complain(&self, what: &str) {
        let what = printable(what);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said != what {
            (self.say)(&format!("Slack: {what}"));
            *said = what.into_owned();
        }
    }
}

/// Runs blocking work on a thread that may block; none if it fails.
async fn blocking<T: Send + 'static, E: std::error::Error + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Option<T> {
    spawn_blocking(move || work().ok()).await.ok().flatten()
}

async fn run_blocking<T: Send + 'static>(
    handler: &Arc<RequestHandler>,
    work: impl FnOnce(&RequestHandler) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let handler = Arc::clone(handler);
    let done = spawn_blocking(move || work(&handler)).await;
    done.unwrap_or_else(|error| {
        Err(Refusal::new(format!("refrain broke off in the middle of this: {error}")))
    })
}
