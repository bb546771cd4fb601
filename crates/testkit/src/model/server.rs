//! The server: a listening socket, a thread for each connection, and the test's handle to all of them.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use super::connection::Connection;
use super::request::Request;
use super::script::Script;
use super::state::State;

/// How long to wait for a request: real programs need half a minute to start on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A model on loopback that answers from its script. Dropping it ends all its threads.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    state: Arc<State>,
    connections: Arc<Mutex<Vec<ServedConnection>>>,
    let_pass: UnixStream,
    listener: Option<JoinHandle<()>>,
}

/// A connection and the thread that serves it.
#[derive(Debug)]
struct ServedConnection {
    stream: Weak<TcpStream>,
    thread: JoinHandle<()>,
}

impl Model {
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
        let address = listener.local_addr().expect("it was just bound");
        let (let_pass, passes) = UnixStream::pair().expect("a socket pair can be made");
        passes.set_nonblocking(true).expect("a fresh socket");
        let passes = Arc::new(passes);
        let state = Arc::new(State::new());
        state.set_lane("", script);
        let connections = Arc::<Mutex<Vec<ServedConnection>>>::default();
        let thread = {
            let (state, connections) = (Arc::clone(&state), Arc::clone(&connections));
            spawn(move || {
                for stream in listener.incoming() {
                    if state.is_stopped() {
                        break;
                    }
                    let Ok(stream) = stream else { continue };
                    // Small parts are to arrive as they are written.
                    let _ = stream.set_nodelay(true);
                    let stream = Arc::new(stream);
                    let weak = Arc::downgrade(&stream);
                    let connection =
                        Connection { stream, state: Arc::clone(&state), passes: Arc::clone(&passes) };
                    let thread = spawn(move || connection.serve());
                    let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
                    connections.push(ServedConnection { stream: weak, thread });
                }
            })
        };
        Self { address, state, connections, let_pass, listener: Some(thread) }
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives another agent a script of its own; returns the URL that leads to it.
    pub fn lane(&self, name: &str, script: Script) -> String {
        self.state.set_lane(name, script);
        format!("{}/lane/{name}", self.url())
    }

    /// Continues with another script, from its beginning.
    pub fn rewrite(&self, script: Script) {
        self.state.set_lane("", script);
    }

    /// Everything that was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests()
    }

    /// The requests that took a turn so far: those of main conversations.
    pub fn turns(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::is_main).collect()
    }

    /// The prompt of each conversation's first request, in order; one that a program repeats is listed again.
    pub fn prompts(&self) -> Vec<String> {
        self.turns()
            .iter()
            .filter(|request| request.is_first())
            .map(|request| request.prompt().to_owned())
            .collect()
    }

    /// Waits until so many requests of main conversations have come, and gives them.
    #[track_caller]
    pub fn wait_for(&self, turns: usize) -> Vec<Request> {
        let what = format!("{turns} requests of a main conversation");
        self.wait_until(&what, |all| all.iter().filter(|request| request.is_main()).count() >= turns);
        self.turns()
    }

    /// Waits until the requests are as wanted; fails the test after half a minute, listing the requests.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl FnMut(&[Request]) -> bool) {
        let is_there = self.state.wait(DEADLINE, is_so);
        assert!(is_there, "waited {DEADLINE:?} in vain for {what}; there were {:#?}", self.requests());
    }

    /// Lets one held turn pass: a waiting one, or else the next.
    pub fn let_one_pass(&self) {
        (&self.let_pass).write_all(b"\n").expect("the other end is held by the server");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.state.stop();
        // Wakes the listener, so that it looks.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        for ServedConnection { stream, thread } in connections.drain(..) {
            if let Some(stream) = stream.upgrade() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            let _ = thread.join();
        }
    }
}
