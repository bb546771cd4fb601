//! The place in Slack that a request names for its loop.

use refrain_engine::Talk;
use refrain_engine::config::keys;

use super::Start;
use crate::RequestError;

/// How long an id of Slack, or a time stamp, may be.
const LONGEST: usize = 32;

impl Start {
    /// The messages in Slack about the loop; none where no channel is named.
    pub(super) fn slack_talk(&self, config: &keys::Slack) -> Result<Option<Talk>, RequestError> {
        let refused = |what: String| Err(RequestError::usage(what));
        let threads =
            [("conversation_id", &self.conversation_id), ("trigger_message_ts", &self.trigger_message_ts)];
        for (name, value) in threads {
            let Some(value) = value else { continue };
            if !is_within(value, |c| c.is_ascii_digit() || c == '.') {
                return refused(format!(
                    "{name} {value:?}: accepted: time stamps of Slack, as 1712345678.123456"
                ));
            }
            if self.channel_id.is_none() {
                return refused(format!("{name} {value}: it needs channel_id"));
            }
        }
        let Some(channel) = &self.channel_id else { return Ok(None) };
        if !is_within(channel, |c| c.is_ascii_alphanumeric()) {
            return refused(format!("channel_id {channel:?}: accepted: ids of Slack, as C0123ABCD"));
        }
        if *config == keys::Slack::default() {
            return refused(format!("channel_id {channel}: [slack] is not configured"));
        }
        if !config.channels.is_empty() && !config.channels.contains(channel) {
            let channels = config.channels.join(", ");
            return refused(format!("channel_id {channel}: accepted: those of [slack] channels: {channels}"));
        }
        Ok(Some(Talk {
            channel: channel.clone(),
            thread: self.conversation_id.clone(),
            trigger: self.trigger_message_ts.clone(),
            ..Talk::default()
        }))
    }
}

fn is_within(text: &str, is_fine: impl Fn(char) -> bool) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn talk(more: Value, config: Value) -> Result<Option<Talk>, String> {
        let mut asked = json!({"goal": "Fix it."});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let start: Start = serde_json::from_value(asked).unwrap();
        start.slack_talk(&serde_json::from_value(config).unwrap()).map_err(|refusal| refusal.to_string())
    }

    #[rstest]
    #[case(json!({"conversation_id": "1.2"}), json!({"notify": true}), "conversation_id 1.2: it needs channel_id")]
    #[case(json!({"channel_id": "C1", "trigger_message_ts": "now"}), json!({"notify": true}), "trigger_message_ts \"now\": accepted: time stamps")]
    #[case(json!({"channel_id": "#general"}), json!({"notify": true}), "channel_id \"#general\": accepted: ids")]
    #[case(json!({"channel_id": "C1"}), json!({}), "channel_id C1: [slack] is not configured")]
    #[case(json!({"channel_id": "C1"}), json!({"channels": ["C2", "C3"]}), "channel_id C1: accepted: those of [slack] channels: C2, C3")]
    fn an_unlisted_slack_channel_is_refused(#[case] more: Value, #[case] config: Value, #[case] why: &str) {
        let refused = talk(more, config).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn a_loop_is_reported_to_the_channel_of_its_request() {
        assert_eq!(talk(json!({}), json!({})), Ok(None));
        let more = json!({"channel_id": "C1", "conversation_id": "1.2", "trigger_message_ts": "1.3"});
        let talk = talk(more, json!({"channels": ["C1"]})).unwrap().unwrap();
        assert_eq!(
            (talk.channel.as_str(), talk.thread.as_deref(), talk.trigger.as_deref()),
            ("C1", Some("1.2"), Some("1.3"))
        );
    }
}
