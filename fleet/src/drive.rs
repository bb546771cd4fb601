//! One drive of a loop: it is taken over from the git remote, and driven under the lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use refrain_app::verbs::fleet::is_over;
use refrain_core::event::End;
use refrain_core::r#loop::TakeOverRefusal;
use refrain_core::{LoopId, LoopState};
use refrain_engine::{
    DriveEnd, EngineError, Lease, LeaseDeadline, MoveError, RemoteWitness, Service, SharedMoney, Signals,
    Unreplicated, Witness, chain, now,
};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::host::{Worker, locked};
use crate::order::{Ending, Order, WaitingRequest};
use crate::shared::accounts::WorkerAccounts;
use crate::shared::logs;
use crate::shared::money::LoopMoney;
use crate::{clone, requests};

/// For how long a worker claims nothing after a loop that it drove could not continue on it.
const UNABLE: Duration = Duration::from_secs(30);
/// How often it looks whether the requests that it did are replicated.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) struct Drive {
    pub(crate) worker: Arc<Worker>,
    pub(crate) order: Order,
    pub(crate) deadline: LeaseDeadline,
    /// Gets the ids of requests once no other worker has to do them.
    pub(crate) journal_has: watch::Sender<Vec<String>>,
    pub(crate) room: OwnedSemaphorePermit,
}

/// How it ended, with words for the terminal.
struct Outcome {
    ending: Ending,
    words: String,
}

impl From<DriveEnd> for Outcome {
    fn from(end: DriveEnd) -> Self {
        let (ending, words) = match end {
            DriveEnd::Ended(end) => (Ending::Ended, format!("ended: {}", word(end))),
            DriveEnd::Parked(why) => (Ending::Parked, format!("waits: {why}")),
            DriveEnd::Resting(until) => {
                let span = until.duration_since(now()).as_millis();
                (Ending::Resting(u64::try_from(span).unwrap_or_default()), format!("rests until {until}"))
            }
            DriveEnd::Yielded => (Ending::Yielded, "is given back".to_owned()),
            DriveEnd::Unable(why) => (Ending::Unable, format!("cannot be continued here: {why}")),
            DriveEnd::Fenced => (Ending::Fenced(None), "another worker has it".to_owned()),
            DriveEnd::Lapsed => (Ending::Lapsed, "the lease was not renewed in time".to_owned()),
        };
        Self { ending, words }
    }
}

impl From<EngineError> for Outcome {
    fn from(error: EngineError) -> Self {
        let there = match &error {
            EngineError::Move {
                why: MoveError::NotTaken { why: TakeOverRefusal::Fenced { there, .. }, .. },
                ..
            } => Some(*there),
            _ => None,
        };
        let hint = match &error {
            EngineError::Move { why: MoveError::Signer { key, .. }, .. } => {
                format!("; [trust] signers = [\"{key}\"] accepts that key")
            }
            _ => String::new(),
        };
        let mut outcome = Self::from(DriveEnd::from(error));
        outcome.words.push_str(&hint);
        match there {
            Some(there) => Self { ending: Ending::Fenced(Some(there)), ..outcome },
            None => outcome,
        }
    }
}

fn word(end: End) -> &'static str {
    refrain_core::MachineEnd::name(end)
}

impl Drive {
    /// Drives the loop in this thread until the drive ends.
    pub(crate) fn run(self) -> Ending {
        let worker = Arc::clone(&self.worker);
        let (id, fence) = (self.order.id.clone(), self.order.fence);
        worker.say(&id, &format!("taken under fence {fence}"));
        let Outcome { ending, words } = self.driven().unwrap_or_else(Outcome::from);
        worker.say(&id, &words);
        drop(self.room);
        ending
    }

    fn driven(&self) -> Result<Outcome, EngineError> {
        let Self { worker, order, .. } = self;
        let unable = |why: String| Outcome::from(DriveEnd::Unable(why));
        let Ok(id) = order.id.parse::<LoopId>() else { return Ok(unable("it has no name".to_owned())) };
        let dir = clone::folder(&worker.context, &order.remote);
        // A submitter chooses it: only what the user of this machine allows is pushed to.
        let is_allowed = |origin: &&str| worker.allowed.remotes.iter().any(|remote| remote == origin);
        let origin = order.origin.as_deref().filter(is_allowed).unwrap_or(&order.remote);
        if let Err(error) = clone::prepare(&dir, origin) {
            return Ok(unable(chain(&error)));
        }
        let service = Service::open(&dir, worker.context.host.clone())?;
        let witness = Arc::new(service.take_lease(&id, (&order.remote, &dir), order.fence, None)?);
        let spec = service.spec(&id)?;
        // The order names one agent, and its submitter may have named another than the loop has.
        let is_foreign = |kind: &String| !worker.allowed.agents.contains(kind);
        if let Some(kind) = spec.agents().map(|agent| agent.kind.to_string()).find(is_foreign) {
            return Ok(unable(format!("[worker] agents does not have {kind}")));
        }
        let mut named = spec.agents().flat_map(|agent| &agent.env_names);
        if let Some(name) = named.find(|name| worker.context.variable(name).is_none()) {
            return Ok(unable(format!(
                "{name} is not set here; its person named it with --env: set it, and start the worker again"
            )));
        }
        logs::keep_during(worker, &service, &id, || self.drive(&service, (&dir, &id), witness))
    }

    /// Does what it is asked of a loop that is here now, and drives it unless it has stopped.
    fn drive(
        &self,
        service: &Service,
        (dir, id): (&Utf8Path, &LoopId),
        witness: Arc<RemoteWitness>,
    ) -> Result<Outcome, EngineError> {
        let Self { worker, order, .. } = self;
        let has_stopped = service.state(id)?.ended.is_some();
        let is_woken = order.waiting.iter().any(|asked| asked.what.wakes());
        let outcome = requests::carry_out(worker, service, (dir, id), order);
        if has_stopped && !is_woken {
            return self.stopped(service, id, &witness, &outcome.done);
        }
        match requests::resume(service, id, &outcome) {
            Ok(runner) => self.lease(service, (runner, outcome.done), witness),
            // A request ended it, or it cannot go on as it is: that is what the next machine has to know.
            Err(error) if is_over(&error) || matches!(error, EngineError::Refused { .. }) => {
                worker.say(id.as_str(), &chain(&error));
                self.stopped(service, id, &witness, &outcome.done)
            }
            Err(error) => Err(error),
        }
    }

    fn lease(
        &self,
        service: &Service,
        (runner, done): (refrain_engine::Runner, Vec<WaitingRequest>),
        witness: Arc<RemoteWitness>,
    ) -> Result<Outcome, EngineError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| EngineError::Process("no runtime", error))?;
        let money = Arc::new(self.money());
        let lease = Lease {
            money: Some(Arc::clone(&money) as Arc<dyn SharedMoney>),
            accounts: Some(Arc::new(self.accounts())),
            fence: self.order.fence,
            witness: Arc::clone(&witness) as Arc<dyn Witness>,
            deadline: self.deadline.clone(),
            replicate_within: self.order.terms.replicate(),
            drain: self.worker.drain.subscribe(),
        };
        let id = runner.id().clone();
        let seq = service.state(&id)?.seq + 1;
        let own = (self.order.remote.clone(), self.order.id.clone());
        let _ = locked(&self.worker.driving).insert(own.clone(), Arc::clone(&witness));
        let end = runtime.block_on(async {
            let replicated = async {
                while !witness.covers(seq) {
                    tokio::time::sleep(LOOK).await;
                }
                self.taken(&done);
                std::future::pending::<DriveEnd>().await
            };
            tokio::select! {
                end = runner.drive_leased(service.host(), Signals::None, lease, || {}) => end,
                end = replicated => end,
            }
        });
        if witness.covers(seq) {
            self.taken(&done);
        }
        let _ = locked(&self.worker.driving).remove(&own);
        self.taken_while_driven(&own, &witness);
        if !matches!(end, DriveEnd::Fenced | DriveEnd::Lapsed)
            && let Ok(state) = service.state(&id)
        {
            money.release(&state);
        }
        if matches!(end, DriveEnd::Unable(_)) {
            *locked(&self.worker.unable_until) = Some(Instant::now() + UNABLE);
        }
        Ok(end.into())
    }

    fn money(&self) -> LoopMoney {
        let Self { worker, order, deadline, .. } = self;
        LoopMoney::new(&worker.client, &worker.runtime, deadline, order)
    }

    fn accounts(&self) -> WorkerAccounts {
        let Self { worker, order, .. } = self;
        WorkerAccounts {
            client: worker.client.clone(),
            runtime: worker.runtime.clone(),
            remote: order.remote.clone(),
            of: order.id.clone(),
            every: order.terms.beat(),
        }
    }

    /// The git remote has what these requests did.
    fn taken(&self, done: &[WaitingRequest]) {
        let ids: Vec<String> = done.iter().map(|asked| asked.id.clone()).collect();
        let is_new = self.journal_has.send_if_modified(|known| {
            let is_new = !ids.is_empty() && *known != ids;
            if is_new {
                *known = ids;
            }
            is_new
        });
        if is_new {
            self.forget_texts(done.to_vec());
        }
    }

    /// The same of those that were carried to the loop while it was driven. What the git remote does not have is done again.
    fn taken_while_driven(&self, own: &(String, String), witness: &RemoteWitness) {
        let mut ids = Vec::new();
        locked(&self.worker.carried).retain(|id, carried| {
            let is_own = carried.of == *own;
            if is_own && witness.covers(carried.seq) {
                ids.push(id.clone());
            }
            !is_own
        });
        self.journal_has.send_modify(|known| known.extend(ids));
    }

    /// Deletes texts at the git remote, in a thread of its own.
    fn forget_texts(&self, done: Vec<WaitingRequest>) {
        let (worker, remote, id) =
            (Arc::clone(&self.worker), self.order.remote.clone(), self.order.id.clone());
        std::thread::spawn(move || {
            let dir = clone::folder(&worker.context, &remote);
            let Ok(id) = id.parse::<LoopId>() else { return };
            for asked in &done {
                requests::forget(&dir, (&remote, &id), asked);
            }
        });
    }

    /// A loop that has stopped, and is not to continue: its journal is made known.
    fn stopped(
        &self,
        service: &Service,
        id: &LoopId,
        witness: &RemoteWitness,
        done: &[WaitingRequest],
    ) -> Result<Outcome, EngineError> {
        let state = service.state(id)?;
        let path = service.locate(id)?.dir.journal();
        let journal = std::fs::read(&path).map_err(|error| EngineError::Process("no journal", error))?;
        match witness.replicate(state.seq, &journal) {
            Ok(()) => {
                self.money().release(&state);
                self.taken(done);
                Ok(ended(&state).into())
            }
            Err(Unreplicated::Fenced) => Ok(DriveEnd::Fenced.into()),
            Err(Unreplicated::Unreachable(why)) => Ok(DriveEnd::Unable(why).into()),
        }
    }
}

fn ended(state: &LoopState) -> DriveEnd {
    match state.ended.map(|ended| ended.end) {
        None | Some(End::Blocked { .. } | End::Paused) => DriveEnd::Parked("a request".to_owned()),
        Some(end) => DriveEnd::Ended(end),
    }
}
