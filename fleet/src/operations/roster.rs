//! What workers say of themselves, and what they are told from elsewhere: `refrain worker list` and `refrain worker drain`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_engine::{Service, chain, now};
use serde::{Deserialize, Serialize};
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{ActivityStartOptions, Client, NamespacedClient};
use temporalio_common::ActivityDefinition;
use temporalio_common::protos::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeTaskQueueRequest;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::host::{Worker, locked};
use crate::order::{LOOPS, own_queue};
use crate::say;
use crate::settings::{Settings, failed};
use crate::workflow::once;

/// How long a worker has to answer.
const ANSWER: Duration = Duration::from_secs(4);

/// What a worker says of itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct WorkerNote {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) slots: u32,
    /// The loops that it drives.
    pub(crate) loops: Vec<String>,
    pub(crate) agents: Vec<String>,
    /// Those of them whose program is not there.
    pub(crate) missing: Vec<String>,
    pub(crate) pools: Vec<String>,
    pub(crate) draining: bool,
    /// How many bytes are free where it keeps loops.
    pub(crate) disk: u64,
    /// Its clock, in milliseconds since 1970.
    pub(crate) clock_ms: i64,
}

/// A worker as the server knows it.
#[derive(Debug, Serialize)]
pub(crate) struct RosterRow {
    /// Seconds since it asked for work last.
    pub(crate) seen: u64,
    /// Whether it answered.
    pub(crate) answers: bool,
    #[serde(flatten)]
    pub(crate) note: WorkerNote,
}

/// What a worker does at once, whatever it drives.
pub(crate) struct WorkerActivities(pub(crate) Arc<Worker>);

#[activities]
impl WorkerActivities {
    #[activity]
    pub(crate) async fn tell(self: Arc<Self>, _ctx: ActivityContext) -> Result<WorkerNote, ActivityError> {
        Ok(self.0.note())
    }

    #[activity]
    pub(crate) async fn drain(self: Arc<Self>, _ctx: ActivityContext) -> Result<WorkerNote, ActivityError> {
        self.0.asked_to_drain.notify_one();
        Ok(WorkerNote { draining: true, ..self.0.note() })
    }
}

impl Worker {
    fn note(&self) -> WorkerNote {
        let installed = Service::open(&self.context.dir, self.context.host.clone());
        let installed = installed.map(|service| service.installed_agents()).unwrap_or_default();
        let installed: Vec<String> = installed.iter().map(ToString::to_string).collect();
        // Those that have one program, which is looked for in PATH.
        let is_missing = |kind: &&String| {
            ["claude", "codex", "opencode", "gemini"].contains(&kind.as_str()) && !installed.contains(kind)
        };
        let agents = self.allowed.agents.clone();
        let folder = self.context.host.data_home.as_std_path();
        let _ = std::fs::create_dir_all(folder);
        let room = rustix::fs::statvfs(folder);
        let mut loops: Vec<String> = locked(&self.driving).keys().map(|(_, id)| id.clone()).collect();
        loops.sort();
        WorkerNote {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: self.slots,
            loops,
            missing: agents.iter().filter(is_missing).cloned().collect(),
            agents,
            pools: self.pools.clone(),
            draining: *self.drain.borrow(),
            disk: room.map_or(0, |room| room.f_bavail.saturating_mul(room.f_frsize)),
            clock_ms: now().as_millisecond(),
        }
    }
}

/// The workers that asked for work in the last minutes, and since how long they did not, in seconds.
async fn seen(client: &Client) -> Result<BTreeMap<String, u64>, RequestError> {
    let queue =
        TaskQueue { name: LOOPS.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() };
    let request = DescribeTaskQueueRequest {
        namespace: client.namespace(),
        task_queue: Some(queue),
        task_queue_type: TaskQueueType::Workflow.into(),
        ..Default::default()
    };
    let said = WorkflowService::describe_task_queue(&mut client.clone(), request.into_request()).await;
    let said =
        said.map_err(|error| failed(format!("the server does not name workers: {}", error.message())))?;
    let mut seen = BTreeMap::new();
    for poller in said.into_inner().pollers {
        let at = poller.last_access_time.and_then(|at| SystemTime::try_from(at).ok());
        let since = at.and_then(|at| at.elapsed().ok()).unwrap_or_default().as_secs();
        let earlier = seen.entry(poller.identity).or_insert(since);
        *earlier = since.min(*earlier);
    }
    Ok(seen)
}

/// Asks one worker, and waits for its answer.
async fn ask<A>(client: &Client, activity: A, name: &str) -> Result<WorkerNote, String>
where
    A: ActivityDefinition<Input = (), Output = WorkerNote>,
{
    let id = format!("refrain/{}/{name}/{:x}", activity.name(), now().as_nanosecond());
    let options = ActivityStartOptions::with_start_to_close_timeout(own_queue(name), id, ANSWER)
        .schedule_to_start_timeout(ANSWER)
        .retry_policy(once())
        .build();
    let asked = client.start_activity(activity, (), options).await.map_err(|error| chain(&error))?;
    let answer = tokio::time::timeout(2 * ANSWER, asked.result()).await;
    answer.map_err(|_| "no answer".to_owned())?.map_err(|error| chain(&error))
}

/// All workers, by name, asked at once.
pub(crate) async fn roster(client: &Client) -> Result<Vec<RosterRow>, RequestError> {
    let asked = seen(client).await?.into_iter().map(|(name, seen)| async move {
        let answer = ask(client, WorkerActivities::tell, &name).await;
        let silent = WorkerNote { name, ..WorkerNote::default() };
        RosterRow { seen, answers: answer.is_ok(), note: answer.unwrap_or(silent) }
    });
    Ok(join_all(asked).await)
}

/// Prints the workers of the fleet.
pub(crate) async fn list(context: &Context, json: bool) -> Result<(), RequestError> {
    let client = Settings::read(context)?.connect("refrain").await?;
    let rows = roster(&client).await?;
    if json {
        say::print(&serde_json::to_string_pretty(&rows).map_err(failed)?);
    } else if rows.is_empty() {
        say::print("no worker: refrain worker, on a machine with agents, is one");
    } else {
        rows.iter().for_each(|row| say::print(&printable(&line(row))));
    }
    Ok(())
}

fn line(RosterRow { seen, answers, note }: &RosterRow) -> String {
    let WorkerNote { name, slots, loops, agents, pools, .. } = note;
    if !answers {
        return format!("{name}  does not answer, and asked for work {seen} s ago");
    }
    let state = if note.draining { "drains" } else { "ready" };
    let driven = if loops.is_empty() { String::new() } else { format!(": {}", loops.join(", ")) };
    let serves = format!("agents {}, pools {}", agents.join(", "), pools.join(", "));
    format!("{name}  {state}, {serves}, drives {} of {slots}{driven}", loops.len())
}

/// Has a worker give its loops back.
pub(crate) async fn drain(context: &Context, name: &str) -> Result<(), RequestError> {
    let client = Settings::read(context)?.connect("refrain").await?;
    let note = ask(&client, WorkerActivities::drain, name).await.map_err(|why| {
        let error = format!("worker {name} does not answer: {why}");
        RequestError::new(Code::NotFound, error).hint("refrain worker list names those that do")
    })?;
    let given_back = match note.loops.as_slice() {
        [] => "it drives none".to_owned(),
        loops => format!("given back after their iteration: {}", loops.join(", ")),
    };
    say::print(&printable(&format!("{name} takes no more loops, and ends; {given_back}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_a_line() {
        let note = WorkerNote {
            name: "w1".into(),
            slots: 2,
            loops: vec!["job".into()],
            agents: vec!["generic".into()],
            pools: vec!["default".into()],
            ..WorkerNote::default()
        };
        let mut row = RosterRow { seen: 3, answers: true, note };
        assert_eq!(line(&row), "w1  ready, agents generic, pools default, drives 1 of 2: job");
        row.answers = false;
        assert_eq!(line(&row), "w1  does not answer, and asked for work 3 s ago");
    }
}
