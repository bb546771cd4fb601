//! Posts one notice to a webhook as JSON, signed as Standard Webhooks has it (standardwebhooks.com), so that receivers
//! find a library that checks it. `notifier` decides when and how often.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::text::{clip, printable};
use refrain_core::view::Group;
use refrain_core::view::notice::{Notice, ReplyKind};
use refrain_store::access::signing::Signing;
use refrain_store::config::keys::Notify;
use refrain_store::outbox::webhook::{SecretError, secret};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use ring::hmac::{self, HMAC_SHA256};

use crate::{Host, chain, http, now};

/// The variable that may hold the secret. No agent gets it: what begins so is not handed on.
const VARIABLE: &str = "REFRAIN_WEBHOOK_SECRET";
/// What a secret begins with that is written in base64.
const IN_BASE64: &str = "whsec_";
/// The shortest secret, in bytes: what is shorter can be guessed.
const SHORTEST: usize = 16;
/// How long a receiver may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The longest message, in bytes: ntfy makes a file of what is longer.
const LONGEST_MESSAGE: usize = 2_000;
/// The longest pause that a receiver may ask for.
const LONGEST_REST: Duration = Duration::from_secs(600);

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("[notify] webhook is no URL that can be posted to")]
    Url,
    #[error("there is no secret to sign with; {VARIABLE} or the file {0} holds one")]
    NoSecret(Utf8PathBuf),
    /// The secret can be guessed, or is no base64.
    #[error(
        "the secret is no {SHORTEST} bytes long, or begins with {IN_BASE64} and is no base64; openssl rand -hex 32 makes one"
    )]
    Weak,
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("nothing can be sent from here")]
    Client(#[source] reqwest::Error),
}

#[derive(Clone, Debug)]
pub struct Webhook {
    url: Url,
    form: Form,
    client: Client,
}

#[derive(Clone, Debug)]
enum Form {
    Signed(hmac::Key),
    /// As a message of ntfy (docs.ntfy.sh/publish), with what can be replied.
    Ntfy(Option<ReplyTopic>),
}

#[derive(Debug)]
pub(crate) enum DeliveryError {
    /// It may be accepted later; not before this time, if the receiver named one.
    Again(String, Option<Duration>),
    /// The receiver does not want it.
    Refused(String),
}

impl Webhook {
    pub fn configured(config: &Notify, host: &Host, variables: bool) -> Option<Result<Self, WebhookError>> {
        match (&config.webhook, &config.ntfy) {
            (Some(url), _) => Some(Self::new(url, host, variables)),
            (None, Some(url)) => Some(Self::ntfy(url, config.ntfy_replies.as_deref(), host)),
            (None, None) => None,
        }
    }

    /// The topic at `url` of a server that speaks ntfy, and the topic for replies.
    pub fn ntfy(url: &str, replies: Option<&str>, host: &Host) -> Result<Self, WebhookError> {
        let url: Url = url.parse().map_err(|_| WebhookError::Url)?;
        let replies = replies.map(|url| url.parse().map_err(|_| WebhookError::Url)).transpose()?;
        let replies = replies.map(|url| ReplyTopic { url, signing: host.signing() });
        Ok(Self { url, form: Form::Ntfy(replies), client: client(host)? })
    }

    /// The webhook at `url`, with the host's secret: that of the variable, where variables count, else that of the file
    /// `webhook-secret` in the config home, which only its owner may read.
    pub fn new(url: &str, host: &Host, variables: bool) -> Result<Self, WebhookError> {
        let url: Url = url.parse().map_err(|_| WebhookError::Url)?;
        let path = host.config_home.join("webhook-secret");
        let named = host.env.iter().rev().filter(|_| variables).find(|(name, _)| name == VARIABLE);
        let said = named.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty());
        let secret = match said {
            Some(said) => said.to_owned(),
            None => secret(&path)?.ok_or(WebhookError::NoSecret(path))?,
        };
        let bytes = match secret.strip_prefix(IN_BASE64) {
            Some(text) => STANDARD.decode(text).map_err(|_| WebhookError::Weak)?,
            None => secret.into_bytes(),
        };
        if bytes.len() < SHORTEST {
            return Err(WebhookError::Weak);
        }
        let form = Form::Signed(hmac::Key::new(HMAC_SHA256, &bytes));
        Ok(Self { url, form, client: client(host)? })
    }

    /// Posts the notice, once.
    pub(crate) async fn post(&self, notice: &Notice, patience: Duration) -> Result<(), DeliveryError> {
        let refused = |error: serde_json::Error| DeliveryError::Refused(error.to_string());
        let request = self.client.post(self.url.clone()).timeout(patience);
        let request = match &self.form {
            Form::Signed(key) => {
                let body = serde_json::to_string(notice).map_err(refused)?;
                let (id, at) = (&notice.key, now());
                request
                    .header(CONTENT_TYPE, "application/json")
                    .header("webhook-id", id)
                    .header("webhook-timestamp", at.as_second().to_string())
                    .header("webhook-signature", signature(key, id, at, &body))
                    .body(body)
            }
            Form::Ntfy(replies) => {
                let Message { title, text, tag, priority } = Message::of(notice);
                let request = request.header("Title", title).header("Tags", tag).header("Priority", priority);
                let reply = replies.as_ref().and_then(|topic| topic.reply_to(notice));
                let (more, button) = reply.unwrap_or_default();
                let request = button.into_iter().fold(request, |it, button| it.header("Actions", button));
                request.body(text + &more)
            }
        };
        match request.send().await {
            Ok(answer) => judged(&answer),
            // The URL may hold secrets.
            Err(error) => Err(DeliveryError::Again(chain(&error.without_url()), None)),
        }
    }
}

/// The topic that a person's replies are sent to.
#[derive(Clone, Debug)]
struct ReplyTopic {
    url: Url,
    signing: Signing,
}

impl ReplyTopic {
    /// How a person replies, in a line, and a button that approves. The button is for all who can read the message: it
    /// holds no password.
    fn reply_to(&self, notice: &Notice) -> Option<(String, Option<String>)> {
        let reply = notice.reply.as_ref()?;
        let code = self.signing.code(&reply.binding)?;
        let topic = self.url.path().trim_matches('/');
        Some(match reply.kind {
            ReplyKind::Answer => (format!("\nto answer: send {code} and your answer to {topic}"), None),
            ReplyKind::Approve { .. } => {
                let has_password = self.url.password().is_some() || !self.url.username().is_empty();
                let is_plain = !self.url.as_str().contains(['\'', '"', ',', ';']);
                let url = Some(&self.url).filter(|_| is_plain && !has_password);
                let button = |url| format!("http, Approve, {url}, method=POST, body={code}, clear=true");
                (format!("\nto approve: send {code} to {topic}"), url.map(button))
            }
        })
    }
}

fn client(host: &Host) -> Result<Client, WebhookError> {
    http::client(format!("refrain/{}", host.version)).build().map_err(WebhookError::Client)
}

fn signature(key: &hmac::Key, id: &str, at: Timestamp, body: &str) -> String {
    let signed = hmac::sign(key, format!("{id}.{}.{body}", at.as_second()).as_bytes());
    format!("v1,{}", STANDARD.encode(signed))
}

struct Message {
    title: String,
    text: String,
    tag: &'static str,
    priority: &'static str,
}

impl Message {
    fn of(notice: &Notice) -> Self {
        let group = Group::of(notice.status, notice.verified, false);
        let (tag, priority) = match group {
            Group::NeedsYou => ("raising_hand", "high"),
            Group::Verified => ("white_check_mark", "default"),
            Group::Running => ("hourglass_flowing_sand", "default"),
            Group::Unverified | Group::Stopped => ("warning", "default"),
        };
        let word = match group {
            Group::NeedsYou => "needs you",
            Group::Verified | Group::Unverified => group.as_str(),
            Group::Running | Group::Stopped => notice.status.as_str(),
        };
        let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        let title = format!("{} {word} ({})", notice.id, notice.project).chars().map(plain).collect();
        let parts = [Some(&notice.reason), notice.summary.as_ref(), notice.needs.as_ref()];
        let text = parts.into_iter().flatten().map(|part| printable(part).into_owned());
        Self {
            title,
            text: clip(&text.collect::<Vec<_>>().join("\n"), LONGEST_MESSAGE).into_owned(),
            tag,
            priority,
        }
    }
}

/// The meaning of an answer: accepted, maybe later, or never.
fn judged(answer: &Response) -> Result<(), DeliveryError> {
    let status = answer.status();
    let said = || format!("it answered {}", status.as_u16());
    let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if status.is_success() {
        return Ok(());
    }
    if status.is_server_error() || again.contains(&status) {
        let rest = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let rest = rest.map(|seconds| Duration::from_secs(seconds).min(LONGEST_REST));
        return Err(DeliveryError::Again(said(), rest));
    }
    Err(DeliveryError::Refused(said()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(secret: &str) -> Host {
        Host {
            program: "refrain".into(),
            env: vec![(VARIABLE.into(), secret.into())],
            data_home: "/nowhere".into(),
            state_home: "/nowhere".into(),
            config_home: "/nowhere".into(),
            version: "0.0.0".into(),
        }
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_webhook_signature_matches_the_standard_example() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let webhook = Webhook::new("https://example.com/x", &host(secret), true).unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let Form::Signed(key) = &webhook.form else { panic!("it is signed") };
        let signature = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_can_be_guessed_or_is_not_there_signs_nothing() {
        for secret in ["short", "whsec_c2hvcnQ=", "whsec_%%%%%%%%%%%%%%%%%%%%%%%%"] {
            let refused = Webhook::new("https://example.com", &host(secret), true);
            assert!(matches!(refused, Err(WebhookError::Weak)), "{secret}");
        }
        let without = [("", true), ("0123456789abcdef", false)];
        for (secret, variables) in without {
            let refused = Webhook::new("https://example.com", &host(secret), variables);
            assert!(matches!(refused, Err(WebhookError::NoSecret(_))), "{secret}");
        }
        let secret = host("0123456789abcdef");
        assert!(matches!(Webhook::new("https://", &secret, true), Err(WebhookError::Url)));
    }
}
