//! The whole of what the server decides: which worker drives a loop. It never looks into the loop.

use std::time::Duration;

use refrain_app::options::fleet::LoopPlace;
use refrain_app::verbs::fleet::FleetRequest;
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::select;
use temporalio_sdk::{
    ActivityOptions, ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult,
};

use crate::host::Host;
use crate::order::{Ending, Order, Report, WaitingRequest, claims, own_queue};
use crate::shared::labels;

/// How long a claim may take: a worker that is frozen takes the order and does not answer.
const CLAIM: Duration = Duration::from_secs(2);
/// How long a worker has to begin what a person asks of a loop that it drives.
const DELIVER: Duration = Duration::from_secs(3);
/// How long to look for a worker besides those that could not continue the loop.
const OTHERS: Duration = Duration::from_secs(60);
/// How long a worker has to begin what it claimed.
const BEGIN: Duration = Duration::from_secs(10);
/// How long one drive may take.
const DRIVE: Duration = Duration::from_secs(30 * 86_400);
/// So many workers that could not continue a loop: it waits for a person then.
const MOST_UNABLE: usize = 3;

/// What the server calls it.
pub(crate) const NAME: &str = "FleetLoop";

#[workflow]
pub(crate) struct FleetLoop {
    order: Order,
    place: LoopPlace,
    /// The worker that claimed it last.
    host: String,
}

#[workflow_methods]
impl FleetLoop {
    #[init]
    fn new(_: &WorkflowContextView, order: Order) -> Self {
        Self { order, place: LoopPlace::Waiting, host: String::new() }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<String> {
        loop {
            let order = ctx.state_mut(|s| {
                s.order.fence += 1;
                s.order.clone()
            });
            place(ctx, LoopPlace::Waiting);
            let mut options = ActivityOptions::with_close_timeouts(claim_time(order.avoid.is_empty()))
                .task_queue(claims(&order.pool, &order.agent))
                .retry_policy(again())
                .do_not_eagerly_execute(true)
                .build();
            options.summary = Some(order.id.clone());
            let claimed = ctx.execute_activity(Host::claim, order.clone(), options).await;
            let mut pause = None;
            match claimed {
                // Every other worker is unable, too, or there is none.
                Err(_) => {
                    place(ctx, LoopPlace::Unable);
                    ctx.wait_condition(|s| s.wakes()).await?;
                    ctx.state_mut(|s| s.order.avoid.clear());
                }
                Ok(host) => match drive(ctx, order, host.clone()).await {
                    Some(report) => {
                        let ending = report.ending;
                        ctx.state_mut(|s| s.note(report));
                        let is_unable = ctx.state(|s| s.order.avoid.len() >= MOST_UNABLE);
                        if let Some(there) = place_after(ending, is_unable) {
                            place(ctx, there);
                        }
                        match ending {
                            Ending::Ended => return Ok("ended".into()),
                            Ending::Parked => ctx.wait_condition(|s| s.wakes()).await?,
                            Ending::Resting(span) => {
                                let rest = std::pin::pin!(ctx.timer(Duration::from_millis(span)));
                                let mut rest = rest;
                                select! { _ = rest => (), _ = ctx.wait_condition(|s| s.wakes()) => () };
                            }
                            Ending::Unable if is_unable => {
                                ctx.wait_condition(|s| s.wakes()).await?;
                                ctx.state_mut(|s| s.order.avoid.clear());
                            }
                            Ending::Fenced(_) | Ending::Lapsed => pause = ctx.state_mut(|s| s.lose()),
                            Ending::Yielded | Ending::Unable => {}
                        }
                    }
                    None => pause = ctx.state_mut(|s| s.lose()),
                },
            }
            if let Some(pause) = pause {
                ctx.timer(pause).await;
            }
            if ctx.continue_as_new_suggested() && ctx.all_handlers_finished() {
                let order = ctx.state(|s| s.order.clone());
                ctx.continue_as_new(order, ContinueAsNewOptions::default())?;
            }
        }
    }

    #[signal]
    pub(crate) fn ask(&mut self, _: &mut SyncWorkflowContext<Self>, asked: WaitingRequest) {
        // A later pause overrides an earlier resume.
        if matches!(asked.what, FleetRequest::Pause { .. }) {
            self.order.waiting.retain(|earlier| !matches!(earlier.what, FleetRequest::Resume(_)));
        }
        self.order.waiting.push_back(asked);
    }

    /// The journal has these requests now.
    #[signal]
    pub(crate) fn taken(&mut self, _: &mut SyncWorkflowContext<Self>, ids: Vec<String>) {
        self.order.waiting.retain(|asked| !ids.contains(&asked.id));
    }

    #[query]
    pub(crate) fn view(&self, _: &WorkflowContextView) -> String {
        let Order { fence, lost, waiting, .. } = &self.order;
        format!("{}; fence {fence}, lost {lost}, requests that wait {}", self.words(), waiting.len())
    }
}

impl FleetLoop {
    fn wakes(&self) -> bool {
        self.order.waiting.iter().any(|asked| asked.what.wakes())
    }

    fn note(&mut self, report: Report) {
        self.order.waiting.retain(|asked| !report.taken.contains(&asked.id));
        match report.ending {
            Ending::Unable => self.order.avoid.push(report.host),
            Ending::Fenced(there) => self.order.fence = self.order.fence.max(there.unwrap_or_default()),
            Ending::Lapsed => {}
            Ending::Ended | Ending::Parked | Ending::Resting(_) | Ending::Yielded => {
                (self.order.lost, self.order.avoid) = (0, Vec::new());
            }
        }
    }

    /// Where it is, for a person.
    fn words(&self) -> String {
        match self.place {
            LoopPlace::Waiting => "waits for a worker".to_owned(),
            LoopPlace::Driven => format!("driven by {}", self.host),
            LoopPlace::Parked => "waits for a request".to_owned(),
            LoopPlace::Resting => "rests".to_owned(),
            LoopPlace::Unable => "no worker can continue it".to_owned(),
            LoopPlace::Ended => "ended".to_owned(),
        }
    }

    /// How long to wait before it is given to another worker: not the first time.
    fn lose(&mut self) -> Option<Duration> {
        self.order.lost += 1;
        (self.order.lost > 1).then(|| Duration::from_millis(100 << self.order.lost.min(11)))
    }
}

/// Tells the server where the loop is, if it can filter by that.
fn place(ctx: &mut WorkflowContext<FleetLoop>, place: LoopPlace) {
    let is_new = ctx.state_mut(|s| std::mem::replace(&mut s.place, place) != place && s.order.is_labelled);
    if is_new {
        ctx.upsert_search_attributes([labels::STATE.value_set(place.word().to_owned())]);
    }
}

/// Where it is after a drive, unless it only waits for the next worker.
fn place_after(ending: Ending, is_unable: bool) -> Option<LoopPlace> {
    match ending {
        Ending::Ended => Some(LoopPlace::Ended),
        Ending::Parked => Some(LoopPlace::Parked),
        Ending::Resting(_) => Some(LoopPlace::Resting),
        Ending::Unable => is_unable.then_some(LoopPlace::Unable),
        Ending::Yielded | Ending::Fenced(_) | Ending::Lapsed => None,
    }
}

/// Has the worker drive the loop, and carries requests to it. Nothing if the worker is lost.
async fn drive(ctx: &mut WorkflowContext<FleetLoop>, order: Order, host: String) -> Option<Report> {
    let sent: Vec<String> = order.waiting.iter().map(|asked| asked.id.clone()).collect();
    ctx.state_mut(|s| s.host.clone_from(&host));
    place(ctx, LoopPlace::Driven);
    let options = ActivityOptions::with_start_to_close_timeout(DRIVE)
        .task_queue(own_queue(&host))
        .schedule_to_start_timeout(BEGIN)
        .heartbeat_timeout(order.terms.lease())
        .retry_policy(once())
        .do_not_eagerly_execute(true)
        .build();
    let mut drive = std::pin::pin!(ctx.execute_activity(Host::drive, order, options));
    loop {
        let next = |s: &FleetLoop| {
            let is_new = |asked: &&WaitingRequest| asked.what.is_for_runner() && !sent.contains(&asked.id);
            s.order.waiting.iter().find(is_new).cloned()
        };
        select! {
            ended = drive => return ended.ok(),
            _ = ctx.wait_condition(|s| next(s).is_some()) => (),
        };
        let Some(asked) = ctx.state(next) else { continue };
        let options = ActivityOptions::with_start_to_close_timeout(Duration::from_secs(20))
            .task_queue(own_queue(&host))
            .schedule_to_start_timeout(DELIVER)
            .retry_policy(once())
            .do_not_eagerly_execute(true)
            .build();
        let of_loop = ctx.state(|s| (s.order.remote.clone(), s.order.id.clone()));
        let mut delivery =
            std::pin::pin!(ctx.execute_activity(Host::deliver, (of_loop, asked.clone()), options));
        let delivered = select! {
            ended = drive => return ended.ok(),
            delivered = delivery => delivered,
        };
        match delivered {
            Ok(()) => ctx.state_mut(|s| s.order.waiting.retain(|it| it.id != asked.id)),
            Err(_) => {
                let mut rest = std::pin::pin!(ctx.timer(Duration::from_millis(500)));
                select! { ended = drive => return ended.ok(), _ = rest => () };
            }
        }
    }
}

fn claim_time(is_first: bool) -> temporalio_common::ActivityCloseTimeouts {
    use temporalio_common::ActivityCloseTimeouts::{ScheduleAndStartToClose, StartToClose};
    if is_first {
        StartToClose(CLAIM)
    } else {
        ScheduleAndStartToClose { start_to_close: CLAIM, schedule_to_close: OTHERS }
    }
}

pub(crate) fn once() -> RetryPolicy {
    RetryPolicy::builder().maximum_attempts(1).build()
}

/// Tries of an activity are in no history.
fn again() -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(Duration::from_millis(200))
        .backoff_coefficient(1.5)
        .maximum_interval(Duration::from_secs(10))
        .build()
}
