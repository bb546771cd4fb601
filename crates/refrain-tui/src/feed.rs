//! Reads from the engine and sends it requests, on threads of their own. Updates within a tenth of a second are sent as
//! one, so that a busy agent costs no more than a slow one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::{park_timeout, spawn};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use refrain_engine::{EngineError, FollowEvent, Service, chain};

use crate::model::{Key, LoopText};
use crate::program::{Act, NewLoop, Objection, Program};
use crate::update::{LoopUpdate, Message};

/// The shortest time between two updates.
pub(crate) const GAP: Duration = Duration::from_millis(100);
/// How soon a feed thread ends after its receiver is gone; how often a plan's tasks are checked.
const LOOK: Duration = Duration::from_secs(1);
/// The pause before a failed list is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// The most bytes of one update; of more, the last ones are kept.
const LONGEST: usize = 256 << 10;

/// The way to the engine, and back.
pub(crate) struct Feed {
    service: Service,
    program: Arc<dyn Program>,
    to: SyncSender<Message>,
    /// Once this is set, the thread that feeds the opened view stops.
    told: Arc<AtomicBool>,
}

impl Feed {
    /// Begins to look at all loops and plans.
    pub(crate) fn begin(
        service: &Service,
        everywhere: bool,
        program: &Arc<dyn Program>,
        to: &SyncSender<Message>,
    ) -> Self {
        let (looking, sink) = (service.clone(), to.clone());
        spawn(move || look(&looking, everywhere, &sink));
        Self { service: service.clone(), program: Arc::clone(program), to: to.clone(), told: Arc::default() }
    }

    /// Feeds this view from now on, unless another one follows within `rest`, and the previous one no more.
    pub(crate) fn watch(&mut self, what: Option<(Key, bool)>, rest: Duration) {
        let ended = Arc::<AtomicBool>::default();
        std::mem::replace(&mut self.told, Arc::clone(&ended)).store(true, Ordering::Relaxed);
        let Some((key, is_plan)) = what else { return };
        let (door, program, to) = (self.door(&key.project), Arc::clone(&self.program), self.to.clone());
        spawn(move || {
            park_timeout(rest);
            let teller = JournalFeed { key, to, ended };
            if teller.ended.load(Ordering::Relaxed) {
                return;
            }
            let told = match (door, is_plan) {
                (Ok(service), true) => teller.plan(&service),
                (Ok(service), false) => teller.one(&service, program.as_ref()),
                (Err(error), _) => Err(error),
            };
            teller.send(Message::Over(teller.key.clone(), told.err().map(|error| chain(&error))));
        });
    }

    /// Sends a request; its result comes as a message.
    pub(crate) fn act(&self, key: Key, act: Act) {
        let (door, program, to) = (self.door(&key.project), Arc::clone(&self.program), self.to.clone());
        spawn(move || {
            let became = match door {
                Ok(service) => program.act(&service, &key.id, &act),
                Err(error) => Err(Objection::Refused(chain(&error))),
            };
            // The receiver may be gone.
            let _ = to.send(Message::Done(key, act, became));
        });
    }

    /// Reads a text of a loop.
    pub(crate) fn read(&self, key: Key, what: LoopText) {
        let (door, program, to) = (self.door(&key.project), Arc::clone(&self.program), self.to.clone());
        spawn(move || {
            let printed = door.map_err(|error| chain(&error));
            let printed = printed.and_then(|service| match what {
                LoopText::Output(attempt) => program.log(&service, &key.id, Some(attempt)),
                LoopText::LatestOutput => program.log(&service, &key.id, None),
                LoopText::Changes => program.changes(&service, &key.id),
            });
            // The receiver may be gone.
            let _ = to.send(Message::Printed(key, what, printed));
        });
    }

    /// Looks what a new loop in a project can be like.
    pub(crate) fn offer(&self, project: Arc<str>) {
        let (door, to) = (self.door(&project), self.to.clone());
        spawn(move || {
            let folder = |service: &Service| service.project().worktree.clone();
            let offer = door.map(|service| service.start_offer(folder(&service)));
            let offer = offer.map_err(|error| chain(&error));
            // The receiver may be gone.
            let _ = to.send(Message::Offered(project, offer));
        });
    }

    /// Starts a loop in a project.
    pub(crate) fn start(&self, project: Arc<str>, new: NewLoop) {
        let (door, program, to) = (self.door(&project), Arc::clone(&self.program), self.to.clone());
        spawn(move || {
            let started = door.map_err(|error| chain(&error)).and_then(|service| {
                let id = program.start(&service, &new)?;
                Ok(Key { project: service.project().root.as_str().into(), id })
            });
            // The receiver may be gone.
            let _ = to.send(Message::Started(started));
        });
    }

    /// The door to a project; the empty name is that of this program.
    fn door(&self, project: &str) -> Result<Service, EngineError> {
        if project.is_empty() || self.service.project().root.as_str() == project {
            return Ok(self.service.clone());
        }
        Service::open(Utf8Path::new(project), self.service.host().clone())
    }
}

/// Sends the list of all loops and plans, whenever it changes, while the receiver is there.
fn look(service: &Service, everywhere: bool, to: &SyncSender<Message>) {
    let mut live_list = service.live_list(everywhere);
    loop {
        let (message, rest) = match live_list.look() {
            Ok(entries) => (Message::News(entries), GAP),
            Err(error) => {
                live_list = service.live_list(everywhere);
                (Message::Unlisted(chain(&error)), AGAIN)
            }
        };
        if to.send(message).is_err() {
            return;
        }
        park_timeout(rest);
    }
}

struct JournalFeed {
    key: Key,
    to: SyncSender<Message>,
    ended: Arc<AtomicBool>,
}

impl JournalFeed {
    /// Sends unless the view was closed; false if the thread should end.
    fn send(&self, message: Message) -> bool {
        !self.ended.load(Ordering::Relaxed) && self.to.send(message).is_ok()
    }

    /// Follows a loop from its first event until its runner ends.
    fn one(&self, service: &Service, program: &dyn Program) -> Result<(), EngineError> {
        let mut follower = service.follow(&self.key.id, false)?;
        let mut narrator = program.narrator();
        let (mut text, mut begins) = (String::new(), true);
        // When the first unsent text was read.
        let mut since: Option<Instant> = None;
        loop {
            let patience = since.map_or(LOOK, |since| GAP.saturating_sub(since.elapsed()));
            follower = follower.with_patience(patience);
            let sight = follower.look();
            let is_over = !matches!(sight, Ok(Some(_)));
            match sight {
                Ok(Some(FollowEvent::Quiet)) | Ok(None) => {}
                Ok(Some(ref sight)) => {
                    text.push_str(&narrator.tell(sight));
                    since.get_or_insert_with(Instant::now);
                }
                // What could be read is sent first.
                Err(ref error) => text.push_str(&format!("{}\n", chain(error))),
            }
            if self.ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            if is_over || since.is_some_and(|since| since.elapsed() >= GAP) {
                let state = narrator.state();
                let told = LoopUpdate {
                    key: self.key.clone(),
                    begins: std::mem::take(&mut begins),
                    text: last_of(std::mem::take(&mut text)),
                    goal: state.map(|state| state.spec.prompt.clone()).unwrap_or_default(),
                    status: state.map(|state| follower.status(state)),
                };
                since = None;
                if !self.send(Message::Told(Box::new(told))) {
                    return Ok(());
                }
            }
            if is_over {
                return sight.map(drop).map_err(EngineError::from);
            }
        }
    }

    /// Sends a plan's status until its runner ends.
    fn plan(&self, service: &Service) -> Result<(), EngineError> {
        let mut changes = service.changes(&self.key.id)?;
        loop {
            let status = Box::new(service.plan_status(&self.key.id)?);
            let is_over = status.status.has_stopped();
            if !self.send(Message::Plan(self.key.clone(), status)) || is_over {
                return Ok(());
            }
            // The subscription does not cover the loops of its tasks.
            changes.wait(LOOK);
            park_timeout(GAP);
        }
    }
}

/// The end of a long text, in whole lines.
fn last_of(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - LONGEST);
    let from = text[from..].find('\n').map_or(from, |at| from + at + 1);
    format!("…\n{}", &text[from..])
}
