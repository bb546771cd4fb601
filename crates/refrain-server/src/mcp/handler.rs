//! The server's description of itself, and the dispatch of requests.

use refrain_app::remote::parameters;
use rmcp::handler::server::tool::{IntoCallToolResult, ToolCallContext};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, tool_handler};
use serde_json::Value;

use super::{Mcp, resources};
use crate::requests::Refusal;

/// The server instructions that a model receives with the tools.
const INSTRUCTIONS: &str = "Refrain runs a coding agent again and again until the work is proven done. loop_start for one \
    goal, plan_run for the tasks of a plan; both answer at once, and what they start continues by itself. Ask loop_status with \
    wait_seconds rather than again and again. A loop is done when its status is completed; verified says whether gates proved \
    it. Where needs is not null, a person has to do that.";

const KNOWN: &[&str] = &[
    "initialize",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

#[tool_handler(router = self.tools)]
impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let own = Implementation::new("refrain", self.handler.version()).with_title("Refrain");
        ServerConfig::new(can).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.get(&request.name).cloned() else {
            return unknown_tool(&request, self.tools.list_all()).into_call_tool_result();
        };
        let arguments = request.arguments.clone().unwrap_or_default();
        match parameters::check(&arguments, &Value::Object((*tool.input_schema).clone())) {
            Err((name, why)) => Refusal::new(format!("{}: {name}{why}", tool.name)).into_call_tool_result(),
            Ok(()) => self.tools.call(ToolCallContext::new(self, request, context)).await,
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method that arrives as a custom request has invalid parameters.
        let CustomRequest { method, .. } = request;
        Err(match KNOWN.contains(&method.as_str()) {
            true => ErrorData::invalid_params(
                format!("{method}: its parameters are missing, or of another kind"),
                None,
            ),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.run_blocking(resources::listed).await.map_err(failed)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.run_blocking(move |handler| resources::read(handler, &request.uri)).await;
        read.map(Into::into).map_err(not_found)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.follow(request.uri, context.peer).await.map_err(not_found)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.forget(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.follow_all(subscription).await.map_err(not_found)
    }
}

/// Seed 003's tool, and what each of its actions is called here.
const PHANTOM_LOOP: &str = "phantom_loop";
const ACTIONS: [(&str, &str); 4] = [
    ("start", "loop_start with goal, workspace, max_iterations, max_cost_usd and the like"),
    ("status", "loop_status with loop_id"),
    ("stop", "loop_stop with loop_id"),
    ("list", "loop_list with include_finished"),
];

fn unknown_tool(request: &CallToolRequestParams, known: Vec<Tool>) -> Refusal {
    let name = &request.name;
    if name == PHANTOM_LOOP {
        let action = request.arguments.as_ref().and_then(|given| given.get("action")?.as_str());
        let calls = ACTIONS.iter().filter(|(known, _)| action.is_none_or(|action| action == *known));
        let calls: Vec<_> = calls.map(|(action, call)| format!("{action}: call {call}")).collect();
        if !calls.is_empty() {
            return Refusal::new(format!(
                "{name}: each action is a tool of its own, without action; {}",
                calls.join("; ")
            ));
        }
    }
    let known: Vec<_> = known.iter().map(|tool| tool.name.as_ref()).collect();
    Refusal::new(format!("{name}: unknown tool; accepted: {}", known.join(", ")))
}

fn failed(refusal: Refusal) -> ErrorData {
    ErrorData::internal_error(refusal.to_string(), None)
}

fn not_found(refusal: Refusal) -> ErrorData {
    ErrorData::resource_not_found(refusal.to_string(), None)
}
