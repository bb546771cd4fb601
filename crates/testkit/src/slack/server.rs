//! The test's handle to a Slack, and its server: a thread for each connection.

use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::world::{Call, CallFault, SlackMessage, World};
use super::{api, socket};
use crate::eventually;
use crate::forge::decoded;
use crate::model::http::{Incoming, Whole};

/// A Slack. It is gone when it is dropped.
#[derive(Debug)]
pub struct Slack {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<(SocketAddr, JoinHandle<()>)>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) world: Mutex<World>,
    sockets: SocketAddr,
    is_stopped: AtomicBool,
}

impl Slack {
    pub const BOT: &str = "xoxb-test";
    pub const APP: &str = "xapp-test";

    pub fn start() -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
        let (http, sockets) = (listen(), listen());
        let at = |listener: &TcpListener| listener.local_addr().expect("it was just bound");
        let (address, sockets_at) = (at(&http), at(&sockets));
        let shared = Arc::new(Shared {
            world: Mutex::default(),
            sockets: sockets_at,
            is_stopped: AtomicBool::new(false),
        });
        let threads = vec![
            (address, serve(http, &shared, Shared::serve)),
            (sockets_at, serve(sockets, &shared, socket::serve)),
        ];
        Self { address, shared, threads }
    }

    pub fn url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// A user writes to the bot; returns the message's timestamp.
    pub fn mention(&self, user: &str, channel: &str, thread: Option<&str>, text: &str) -> String {
        let text = format!("<@U0BOT> {text}");
        let ts = lock(&self.shared.world).put(channel, thread, &text).ts.clone();
        let event = json!({"type": "app_mention", "user": user, "channel": channel, "ts": ts, "thread_ts": thread,
            "text": text});
        self.send(
            "events_api",
            json!({"type": "event_callback", "event_id": format!("Ev{ts}"), "event": event}),
        );
        ts
    }

    /// A user types a command; returns the envelope that it is sent in.
    pub fn command(&self, user: &str, channel: &str, text: &str) -> Value {
        let trigger = lock(&self.shared.world).next_ts();
        self.send(
            "slash_commands",
            json!({"command": "/refrain", "text": text, "user_id": user, "team_id": "T0",
            "channel_id": channel, "trigger_id": trigger, "response_url": format!("http://{}/respond/{user}", self.address)}),
        )
    }

    /// A user presses the button of a message; returns the envelope that it is sent in.
    pub fn press(&self, user: &str, message: &SlackMessage) -> Value {
        let (action, value) = message.button().expect("the message has a button");
        self.press_as(user, message, &action, &value)
    }

    /// A user presses a button that is not ours.
    pub fn press_as(&self, user: &str, message: &SlackMessage, action: &str, value: &str) -> Value {
        let trigger = lock(&self.shared.world).next_ts();
        let container = json!({"type": "message", "message_ts": message.ts, "channel_id": message.channel});
        self.send(
            "interactive",
            json!({"type": "block_actions", "user": {"id": user}, "trigger_id": trigger,
            "channel": {"id": message.channel}, "container": container, "api_app_id": "A0",
            "actions": [{"type": "button", "action_id": action, "value": value}]}),
        )
    }

    fn send(&self, kind: &str, payload: Value) -> Value {
        let id = format!("envelope-{}", lock(&self.shared.world).number());
        let frame =
            json!({"type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": true});
        self.send_frame(&frame.to_string());
        frame
    }

    /// Sends any frame, valid or not.
    pub fn send_frame(&self, frame: &str) {
        lock(&self.shared.world).outbox.push_back(frame.to_owned());
    }

    /// Waits until the envelope was acknowledged `times` times.
    #[track_caller]
    pub fn wait_for_acknowledged(&self, envelope: &Value, times: usize) {
        let id = envelope["envelope_id"].as_str().unwrap_or_default();
        eventually(&format!("{id} is acknowledged"), || {
            let count = lock(&self.shared.world).acknowledged.iter().filter(|it| *it == id).count();
            (count >= times).then_some(())
        });
    }

    /// Waits until a client is connected.
    #[track_caller]
    pub fn wait_for_listener(&self) {
        eventually("a client listens to Slack", || {
            let world = lock(&self.shared.world);
            (world.opened > world.closed).then_some(())
        });
    }

    /// Is down, or up again. While it is down nothing is answered, and the connection is cut.
    pub fn set_down(&self, is_down: bool) {
        let mut world = lock(&self.shared.world);
        world.is_down = is_down;
        world.closed = world.opened;
    }

    /// Waits until so many calls came while it was down.
    #[track_caller]
    pub fn wait_for_turned_away(&self, count: u64) {
        eventually(&format!("{count} calls find no client"), || {
            (lock(&self.shared.world).turned_away >= count).then_some(())
        });
    }

    pub fn drop_socket(&self) {
        let mut world = lock(&self.shared.world);
        world.closed = world.opened;
    }

    /// Sets the fault of the next call of a method.
    pub fn mood(&self, method: &str, mood: CallFault) {
        lock(&self.shared.world).moods.entry(method.to_owned()).or_default().push_back(mood);
    }

    pub fn calls(&self, method: &str) -> Vec<Call> {
        let world = lock(&self.shared.world);
        world.calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// The public messages, in order.
    pub fn said(&self) -> Vec<SlackMessage> {
        let world = lock(&self.shared.world);
        world.said.iter().filter(|said| said.only_for.is_none()).cloned().collect()
    }

    /// The messages that only this user sees.
    pub fn told(&self, user: &str) -> Vec<String> {
        let world = lock(&self.shared.world);
        let own = world.said.iter().filter(|said| said.only_for.as_deref() == Some(user));
        own.map(|said| said.text.clone()).collect()
    }

    #[track_caller]
    pub fn message(&self, ts: &str) -> SlackMessage {
        self.said().into_iter().find(|said| said.ts == ts).expect("there is such a message")
    }

    #[track_caller]
    pub fn wait_for(&self, what: &str, is_it: impl Fn(&SlackMessage) -> bool) -> SlackMessage {
        eventually(&format!("Slack shows {what}"), || self.said().into_iter().find(&is_it))
    }

    /// Waits until this user alone has received such a message.
    #[track_caller]
    pub fn wait_for_told(&self, user: &str, part: &str) -> String {
        eventually(&format!("{user} gets {part:?}"), || {
            self.told(user).into_iter().find(|text| text.contains(part))
        })
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        for (address, thread) in self.threads.drain(..) {
            // Wakes the listener, so that it looks.
            let _ = TcpStream::connect(address);
            let _ = thread.join();
        }
    }
}

fn serve(listener: TcpListener, shared: &Arc<Shared>, serve: fn(&Shared, TcpStream)) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    spawn(move || {
        for stream in listener.incoming().flatten() {
            if shared.is_over() {
                return;
            }
            let shared = Arc::clone(&shared);
            spawn(move || serve(&shared, stream));
        }
    })
}

impl Shared {
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let mut reading = BufReader::new(reading);
        while let Ok(Some(request)) = Incoming::read(&mut reading) {
            let Some(answer) = self.answer(&request) else { return };
            if answer.write(&mut stream, true).is_err() || request.wants_close() {
                return;
            }
        }
    }

    /// The response; none if the connection is closed instead.
    fn answer(&self, request: &Incoming) -> Option<Whole> {
        let mut world = lock(&self.world);
        if world.is_down || self.is_over() {
            world.turned_away += 1;
            return None;
        }
        if let Some(id) = request.path.strip_prefix("/upload/") {
            let content = String::from_utf8_lossy(&request.body).into_owned();
            // The upload address itself authorizes: the request must not carry the token.
            let is_fine = request.header("authorization").is_empty();
            world.uploads.get_mut(id).filter(|_| is_fine)?.1 = content;
            return Some(Whole::ok(json!({"ok": true})));
        }
        if let Some(user) = request.path.strip_prefix("/respond/") {
            let text = request.json()["text"].as_str().unwrap_or_default().to_owned();
            world.put("", None, &text).only_for = Some(user.to_owned());
            return Some(Whole::ok(json!({"ok": true})));
        }
        let method = request.path.strip_prefix("/api/").unwrap_or_default().to_owned();
        let body = if request.method == "GET" { query(&request.query) } else { request.json() };
        let mood = world.moods.get_mut(&method).and_then(std::collections::VecDeque::pop_front);
        let token = if method == "apps.connections.open" { Slack::APP } else { Slack::BOT };
        let is_known = request.header("authorization") == format!("Bearer {token}");
        let place = match method.as_str() {
            "apps.connections.open" => self.sockets.to_string(),
            _ => request.header("host").to_owned(),
        };
        let done = match &mood {
            Some(CallFault::Refuse(word)) => Err(*word),
            Some(CallFault::Limit(_) | CallFault::Broken) => Err("ratelimited"),
            _ if !is_known => Err("invalid_auth"),
            Some(CallFault::HangUpBehind) | None => api::answer(&mut world, &method, &body, &place),
        };
        world.calls.push(Call { method, body, ok: done.is_ok(), at: Instant::now() });
        match (mood, done) {
            (Some(CallFault::HangUpBehind), _) => None,
            (Some(CallFault::Broken), _) => {
                Some(Whole { status: 500, headers: vec![], body: Value::String("oops".to_owned()) })
            }
            (Some(CallFault::Limit(seconds)), _) => Some(limited(seconds)),
            (_, Err("ratelimited")) => Some(limited(1)),
            (_, Err(word)) => Some(Whole::ok(json!({"ok": false, "error": word}))),
            (_, Ok(mut answer)) => {
                answer["ok"] = Value::Bool(true);
                Some(Whole::ok(answer))
            }
        }
    }
}

fn limited(seconds: u64) -> Whole {
    let headers = vec![("retry-after", seconds.to_string())];
    Whole { status: 429, headers, body: json!({"ok": false, "error": "ratelimited"}) }
}

fn query(text: &str) -> Value {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    Value::Object(
        pairs.map(|(name, value)| (name.to_owned(), Value::String(decoded(value)))).collect::<Map<_, _>>(),
    )
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
