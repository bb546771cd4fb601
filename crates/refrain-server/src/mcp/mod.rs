//! The Model Context Protocol: the tools and resources by which an agent starts loops and watches them. It translates
//! between the protocol and [`Desk`]. A cancelled request, or a client that disconnects, ends only the response, not
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
use crate::requests::{Desk, Refusal};

#[derive(Clone, Debug)]
pub(crate) struct Mcp {
    desk: Arc<Desk>,
    tools: ToolRouter<Self>,
    subscriptions: Arc<Subscriptions>,
}

impl Mcp {
    fn new(desk: Arc<Desk>) -> Self {
        Self { desk, tools: Self::tool_router(), subscriptions: Arc::default() }
    }

    /// Runs blocking work on a thread that may block.
    async fn at_desk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Desk) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let desk = self.desk.clone();
        let done = tokio::task::spawn_blocking(move || work(&desk)).await;
        done.unwrap_or_else(|error| {
            Err(Refusal::new(format!("refrain broke off in the middle of this: {error}")))
        })
    }
}
