//! Socket mode: one thread for each connection, which sends waiting frames and keeps acknowledgements.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Error, Message, WebSocket};

use super::server::{Shared, lock};

/// How long it listens before it looks whether there is something to say.
const LISTENS: Duration = Duration::from_millis(10);

/// Serves a connection until the client or the test closes it.
pub(super) fn serve(shared: &Shared, stream: TcpStream) {
    let number = {
        let mut world = lock(&shared.world);
        if world.is_down {
            return;
        }
        world.opened += 1;
        world.opened
    };
    let Ok(mut socket) = tungstenite::accept(stream) else { return };
    let hello = json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A0"}});
    if socket.send(Message::text(hello.to_string())).is_err() {
        return;
    }
    let _ = socket.get_ref().set_read_timeout(Some(LISTENS));
    while !shared.is_over() && turn(shared, &mut socket, number) {}
}

/// Sends waiting frames, and listens for a moment; returns whether the connection is open.
fn turn(shared: &Shared, socket: &mut WebSocket<TcpStream>, number: u64) -> bool {
    let frames: Vec<_> = {
        let mut world = lock(&shared.world);
        if world.is_down || world.closed >= number {
            return false;
        }
        // Only the last connection receives them.
        if world.opened == number { world.outbox.drain(..).collect() } else { Vec::new() }
    };
    if frames.into_iter().any(|frame| socket.send(Message::text(frame)).is_err()) {
        return false;
    }
    match socket.read() {
        Ok(Message::Text(text)) => {
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            let id = said["envelope_id"].as_str().unwrap_or_default().to_owned();
            lock(&shared.world).acknowledged.push(id);
            true
        }
        Ok(_) => true,
        Err(Error::Io(error)) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        Err(_) => false,
    }
}
