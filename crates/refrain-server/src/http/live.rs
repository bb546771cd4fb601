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
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::Timestamp;
use rand::RngExt;
use refrain_engine::{JournalWatcher, News, now, recorded_since};
use serde::Serialize;
use tokio::sync::watch;

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
    kept: Mutex<History>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct History {
    /// Names the running watch; none if none runs.
    beginning: Option<String>,
    listeners: usize,
    /// When the last listener went away.
    left: Option<Instant>,
    said: VecDeque<(u64, Timestamp, LiveEvent)>,
    last: u64,
}

/// The running watch; its drop, for any reason, disconnects all subscribers, and they return.
struct RunningWatch {
    broadcaster: Arc<EventBroadcaster>,
    beginning: String,
}

/// A subscriber.
struct Listener {
    broadcaster: Arc<EventBroadcaster>,
    beginning: String,
    /// The number of its last event.
    heard: u64,
    /// Events to send first: the greeting, and what it missed.
    first: VecDeque<Event>,
    changed: watch::Receiver<u64>,
    stop: Stop,
}

impl EventBroadcaster {
    pub(super) fn new(handler: Arc<RequestHandler>) -> Self {
        Self { handler, kept: Mutex::default(), last: watch::channel(0).0 }
    }

    /// The id after which a client that reads the state now subscribes.
    pub(super) fn mark(&self) -> String {
        let kept = self.kept();
        id(kept.beginning.as_deref().unwrap_or(CATCHING_UP), kept.last, now())
    }

    /// Subscribes to all events from now on, or after the event of that id.
    pub(super) async fn listen(self: &Arc<Self>, after: Option<String>, stop: Stop) -> Response {
        let mut begins = false;
        let (beginning, heard, missed) = {
            let mut kept = self.kept();
            kept.listeners += 1;
            if kept.beginning.is_none() {
                begins = true;
                let number: u64 = rand::rng().random();
                *kept = History {
                    beginning: Some(format!("{number:x}")),
                    listeners: kept.listeners,
                    ..History::default()
                };
            }
            let beginning = kept.beginning.clone().unwrap_or_default();
            match after.as_deref().map(Cursor::of) {
                None => (beginning, kept.last, None),
                Some(Some(cursor)) if !begins && kept.has_all_behind(&cursor) => {
                    (beginning, cursor.number, None)
                }
                Some(cursor) => (beginning, kept.last, Some(cursor.map(|cursor| cursor.at))),
            }
        };
        // From here on `Drop` unsubscribes it.
        let mut listener = Listener {
            broadcaster: Arc::clone(self),
            beginning,
            heard,
            first: VecDeque::new(),
            changed: self.last.subscribe(),
            stop,
        };
        if begins {
            let looking =
                RunningWatch { broadcaster: Arc::clone(self), beginning: listener.beginning.clone() };
            let (ready, is_ready) = tokio::sync::oneshot::channel();
            // A detached thread, which sleeps until something happens. If it cannot be started, the watch ends at
            // once.
            let _ = std::thread::Builder::new().spawn(move || looking.broadcaster.look_out(ready));
            // Events from here on are not missed.
            let _ = is_ready.await;
        }
        let hello = match missed {
            None => id(&listener.beginning, listener.heard, now()),
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
    async fn missed(self: &Arc<Self>, since: Option<Timestamp>, listener: &Listener) -> Vec<Event> {
        let broadcaster = Arc::clone(self);
        let read = move || recorded_since(broadcaster.handler.services(), since?, MOST);
        let found = tokio::task::spawn_blocking(read);
        let caught_up = || id(&listener.beginning, listener.heard, now());
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

    /// Watches while there are subscribers. Blocks.
    fn look_out(&self, ready: tokio::sync::oneshot::Sender<()>) {
        let handler = Arc::clone(&self.handler);
        let mut lookout = JournalWatcher::new(move || handler.services(), true).ok();
        let _ = ready.send(());
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
            self.say(said);
            // The subscriber count is checked only when an event arrives.
            let mut kept = self.kept();
            if kept.listeners == 0 && kept.left.is_none_or(|left| left.elapsed() >= PATIENCE) {
                kept.beginning = None;
                return;
            }
        }
    }

    fn say(&self, said: Vec<LiveEvent>) {
        if said.is_empty() {
            return;
        }
        let last = {
            let mut kept = self.kept();
            for said in said {
                kept.last += 1;
                let number = kept.last;
                kept.said.push_back((number, said.at(), said));
            }
            let too_many = kept.said.len().saturating_sub(KEPT);
            kept.said.drain(..too_many);
            kept.last
        };
        self.last.send_replace(last);
    }

    fn kept(&self) -> MutexGuard<'_, History> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn has_all_behind(&self, cursor: &Cursor) -> bool {
        let first = self.said.front().map_or(self.last + 1, |(number, ..)| *number);
        self.beginning.as_deref() == Some(cursor.beginning.as_str())
            && cursor.number + 1 >= first
            && cursor.number <= self.last
    }
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.first.pop_front() {
                return Some(event);
            }
            {
                let kept = self.broadcaster.kept();
                if kept.beginning.as_deref() != Some(self.beginning.as_str()) {
                    // The watch has ended: the client subscribes again.
                    return None;
                }
                let oldest = kept.said.front().map_or(kept.last + 1, |(number, ..)| *number);
                if self.heard + 1 < oldest {
                    self.heard = kept.last;
                    return Some(
                        Event::default().event("reset").id(id(&self.beginning, self.heard, now())).data("{}"),
                    );
                }
                let place = usize::try_from(self.heard + 1 - oldest).unwrap_or(usize::MAX);
                if let Some((number, at, said)) = kept.said.get(place) {
                    self.heard = *number;
                    return Some(said.event(id(&self.beginning, *number, *at)));
                }
            }
            tokio::select! {
                changed = self.changed.changed() => if changed.is_err() { return None },
                () = stopped(&mut self.stop) => return None,
            }
        }
    }
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        let mut kept = self.broadcaster.kept();
        // Another may have begun.
        if kept.beginning.as_ref() == Some(&self.beginning) {
            kept.beginning = None;
        }
        drop(kept);
        self.broadcaster.last.send_modify(|_| {});
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut kept = self.broadcaster.kept();
        kept.listeners = kept.listeners.saturating_sub(1);
        kept.left = Some(Instant::now());
    }
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
        let broadcaster = Arc::new(EventBroadcaster::new(Arc::new(handler)));
        broadcaster.kept().beginning = Some("a1".to_owned());
        let (_stopper, stop) = watch::channel(false);
        let mut listener = Listener {
            broadcaster: Arc::clone(&broadcaster),
            beginning: "a1".to_owned(),
            heard: 0,
            first: VecDeque::new(),
            changed: broadcaster.last.subscribe(),
            stop,
        };
        let looking = |beginning: &str| RunningWatch {
            broadcaster: Arc::clone(&broadcaster),
            beginning: beginning.to_owned(),
        };
        drop(looking("a0"));
        assert!(broadcaster.kept().beginning.is_some(), "another looks out");
        let own = looking("a1");
        let broken = std::thread::spawn(move || {
            let _own = own;
            panic!("it breaks off");
        });
        assert!(listener.next().await.is_none());
        assert!(broken.join().is_err() && broadcaster.kept().beginning.is_none());
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
