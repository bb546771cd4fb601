//! Listens to Slack: one connection in socket mode, reopened whenever it ends. Each envelope is acknowledged as soon as
//! its request is stored; no request is executed here. There is no other way in: our token opened the connection, so no
//! unsigned request can arrive.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use refrain_engine::Pending;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::api::Api;
use super::envelope::{self, Request, SocketFrame};

/// A connection that was shorter is not opened again at once.
const SHORT: Duration = Duration::from_secs(5);
/// How long it rests before the next.
const REST: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);
/// After so long without a word, Slack is pinged; after twice that, the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(60);
/// How many envelopes are remembered: a repeated one is only acknowledged.
const REMEMBERED: usize = 1_000;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Keeps a connection open; requests are sent to `requests`.
pub(super) async fn listen(api: &Api, asked: Arc<Pending>, requests: UnboundedSender<Request>) {
    let mut listener = Listener { asked, requests, seen: Vec::new() };
    loop {
        let opened = Instant::now();
        if let Some(socket) = open(api).await {
            listener.hear(socket).await;
        }
        // Do not reconnect too often if Slack closes connections at once.
        if opened.elapsed() < SHORT {
            sleep(REST).await;
        }
    }
}

/// A connection, if Slack gives one out now.
async fn open(api: &Api) -> Option<Socket> {
    let url = api.open_socket().await.ok()?;
    // The library limits a message's size; one that is too long for us is skipped and does not end the connection.
    let connected = timeout(PATIENCE, connect_async(url)).await;
    Some(connected.ok()?.ok()?.0)
}

struct Listener {
    asked: Arc<Pending>,
    requests: UnboundedSender<Request>,
    /// The last envelopes and requests, the oldest first.
    seen: Vec<String>,
}

impl Listener {
    /// Acknowledges envelopes until the connection ends.
    async fn hear(&mut self, mut socket: Socket) {
        let mut is_pinged = false;
        loop {
            let Ok(heard) = timeout(SILENCE, socket.next()).await else {
                if is_pinged || socket.send(Message::Ping(Vec::new().into())).await.is_err() {
                    return;
                }
                is_pinged = true;
                continue;
            };
            is_pinged = false;
            let text = match heard {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            };
            match envelope::read(&text) {
                SocketFrame::Disconnect => {
                    let _ = socket.close(None).await;
                    return;
                }
                SocketFrame::Envelope { id, request } => {
                    if let Some(acknowledged) = self.take(&id, request.map(|request| *request)).await
                        && socket.send(Message::text(acknowledged)).await.is_err()
                    {
                        return;
                    }
                }
                SocketFrame::Hello | SocketFrame::Noise => {}
            }
        }
    }

    async fn take(&mut self, id: &str, request: Option<Request>) -> Option<String> {
        let acknowledged = serde_json::json!({ "envelope_id": id }).to_string();
        let is_new = self.is_new(id) && request.as_ref().is_none_or(|request| self.is_new(&request.key));
        if let Some(request) = request.filter(|_| is_new) {
            let (asked, kept) = (Arc::clone(&self.asked), request.clone());
            let kept = spawn_blocking(move || asked.keep(&kept.key, &kept)).await;
            // A request that cannot be stored is not acknowledged: Slack sends it again.
            if !matches!(kept, Ok(Ok(_))) {
                self.seen.retain(|seen| seen != id && *seen != request.key);
                return None;
            }
            // The receiver is gone only when this whole service is.
            let _ = self.requests.send(request);
        }
        Some(acknowledged)
    }

    fn is_new(&mut self, key: &str) -> bool {
        if self.seen.iter().any(|other| other == key) {
            return false;
        }
        if self.seen.len() >= REMEMBERED {
            self.seen.drain(..REMEMBERED / 2);
        }
        self.seen.push(key.to_owned());
        true
    }
}
