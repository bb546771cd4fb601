//! The money that all loops of the fleet share: a workflow of its own keeps the ledger, and workers ask it before an agent is
//! started. The caps are those that a loop was started with; without any it is not asked.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use refrain_core::LoopState;
use refrain_core::budget::{LastCosts, MoneyAnswer, MoneyChange, MoneyRequest, SharedLedger};
use refrain_engine::{LeaseDeadline, SharedMoney, chain};
use temporalio_client::{Client, WorkflowIdConflictPolicy, WorkflowUpdateWithStartOptions};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::host::locked;
use crate::order::{LOOPS, Order};

/// So many requests, and it begins a new history: each answer reads all of it.
const MOST: u32 = 100;
/// How long the ledger has to answer.
const ANSWER: Duration = Duration::from_secs(4);
/// How long to wait until it is asked again, and for how long it is asked at least while the lease holds.
const AGAIN: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
/// After a request without an answer, those that can wait are not made for so long: they would delay the loop each time.
const QUIET: Duration = Duration::from_secs(10);

#[workflow]
pub(crate) struct FleetMoney {
    ledger: SharedLedger,
    answered: u32,
}

#[workflow_methods]
impl FleetMoney {
    #[init]
    fn new(_: &WorkflowContextView, ledger: SharedLedger) -> Self {
        Self { ledger, answered: 0 }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        ctx.wait_condition(|s| s.answered >= MOST).await?;
        let ledger = ctx.state(|s| s.ledger.clone());
        ctx.continue_as_new(ledger, ContinueAsNewOptions::default())?;
        Ok(())
    }

    #[update]
    pub(crate) fn change(
        &mut self,
        ctx: &mut SyncWorkflowContext<Self>,
        mut request: MoneyRequest,
    ) -> MoneyAnswer {
        self.answered += 1;
        // The day is the server's: the clock of a worker may be wrong.
        if let MoneyChange::Ask { day, .. } = &mut request.change
            && let Some(today) = ctx.workflow_time().and_then(|now| Timestamp::try_from(now).ok())
        {
            *day = today.to_zoned(TimeZone::UTC).date();
        }
        self.ledger.answer(request)
    }
}

/// The ledger of the fleet that has this git remote.
fn workflow_id(remote: &str) -> String {
    format!("refrain-money/{remote}")
}

/// The ledger, as the drive of one loop asks it.
pub(crate) struct LoopMoney {
    client: Client,
    runtime: Handle,
    deadline: LeaseDeadline,
    remote: String,
    of: String,
    fence: u64,
    project: String,
    asked: Mutex<RequestCount>,
}

#[derive(Debug, Default)]
struct RequestCount {
    count: u64,
    /// When it did not answer.
    failed: Option<Instant>,
}

impl std::fmt::Debug for LoopMoney {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("LoopMoney").field("of", &self.of).field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl LoopMoney {
    pub(crate) fn new(client: &Client, runtime: &Handle, deadline: &LeaseDeadline, order: &Order) -> Self {
        Self {
            client: client.clone(),
            runtime: runtime.clone(),
            deadline: deadline.clone(),
            remote: order.remote.clone(),
            of: order.id.clone(),
            fence: order.fence,
            project: order.origin.clone().unwrap_or_else(|| order.project.clone()),
            asked: Mutex::default(),
        }
    }

    /// The loop is driven here no longer: nothing stays reserved for it.
    pub(crate) fn release(&self, state: &LoopState) {
        // What a run costs that was cut off is known to the machine that takes the loop over.
        if !state.spec.caps.is_none() && state.runs().is_none() {
            let costs = LastCosts::of(&state.costs);
            let _ = self.change(MoneyChange::Release { costs });
        }
    }

    async fn ask(&self, request: MoneyRequest) -> Result<MoneyAnswer, String> {
        let policy = WorkflowIdConflictPolicy::UseExisting;
        let mut options =
            WorkflowUpdateWithStartOptions::new(LOOPS, workflow_id(&self.remote), policy).build();
        // A worker that is frozen takes the request and does not answer.
        options.task_timeout = Some(ANSWER / 2);
        options.update_id = Some(format!("{}/{}/{}", self.of, self.fence, request.number));
        let asked = self.client.execute_update_with_start_workflow(
            FleetMoney::run,
            SharedLedger::default(),
            FleetMoney::change,
            request,
            options,
        );
        match timeout(ANSWER, Box::pin(asked)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("no answer within {} s", ANSWER.as_secs())),
        }
    }
}

impl SharedMoney for LoopMoney {
    fn change(&self, change: MoneyChange) -> Result<MoneyAnswer, String> {
        // No agent runs meanwhile, and what a release leaves reserved stays so.
        let is_needed = matches!(change, MoneyChange::Ask { .. } | MoneyChange::Release { .. });
        let number = {
            let mut asked = locked(&self.asked);
            if !is_needed && asked.failed.is_some_and(|at| at.elapsed() < QUIET) {
                return Err("the ledger did not answer a moment ago".to_owned());
            }
            asked.count += 1;
            asked.count
        };
        let (of, project) = (self.of.as_str().into(), self.project.clone());
        let request = MoneyRequest { of, fence: self.fence, number, project, change };
        let (since, patience) = (Instant::now(), PATIENCE.max(self.deadline.until().left()));
        let answer = loop {
            match self.runtime.block_on(self.ask(request.clone())) {
                Err(_) if is_needed && since.elapsed() < patience && !self.deadline.until().has_passed() => {
                    self.runtime.block_on(tokio::time::sleep(AGAIN));
                }
                answer => break answer,
            }
        };
        locked(&self.asked).failed = answer.is_err().then(Instant::now);
        answer
    }
}
