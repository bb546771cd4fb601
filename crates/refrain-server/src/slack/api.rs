//! The part of Slack's Web API that we use: each call has a timeout, writes to a channel respect Slack's rate limit,
//! and each answer becomes a result for the caller.

use std::collections::BTreeMap;
use std::time::Duration;

use refrain_engine::SlackTokens;
use refrain_engine::http::{self, BodyError};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::render::MessageView;

/// The base URL unless another one is configured.
const SLACK: &str = "https://slack.com/api";
const HOOKS: &str = "https://hooks.slack.com/";
const JSON: &str = "application/json; charset=utf-8";
/// The longest answer that is read, in bytes.
const LONGEST: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// How often one channel is written to at most.
const PACE: Duration = Duration::from_millis(1_050);
/// How long Slack may ask to be left alone for.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// How many messages are searched for one that may have been posted.
const LOOKED_THROUGH: &str = "100";
const TRANSIENT: [&str; 6] = [
    "fatal_error",
    "internal_error",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
];
/// The metadata type by which a message is found again.
const MARK: &str = "refrain_loop";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Try again later, not before the given time. Whether the call took effect is unknown.
    Again(String, Option<Duration>),
    /// It does not want to, by its own word.
    Refused(String),
}

pub(super) struct Api {
    client: Client,
    tokens: SlackTokens,
    url: String,
    /// The base URL, with the slash after the host.
    origin: String,
    /// When a channel may be written to next.
    paces: Mutex<BTreeMap<String, Instant>>,
    /// No call is made before this time.
    rest: Mutex<Option<Instant>>,
}

impl Api {
    pub(super) fn new(url: Option<&str>, tokens: SlackTokens) -> reqwest::Result<Self> {
        let url = url.unwrap_or(SLACK).trim_end_matches('/');
        Ok(Self {
            client: http::client("refrain").build()?,
            tokens,
            url: url.to_owned(),
            origin: url.split_inclusive('/').take(3).collect(),
            paces: Mutex::default(),
            rest: Mutex::default(),
        })
    }

    pub(super) async fn knows_bot(&self) -> Result<(), Fault> {
        self.post("auth.test", &json!({})).await.map(drop)
    }

    /// The address of a new connection in socket mode, which the token of the app opens.
    pub(super) async fn open_socket(&self) -> Result<String, Fault> {
        let call = self.client.post(self.method("apps.connections.open")).bearer_auth(&self.tokens.app);
        let opened = self.ask(call.header(CONTENT_TYPE, JSON).body("{}")).await?;
        let url = opened["url"].as_str().map(str::to_owned);
        url.ok_or_else(|| Fault::Again("it did not say where its socket is".to_owned(), None))
    }

    /// Waits until a channel may be written to; the caller then sends the current state.
    pub(super) async fn turn(&self, channel: &str) {
        let now = Instant::now();
        let mine = {
            let mut paces = self.paces.lock().await;
            paces.retain(|_, next| *next > now);
            let mine = paces.get(channel).copied().unwrap_or(now);
            paces.insert(channel.to_owned(), mine + PACE);
            mine
        };
        sleep_until(mine).await;
    }

    /// Posts a message, to be found again by `mark`; its time stamp.
    pub(super) async fn say(
        &self,
        channel: &str,
        thread: Option<&str>,
        text: &str,
        mark: &str,
    ) -> Result<String, Fault> {
        let asked = json!({"channel": channel, "thread_ts": thread, "text": text, "parse": "none", "link_names": false,
            "unfurl_links": false, "unfurl_media": false,
            "metadata": {"event_type": MARK, "event_payload": {"mark": mark}}});
        let said = self.post("chat.postMessage", &asked).await?;
        let ts = said["ts"].as_str().map(str::to_owned);
        ts.ok_or_else(|| Fault::Again("it did not say which message that is".to_owned(), None))
    }

    /// Finds the message with that mark, or the file with that name, since the given message: it may have been
    /// posted.
    pub(super) async fn find(
        &self,
        channel: &str,
        thread: Option<&str>,
        mark: &str,
    ) -> Result<Option<String>, Fault> {
        let method = if thread.is_some() { "conversations.replies" } else { "conversations.history" };
        let asked = [("channel", channel), ("limit", LOOKED_THROUGH), ("include_all_metadata", "true")];
        let asked = asked.into_iter().chain(thread.map(|thread| ("ts", thread)));
        let found = self.get(method, asked).await?;
        let is_it = |message: &&Value| {
            let files = message["files"].as_array().into_iter().flatten();
            message["metadata"]["event_type"] == MARK && message["metadata"]["event_payload"]["mark"] == mark
                || files.into_iter().any(|file| file["name"] == mark)
        };
        let found = found["messages"].as_array().into_iter().flatten().find(is_it);
        Ok(found.and_then(|message| message["ts"].as_str()).map(str::to_owned))
    }

    pub(super) async fn edit(&self, channel: &str, ts: &str, view: &MessageView) -> Result<(), Fault> {
        let asked = json!({"channel": channel, "ts": ts, "text": view.text, "blocks": view.blocks, "parse": "none",
            "link_names": false});
        self.post("chat.update", &asked).await.map(drop)
    }

    /// Posts a message that only one user sees.
    pub(super) async fn whisper(
        &self,
        channel: &str,
        thread: Option<&str>,
        user: &str,
        text: &str,
    ) -> Result<(), Fault> {
        let asked =
            json!({"channel": channel, "thread_ts": thread, "user": user, "text": text, "parse": "none"});
        self.post("chat.postEphemeral", &asked).await.map(drop)
    }

    /// Answers a command or a pressed button at the address that came with it.
    pub(super) async fn respond(&self, address: &str, text: &str) -> Result<(), Fault> {
        // Only addresses of Slack are called, whatever was sent.
        let is_slacks = [HOOKS, self.origin.as_str()].iter().any(|origin| address.starts_with(origin));
        if !is_slacks {
            return Err(Fault::Refused("response_url".to_owned()));
        }
        let asked = json!({"text": text, "response_type": "ephemeral", "replace_original": false});
        self.hand_over(address, JSON, asked.to_string()).await
    }

    /// Posts to an address that Slack gave out. The address itself authorizes: the token is not sent.
    async fn hand_over(&self, address: &str, kind: &'static str, content: String) -> Result<(), Fault> {
        let address: Url = address.parse().map_err(|_| Fault::Refused("no address".to_owned()))?;
        self.ask(self.client.post(address).header(CONTENT_TYPE, kind).body(content)).await.map(drop)
    }

    /// Sets or removes a reaction; no error if it is so already.
    pub(super) async fn react(&self, channel: &str, ts: &str, name: &str, stands: bool) -> Result<(), Fault> {
        let method = if stands { "reactions.add" } else { "reactions.remove" };
        match self.post(method, &json!({"channel": channel, "timestamp": ts, "name": name})).await {
            Err(Fault::Refused(why)) if why == "already_reacted" || why == "no_reaction" => Ok(()),
            done => done.map(drop),
        }
    }

    pub(super) async fn upload(
        &self,
        channel: &str,
        thread: Option<&str>,
        name: &str,
        comment: &str,
        content: &str,
    ) -> Result<(), Fault> {
        let length = content.len().to_string();
        let asked = [("filename", name), ("length", &length)];
        let place = self.get("files.getUploadURLExternal", asked).await?;
        let (Some(url), Some(id)) = (place["upload_url"].as_str(), place["file_id"].as_str()) else {
            return Err(Fault::Again("it did not say where the file belongs".to_owned(), None));
        };
        self.hand_over(url, "text/markdown", content.to_owned()).await?;
        let asked = json!({"files": [{"id": id, "title": name}], "channel_id": channel, "thread_ts": thread,
            "initial_comment": comment});
        self.post("files.completeUploadExternal", &asked).await.map(drop)
    }

    async fn post(&self, method: &str, asked: &Value) -> Result<Value, Fault> {
        let said = asked.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let said: Value = said.map(|(key, value)| (key.clone(), value.clone())).collect();
        let call = self.client.post(self.method(method)).bearer_auth(&self.tokens.bot);
        self.ask(call.header(CONTENT_TYPE, JSON).body(said.to_string())).await
    }

    async fn get<'a>(
        &self,
        method: &str,
        asked: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Value, Fault> {
        let url = Url::parse_with_params(&self.method(method), asked);
        let url = url.map_err(|_| Fault::Refused("no address".to_owned()))?;
        self.ask(self.client.request(Method::GET, url).bearer_auth(&self.tokens.bot)).await
    }

    fn method(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    /// Asks, unless Slack wants to be left alone, within a time.
    async fn ask(&self, call: RequestBuilder) -> Result<Value, Fault> {
        let rest = *self.rest.lock().await;
        if let Some(rest) = rest {
            sleep_until(rest).await;
        }
        let done = timeout(PATIENCE, async { answer(call.send().await.map_err(no_answer)?).await });
        let done = done.await.unwrap_or_else(|_| Err(again("it cannot be reached")));
        if let Err(Fault::Again(_, Some(rest))) = &done {
            *self.rest.lock().await = Some(Instant::now() + *rest);
        }
        done
    }
}

/// Interprets a response; an error's text never quotes Slack's, which may hold anything.
async fn answer(response: Response) -> Result<Value, Fault> {
    let status = response.status();
    if status == StatusCode::TOO_MANY_REQUESTS {
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let rest = Duration::from_secs(after.unwrap_or(30)).clamp(Duration::from_secs(1), LONGEST_REST);
        return Err(Fault::Again("it wants to be left alone".to_owned(), Some(rest)));
    }
    if !status.is_success() {
        let why = format!("it answered {}", status.as_u16());
        return Err(if status.is_client_error() { Fault::Refused(why) } else { again(&why) });
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        // Addresses that it gave out answer in words.
        return Ok(Value::Null);
    }
    let body = http::body(response, LONGEST).await.map_err(|error| match error {
        BodyError::TooLong => again("its answer is too long"),
        BodyError::Broken(error) => no_answer(error),
    })?;
    let said: Value = serde_json::from_slice(&body).map_err(|_| again("it answered what is no JSON"))?;
    match said["error"].as_str() {
        Some(code) if TRANSIENT.contains(&code) => Err(again(code)),
        Some(code) => Err(Fault::Refused(code.to_owned())),
        None => Ok(said),
    }
}

fn again(why: &str) -> Fault {
    Fault::Again(why.to_owned(), None)
}

fn no_answer(_: reqwest::Error) -> Fault {
    again("it cannot be reached")
}
