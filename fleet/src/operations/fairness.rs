//! Whether the server heeds the teams of loops. It takes the name of a team in any case, and says nowhere what it does with it.

use std::time::Duration;

use refrain_engine::{chain, now};
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{ActivityStartOptions, Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueKind;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    PollActivityTaskQueueRequest, RespondActivityTaskCompletedRequest,
};

use super::roster::WorkerActivities;
use crate::client::share_of;
use crate::workflow::once;

/// So many tasks of one team wait, and then as many of another.
const EACH: usize = 60;
/// Of as many tasks that are given out first, so many are of the other team, if both get equal shares. A server may spread a
/// queue over some that it asks in any order: then it is about half of them, and a few where it ignores teams.
const LEAST: usize = 20;
/// How long the server keeps what is tried, and how long it may take to give out one.
const KEPT: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(10);

/// Lets tasks of two teams wait in a queue of their own, and looks in which order the server gives them out.
pub(super) async fn is_fair(client: &Client) -> Result<bool, String> {
    let queue = format!("refrain.try.{:x}", now().as_nanosecond());
    let teams = ["first", "other"].into_iter().flat_map(|team| (0..EACH).map(move |number| (number, team)));
    for (number, team) in teams {
        let options = ActivityStartOptions::with_start_to_close_timeout(
            &queue,
            format!("{queue}/{team}/{number}"),
            KEPT,
        )
        .schedule_to_start_timeout(KEPT)
        .retry_policy(once())
        .priority(share_of(Some(team)))
        .build();
        client.start_activity(WorkerActivities::tell, (), options).await.map_err(|error| chain(&error))?;
    }
    let mut others = 0;
    for _ in 0..EACH {
        let given = tokio::time::timeout(ANSWER, next(client, &queue)).await;
        others += usize::from(given.map_err(|_| "it gives out no task".to_owned())??.contains("/other/"));
    }
    Ok(others >= LEAST)
}

/// The name of the task that is given out next.
async fn next(client: &Client, queue: &str) -> Result<String, String> {
    let mut service = client.clone();
    let task_queue =
        TaskQueue { name: queue.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() };
    let request = PollActivityTaskQueueRequest {
        namespace: client.namespace(),
        task_queue: Some(task_queue),
        identity: "refrain".to_owned(),
        ..Default::default()
    };
    let task = WorkflowService::poll_activity_task_queue(&mut service, request.into_request()).await;
    let task = task.map_err(|status| status.message().to_owned())?.into_inner();
    let done = RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        namespace: client.namespace(),
        ..Default::default()
    };
    // What is not reported as done is forgotten soon.
    let _ = WorkflowService::respond_activity_task_completed(&mut service, done.into_request()).await;
    Ok(task.activity_id)
}
