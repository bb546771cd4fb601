//! What the Slack surface needs of loops and of this machine: the messages about each loop, and the tokens. Their
//! content, and when they are posted, is the surface's business; loops do not depend on it.

use camino::Utf8PathBuf;
use refrain_core::LoopId;
use refrain_store::outbox::slack::Talk;
use refrain_store::outbox::webhook::{SecretError, secret};

use crate::{EngineError, Host, Service};

impl Service {
    /// The messages in Slack about a loop; none if there were never any.
    pub fn talk(&self, id: &LoopId) -> Result<Option<Talk>, EngineError> {
        Ok(Talk::read(&self.locate(id)?.dir))
    }

    pub fn note_talk(&self, id: &LoopId, talk: &Talk) -> Result<(), EngineError> {
        Ok(talk.write(&self.locate(id)?.dir)?)
    }

    /// The loops with news for Slack, by what their journals hold; and, with `all`, those that were never posted.
    pub fn untold(&self, all: bool) -> Result<Vec<(LoopId, Option<Talk>)>, EngineError> {
        let mut found = Vec::new();
        for dir in self.project.loop_dirs()? {
            let talk = Talk::read(&dir);
            let bytes = std::fs::metadata(dir.journal()).map_or(0, |meta| meta.len());
            let is_owed = talk.as_ref().map_or(all, |talk| talk.bytes != bytes);
            if let Some(id) = dir.0.file_name().and_then(|name| name.parse().ok()).filter(|_| is_owed) {
                found.push((id, talk));
            }
        }
        Ok(found)
    }
}

/// The tokens of this app. They are shown nowhere.
#[derive(Clone)]
pub struct SlackTokens {
    pub bot: String,
    pub app: String,
}

impl std::fmt::Debug for SlackTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SlackTokens")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SlackTokenError {
    #[error("there is no token of Slack; {0} or the file {1} holds one that begins with {2}")]
    Missing(&'static str, Utf8PathBuf, &'static str),
    #[error("{0} holds no token that begins with {1}")]
    Unfit(String, &'static str),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl SlackTokens {
    /// The tokens in the variables `REFRAIN_SLACK_BOT_TOKEN` and `REFRAIN_SLACK_APP_TOKEN`, which no agent gets, else
    /// in the files `slack-bot-token` and `slack-app-token` in the config home, which only their owner may read.
    pub fn of(host: &Host) -> Result<Self, SlackTokenError> {
        Ok(Self {
            bot: token(host, "REFRAIN_SLACK_BOT_TOKEN", "slack-bot-token", "xoxb-")?,
            app: token(host, "REFRAIN_SLACK_APP_TOKEN", "slack-app-token", "xapp-")?,
        })
    }
}

fn token(
    host: &Host,
    variable: &'static str,
    file: &str,
    begins: &'static str,
) -> Result<String, SlackTokenError> {
    let path = host.config_home.join(file);
    let named = host.env.iter().rev().find(|(name, _)| name == variable);
    let said = named.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty());
    let (token, place) = match said {
        Some(said) => (said.to_owned(), variable.to_owned()),
        None => {
            let place = format!("the file {path}");
            (secret(&path)?.ok_or(SlackTokenError::Missing(variable, path, begins))?, place)
        }
    };
    // Two tokens that were swapped are refused here, because Slack's own error would not explain it.
    let is_fit = token.starts_with(begins) && token.bytes().all(|c| c.is_ascii_graphic());
    if is_fit { Ok(token) } else { Err(SlackTokenError::Unfit(place, begins)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_whole_and_never_shown() {
        let of = |bot: &str, app: &str| {
            let env = [("REFRAIN_SLACK_BOT_TOKEN", bot), ("REFRAIN_SLACK_APP_TOKEN", app)];
            let host = Host {
                program: "refrain".into(),
                env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
                data_home: "/nowhere".into(),
                state_home: "/nowhere".into(),
                config_home: "/nowhere".into(),
                version: "0.0.0".into(),
            };
            SlackTokens::of(&host).map(|tokens| format!("{tokens:?}")).map_err(|error| error.to_string())
        };
        assert_eq!(of("xoxb-1", "xapp-1").unwrap(), "SlackTokens");
        let exchanged = of("xapp-1", "xoxb-1").unwrap_err();
        assert_eq!(exchanged, "REFRAIN_SLACK_BOT_TOKEN holds no token that begins with xoxb-");
        assert_eq!(of("xoxb-1\n2", "xapp-1").unwrap_err(), exchanged);
        let missing = of("xoxb-1", "").unwrap_err();
        assert!(missing.contains("the file /nowhere/slack-app-token holds one"), "{missing}");
    }
}
