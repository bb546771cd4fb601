//! Whether the server gives teams workers in turn. No call says that, so it is tried: of many loops of one team and few of
//! another that came later, those that are handed out first are looked at.

use std::time::Duration;

use futures::future::join_all;
use refrain_engine::now;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{IntoRequest, Status};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueKind;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DeleteWorkflowExecutionRequest, PollWorkflowTaskQueueRequest, StartWorkflowExecutionRequest,
};

use crate::labels;

/// How many of the first team come, then of the second, and how many are handed out.
const MANY: usize = 24;
const FEW: usize = 12;
const TAKEN: usize = 12;
/// A queue has parts that are served at random, so it is not the half. In order of arrival the second team has hardly one among
/// the first.
const LEAST: usize = 3;

/// How long the server has to hand one out.
const HAND_OUT: Duration = Duration::from_secs(3);

/// Nothing of it stays at the server.
pub(crate) async fn takes_turns(client: &Client) -> Result<bool, Status> {
    let name = format!("refrain/fairness/{:x}", now().as_nanosecond());
    let ids: Vec<String> = (0..MANY + FEW).map(|number| format!("{name}/{number}")).collect();
    let tried = begin_and_take(client, &name, &ids).await;
    join_all(ids.iter().map(|id| delete(client, id))).await;
    let taken = tried?;
    let of_second = taken.iter().filter(|id| ids[MANY..].contains(id)).count();
    Ok(of_second >= LEAST)
}

async fn begin_and_take(client: &Client, name: &str, ids: &[String]) -> Result<Vec<String>, Status> {
    let queue =
        TaskQueue { name: name.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() };
    let (namespace, identity) = (client.namespace(), "refrain".to_owned());
    for (number, id) in ids.iter().enumerate() {
        let team = if number < MANY { "first" } else { "second" };
        let request = StartWorkflowExecutionRequest {
            namespace: namespace.clone(),
            workflow_id: id.clone(),
            workflow_type: Some(WorkflowType { name: "RefrainFairness".to_owned() }),
            task_queue: Some(queue.clone()),
            identity: identity.clone(),
            request_id: id.clone(),
            priority: Some(labels::turn(Some(team)).into()),
            ..Default::default()
        };
        WorkflowService::start_workflow_execution(&mut client.clone(), request.into_request()).await?;
    }
    let mut taken = Vec::new();
    for _ in 0..TAKEN {
        let request = PollWorkflowTaskQueueRequest {
            namespace: namespace.clone(),
            task_queue: Some(queue.clone()),
            identity: identity.clone(),
            ..Default::default()
        };
        let mut asked = client.clone();
        let polled = WorkflowService::poll_workflow_task_queue(&mut asked, request.into_request());
        let Ok(said) = tokio::time::timeout(HAND_OUT, polled).await else { break };
        taken.extend(said?.into_inner().workflow_execution.map(|execution| execution.workflow_id));
    }
    Ok(taken)
}

async fn delete(client: &Client, id: &str) {
    let execution = WorkflowExecution { workflow_id: id.to_owned(), run_id: String::new() };
    let request =
        DeleteWorkflowExecutionRequest { namespace: client.namespace(), workflow_execution: Some(execution) };
    let _ = WorkflowService::delete_workflow_execution(&mut client.clone(), request.into_request()).await;
}
