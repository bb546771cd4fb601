//! `refrain worker`: polls the queues until a signal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use refrain_app::options::fleet::WorkerArgs;
use refrain_app::{Action, Context, RequestError};
use refrain_engine::chain;
use temporalio_client::Client;
use temporalio_sdk::runtime::PollerBehavior;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker as Poller, WorkerOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::LocalSet;

use crate::cleanup;
use crate::host::{Allowed, Host, RESERVED, Worker};
use crate::operations::roster::WorkerActivities;
use crate::order::{LOOPS, claims, own_queue};
use crate::say;
use crate::settings::{Settings, failed};
use crate::shared::accounts::FleetAccount;
use crate::shared::money::FleetMoney;
use crate::shared::{labels, logs};
use crate::workflow::FleetLoop;

/// How many loops it drives at a time where nothing says so.
const SLOTS: u32 = 2;
/// How long the server may take to make the labels of loops.
const REGISTER: std::time::Duration = std::time::Duration::from_secs(5);

/// A worker that takes what the configuration allows.
pub(crate) async fn run(context: &Context, args: WorkerArgs) -> Result<(), RequestError> {
    let settings = Settings::read(context)?;
    let of_config = &settings.worker;
    let lacking = |key: &str, accepted: &str| {
        let error = format!("[worker] {key}: it is empty, so no loop would be taken; accepted: {accepted}");
        Err(RequestError::usage(error).hint(format!("refrain config set worker.{key} names them")))
    };
    if of_config.remotes.is_empty() {
        return lacking("remotes", "addresses of git remotes");
    }
    let allowed: Vec<String> = of_config.agents.iter().map(ToString::to_string).collect();
    if allowed.is_empty() {
        return lacking("agents", "kinds of agents, such as claude; generic is any command");
    }
    let asked: Vec<String> = args.agents.iter().map(ToString::to_string).collect();
    if let Some(other) = asked.iter().find(|kind| !allowed.contains(kind)) {
        let error = format!("--agents {other}: [worker] agents of your configuration does not have it");
        return Err(RequestError::usage(format!("{error}; accepted: {}", allowed.join(", "))));
    }
    let agents = if asked.is_empty() { allowed } else { asked };
    let allowed = Allowed { remotes: of_config.remotes.clone(), agents };
    let client = settings.connect(&name(&args, of_config.name.as_deref())).await?;
    serve(context, &settings, args, allowed, client, std::future::pending()).await
}

pub(crate) fn name(args: &WorkerArgs, configured: Option<&str>) -> String {
    args.name.clone().or_else(|| configured.map(str::to_owned)).unwrap_or_else(machine)
}

/// The name of this machine.
pub(crate) fn machine() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(64).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

/// Serves until a signal, or `stop`. Ctrl-C and SIGTERM drain it: loops are given back after their iteration; again, and
/// it ends at once.
pub(crate) async fn serve(
    context: &Context,
    settings: &Settings,
    args: WorkerArgs,
    allowed: Allowed,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<(), RequestError> {
    context.check(Action::ServeFleet)?;
    let name = name(&args, settings.worker.name.as_deref());
    let slots = args.slots.or(settings.worker.slots).unwrap_or(SLOTS);
    let pools = match (args.pool, settings.worker.pools.as_slice()) {
        (Some(pool), _) => vec![pool],
        (None, []) => vec!["default".to_owned()],
        (None, pools) => pools.to_vec(),
    };
    // Who may not change the namespace works all the same: doctor says what is missing.
    let _ = tokio::time::timeout(REGISTER, labels::register(&client)).await;
    let logs = logs::store(settings)?;
    let room = Arc::new(Semaphore::new(slots as usize));
    let host = Host(Arc::new(Worker {
        name: name.clone(),
        client: client.clone(),
        runtime: tokio::runtime::Handle::current(),
        context: context.clone(),
        allowed: allowed.clone(),
        room: Arc::clone(&room),
        slots,
        pools: pools.clone(),
        asked_to_drain: Notify::new(),
        drain: watch::channel(false).0,
        reserved: Mutex::new(HashMap::new()),
        driving: Mutex::new(HashMap::new()),
        carried: Mutex::new(HashMap::new()),
        logs,
        unable_until: Mutex::new(None),
    }));
    let runtime = Runtime::from_current_tokio(Default::default()).map_err(failed)?;
    let queues = pools.iter().flat_map(|pool| allowed.agents.iter().map(|agent| claims(pool, agent)));
    let mut pollers =
        vec![poller(&runtime, &client, &own_queue(&name), 2 * slots as usize + 4, Some(&host))?];
    pollers.push(poller(&runtime, &client, LOOPS, 1, None)?);
    for queue in queues {
        pollers.push(poller(&runtime, &client, &queue, 1, Some(&host))?);
    }
    let mut signals = EndSignals::new().map_err(failed)?;
    say::line(&format!(
        "worker {name}: {slots} loops at a time, agents {}, pools {}; Ctrl-C gives them back after their iteration",
        allowed.agents.join(", "),
        pools.join(", ")
    ));
    let stops: Vec<_> = pollers.iter().map(Poller::shutdown_handle).collect();
    // The first two are its own queue, and that of the workflows.
    let (stay, claims) = stops.split_at(2);
    let polling = LocalSet::new();
    let (died, mut dead) = tokio::sync::mpsc::unbounded_channel();
    for mut poller in pollers {
        let died = died.clone();
        polling.spawn_local(async move {
            let _ = died.send(poller.run().await.err().map(|error| chain(&error)));
        });
    }
    drop(died);
    polling.spawn_local(cleanup::run(Arc::clone(&host.0)));
    let ended = polling
        .run_until(async {
            tokio::select! {
                why = dead.recv() => return why.flatten(),
                () = signals.next() => {}
                () = host.0.asked_to_drain.notified() => {}
                () = stop => {}
            }
            host.0.drain.send_replace(true);
            // Others claim at once what this one refuses from now on.
            claims.iter().for_each(|stop| stop());
            say::line("drains: loops are given back after their iteration; Ctrl-C again ends it at once");
            let all_room = async {
                while tokio::time::timeout(RESERVED, room.acquire_many(slots)).await.is_err() {
                    host.0.forget_unused();
                }
            };
            tokio::select! {
                () = all_room => {}
                () = signals.next() => return None,
            }
            stay.iter().for_each(|stop| stop());
            let all = async { while dead.recv().await.is_some() {} };
            let _ = tokio::time::timeout(std::time::Duration::from_secs(3), all).await;
            None
        })
        .await;
    ended.map_or(Ok(()), |why| Err(failed(format!("the server ended the worker: {why}"))))
}

/// The signals to end.
struct EndSignals {
    told: [Signal; 2],
    hangup: Option<Signal>,
}

impl EndSignals {
    fn new() -> std::io::Result<Self> {
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        Ok(Self { told: [interrupt?, terminate?], hangup: refrain_engine::hangup()? })
    }

    /// Returns at the next of them.
    async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.told;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = refrain_engine::next_of(&mut self.hangup) => {}
        }
    }
}

/// Polls one queue. A poll that is open while the machine is frozen swallows an order, so there is one.
fn poller(
    runtime: &Runtime,
    client: &Client,
    queue: &str,
    most: usize,
    host: Option<&Host>,
) -> Result<Poller, RequestError> {
    let fixed = FixedSizeSlotSupplier::new;
    let mut options = WorkerOptions::new(queue).build();
    options.tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(fixed(4))
        .activity_task_slot_supplier(fixed(most))
        .local_activity_task_slot_supplier(fixed(1))
        .nexus_task_slot_supplier(fixed(1))
        .build()
        .into();
    // A history is short, and another worker can decide at once when this one is gone.
    options.max_cached_workflows = 0;
    options.workflow_task_poller_behavior = Some(PollerBehavior::SimpleMaximum(1));
    options.activity_task_poller_behavior = Some(PollerBehavior::SimpleMaximum(1));
    match host {
        Some(host) => {
            options
                .register_activities(host.clone())
                .register_activities(WorkerActivities(Arc::clone(&host.0)));
        }
        None => {
            options.register_workflow::<FleetLoop>().map_err(failed)?;
            options.register_workflow::<FleetMoney>().map_err(failed)?;
            options.register_workflow::<FleetAccount>().map_err(failed)?;
        }
    }
    Poller::new(runtime, client.clone(), options).map_err(|error| failed(chain(&error)))
}
