//! A receiver of webhooks and other HTTP requests on loopback: it keeps what it is sent, and answers as scripted, with
//! 200 by default.

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::{Value, json};

use crate::eventually;
use crate::model::http::{Incoming, Whole};

#[derive(Clone, Debug)]
pub enum CannedResponse {
    Status(u16),
    Redirect(String),
    /// It is never answered.
    Hang,
    HangUp,
}

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub path: String,
    /// `webhook-id`.
    pub id: String,
    pub json: Value,
    pub authorization: String,
    timestamp: String,
    signature: String,
    pub body: String,
    /// `title` and `priority`, as ntfy has them.
    pub title: String,
    pub priority: String,
}

impl ReceivedRequest {
    /// Whether it was signed with this secret, as Standard Webhooks has it.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let Self { id, timestamp, body, .. } = self;
        let key = Key::new(HMAC_SHA256, secret.as_bytes());
        let signature = self.signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
        signature.is_some_and(|it| verify(&key, format!("{id}.{timestamp}.{body}").as_bytes(), &it).is_ok())
    }
}

/// A receiver. It is gone, with its port, when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    received: Mutex<Vec<ReceivedRequest>>,
    answers: Mutex<VecDeque<CannedResponse>>,
    /// Makes the body of a 200 response.
    says: Option<fn(&Value) -> Value>,
    is_over: AtomicBool,
}

impl Receiver {
    /// A receiver with these answers, in this order.
    pub fn start(answers: impl IntoIterator<Item = CannedResponse>) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), answers)
    }

    pub fn start_at(address: SocketAddr, answers: impl IntoIterator<Item = CannedResponse>) -> Self {
        Self::begin(address, answers, None)
    }

    /// A receiver whose 200 responses have the body that `says` makes, after these answers.
    pub fn start_with_body(
        says: fn(&Value) -> Value,
        answers: impl IntoIterator<Item = CannedResponse>,
    ) -> Self {
        Self::begin((Ipv4Addr::LOCALHOST, 0).into(), answers, Some(says))
    }

    fn begin(
        address: SocketAddr,
        answers: impl IntoIterator<Item = CannedResponse>,
        says: Option<fn(&Value) -> Value>,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("it was just bound");
        let shared = Arc::new(Shared {
            answers: Mutex::new(answers.into_iter().collect()),
            says,
            ..Shared::default()
        });
        let thread = {
            let shared = Arc::clone(&shared);
            spawn(move || {
                // Connections without an answer stay open.
                let mut open = Vec::new();
                for stream in listener.incoming().flatten() {
                    if shared.is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    open.extend(shared.serve(stream));
                }
            })
        };
        Self { address, shared, thread: Some(thread) }
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/loops", self.address)
    }

    /// The same without a path.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        lock(&self.shared.received).clone()
    }

    /// Waits until so much has come.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<ReceivedRequest> {
        let look = || Some(self.received()).filter(|all| all.len() >= count);
        eventually(&format!("{count} webhooks"), look)
    }
}

impl Shared {
    /// Reads the request and answers it; returns the connection if it stays unanswered.
    fn serve(&self, mut stream: TcpStream) -> Option<TcpStream> {
        let request = Incoming::read(&mut BufReader::new(&stream)).ok()??;
        let header = |name: &str| request.header(name).to_owned();
        let received = ReceivedRequest {
            path: request.path.clone(),
            id: header("webhook-id"),
            authorization: header("authorization"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
            title: header("title"),
            priority: header("priority"),
            json: request.json(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        };
        let answer = lock(&self.answers).pop_front().unwrap_or(CannedResponse::Status(200));
        let (status, mut headers) = match answer {
            CannedResponse::Status(status) => (status, vec![]),
            CannedResponse::Redirect(to) => (307, vec![("location", to)]),
            CannedResponse::Hang | CannedResponse::HangUp => {
                lock(&self.received).push(received);
                return matches!(answer, CannedResponse::Hang).then_some(stream);
            }
        };
        headers.push(("connection", "close".to_owned()));
        let says = self.says.filter(|_| status == 200);
        let body = says.map_or_else(|| json!({}), |says| says(&received.json));
        let _ = Whole { status, headers, body }.write(&mut stream, true);
        lock(&self.received).push(received);
        None
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it looks.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
