//! A client of `refrain serve` that can send anything, byte for byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Sandbox, Session, Signal, eventually};

/// How long an answer may take: only there for a test that fails.
const LIMIT: Duration = Duration::from_secs(30);

/// A server that runs, and a token for it.
pub(super) struct TestServer {
    session: Session,
    port: u16,
    token: String,
    invitation: String,
    url: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// An event of a stream.
#[derive(Debug)]
pub(super) struct ServerEvent {
    pub(super) event: String,
    pub(super) id: String,
    pub(super) data: Value,
}

/// A stream of events.
pub(super) struct Stream(BufReader<TcpStream>);

impl TestServer {
    /// A server for the sandbox's project, with more options.
    pub(super) fn begin(sandbox: &Sandbox, more: &[&str]) -> Self {
        let token = sandbox.refrain(&["serve", "token"]).with_code(0).stdout.trim().to_owned();
        let session = sandbox.spawn(&[&["serve", "--port", "0", "--json"], more].concat());
        let said: Value = eventually("it says where it is", || serde_json::from_str(&session.stdout()).ok());
        let url = said["url"].as_str().unwrap();
        let direct = said["direct"].as_str().unwrap();
        let port = direct.rsplit(':').next().unwrap().parse().unwrap();
        let invitation = said["open"].as_str().unwrap().strip_prefix(url).unwrap().to_owned();
        let url = url.to_owned();
        Self { session, port, token, invitation, url }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The path that lets a browser in, once.
    pub(super) fn invitation(&self) -> &str {
        &self.invitation
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The host under which browsers find it.
    pub(super) fn name(&self) -> String {
        format!("refrain.localhost:{}", self.port)
    }

    /// The URL that it prints for browsers.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> i32 {
        self.session.pid()
    }

    /// Its output for the user who runs it.
    pub(super) fn told(&self) -> String {
        self.session.stderr()
    }

    pub(super) fn connects(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends these bytes on a new connection.
    pub(super) fn says(&self, bytes: &str) -> Reply {
        let mut stream = self.connects();
        // It may be answered, and closed, before all was sent.
        let _ = stream.write_all(bytes.as_bytes());
        Reply::read(BufReader::new(stream))
    }

    /// Asks with that head, under the right name, without a token.
    pub(super) fn asks(&self, head: &str) -> Reply {
        self.says(&format!("{head}\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host()))
    }

    /// Asks with that head as a browser does, under the name that it was sent to.
    pub(super) fn browses(&self, head: &str) -> Reply {
        let name = self.name();
        self.says(&format!(
            "{head}\r\nHost: {name}\r\nAccept: text/html,*/*;q=0.8\r\nConnection: close\r\n\r\n"
        ))
    }

    pub(super) fn gets(&self, path: &str) -> Reply {
        self.asks(&format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {}", self.token))
    }

    pub(super) fn posts(&self, path: &str, body: Value) -> Reply {
        self.sends(path, &body.to_string())
    }

    pub(super) fn sends(&self, path: &str, body: &str) -> Reply {
        self.posts_with(path, "Content-Type: application/json\r\n", body)
    }

    /// Posts a message, with more headers.
    pub(super) fn tells(&self, path: &str, more: &str, body: &Value) -> Reply {
        self.posts_with(path, more, &body.to_string())
    }

    pub(super) fn posts_with(&self, path: &str, more: &str, body: &str) -> Reply {
        let (host, token, length) = (self.host(), &self.token, body.len());
        self.says(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{more}\
             Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Subscribes to events, from now on or after that one.
    pub(super) fn listens(&self, after: Option<&str>) -> Stream {
        let mut stream = self.connects();
        let last = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let (host, token) = (self.host(), &self.token);
        // The older version of the protocol, whose answers come in no chunks.
        let head = format!(
            "GET /api/v1/events HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Stream(reader)
    }

    /// Stops it by a signal, and checks that it ends.
    pub(super) fn ends(self) {
        self.ends_by(Signal::TERM);
    }

    pub(super) fn ends_by(self, signal: Signal) {
        self.session.signal(signal);
        self.session.wait().with_code(0);
    }
}

impl Stream {
    /// The next event.
    #[track_caller]
    pub(super) fn next(&mut self) -> ServerEvent {
        let mut told = ServerEvent { event: String::new(), id: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            match line.trim_end().split_once(':') {
                Some(("event", name)) => name.trim().clone_into(&mut told.event),
                Some(("id", id)) => id.trim().clone_into(&mut told.id),
                Some(("data", data)) => told.data = serde_json::from_str(data).unwrap(),
                None if !told.event.is_empty() => return told,
                _ => {}
            }
        }
    }

    /// The next event of that name that this is true of.
    #[track_caller]
    pub(super) fn until(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) -> ServerEvent {
        let began = Instant::now();
        loop {
            let told = self.next();
            assert!(began.elapsed() < LIMIT, "nothing but {told:?}");
            if told.event == name && is_it(&told.data) {
                return told;
            }
        }
    }
}

impl Reply {
    pub(super) fn read(mut from: impl BufRead) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let header = |line: &String| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        };
        let headers: Vec<_> = lines.iter().filter_map(header).collect();
        let mut reply = Self { status, headers, body: String::new() };
        let mut body = Vec::new();
        if let Some(length) = reply.header("content-length").and_then(|length| length.parse::<u64>().ok()) {
            let _ = from.take(length).read_to_end(&mut body);
        } else if reply.header("transfer-encoding").is_some() {
            loop {
                let mut size = String::new();
                if from.read_line(&mut size).unwrap_or(0) == 0 {
                    break;
                }
                let size = u64::from_str_radix(size.trim(), 16).unwrap();
                let _ = from.by_ref().take(size).read_to_end(&mut body);
                let _ = from.read_line(&mut String::new());
                if size == 0 {
                    break;
                }
            }
        }
        reply.body = String::from_utf8_lossy(&body).into_owned();
        reply
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Fails the test, showing everything, unless it has this status.
    #[track_caller]
    pub(super) fn with_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    /// Fails the test unless the body contains this.
    #[track_caller]
    pub(super) fn says(&self, part: &str) {
        assert!(self.body.contains(part), "{self:#?}");
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The one message of a stream of events.
    #[track_caller]
    pub(super) fn sse_json(&self) -> Value {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        messages.find(|message| message["id"].is_number()).unwrap_or_else(|| panic!("{self:#?}"))
    }
}
