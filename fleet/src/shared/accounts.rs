//! The gates of accounts that workers share: an outage or a limit that one worker met holds the others, until one of them tries
//! first and its provider answers. A workflow keeps a gate as long as it is closed. What it says is its memo, so that looking at
//! it needs no worker and leaves no trace.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use refrain_core::event::Wait;
use refrain_engine::{SharedAccounts, SharedGate};
use serde::{Deserialize, Serialize};
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

use crate::host::locked;
use crate::order::LOOPS;

/// So many changes, and a gate begins a new history.
const MOST: u64 = 100;
/// How long the server has to answer, and how often a change of a gate is sent to it again.
const ANSWER: Duration = Duration::from_secs(2);
const TRIES: u32 = 10;
const AGAIN: Duration = Duration::from_secs(3);
/// For how long one loop alone may try.
const ALONE: Duration = Duration::from_secs(120);
/// How long after the announced end a gate is forgotten that no loop opened.
const FORGET: Duration = Duration::from_secs(3600);
/// The key of the memo.
const WAIT: &str = "wait";

/// What happens to a gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum GateChange {
    Close(Wait),
    Open,
    /// This loop wants to try first.
    Try(String),
}

#[workflow]
#[derive(Default)]
pub(crate) struct FleetAccount {
    wait: Option<Wait>,
    /// Who tries, and until when no other loop does.
    tries: Option<(String, SystemTime)>,
    changes: u64,
}

/// What a gate takes into a new history.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GateState {
    wait: Option<Wait>,
    tries: Option<(String, SystemTime)>,
}

#[workflow_methods]
impl FleetAccount {
    #[init]
    fn new(_: &WorkflowContextView, GateState { wait, tries }: GateState) -> Self {
        Self { changes: u64::from(wait.is_some()), wait, tries }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        ctx.wait_condition(|s| s.changes > 0).await?;
        loop {
            let (seen, until) = ctx.state(|s| (s.changes, s.wait.map(|wait| wait.until)));
            let Some(until) = until else { return Ok(()) };
            if seen >= MOST {
                let state = ctx.state(|s| GateState { wait: s.wait, tries: s.tries.clone() });
                ctx.continue_as_new(state, ContinueAsNewOptions::default())?;
            }
            let now = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
            let left = SystemTime::from(until).duration_since(now).unwrap_or_default() + FORGET;
            let mut forgotten = std::pin::pin!(ctx.timer(left));
            select! {
                _ = forgotten => return Ok(()),
                _ = ctx.wait_condition(|s| s.changes != seen) => (),
            };
        }
    }

    /// Says whether this loop may try first, if it asked for that.
    #[update]
    pub(crate) fn change(&mut self, ctx: &mut SyncWorkflowContext<Self>, change: GateChange) -> bool {
        let now = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
        let before = self.wait;
        let may_try = self.apply(change, now);
        self.changes += 1;
        if self.wait != before {
            let value = self.wait.map(MemoValue::new);
            let _ = ctx.upsert_memo([(WAIT, value)]);
        }
        may_try
    }
}

impl FleetAccount {
    fn apply(&mut self, change: GateChange, now: SystemTime) -> bool {
        match change {
            GateChange::Close(wait) => (self.wait, self.tries) = (Some(wait), None),
            GateChange::Open => (self.wait, self.tries) = (None, None),
            GateChange::Try(who) => {
                let is_others = |(other, until): &(String, SystemTime)| *other != who && *until > now;
                if self.tries.as_ref().is_some_and(is_others) {
                    return false;
                }
                self.tries = Some((who, now + ALONE));
            }
        }
        true
    }
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
        let (known, _) = watch::channel(None);
        let known = Arc::new(known);
        let changes_sent = Arc::default();
        let (looked, first) = watch::channel(false);
        let looks = look(place.clone(), Arc::clone(&known), Arc::clone(&changes_sent), looked);
        let looks = self.runtime.spawn(looks);
        Box::new(WorkerGate { place, known, changes_sent, one_by_one: Arc::default(), first, looks })
    }
}

/// What the server said last of a gate; none if it did not answer, or a change is on its way to it.
type GateWatch = watch::Sender<Option<Option<Wait>>>;

#[derive(Debug)]
struct WorkerGate {
    place: GateWorkflow,
    known: Arc<GateWatch>,
    changes_sent: Arc<Mutex<ChangeCount>>,
    /// Held while a change is sent, so that the server gets them in their order.
    one_by_one: Arc<tokio::sync::Mutex<()>>,
    /// Whether it was looked at.
    first: watch::Receiver<bool>,
    looks: JoinHandle<()>,
}

/// How many changes were begun to be sent, and how many of them are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChangeCount {
    begun: u64,
    over: u64,
}

impl Drop for WorkerGate {
    fn drop(&mut self) {
        self.looks.abort();
    }
}

async fn look(
    place: GateWorkflow,
    known: Arc<GateWatch>,
    changes_sent: Arc<Mutex<ChangeCount>>,
    looked: watch::Sender<bool>,
) {
    loop {
        let before = *locked(&changes_sent);
        let said = timeout(ANSWER, place.look()).await.ok().and_then(Result::ok);
        // A look during a change may be older than that.
        if before.begun == before.over && *locked(&changes_sent) == before {
            known.send_replace(said);
        }
        looked.send_replace(true);
        sleep(place.accounts.every).await;
    }
}

impl WorkerGate {
    /// Tells the server, without waiting for it. Only the last change counts: those before it are not tried again.
    fn send_change(&self, change: GateChange, then: Option<Wait>) {
        let (place, known) = (self.place.clone(), Arc::clone(&self.known));
        let (changes_sent, one_by_one) = (Arc::clone(&self.changes_sent), Arc::clone(&self.one_by_one));
        let own = {
            let mut changes_sent = locked(&changes_sent);
            changes_sent.begun += 1;
            changes_sent.begun
        };
        known.send_replace(None);
        drop(self.place.accounts.runtime.spawn(async move {
            let turn = one_by_one.lock().await;
            for _ in 0..TRIES {
                if locked(&changes_sent).begun != own {
                    break;
                }
                if place.change(change.clone()).await.is_some() {
                    if locked(&changes_sent).begun == own {
                        known.send_replace(Some(then));
                    }
                    break;
                }
                sleep(AGAIN).await;
            }
            drop(turn);
            locked(&changes_sent).over += 1;
        }));
    }
}

impl SharedGate for WorkerGate {
    fn closed(&self) -> Option<Option<Wait>> {
        *self.known.borrow()
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
            GateState::default(),
            FleetAccount::change,
            change,
            options,
        );
        timeout(2 * ANSWER, Box::pin(asked)).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::event::WaitKind;

    use super::*;

    #[test]
    fn one_loop_at_a_time_tries_first() {
        let mut gate = FleetAccount::default();
        let start = SystemTime::UNIX_EPOCH;
        let wait = Wait { kind: WaitKind::Outage, until: start.try_into().unwrap() };
        gate.apply(GateChange::Close(wait), start);
        assert_eq!(gate.wait, Some(wait));
        let mut tries = |who: &str, after| gate.apply(GateChange::Try(who.to_owned()), start + after);
        assert!(tries("a", Duration::ZERO));
        assert!(!tries("b", Duration::from_secs(1)));
        assert!(tries("a", Duration::from_secs(1)), "it may ask twice");
        assert!(tries("b", 2 * ALONE), "the first one was lost");
        assert!(!tries("a", 2 * ALONE));
        gate.apply(GateChange::Open, start);
        assert_eq!((gate.wait, &gate.tries), (None, &None));
    }
}
