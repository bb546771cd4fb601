//! MCP on standard input and output, as agents start it: one client, until it closes its end.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio};
use rmcp::{RoleServer, ServiceExt};
use serde_json::{Map, Value};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex,
};

use super::Mcp;
use crate::requests::RequestHandler;

/// The largest message that is read, in bytes: a longer line is passed over, and never held.
const LONGEST_LINE: usize = 1 << 20;
/// How much of a line is on its way at once, in bytes.
const LONGEST_PIECE: usize = 64 << 10;

/// Serves one client on standard input and output until it goes away. Loops do not notice.
pub async fn serve_stdio(handler: RequestHandler) -> Result<(), Box<ServerInitializeError>> {
    let (input, output) = stdio();
    let (read, write) = duplex(LONGEST_PIECE);
    tokio::spawn(pass_on(BufReader::new(input), write));
    let transport = AsyncRwTransport::new_server(read, output).with_max_line_length(LONGEST_LINE);
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

/// Passes the client's lines on, each as [`answerable`]. A line that is too long is passed on in pieces, for the transport
/// to pass over.
async fn pass_on(mut input: impl AsyncBufRead + Unpin, mut output: DuplexStream) -> std::io::Result<()> {
    let (mut line, mut is_begin) = (Vec::new(), true);
    while (&mut input).take(LONGEST_LINE as u64).read_until(b'\n', &mut line).await? > 0 {
        let ends = line.ends_with(b"\n");
        let answerable = if is_begin && ends { answerable(&line) } else { None };
        output.write_all(answerable.as_deref().unwrap_or(&line)).await?;
        is_begin = ends;
        line.clear();
    }
    Ok(())
}

/// A request whose parameters are of no kind that the protocol has, without them: the library would answer it without
/// its id, which leaves the client waiting.
fn answerable(line: &[u8]) -> Option<Vec<u8>> {
    let mut request: Map<String, Value> = serde_json::from_slice(line).ok()?;
    if serde_json::from_slice::<ClientJsonRpcMessage>(line).is_ok() || !request.contains_key("id") {
        return None;
    }
    request.remove("params")?;
    let mut line = serde_json::to_vec(&request).ok()?;
    line.push(b'\n');
    Some(line)
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
