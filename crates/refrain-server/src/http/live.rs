//! The event stream: every subscriber learns that something was recorded or printed. One thread watches the journals
//! while there are subscribers, and nothing runs while nothing changes.
//!
//! Journals are the truth; an event only says where to read. No event is lost: recent events are kept, numbered from
//! the start of the watch, and an event's id is `BEGINNING-NUMBER-MILLISECONDS`. A subscriber that returns with the id
//! of its last event gets all later ones from what is kept. If that no longer reaches back, or the watch is newer
//! (another server, or no subscriber for a while), they come from the journals, from a little before that moment. So an
//! event may come twice, and is recognized by its loop and number. Until the last missed event is sent, ids name no
//! stream ([`CATCHING_UP`]), so a broken connection catches up again from where it broke. If too much was missed,
//! `reset` tells the subscriber to reload.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::Timestamp;
use rand::RngExt;
use refrain_engine::{JournalWatcher, News, now, recorded_since};
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use crate::http::listener::stop::{Stop, stopped};
use crate::requests::{RequestHandler, project_name};

/// How many of the last events are kept.
const KEPT: usize = 4_096;
/// How many are read from journals at once.
const MOST: usize = 10_000;
/// How often a listener is shown that the server is there.
const ALIVE: Duration = Duration::from_secs(20);
/// How long the watch continues without subscribers: a browser that changes pages returns soon.
const PATIENCE: Duration = Duration::from_secs(20);
/// The shortest time between two events that one loop's agent printed.
const PACE: Duration = Duration::from_millis(250);

/// Names no stream: a subscriber that returns with it gets what it missed from the journals.
const CATCHING_UP: &str = "none";

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum LiveEvent {
    Recorded {
        project: String,
        #[serde(rename = "loop")]
        id: String,
        seq: u64,
        at: Timestamp,
        name: String,
    },
    Printed {
        project: String,
        #[serde(rename = "loop")]
        id: String,
        attempt: String,
    },
    /// Everything must be reloaded.
    Listed {},
}

/// Sends events to all subscribers.
#[derive(Debug)]
pub(super) struct EventBroadcaster {
    handler: Arc<RequestHandler>,
    /// The watch that was begun last, if any was.
    newest: Mutex<Option<Arc<Watch>>>,
}

/// A watch of all journals. Its thread has the sender of `last`: once that has ended, for any reason, subscribers are
/// disconnected, and return.
#[derive(Debug)]
struct Watch {
    beginning: String,
    kept: Mutex<VecDeque<(u64, Timestamp, LiveEvent)>>,
    /// The number of the last event.
    last: watch::Receiver<u64>,
}

/// A subscriber.
struct Listener {
    watch: Arc<Watch>,
    /// The number of its last event.
    heard: u64,
    /// Events to send first: the greeting, and what it missed.
    first: VecDeque<Event>,
    last: watch::Receiver<u64>,
    stop: Stop,
}

impl EventBroadcaster {
    pub(super) fn new(handler: Arc<RequestHandler>) -> Self {
        Self { handler, newest: Mutex::default() }
    }

    /// The id after which a client that reads the state now subscribes.
    pub(super) fn mark(&self) -> String {
        match lock(&self.newest).as_ref().filter(|watch| watch.is_running()) {
            Some(watch) => watch.id(*watch.last.borrow()),
            None => id(CATCHING_UP, 0, now()),
        }
    }

    /// The running watch; begins one if none runs.
    async fn watch(&self) -> Arc<Watch> {
        let (ready, is_ready) = oneshot::channel();
        let watch = {
            let mut newest = lock(&self.newest);
            if let Some(watch) = newest.as_ref().filter(|watch| watch.is_running()) {
                return Arc::clone(watch);
            }
            let (watch, last) = Watch::new();
            let (looking, handler) = (Arc::clone(&watch), Arc::clone(&self.handler));
            // A detached thread, which sleeps until something happens. If it cannot be started, the watch ends at
            // once.
            let _ = Builder::new().spawn(move || looking.look_out(&last, handler, ready));
            Arc::clone(newest.insert(watch))
        };
        // Events from here on are not missed.
        let _ = is_ready.await;
        watch
    }

    /// Subscribes to all events from now on, or after the event of that id.
    pub(super) async fn listen(&self, after: Option<String>, stop: Stop) -> Response {
        let watch = self.watch().await;
        let last = watch.last.clone();
        let newest = *last.borrow();
        let (heard, missed) = match after.as_deref().map(Cursor::of) {
            None => (newest, None),
            Some(Some(cursor)) if watch.has_all_behind(&cursor) => (cursor.number, None),
            Some(cursor) => (newest, Some(cursor.map(|cursor| cursor.at))),
        };
        let mut listener = Listener { watch, heard, first: VecDeque::new(), last, stop };
        let hello = match missed {
            None => listener.watch.id(heard),
            Some(Some(since)) => id(CATCHING_UP, 0, since),
            // An invalid id catches up from the journals too.
            Some(None) => CATCHING_UP.to_owned(),
        };
        listener.first.push_back(Event::default().event("hello").id(hello).data("{}"));
        if let Some(since) = missed {
            listener.first.extend(self.missed(since, &listener).await);
        }
        let alive = KeepAlive::new().interval(ALIVE).event(Event::default().event("alive").data("{}"));
        Sse::new(stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok::<_, Infallible>(event), listener))
        }))
        .keep_alive(alive)
        .into_response()
    }

    /// The events in the journals since then.
    async fn missed(&self, since: Option<Timestamp>, listener: &Listener) -> Vec<Event> {
        let handler = Arc::clone(&self.handler);
        let read = move || recorded_since(handler.services(), since?, MOST);
        let found = tokio::task::spawn_blocking(read);
        let caught_up = || listener.watch.id(listener.heard);
        match found.await {
            Ok(Some(news)) => {
                let last = news.len().saturating_sub(1);
                let event = |(place, it): (usize, News)| {
                    let said = LiveEvent::of(it);
                    let id = if place == last { caught_up() } else { id(CATCHING_UP, 0, said.at()) };
                    said.event(id)
                };
                let events: Vec<_> = news.into_iter().enumerate().map(event).collect();
                match events.is_empty() {
                    // Only the id is news.
                    true => vec![Event::default().event("hello").id(caught_up()).data("{}")],
                    false => events,
                }
            }
            _ => vec![Event::default().event("reset").id(caught_up()).data("{}")],
        }
    }
}

impl Watch {
    fn new() -> (Arc<Self>, watch::Sender<u64>) {
        let (sender, last) = watch::channel(0);
        let beginning = format!("{:x}", rand::rng().random::<u64>());
        (Arc::new(Self { beginning, kept: Mutex::default(), last }), sender)
    }

    fn is_running(&self) -> bool {
        self.last.has_changed().is_ok()
    }

    fn id(&self, number: u64) -> String {
        id(&self.beginning, number, now())
    }

    fn has_all_behind(&self, cursor: &Cursor) -> bool {
        let kept = lock(&self.kept);
        let (first, last) = kept.front().zip(kept.back()).map_or((1, 0), |(first, last)| (first.0, last.0));
        self.beginning == cursor.beginning && (first..=last + 1).contains(&(cursor.number + 1))
    }

    /// Watches while there are subscribers. Blocks.
    fn look_out(&self, last: &watch::Sender<u64>, handler: Arc<RequestHandler>, ready: oneshot::Sender<()>) {
        let mut lookout = JournalWatcher::new(move || handler.services(), true).ok();
        let _ = ready.send(());
        let mut left = None;
        let mut printed = BTreeMap::<(String, String), (LiveEvent, Instant)>::new();
        while let Some(lookout) = &mut lookout {
            let due = printed.values().map(|(_, due)| due.saturating_duration_since(Instant::now())).min();
            let mut said = Vec::new();
            for it in lookout.wait(due).into_iter().map(LiveEvent::of) {
                match &it {
                    LiveEvent::Recorded { .. } | LiveEvent::Listed {} => said.push(it),
                    LiveEvent::Printed { project, id, .. } => {
                        let kept = printed.entry((project.clone(), id.clone()));
                        kept.and_modify(|(kept, _)| *kept = it.clone())
                            .or_insert_with(|| (it, Instant::now() + PACE));
                    }
                }
            }
            let now = Instant::now();
            said.extend(printed.extract_if(.., |_, (_, due)| *due <= now).map(|(_, (it, _))| it));
            self.say(said, last);
            // Whether there are subscribers is checked only when an event arrives; one receiver is that of the watch.
            left = left.filter(|_| last.receiver_count() == 1);
            if last.receiver_count() == 1 && left.get_or_insert(now).elapsed() >= PATIENCE {
                return;
            }
        }
    }

    fn say(&self, said: Vec<LiveEvent>, last: &watch::Sender<u64>) {
        let mut kept = lock(&self.kept);
        for said in said {
            last.send_modify(|last| *last += 1);
            kept.push_back((*last.borrow(), said.at(), said));
        }
        let too_many = kept.len().saturating_sub(KEPT);
        kept.drain(..too_many);
    }
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.first.pop_front() {
                return Some(event);
            }
            {
                let kept = lock(&self.watch.kept);
                if let Some((oldest, newest)) = kept.front().zip(kept.back()).map(|(a, b)| (a.0, b.0)) {
                    if self.heard + 1 < oldest {
                        self.heard = newest;
                        return Some(Event::default().event("reset").id(self.watch.id(newest)).data("{}"));
                    }
                    let place = usize::try_from(self.heard + 1 - oldest).unwrap_or(usize::MAX);
                    if let Some((number, at, said)) = kept.get(place) {
                        self.heard = *number;
                        return Some(said.event(id(&self.watch.beginning, *number, *at)));
                    }
                }
            }
            tokio::select! {
                // Without a sender the watch has ended: the client subscribes again.
                changed = self.last.changed() => if changed.is_err() { return None },
                () = stopped(&mut self.stop) => return None,
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveEvent {
    fn of(news: News) -> Self {
        match news {
            News::Recorded(whose, mark) => {
                let (project, id) = (project_name(&whose.service), whose.id.to_string());
                Self::Recorded { project, id, seq: mark.seq, at: mark.at, name: mark.name }
            }
            News::Printed(whose, attempt) => {
                let (project, id) = (project_name(&whose.service), whose.id.to_string());
                Self::Printed { project, id, attempt: attempt.to_string() }
            }
            News::Listed => Self::Listed {},
        }
    }

    /// From when on it is to be asked for again.
    fn at(&self) -> Timestamp {
        match self {
            Self::Recorded { at, .. } => *at,
            Self::Printed { .. } | Self::Listed {} => now(),
        }
    }

    fn event(&self, id: String) -> Event {
        let name = match self {
            Self::Recorded { .. } => "recorded",
            Self::Printed { .. } => "printed",
            Self::Listed {} => "reset",
        };
        let data = serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned());
        Event::default().event(name).id(id).data(data)
    }
}

/// The position of a returning subscriber.
#[derive(Debug, PartialEq)]
struct Cursor {
    beginning: String,
    number: u64,
    at: Timestamp,
}

impl Cursor {
    fn of(id: &str) -> Option<Self> {
        let mut parts = id.split('-');
        let (beginning, number, at) = (parts.next()?, parts.next()?, parts.next()?);
        let at = Timestamp::from_millisecond(at.parse().ok()?).ok()?;
        Some(Self { beginning: beginning.to_owned(), number: number.parse().ok()?, at })
    }
}

fn id(beginning: &str, number: u64, at: Timestamp) -> String {
    format!("{beginning}-{number}-{}", at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::tests::place;

    #[tokio::test]
    async fn a_listener_is_released_when_the_watcher_ends() {
        let (_dir, handler) = place();
        let broadcaster = EventBroadcaster::new(Arc::new(handler));
        let (watch, own) = Watch::new();
        *lock(&broadcaster.newest) = Some(Arc::clone(&watch));
        let (_stopper, stop) = watch::channel(false);
        let last = watch.last.clone();
        let mut listener = Listener { watch, heard: 0, first: VecDeque::new(), last, stop };
        drop(Watch::new());
        assert!(!broadcaster.mark().starts_with(CATCHING_UP), "another looks out");
        let broken = std::thread::spawn(move || {
            let _own = own;
            panic!("it breaks off");
        });
        assert!(listener.next().await.is_none());
        assert!(broken.join().is_err() && broadcaster.mark().starts_with(CATCHING_UP));
    }

    #[test]
    fn an_event_id_gives_the_position_and_an_invalid_one_gives_none() {
        let at = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        let cursor = Cursor { beginning: "a1".to_owned(), number: 7, at };
        assert_eq!(Cursor::of(&id("a1", 7, at)), Some(cursor));
        for garbage in ["", "a1", "a1-7", "a1-x-1", "a1-7-x", "a1-7-99999999999999999999"] {
            assert_eq!(Cursor::of(garbage), None, "{garbage}");
        }
    }
}
