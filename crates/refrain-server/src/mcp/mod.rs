//! The Model Context Protocol: the tools and resources by which an agent starts loops and watches them. It translates
//! between the protocol and [`RequestHandler`]. A cancelled request, or a client that disconnects, ends only the response, not
//! the loop.

mod handler;
mod http;
mod resources;
mod stdio;
mod tools;
mod updates;

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;

pub(crate) use self::http::over_http;
pub use self::stdio::serve_stdio;
use self::updates::Subscriptions;
use crate::requests::{Refusal, RequestHandler};

#[derive(Clone, Debug)]
pub(crate) struct Mcp {
    handler: Arc<RequestHandler>,
    tools: ToolRouter<Self>,
    subscriptions: Arc<Subscriptions>,
}

impl Mcp {
    fn new(handler: Arc<RequestHandler>) -> Self {
        Self { handler, tools: Self::tool_router(), subscriptions: Arc::default() }
    }

    /// Runs blocking work on a thread that may block.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RequestHandler) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let handler = self.handler.clone();
        let done = tokio::task::spawn_blocking(move || work(&handler)).await;
        done.unwrap_or_else(|error| {
            Err(Refusal::new(format!("refrain broke off in the middle of this: {error}")))
        })
    }
}
