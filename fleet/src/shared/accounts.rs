//! The gates of accounts that workers share: an outage or a limit that one worker met holds the others, until one of them tries
//! first and its provider answers. A workflow keeps a gate as long as it is closed. What it says is its memo, so that looking at
//! it needs no worker and leaves no trace.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use refrain_core::event::Wait;
use refrain_core::r#loop::{GateChange, SharedGateState};
use refrain_engine::{SharedAccounts, SharedGate};
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{Code, IntoRequest, Status};
use temporalio_client::{Client, NamespacedClient, WorkflowIdConflictPolicy, WorkflowUpdateWithStartOptions};
use temporalio_common::MemoValue;
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeWorkflowExecutionRequest;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::select;
use temporalio_sdk::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::order::LOOPS;

/// So many changes, and a gate begins a new history.
const MOST: u64 = 100;
/// How long the server has to answer, and how often a change of a gate is sent to it again.
const ANSWER: Duration = Duration::from_secs(2);
const TRIES: u32 = 10;
const AGAIN: Duration = Duration::from_secs(3);
/// The key of the memo.
const WAIT: &str = "wait";

#[workflow]
#[derive(Default)]
pub(crate) struct FleetAccount {
    gate: SharedGateState,
    changes: u64,
}

#[workflow_methods]
impl FleetAccount {
    #[init]
    fn new(_: &WorkflowContextView, gate: SharedGateState) -> Self {
        Self { changes: u64::from(gate.wait().is_some()), gate }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        ctx.wait_condition(|s| s.changes > 0).await?;
        loop {
            let (seen, until) = ctx.state(|s| (s.changes, s.gate.forgotten_at()));
            let Some(until) = until else { return Ok(()) };
            if seen >= MOST {
                let gate = ctx.state(|s| s.gate.clone());
                ctx.continue_as_new(gate, ContinueAsNewOptions::default())?;
            }
            let left = until.duration_since(time(ctx.workflow_time()));
            let mut forgotten = std::pin::pin!(ctx.timer(Duration::try_from(left).unwrap_or_default()));
            select! {
                _ = forgotten => return Ok(()),
                _ = ctx.wait_condition(|s| s.changes != seen) => (),
            };
        }
    }

    /// Says whether this loop may try first, if it asked for that.
    #[update]
    pub(crate) fn change(&mut self, ctx: &mut SyncWorkflowContext<Self>, change: GateChange) -> bool {
        let before = self.gate.wait();
        let may_try = self.gate.change(change, time(ctx.workflow_time()));
        self.changes += 1;
        let after = self.gate.wait();
        if after != before {
            let _ = ctx.upsert_memo([(WAIT, after.map(MemoValue::new))]);
        }
        may_try
    }
}

/// The clock of the server.
fn time(now: Option<SystemTime>) -> Timestamp {
    now.and_then(|now| Timestamp::try_from(now).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The gates, as one worker sees them.
#[derive(Clone)]
pub(crate) struct WorkerAccounts {
    pub(crate) client: Client,
    pub(crate) runtime: Handle,
    /// The address of the git remote: another fleet of the server has other gates.
    pub(crate) remote: String,
    /// The loop that asks.
    pub(crate) of: String,
    /// How often it is looked whether a gate is closed.
    pub(crate) every: Duration,
}

impl std::fmt::Debug for WorkerAccounts {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WorkerAccounts").field("of", &self.of).finish_non_exhaustive()
    }
}

impl SharedAccounts for WorkerAccounts {
    fn gate(&self, name: &str) -> Box<dyn SharedGate> {
        let place =
            GateWorkflow { accounts: self.clone(), id: format!("refrain-account/{}/{name}", self.remote) };
        let news = Arc::new(GateNews::default());
        let (looked, first) = watch::channel(false);
        let looks = self.runtime.spawn(look(place.clone(), Arc::clone(&news), looked));
        Box::new(WorkerGate { place, news, first, looks })
    }
}

#[derive(Debug)]
struct WorkerGate {
    place: GateWorkflow,
    news: Arc<GateNews>,
    /// Whether it was looked at.
    first: watch::Receiver<bool>,
    looks: JoinHandle<()>,
}

impl Drop for WorkerGate {
    fn drop(&mut self) {
        self.looks.abort();
    }
}

async fn look(place: GateWorkflow, news: Arc<GateNews>, looked: watch::Sender<bool>) {
    loop {
        news.look(async { timeout(ANSWER, place.look()).await.ok().and_then(Result::ok) }).await;
        looked.send_replace(true);
        sleep(place.accounts.every).await;
    }
}

/// What the server said last of a gate, and the changes that are on their way to it.
#[derive(Debug, Default)]
struct GateNews {
    last: watch::Sender<LastNews>,
    /// Held while a change is sent, so that the server gets them in their order.
    one_by_one: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastNews {
    /// None if the server did not answer, or a change is on its way to it.
    wait: Option<Option<Wait>>,
    /// How many changes were begun to be sent, and how many of them are over.
    begun: u64,
    over: u64,
}

impl GateNews {
    fn wait(&self) -> Option<Option<Wait>> {
        self.last.borrow().wait
    }

    async fn look(&self, look: impl Future<Output = Option<Option<Wait>>>) {
        let before = *self.last.borrow();
        let wait = look.await;
        self.last.send_if_modified(|last| {
            // A look during a change may be older than that.
            let is_current = before.begun == before.over && *last == before;
            last.wait = if is_current { wait } else { last.wait };
            is_current
        });
    }

    /// The number of a change that is sent next.
    fn begin(&self) -> u64 {
        let mut own = 0;
        self.last.send_modify(|last| {
            (last.wait, last.begun) = (None, last.begun + 1);
            own = last.begun;
        });
        own
    }

    /// Sends a change until the server has answered; `then` is what it says of the gate after that. Only the last change counts:
    /// those before it are not tried again.
    async fn send<A>(&self, own: u64, then: Option<Wait>, send: impl Fn() -> A)
    where
        A: Future<Output = Option<bool>>,
    {
        let mut last = self.last.subscribe();
        let turn = self.one_by_one.lock().await;
        let mut is_answered = false;
        for _ in 0..TRIES {
            if last.borrow().begun != own {
                break;
            }
            is_answered = send().await.is_some();
            if is_answered {
                break;
            }
            // A later change does not wait for this one.
            let _ = timeout(AGAIN, last.wait_for(|last| last.begun != own)).await;
        }
        drop(turn);
        self.last.send_modify(|last| {
            last.over += 1;
            if is_answered && last.begun == own {
                last.wait = Some(then);
            }
        });
    }
}

impl WorkerGate {
    /// Tells the server, without waiting for it.
    fn send_change(&self, change: GateChange, then: Option<Wait>) {
        let (place, news, own) = (self.place.clone(), Arc::clone(&self.news), self.news.begin());
        drop(self.place.accounts.runtime.spawn(async move {
            news.send(own, then, || place.change(change.clone())).await;
        }));
    }
}

impl SharedGate for WorkerGate {
    fn closed(&self) -> Option<Option<Wait>> {
        self.news.wait()
    }

    fn ready(&self) {
        let mut first = self.first.clone();
        let _ = self.place.accounts.runtime.block_on(timeout(ANSWER, first.wait_for(|looked| *looked)));
    }

    fn close(&self, wait: Wait) {
        self.send_change(GateChange::Close(wait), Some(wait));
    }

    fn open(&self) {
        self.send_change(GateChange::Open, None);
    }

    fn may_try(&self) -> bool {
        let asked = self.place.change(GateChange::Try(self.place.accounts.of.clone()));
        self.place.accounts.runtime.block_on(asked).unwrap_or(true)
    }
}

/// Where a gate is.
#[derive(Clone, Debug)]
struct GateWorkflow {
    accounts: WorkerAccounts,
    id: String,
}

impl GateWorkflow {
    /// What the account waits for.
    async fn look(&self) -> Result<Option<Wait>, Status> {
        let mut client = self.accounts.client.clone();
        let execution = WorkflowExecution { workflow_id: self.id.clone(), run_id: String::new() };
        let asked =
            DescribeWorkflowExecutionRequest { namespace: client.namespace(), execution: Some(execution) };
        let said = match WorkflowService::describe_workflow_execution(&mut client, asked.into_request()).await
        {
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            said => said?.into_inner(),
        };
        let info = said.workflow_execution_info.unwrap_or_default();
        if info.status != i32::from(WorkflowExecutionStatus::Running) {
            return Ok(None);
        }
        let payload = info.memo.and_then(|memo| memo.fields.get(WAIT).cloned());
        Ok(payload.and_then(|payload| serde_json::from_slice(&payload.data).ok()))
    }

    /// What the gate says to a change; none if it did not answer.
    async fn change(&self, change: GateChange) -> Option<bool> {
        let policy = WorkflowIdConflictPolicy::UseExisting;
        let mut options = WorkflowUpdateWithStartOptions::new(LOOPS, self.id.clone(), policy).build();
        options.task_timeout = Some(ANSWER);
        let asked = self.accounts.client.execute_update_with_start_workflow(
            FleetAccount::run,
            SharedGateState::default(),
            FleetAccount::change,
            change,
            options,
        );
        timeout(2 * ANSWER, Box::pin(asked)).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use refrain_core::event::WaitKind;
    use tokio::join;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::host::locked;

    const LIMIT: Wait = Wait { kind: WaitKind::Limit, until: Timestamp::MAX };

    /// Notes what it gets, and answers when it may.
    struct TestServer {
        got: Mutex<Vec<&'static str>>,
        answers: Semaphore,
    }

    impl TestServer {
        fn silent() -> Self {
            Self { got: Mutex::default(), answers: Semaphore::new(0) }
        }

        async fn get(&self, change: &'static str, answer: Option<bool>) -> Option<bool> {
            locked(&self.got).push(change);
            self.answers.acquire().await.unwrap().forget();
            answer
        }
    }

    #[tokio::test]
    async fn changes_of_a_gate_reach_the_server_in_their_order() {
        for (case, answer) in [("the first is answered", Some(true)), ("the first is lost", None)] {
            let (news, server) = (GateNews::default(), TestServer::silent());
            let close = news.begin();
            let later = async {
                let open = news.begin();
                // The first is with the server, which answers only now.
                server.answers.add_permits(2);
                news.send(open, None, || server.get("open", Some(true))).await;
            };
            join!(news.send(close, Some(LIMIT), || server.get("close", answer)), later);
            assert_eq!(*locked(&server.got), ["close", "open"], "{case}");
            assert_eq!(news.wait(), Some(None), "{case}");
        }
    }

    #[tokio::test]
    async fn a_change_that_another_overtook_is_not_sent() {
        let (news, server) = (GateNews::default(), TestServer::silent());
        server.answers.add_permits(2);
        let (close, open) = (news.begin(), news.begin());
        join!(
            news.send(open, None, || server.get("open", Some(true))),
            news.send(close, Some(LIMIT), || server.get("close", Some(true))),
        );
        assert_eq!(*locked(&server.got), ["open"]);
        assert_eq!(news.wait(), Some(None));
    }

    #[tokio::test]
    async fn a_look_that_is_older_than_a_change_is_not_believed() {
        let news = GateNews::default();
        news.look(async { Some(None) }).await;
        assert_eq!(news.wait(), Some(None));
        news.look(async {
            let close = news.begin();
            news.send(close, Some(LIMIT), || async { Some(true) }).await;
            Some(None)
        })
        .await;
        assert_eq!(news.wait(), Some(Some(LIMIT)), "it began before the change");
        let open = news.begin();
        news.look(async { Some(Some(LIMIT)) }).await;
        assert_eq!(news.wait(), None, "it is before the change is over");
        news.send(open, None, || async { Some(true) }).await;
        news.look(async { Some(Some(LIMIT)) }).await;
        assert_eq!(news.wait(), Some(Some(LIMIT)), "another worker closed it since");
    }
}
