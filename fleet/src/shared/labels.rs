//! What the server can filter loops by, such as `temporal workflow list --query 'RefrainProject = "shop"'`: names only.

use std::collections::BTreeSet;

use refrain_app::options::fleet::LoopPlace;
use temporalio_client::grpc::OperatorService;
use temporalio_client::tonic::{Code, IntoRequest, Status};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::operatorservice::v1::{
    AddSearchAttributesRequest, ListSearchAttributesRequest,
};
use temporalio_common::search_attributes::{SearchAttributeKey, SearchAttributes};

use crate::order::Order;

pub(crate) const PROJECT: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainProject");
pub(crate) const STATE: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainState");
pub(crate) const POOL: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainPool");
pub(crate) const TEAM: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainTeam");
pub(crate) const PLAN: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainPlan");
pub(crate) const AGENT: SearchAttributeKey<String> = SearchAttributeKey::keyword("RefrainAgent");

/// All of them.
const LABELS: [&SearchAttributeKey<String>; 6] = [&PROJECT, &STATE, &POOL, &TEAM, &PLAN, &AGENT];

/// Those of a loop that waits for its first worker.
pub(crate) fn of(order: &Order) -> SearchAttributes {
    let known = [
        (&PROJECT, Some(&order.project)),
        (&STATE, Some(&LoopPlace::Waiting.word().to_owned())),
        (&POOL, Some(&order.pool)),
        (&TEAM, order.team.as_ref()),
        (&PLAN, order.plan.as_ref()),
        (&AGENT, Some(&order.agent)),
    ]
    .map(|(key, value)| value.map(|value| key.value_set(value.clone())));
    SearchAttributes::new(known.into_iter().flatten())
}

/// The labels that the namespace does not have.
pub(crate) async fn missing(client: &Client) -> Result<Vec<String>, Status> {
    let asked = ListSearchAttributesRequest { namespace: client.namespace() };
    let said = OperatorService::list_search_attributes(&mut client.clone(), asked.into_request()).await?;
    let known: BTreeSet<String> = said.into_inner().custom_attributes.into_keys().collect();
    let names = LABELS.map(|key| key.name().to_owned());
    Ok(names.into_iter().filter(|name| !known.contains(name)).collect())
}

/// Makes the missing ones in the namespace; says which those were.
pub(crate) async fn register(client: &Client) -> Result<Vec<String>, Status> {
    let missing = missing(client).await?;
    if missing.is_empty() {
        return Ok(missing);
    }
    let kind = STATE.indexed_value_type();
    let search_attributes = missing.iter().map(|name| (name.clone(), kind.into())).collect();
    let asked = AddSearchAttributesRequest { search_attributes, namespace: client.namespace() };
    match OperatorService::add_search_attributes(&mut client.clone(), asked.into_request()).await {
        Ok(_) => Ok(missing),
        // Another worker was faster.
        Err(status) if status.code() == Code::AlreadyExists => Ok(Vec::new()),
        Err(status) => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_names_and_no_addresses() {
        let order = Order {
            id: "job".into(),
            remote: "ssh://me:word@host/state.git".into(),
            origin: Some("https://host/a.git".into()),
            project: "shop".into(),
            pool: "default".into(),
            agent: "claude".into(),
            team: Some("web".into()),
            ..Order::default()
        };
        let labels = format!("{:?}", of(&order));
        assert!(!labels.contains("host") && !labels.contains("word"), "{labels}");
        for key in [&PROJECT, &STATE, &POOL, &TEAM, &AGENT] {
            assert!(labels.contains(key.name()), "{} in {labels}", key.name());
        }
        assert!(!labels.contains(PLAN.name()), "it is of no plan: {labels}");
    }
}
