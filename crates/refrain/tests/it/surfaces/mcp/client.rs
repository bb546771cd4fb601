//! A client of `refrain mcp`: the protocol's own, connected to the program's pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResult, ResourceContents,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService, Subscription};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Value, json};
use testkit::{Invocation, Run, Sandbox, Session};
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A notification of the server.
#[derive(Debug)]
pub(super) enum News {
    Progress(ProgressNotificationParam),
    Updated(String),
}

struct Ear(UnboundedSender<News>);

impl ClientHandler for Ear {
    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(News::Progress(progress));
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(News::Updated(updated.uri));
    }
}

/// A client in a session with the server.
pub(super) struct Client {
    runtime: Runtime,
    service: RunningService<RoleClient, Ear>,
    pub(super) session: Session,
    news: UnboundedReceiver<News>,
}

impl Client {
    /// In the sandbox's project.
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        Self::at(sandbox.command(&["mcp"]))
    }

    /// Of a server that is started so.
    pub(super) fn at(server: Invocation) -> Self {
        Self::by(server, ClientLifecycleMode::Initialize)
    }

    /// The same, speaking the newest revision of the protocol, which knows no sessions.
    pub(super) fn newest(sandbox: &Sandbox) -> Self {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        Self::by(sandbox.command(&["mcp"]), ClientLifecycleMode::Discover { preferred_versions })
    }

    fn by(server: Invocation, how: ClientLifecycleMode) -> Self {
        let (session, input, output) = server.talk();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (say, news) = unbounded_channel();
        let service = runtime.block_on(async {
            let input = pipe::Sender::from_owned_fd(input.into()).unwrap();
            let output = pipe::Receiver::from_owned_fd(output.into()).unwrap();
            Ear(say).serve_with_lifecycle((output, input), how).await.unwrap()
        });
        Self { runtime, service, session, news }
    }

    /// The server's description of itself.
    pub(super) fn server(&self) -> Value {
        serde_json::to_value(self.service.peer_info().unwrap().as_ref()).unwrap()
    }

    /// All tools, as the server describes them.
    pub(super) fn tools(&self) -> Vec<Value> {
        let tools = self.runtime.block_on(self.service.list_all_tools()).unwrap();
        tools.iter().map(|tool| serde_json::to_value(tool).unwrap()).collect()
    }

    /// Calls a tool; returns the protocol's result.
    pub(super) fn tries(&self, tool: &'static str, asked: Value) -> Result<CallToolResult, ServiceError> {
        let params = CallToolRequestParams::new(tool).with_arguments(asked.as_object().unwrap().clone());
        self.runtime.block_on(self.service.call_tool(params))
    }

    /// Calls a tool that must succeed.
    #[track_caller]
    pub(super) fn does(&self, tool: &'static str, asked: Value) -> Value {
        let result = self.tries(tool, asked).unwrap();
        assert_eq!(result.is_error, Some(false), "{result:#?}");
        let told = result.structured_content.expect("what is typed is structured");
        let text = serde_json::to_value(&result.content[0]).unwrap();
        let text: Value = serde_json::from_str(text["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, told, "the text says the same");
        told
    }

    /// Calls a tool that refuses, or that the protocol refuses: in one line.
    #[track_caller]
    pub(super) fn refuses(&self, tool: &'static str, asked: Value) -> String {
        let line = match self.tries(tool, asked) {
            Err(ServiceError::McpError(error)) => error.message.into_owned(),
            Err(error) => panic!("{error}"),
            Ok(result) => {
                assert_eq!(result.is_error, Some(true), "{result:#?}");
                let text = serde_json::to_value(&result.content[0]).unwrap();
                text["text"].as_str().unwrap().to_owned()
            }
        };
        assert!(!line.contains('\n') && !line.is_empty(), "{line:?}");
        line
    }

    /// Begins a call that waits, and receives its progress.
    pub(super) fn begins(&self, tool: &'static str, asked: Value) -> RequestHandle<RoleClient> {
        let params = CallToolRequestParams::new(tool).with_arguments(asked.as_object().unwrap().clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        self.runtime.block_on(self.service.send_cancellable_request(request, options)).unwrap()
    }

    /// Waits for the answer to that.
    pub(super) fn answer(&self, handle: RequestHandle<RoleClient>) -> Value {
        let answer = self.runtime.block_on(handle.await_response()).unwrap();
        serde_json::to_value(answer).unwrap()["structuredContent"].clone()
    }

    /// Takes that back.
    pub(super) fn cancels(&self, handle: RequestHandle<RoleClient>) {
        self.runtime.block_on(handle.cancel(None)).unwrap();
    }

    /// Reads the resource at an address.
    pub(super) fn reads(&self, uri: &str) -> Result<String, ServiceError> {
        let read: ReadResourceResult =
            self.runtime.block_on(self.service.read_resource(ReadResourceRequestParams::new(uri)))?;
        match read.contents.as_slice() {
            [ResourceContents::TextResourceContents { text, .. }] => Ok(text.clone()),
            other => panic!("{other:#?}"),
        }
    }

    /// The addresses of all resources.
    pub(super) fn resources(&self) -> Vec<String> {
        let all = self.runtime.block_on(self.service.list_all_resources()).unwrap();
        all.into_iter().map(|resource| resource.uri).collect()
    }

    /// Subscribes to changes of a resource.
    #[expect(deprecated, reason = "agents speak the revisions that have it")]
    pub(super) fn subscribes(&self, uri: &str) -> Result<(), ServiceError> {
        self.runtime.block_on(self.service.subscribe(rmcp::model::SubscribeRequestParams::new(uri)))
    }

    /// Subscribes to changes of these, in one lasting request.
    pub(super) fn listens(&self, uris: &[String]) -> Subscription {
        let filter = SubscriptionFilter::builder().resource_subscriptions(uris.to_vec()).build();
        self.runtime.block_on(self.service.listen(filter)).unwrap()
    }

    /// The next that changed of them.
    #[track_caller]
    pub(super) fn next_of(&self, subscription: &mut Subscription) -> String {
        let next = async { tokio::time::timeout(Duration::from_secs(20), subscription.next()).await };
        match self.runtime.block_on(next).expect("it says something").unwrap() {
            Some(ServerNotification::ResourceUpdatedNotification(updated)) => updated.params.uri,
            other => panic!("{other:?}"),
        }
    }

    /// The next notification of the server.
    #[track_caller]
    pub(super) fn hears(&mut self) -> News {
        let news = async { tokio::time::timeout(Duration::from_secs(20), self.news.recv()).await };
        self.runtime.block_on(news).expect("it says something").expect("it is there")
    }

    /// Waits for a notification that this resource has changed.
    #[track_caller]
    pub(super) fn hears_of(&mut self, uri: &str) {
        while !matches!(self.hears(), News::Updated(changed) if changed == uri) {}
    }

    /// Goes away; how the server ends.
    pub(super) fn leaves(self) -> Run {
        self.runtime.block_on(self.service.cancel()).unwrap();
        drop(self.runtime);
        self.session.wait()
    }
}

/// A client that can send anything.
pub(super) struct Raw {
    pub(super) session: Session,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Raw {
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        let (session, input, output) = sandbox.command(&["mcp"]).talk();
        Self { session, input, output: BufReader::new(output) }
    }

    /// Sends these bytes.
    pub(super) fn says(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
        self.input.flush().unwrap();
    }

    /// Sends a request, and skips other messages until the answer.
    #[track_caller]
    pub(super) fn asks(&mut self, id: u32, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.says(format!("{request}\n").as_bytes());
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server went away");
            let said: Value = serde_json::from_str(&line).expect("standard output is the protocol's");
            if said["id"] == id {
                return said;
            }
        }
    }

    /// Begins a session.
    pub(super) fn begins(&mut self) {
        let client = json!({"name": "raw", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        assert!(self.asks(1, "initialize", hello)["result"]["serverInfo"].is_object());
        self.says(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }
}
