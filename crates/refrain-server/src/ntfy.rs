//! Replies by a topic of an ntfy server (docs.ntfy.sh/subscribe/api): `refrain serve` follows the topic, and each message
//! that begins with the code of a notification answers or approves. A message is data: only its code says which loop it
//! is for. Replies from before the start count too, and a code counts once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_app::{Caller, Context};
use refrain_core::text::{clip, printable};
use refrain_engine::{chain, http, now};
use reqwest::{Client, Url};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::requests::{Handovers, OpenError, RequestHandler};
use crate::slack::ProblemSink;

/// The longest line that is read, in bytes.
const LONGEST: usize = 64 << 10;
/// A server sends something every 45 s, if only to keep the connection open.
const SILENCE: Duration = Duration::from_secs(120);
/// How long to rest before the next connection.
const REST: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum RepliesError {
    #[error("[notify] ntfy-replies is no URL of a topic")]
    Url,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("nothing can be asked from here")]
    Client(#[source] reqwest::Error),
}

/// The reader of a topic.
pub struct Replies {
    handler: Arc<RequestHandler>,
    url: Url,
    client: Client,
    /// Messages of before are not commented on.
    since: i64,
    report: ProblemSink,
    last_problem: Mutex<String>,
}

/// A line of the topic's stream.
#[derive(Deserialize)]
struct TopicEvent {
    id: String,
    time: i64,
    event: String,
    #[serde(default)]
    message: String,
}

impl Replies {
    /// A reader of the topic at `url`, for the loops that are open under these folders.
    pub fn open(
        context: &Context,
        roots: &[Utf8PathBuf],
        url: &str,
        report: ProblemSink,
    ) -> Result<Self, RepliesError> {
        let mut url: Url = url.parse().map_err(|_| RepliesError::Url)?;
        url.path_segments_mut().map_err(|()| RepliesError::Url)?.pop_if_empty().push("json");
        let handler = Arc::new(RequestHandler::open_everywhere(context, roots)?.called_by(Caller::Ntfy));
        let client = http::client("refrain").build().map_err(RepliesError::Client)?;
        Ok(Self { handler, url, client, since: now().as_second(), report, last_problem: Mutex::default() })
    }

    /// The requests that hand loops to runners of their own.
    pub fn handovers(&self) -> Handovers {
        self.handler.handovers()
    }

    /// Reads until `stop` is set.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = async { drop(stop.wait_for(|stop| *stop).await) } => {}
            () = self.read() => {}
        }
    }

    async fn read(&self) {
        let mut last = "all".to_owned();
        loop {
            if let Err(why) = self.follow(&mut last).await {
                self.report_once(&format!("{why}; it is tried again"));
            }
            sleep(REST).await;
        }
    }

    /// Takes messages until the connection ends. `last` is the one that was taken last.
    async fn follow(&self, last: &mut String) -> Result<(), String> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("since", last);
        // The URL may hold secrets.
        let unread = |error: reqwest::Error| chain(&error.without_url());
        let sent = timeout(SILENCE, self.client.get(url).send()).await;
        let answer = sent.map_err(|_| "there is no answer".to_owned())?.map_err(unread)?;
        let mut answer = answer.error_for_status().map_err(unread)?;
        let mut line = Vec::new();
        // The system ends a connection that is silent for too long, and it is opened again.
        while let Ok(chunk) = timeout(SILENCE, answer.chunk()).await {
            let Some(chunk) = chunk.map_err(unread)? else { return Ok(()) };
            for byte in chunk {
                match byte {
                    b'\n' => self.take_line(&std::mem::take(&mut line), last).await,
                    _ if line.len() < LONGEST => line.push(byte),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn take_line(&self, line: &[u8], last: &mut String) {
        let Ok(event) = serde_json::from_slice::<TopicEvent>(line) else { return };
        if event.event != "message" {
            return;
        }
        *last = event.id;
        let (handler, is_old) = (Arc::clone(&self.handler), event.time < self.since);
        let message = event.message.clone();
        match spawn_blocking(move || handler.take_reply(&message)).await {
            Ok(Ok(Some(id))) => (self.report)(&format!("ntfy: {id} has its reply")),
            Ok(Ok(None)) if is_old => {}
            Ok(Ok(None)) => {
                let begin = clip(event.message.trim(), 40);
                self.report_once(&format!("no loop waits with the code of {begin:?}"));
            }
            Ok(Err(refusal)) => self.report_once(&refusal.to_string()),
            Err(error) => self.report_once(&format!("refrain broke off in the middle of a reply: {error}")),
        }
    }

    /// Reports a problem, once in a row.
    fn report_once(&self, what: &str) {
        let what = printable(what).replace('\n', " ");
        let mut last = self.last_problem.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != what {
            (self.report)(&format!("ntfy: {what}"));
            *last = what;
        }
    }
}
