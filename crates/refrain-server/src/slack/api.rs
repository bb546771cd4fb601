//! Slack's Web API as far as we use it: each call within a time, no channel written to more often than Slack likes, and what
//! an answer means for whoever wanted it.

use std::collections::BTreeMap;
use std::time::Duration;

use refrain_engine::SlackTokens;
use serde_json::{Value, json};
use slack_morphism::errors::{SlackClientEndOfStreamError, SlackClientError};
use slack_morphism::hyper_tokio::{SlackClientHyperHttpsConnector, SlackHyperClient};
use slack_morphism::{
    ClientResult, SlackApiToken, SlackApiTokenValue, SlackClientApiCallContext, SlackClientHttpConnector,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::face::Face;

/// Where Slack is unless something else is configured.
const SLACK: &str = "https://slack.com/api";
/// Where it takes answers.
const HOOKS: &str = "https://hooks.slack.com/";
/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often one channel is written to at most.
const PACE: Duration = Duration::from_millis(1_050);
/// How long Slack may ask to be left alone for.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// How many messages are looked through for one that may have been posted.
const LOOKED_THROUGH: &str = "100";
/// What Slack calls its own trouble.
const TRANSIENT: [&str; 6] = [
    "fatal_error",
    "internal_error",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
];
/// The kind of what is attached to a message so that it can be found again.
const MARK: &str = "refrain_loop";

/// Why Slack did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It may later; not before so long, where it said that. Whether it was done is not known.
    Again(String, Option<Duration>),
    /// It does not want to, by its own word.
    Refused(String),
}

/// Slack, spoken to.
pub(super) struct Api {
    client: SlackHyperClient,
    bot: SlackApiToken,
    app: SlackApiToken,
    /// The beginning of its addresses, with the slash behind the host.
    origin: String,
    /// When a channel may be written to next.
    paces: Mutex<BTreeMap<String, Instant>>,
    /// Until when nothing is asked at all.
    rest: Mutex<Option<Instant>>,
}

impl Api {
    pub(super) fn new(url: Option<&str>, tokens: SlackTokens) -> std::io::Result<Self> {
        let connector = hyper_rustls::HttpsConnectorBuilder::new().with_native_roots()?;
        let connector = connector.https_or_http().enable_http1().build();
        let url = url.unwrap_or(SLACK).trim_end_matches('/');
        let connector = SlackClientHyperHttpsConnector::from(connector).with_slack_api_url(url);
        let token = |text: String| SlackApiToken::new(SlackApiTokenValue(text));
        Ok(Self {
            client: SlackHyperClient::new(connector),
            bot: token(tokens.bot),
            app: token(tokens.app),
            origin: url.split_inclusive('/').take(3).collect(),
            paces: Mutex::default(),
            rest: Mutex::default(),
        })
    }

    /// The client, for the socket.
    pub(super) fn client(&self) -> SlackHyperClient {
        self.client.clone()
    }

    /// What the socket is opened with.
    pub(super) fn app(&self) -> &SlackApiToken {
        &self.app
    }

    /// Whether Slack takes the token of the bot.
    pub(super) async fn knows_bot(&self) -> Result<(), Fault> {
        self.post("auth.test", &json!({})).await.map(drop)
    }

    /// The same for that of the app.
    pub(super) async fn knows_app(&self) -> Result<(), Fault> {
        let session = self.client.open_session(&self.app);
        self.ask(session.http_session_api.http_post("apps.connections.open", &json!({}), None))
            .await
            .map(drop)
    }

    /// Waits until a channel may be written to; what is written then is what holds then.
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

    /// The message of that mark, or the file of that name, where there is one since that message: what may have been posted.
    pub(super) async fn find(
        &self,
        channel: &str,
        thread: Option<&str>,
        mark: &str,
    ) -> Result<Option<String>, Fault> {
        let method = if thread.is_some() { "conversations.replies" } else { "conversations.history" };
        let asked = vec![
            ("channel", Some(channel)),
            ("ts", thread),
            ("limit", Some(LOOKED_THROUGH)),
            ("include_all_metadata", Some("true")),
        ];
        let session = self.client.open_session(&self.bot);
        let found: Value = self.ask(session.http_session_api.http_get(method, &asked, None)).await?;
        let is_it = |message: &&Value| {
            let files = message["files"].as_array().into_iter().flatten();
            message["metadata"]["event_type"] == MARK && message["metadata"]["event_payload"]["mark"] == mark
                || files.into_iter().any(|file| file["name"] == mark)
        };
        let found = found["messages"].as_array().into_iter().flatten().find(is_it);
        Ok(found.and_then(|message| message["ts"].as_str()).map(str::to_owned))
    }

    /// Makes a message look so.
    pub(super) async fn edit(&self, channel: &str, ts: &str, face: &Face) -> Result<(), Fault> {
        let asked = json!({"channel": channel, "ts": ts, "text": face.text, "blocks": face.blocks, "parse": "none",
            "link_names": false});
        self.post("chat.update", &asked).await.map(drop)
    }

    /// Says something that one person alone sees.
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

    /// Answers whoever typed a command, or pressed a button, at the address that came with that.
    pub(super) async fn respond(&self, address: &str, text: &str) -> Result<(), Fault> {
        // Nobody else's is asked, whatever was sent.
        let is_slacks = [HOOKS, self.origin.as_str()].iter().any(|origin| address.starts_with(origin));
        if !is_slacks {
            return Err(Fault::Refused("response_url".to_owned()));
        }
        let asked = json!({"text": text, "response_type": "ephemeral", "replace_original": false});
        self.hand_over(address, "application/json", asked.to_string().as_bytes()).await
    }

    /// Posts to an address that Slack gave out. It says who may: the token is not for whoever is there.
    async fn hand_over(&self, address: &str, kind: &str, content: &[u8]) -> Result<(), Fault> {
        let address = address.parse().map_err(|_| Fault::Refused("no address".to_owned()))?;
        let session = self.client.open_session(&self.bot);
        let context = SlackClientApiCallContext {
            rate_control_params: None,
            token: None,
            tracing_span: &session.http_session_api.span,
            is_sensitive_url: true,
        };
        let connector = &self.client.http_api.connector;
        self.ask(connector.http_post_uri_binary(address, kind.to_owned(), content, context)).await.map(drop)
    }

    /// Sets a reaction, or takes it away; one that is so already is.
    pub(super) async fn react(&self, channel: &str, ts: &str, name: &str, stands: bool) -> Result<(), Fault> {
        let method = if stands { "reactions.add" } else { "reactions.remove" };
        match self.post(method, &json!({"channel": channel, "timestamp": ts, "name": name})).await {
            Err(Fault::Refused(why)) if why == "already_reacted" || why == "no_reaction" => Ok(()),
            done => done.map(drop),
        }
    }

    /// Puts a file into a thread.
    pub(super) async fn upload(
        &self,
        channel: &str,
        thread: Option<&str>,
        name: &str,
        comment: &str,
        content: &str,
    ) -> Result<(), Fault> {
        let session = self.client.open_session(&self.bot);
        let api = &session.http_session_api;
        let length = content.len().to_string();
        let asked = vec![("filename", Some(name)), ("length", Some(length.as_str()))];
        let place: Value = self.ask(api.http_get("files.getUploadURLExternal", &asked, None)).await?;
        let (Some(url), Some(id)) = (place["upload_url"].as_str(), place["file_id"].as_str()) else {
            return Err(Fault::Again("it did not say where the file belongs".to_owned(), None));
        };
        self.hand_over(url, "text/markdown", content.as_bytes()).await?;
        let asked = json!({"files": [{"id": id, "title": name}], "channel_id": channel, "thread_ts": thread,
            "initial_comment": comment});
        self.post("files.completeUploadExternal", &asked).await.map(drop)
    }

    async fn post(&self, method: &str, asked: &Value) -> Result<Value, Fault> {
        let session = self.client.open_session(&self.bot);
        let said = asked.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let said: BTreeMap<_, _> = said.collect();
        self.ask(session.http_session_api.http_post(method, &said, None)).await
    }

    /// Asks, unless Slack wants to be left alone, within a time.
    async fn ask(&self, call: impl Future<Output = ClientResult<Value>>) -> Result<Value, Fault> {
        let rest = *self.rest.lock().await;
        if let Some(rest) = rest {
            sleep_until(rest).await;
        }
        let done = timeout(PATIENCE, call).await;
        let done =
            done.unwrap_or_else(|_| Err(SlackClientError::EndOfStream(SlackClientEndOfStreamError::new())));
        match done.map_err(|error| fault(&error)) {
            Err(Fault::Again(why, Some(rest))) => {
                *self.rest.lock().await = Some(Instant::now() + rest);
                Err(Fault::Again(why, Some(rest)))
            }
            done => done,
        }
    }
}

/// What an error means; in words without what Slack sent, which may hold anything.
fn fault(error: &SlackClientError) -> Fault {
    let again = |why: &str| Fault::Again(why.to_owned(), None);
    match error {
        SlackClientError::RateLimitError(error) => {
            let rest = error.retry_after.unwrap_or(Duration::from_secs(30));
            Fault::Again(
                "it wants to be left alone".to_owned(),
                Some(rest.clamp(Duration::from_secs(1), LONGEST_REST)),
            )
        }
        SlackClientError::ApiError(error) if TRANSIENT.contains(&error.code.as_str()) => again(&error.code),
        SlackClientError::ApiError(error) => Fault::Refused(error.code.clone()),
        SlackClientError::HttpError(error) => {
            let why = format!("it answered {}", error.status_code.as_u16());
            match error.status_code.is_client_error() {
                true => Fault::Refused(why),
                false => again(&why),
            }
        }
        SlackClientError::ProtocolError(_) => again("it answered what is no JSON"),
        SlackClientError::HttpProtocolError(_)
        | SlackClientError::EndOfStream(_)
        | SlackClientError::SystemError(_)
        | SlackClientError::SocketModeProtocolError(_) => again("it cannot be reached"),
    }
}
