//! MCP over HTTP, inside the server that checks tokens, names and origins: many clients.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::Mcp;
use crate::requests::RequestHandler;

/// The largest message that is read, in bytes.
const LARGEST: usize = 1 << 20;

pub(crate) fn over_http(handler: Arc<RequestHandler>) -> StreamableHttpService<Mcp, LocalSessionManager> {
    // Which names it is found under is looked at before anything gets here.
    let config =
        StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(LARGEST);
    StreamableHttpService::new(move || Ok(Mcp::new(Arc::clone(&handler))), Arc::default(), config)
}
