//! MCP on standard input and output, as agents start it: one client, until it closes its end.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio};
use rmcp::{RoleServer, ServiceExt};

use super::Mcp;
use crate::requests::RequestHandler;

/// The largest message that is read, in bytes: a longer line is passed over, and never held.
const LONGEST_LINE: usize = 1 << 20;

/// Serves one client on standard input and output until it goes away. Loops do not notice.
pub async fn serve_stdio(handler: RequestHandler) -> Result<(), Box<ServerInitializeError>> {
    let (input, output) = stdio();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(LONGEST_LINE);
    match Mcp::new(Arc::new(handler)).serve(LenientTransport { transport, has_begun: false }).await {
        Ok(session) => {
            // The result is ignored: the client is gone.
            let _ = session.waiting().await;
            Ok(())
        }
        // The client closed the connection without a request.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Box::new(error)),
    }
}

/// A transport that skips invalid messages before a session has begun, instead of ending the session.
struct LenientTransport<T> {
    transport: T,
    has_begun: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for LenientTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message: ClientJsonRpcMessage = self.transport.receive().await?;
            self.has_begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.has_begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
