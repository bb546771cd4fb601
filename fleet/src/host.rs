//! What a worker does for the server: it takes loops as far as it has room for them, drives them, and carries requests.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use refrain_app::Context;
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_engine::{LeaseDeadline, LeaseTime, LogStore, RemoteWitness, Service, Witness};
use temporalio_client::errors::AsyncActivityError;
use temporalio_client::{ActivityIdentifier, AsyncActivityHandle, Client, RpcOptions};
use temporalio_common::error::ApplicationFailure;
use temporalio_common::protos::TaskToken;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::timeout;

use crate::drive::Drive;
use crate::order::{Beat, Ending, Order, Report, WaitingRequest, workflow_id};
use crate::{clone, requests, say};

/// How long a claim waits for room, and how long what it took is kept for the drive.
const ROOM: Duration = Duration::from_secs(1);
pub(crate) const RESERVED: Duration = Duration::from_secs(15);
/// How long a request may take to be known beyond this machine, and how often that is looked at.
const KNOWN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);
/// A worker whose disk does not take so many bytes more takes no loop.
const LEAST_DISK: usize = 256 * 1024;

/// The loops of others that this machine takes.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) remotes: Vec<String>,
    pub(crate) agents: Vec<String>,
}

/// A worker.
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) client: Client,
    /// The runtime of the client: drives have threads and runtimes of their own.
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) context: Context,
    pub(crate) allowed: Allowed,
    pub(crate) room: Arc<Semaphore>,
    pub(crate) slots: u32,
    pub(crate) pools: Vec<String>,
    /// Told by a request from elsewhere.
    pub(crate) asked_to_drain: Notify,
    /// Whether every drive is to end after its iteration, and none is taken any more.
    pub(crate) drain: watch::Sender<bool>,
    /// By the name of the loop at the server, and the fence.
    pub(crate) reserved: Mutex<HashMap<(String, u64), (OwnedSemaphorePermit, Instant)>>,
    /// The loops that are driven here, by the git remote and the name, with what makes them known.
    pub(crate) driving: Mutex<HashMap<(String, String), Arc<RemoteWitness>>>,
    /// Requests that were carried to loops that are driven.
    pub(crate) carried: Mutex<HashMap<String, CarriedRequest>>,
    /// Where it puts long logs.
    pub(crate) logs: Option<Arc<dyn LogStore>>,
    /// Until when nothing is claimed, because a loop could not be continued here.
    pub(crate) unable_until: Mutex<Option<Instant>>,
}

/// A request that the journal of a loop has.
pub(crate) struct CarriedRequest {
    /// Its loop, by the git remote and the name.
    pub(crate) of: (String, String),
    /// The record up to which the git remote has to have the journal.
    pub(crate) seq: u64,
}

/// The worker as its queues know it.
#[derive(Clone)]
pub(crate) struct Host(pub(crate) Arc<Worker>);

fn failed(why: impl std::fmt::Display) -> ActivityError {
    ActivityError::application(failure(why))
}

fn failure(why: impl std::fmt::Display) -> ApplicationFailure {
    ApplicationFailure::new(Failure(why.to_string()))
}

/// What the server may know of an error: never a path, a prompt or a program's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Whether it takes this loop.
    fn check(&self, order: &Order) -> Result<(), &'static str> {
        if *self.drain.borrow() {
            return Err("draining");
        }
        if locked(&self.unable_until).is_some_and(|until| until > Instant::now()) {
            return Err("unable");
        }
        if order.avoid.contains(&self.name) {
            return Err("unable");
        }
        self.admit(order)
    }

    /// Refuses an order that this machine is not to follow. Those who reach the server can write into the
    /// worker's own queue, too.
    fn admit(&self, order: &Order) -> Result<(), &'static str> {
        if order.id.parse::<LoopId>().is_err() {
            return Err("invalid loop id");
        }
        if !order.terms.are_fit() {
            return Err("lease terms out of range");
        }
        if !self.allowed.agents.contains(&order.agent) {
            return Err("agent not allowed");
        }
        self.admit_remote(&order.remote)
    }

    fn admit_remote(&self, remote: &str) -> Result<(), &'static str> {
        let is_allowed = self.allowed.remotes.iter().any(|allowed| allowed == remote);
        is_allowed.then_some(()).ok_or("remote not allowed")
    }

    /// Whether the disk still takes what a loop writes first.
    fn can_write(&self) -> bool {
        let folder = self.context.host.data_home.join("fleet");
        let file = folder.join(format!("room-{}", std::process::id()));
        let made = fs::create_dir_all(&folder).and_then(|()| fs::File::create(&file));
        let is_written = made.and_then(|mut file| file.write_all(&vec![1; LEAST_DISK]));
        let _ = fs::remove_file(&file);
        is_written.is_ok()
    }

    /// Returns once there is room, or none is needed any more. As long as a claim waits here, its queue is not asked for more:
    /// loops that wait there keep their order, in which each team has its share.
    async fn until_room(&self) {
        let mut drain = self.drain.subscribe();
        let room = async {
            while timeout(RESERVED, self.room.acquire()).await.is_err() {
                self.forget_unused();
            }
        };
        tokio::select! {
            () = room => {}
            _ = drain.wait_for(|drains| *drains) => {}
        }
    }

    /// Room that claims took for drives that never began is free again.
    pub(crate) fn forget_unused(&self) {
        locked(&self.reserved).retain(|_, (_, since)| since.elapsed() < RESERVED);
    }

    /// Whether a claim took room for this drive.
    fn has_reserved(&self, key: &(String, u64)) -> bool {
        self.forget_unused();
        let mut reserved = locked(&self.reserved);
        reserved.get_mut(key).map(|(_, since)| *since = Instant::now()).is_some()
    }

    /// Takes the room that a claim took, or other room.
    fn take_room(&self, order: &Order) -> Option<OwnedSemaphorePermit> {
        let key = (workflow_id(&order.remote, &order.id), order.fence);
        let reserved = locked(&self.reserved).remove(&key).map(|(permit, _)| permit);
        reserved.or_else(|| Arc::clone(&self.room).try_acquire_owned().ok())
    }

    pub(crate) fn say(&self, id: &str, what: &str) {
        say::line(&format!("{id}: {}", printable(what).replace('\n', " ")));
    }
}

#[activities]
impl Host {
    /// Takes room for a loop, or refuses it.
    #[activity]
    pub(crate) async fn claim(
        self: Arc<Self>,
        ctx: ActivityContext,
        order: Order,
    ) -> Result<String, ActivityError> {
        let worker = &self.0;
        worker.check(&order).map_err(failed)?;
        let looked = Arc::clone(worker);
        let can_write = tokio::task::spawn_blocking(move || looked.can_write()).await;
        if !can_write.unwrap_or_default() {
            return Err(failed("disk full"));
        }
        let key = (workflow_id(&order.remote, &order.id), order.fence);
        // The server did not wait for the answer to an earlier claim.
        if worker.has_reserved(&key) {
            return Ok(worker.name.clone());
        }
        let room = timeout(ROOM, Arc::clone(&worker.room).acquire_owned()).await;
        let token = TaskToken::from(ctx.info().task_token.clone());
        let claim = AsyncActivityHandle::new(ctx.client(), ActivityIdentifier::from_task_token(token));
        let Ok(Ok(permit)) = room else {
            let _ = timeout(ROOM, claim.fail(failure("full"), None::<()>, RpcOptions::default())).await;
            worker.until_room().await;
            return Err(ActivityError::WillCompleteAsync);
        };
        worker.check(&order).map_err(failed)?;
        let _ = locked(&worker.reserved).insert(key, (permit, Instant::now()));
        if worker.room.available_permits() > 0 {
            return Ok(worker.name.clone());
        }
        let answer = claim.complete(Some(worker.name.clone()), RpcOptions::default());
        match timeout(ROOM, answer).await {
            Ok(Ok(())) => {
                worker.until_room().await;
                Err(ActivityError::WillCompleteAsync)
            }
            Ok(Err(_)) | Err(_) => Ok(worker.name.clone()),
        }
    }

    /// Drives a loop until that ends, and tells the server all the time that it does.
    #[activity]
    pub(crate) async fn drive(
        self: Arc<Self>,
        ctx: ActivityContext,
        order: Order,
    ) -> Result<Report, ActivityError> {
        let worker = &self.0;
        worker.admit(&order).map_err(failed)?;
        let report = |ending, taken| Ok(Report { ending, host: worker.name.clone(), taken });
        let begun = LeaseTime::now();
        let Some(room) = worker.take_room(&order) else { return report(Ending::Yielded, Vec::new()) };
        let terms = order.terms;
        let deadline = LeaseDeadline::new(begun.after(terms.fence()));
        let (done, mut over) = oneshot::channel();
        let (journal_has, mut taken) = watch::channel(Vec::<String>::new());
        let drive = Drive {
            worker: Arc::clone(worker),
            order: order.clone(),
            deadline: deadline.clone(),
            journal_has,
            room,
        };
        let spawned = std::thread::Builder::new().name(order.id.clone()).spawn(move || {
            let _ = done.send(drive.run());
        });
        spawned.map_err(|_| failed("no thread"))?;
        let token = TaskToken::from(ctx.info().task_token.clone());
        let lease = AsyncActivityHandle::new(ctx.client(), ActivityIdentifier::from_task_token(token));
        let beat = Beat { host: worker.name.clone(), fence: order.fence };
        let (mut is_cancelled, mut is_told) = (false, true);
        loop {
            tokio::select! {
                ending = &mut over => {
                    let ids = taken.borrow().clone();
                    return report(ending.unwrap_or(Ending::Unable), ids);
                }
                Ok(()) = taken.changed() => is_told = false,
                () = tokio::time::sleep(terms.beat()) => {}
            }
            // Both: one is for the timer of the SDK, and the other has the server's answer.
            let _ = ctx.record_heartbeat(beat.clone()).await;
            let sent = LeaseTime::now();
            let answer =
                timeout(terms.fence() / 2, lease.heartbeat(Some(beat.clone()), RpcOptions::default()));
            match answer.await {
                Ok(Ok(reply)) => {
                    deadline.renew(sent.after(terms.fence()));
                    if reply.cancel_requested && !std::mem::replace(&mut is_cancelled, true) {
                        requests::cancel(worker, &order);
                    }
                }
                Ok(Err(AsyncActivityError::NotFound(_))) => deadline.renew(sent),
                Ok(Err(_)) | Err(_) => {}
            }
            if !is_told && let Some(handle) = ctx.workflow_handle::<crate::workflow::FleetLoop>() {
                let ids = taken.borrow().clone();
                let signal = handle.signal(crate::workflow::FleetLoop::taken, ids, Default::default());
                is_told = timeout(terms.fence() / 2, signal).await.is_ok_and(|sent| sent.is_ok());
            }
        }
    }

    /// Carries a request to a loop that is driven here.
    #[activity]
    pub(crate) async fn deliver(
        self: Arc<Self>,
        _: ActivityContext,
        ((remote, id), asked): ((String, String), WaitingRequest),
    ) -> Result<(), ActivityError> {
        let worker = Arc::clone(&self.0);
        worker.admit_remote(&remote).map_err(failed)?;
        let (own, request) = ((remote.clone(), id.clone()), asked.clone());
        let carried = tokio::task::spawn_blocking(move || {
            let dir: Utf8PathBuf = clone::folder(&worker.context, &remote);
            let name: LoopId = id.parse().map_err(|_| "invalid loop id")?;
            // What a loop that is not driven was told here, no other machine would know.
            let witness = || locked(&worker.driving).get(&own).cloned().ok_or("not driven here");
            witness()?;
            let carried = locked(&worker.carried).get(&asked.id).map(|carried| carried.seq);
            let seq = match carried {
                Some(seq) => seq,
                None => {
                    requests::carry(&worker, (&dir, &remote, &name), &asked)?;
                    let service =
                        Service::open(&dir, worker.context.host.clone()).map_err(|_| "no repository")?;
                    let seq = service.state(&name).map_err(|_| "no journal")?.seq;
                    witness()?;
                    let _ = locked(&worker.carried)
                        .insert(asked.id.clone(), CarriedRequest { of: own.clone(), seq });
                    seq
                }
            };
            Ok::<_, &'static str>((witness()?, seq, (dir, remote, name)))
        });
        let carried = carried.await.map_err(|_| failed("it ended"))?;
        let (witness, seq, (dir, remote, name)) = carried.map_err(failed)?;
        let known = async {
            while !witness.covers(seq) {
                tokio::time::sleep(LOOK).await;
            }
        };
        timeout(KNOWN, known).await.map_err(|_| failed("not known beyond this machine"))?;
        // The request is done; the server does not wait for this.
        drop(tokio::task::spawn_blocking(move || requests::forget(&dir, (&remote, &name), &request)));
        Ok(())
    }
}
