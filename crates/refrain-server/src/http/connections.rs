//! The open connections: how many one client may have, and which one is closed when all slots are taken.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// How many connections one token or cookie may have, and one address that is not this machine's.
pub(super) const MOST_OF_ONE: usize = 64;

/// A hash of the token or cookie.
type Pass = blake3::Hash;

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<OpenConnections>);

#[derive(Debug, Default)]
struct OpenConnections {
    last: u64,
    /// By number: the first is the oldest.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    address: IpAddr,
    pass: Option<Pass>,
    close: Option<AbortHandle>,
}

/// One connection, for as long as the value lives.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    connections: Arc<Connections>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection from this address; none if it has too many.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, is_bounded: bool) -> Option<ConnectionSlot> {
        let mut open = self.open();
        let of_it = open.connections.values().filter(|connection| connection.address == address);
        if is_bounded && !address.is_loopback() && of_it.count() >= MOST_OF_ONE {
            return None;
        }
        open.last += 1;
        let number = open.last;
        open.connections.insert(number, Connection { address, pass: None, close: None });
        drop(open);
        Some(ConnectionSlot { number, connections: Arc::clone(self) })
    }

    /// By this a connection is closed.
    pub(super) fn can_close(&self, number: u64, close: AbortHandle) {
        if let Some(connection) = self.open().connections.get_mut(&number) {
            connection.close = Some(close);
        }
    }

    /// Closes the oldest unauthenticated connection, to make room for authenticated clients.
    pub(super) fn make_room(&self) {
        let open = self.open();
        let silent = open.connections.values().find(|it| it.pass.is_none() && it.close.is_some());
        let close = silent.and_then(|silent| silent.close.clone());
        drop(open);
        if let Some(close) = close {
            close.abort();
        }
    }
}

impl ConnectionSlot {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes the connection's token or cookie; false if that has too many connections.
    pub(super) fn shows(&self, pass: &str) -> bool {
        let pass = blake3::hash(pass.as_bytes());
        let mut open = self.connections.open();
        let others =
            open.connections.iter().filter(|(number, it)| **number != self.number && it.pass == Some(pass));
        let has_room = others.count() < MOST_OF_ONE;
        if has_room && let Some(own) = open.connections.get_mut(&self.number) {
            own.pass = Some(pass);
        }
        has_room
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
    }
}
