//! As much of an ntfy server as Refrain uses (docs.ntfy.sh): messages are posted to topics, and a topic is followed as
//! lines of JSON, from its first message or from the one after a known one.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use serde_json::json;

use crate::eventually;
use crate::model::http::{Incoming, Whole};

/// When every message was sent, by its own word: after the start of every program.
const LATER: u64 = 4_000_000_000;

#[derive(Clone, Debug)]
pub struct NtfyMessage {
    pub topic: String,
    pub title: String,
    pub actions: String,
    pub message: String,
}

/// A server. It is gone, with its port, when it is dropped.
#[derive(Debug)]
pub struct Ntfy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<NtfyMessage>,
    followers: usize,
    is_over: bool,
    /// How often all connections were cut.
    cuts: usize,
}

impl Ntfy {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
        let address = listener.local_addr().expect("it was just bound");
        let shared = Arc::<Shared>::default();
        let serving = Arc::clone(&shared);
        let thread = spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                if serving.lock().is_over {
                    break;
                }
                let shared = Arc::clone(&serving);
                open.push(spawn(move || shared.serve(stream)));
            }
            open.into_iter().for_each(|thread| drop(thread.join()));
        });
        Self { address, shared, thread: Some(thread) }
    }

    pub fn topic(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Posts a message, as a phone does.
    pub fn publish(&self, topic: &str, message: &str) {
        self.shared.put(topic, String::new(), String::new(), message);
    }

    /// The messages of a topic.
    pub fn messages(&self, topic: &str) -> Vec<NtfyMessage> {
        let state = self.shared.lock();
        state.messages.iter().filter(|message| message.topic == topic).cloned().collect()
    }

    /// Waits until a topic has so many messages.
    #[track_caller]
    pub fn wait_for(&self, topic: &str, count: usize) -> Vec<NtfyMessage> {
        let look = || Some(self.messages(topic)).filter(|all| all.len() >= count);
        eventually(&format!("{count} messages in {topic}"), look)
    }

    #[track_caller]
    pub fn wait_for_follower(&self) {
        eventually("a topic is followed", || (self.shared.lock().followers > 0).then_some(()));
    }

    /// Ends all connections.
    pub fn cut(&self) {
        self.shared.lock().cuts += 1;
        self.shared.changed.notify_all();
        eventually("all are cut", || (self.shared.lock().followers == 0).then_some(()));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, topic: &str, title: String, actions: String, message: &str) {
        let (topic, message) = (topic.to_owned(), message.to_owned());
        self.lock().messages.push(NtfyMessage { topic, title, actions, message });
        self.changed.notify_all();
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let Ok(Some(request)) = Incoming::read(&mut BufReader::new(reading)) else { return };
        let topic = request.path.trim_start_matches('/');
        match topic.strip_suffix("/json") {
            Some(topic) => self.follow(&mut stream, topic, &request.query),
            None => {
                let header = |name: &str| request.header(name).to_owned();
                self.put(topic, header("title"), header("actions"), &String::from_utf8_lossy(&request.body));
                let headers = vec![("connection", "close".to_owned())];
                let _ = Whole { status: 200, headers, body: json!({}) }.write(&mut stream, true);
            }
        }
    }

    /// Writes the messages of a topic as they come, until the other side or this server ends.
    fn follow(&self, stream: &mut TcpStream, topic: &str, query: &str) {
        let since = query.split('&').find_map(|pair| pair.strip_prefix("since="));
        let mut next = since.and_then(|id| id.parse::<usize>().ok()).map_or(0, |id| id + 1);
        if write!(stream, "HTTP/1.1 200 Scripted\r\ncontent-type: application/x-ndjson\r\n\r\n").is_err() {
            return;
        }
        let mut state = self.lock();
        state.followers += 1;
        let cuts = state.cuts;
        while !state.is_over && state.cuts == cuts {
            let Some(message) = state.messages.get(next) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if message.topic == topic {
                let line = json!({"id": next.to_string(), "time": LATER, "event": "message", "topic": topic,
                    "message": message.message});
                if writeln!(stream, "{line}").is_err() {
                    break;
                }
            }
            next += 1;
        }
        state.followers -= 1;
    }
}

impl Drop for Ntfy {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        // Wakes the listener, so that it looks.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
