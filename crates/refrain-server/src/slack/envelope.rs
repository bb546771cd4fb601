//! Parses Slack's envelopes from the socket. Pure. An envelope that makes no sense is acknowledged all the same,
//! because Slack would send it again and again.

use serde::{Deserialize, Serialize};

use super::command_parser::SlackRequest;
use super::render::BUTTON;

/// The longest frame that is parsed, in bytes: no user types that much.
const LONGEST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Stays the same for every delivery; letters and digits.
    pub(super) key: String,
    pub(super) user: String,
    pub(super) channel: String,
    pub(super) thread: Option<String>,
    /// The message that asked; a command and a button have none.
    pub(super) trigger: Option<String>,
    pub(super) wish: SlackRequest,
    pub(super) button: Option<String>,
    /// A response URL, which works without an invitation of the bot.
    pub(super) answer_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocketFrame {
    Hello,
    Disconnect,
    /// To be acknowledged by this name, and maybe done.
    Envelope {
        id: String,
        request: Option<Box<Request>>,
    },
    Noise,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type", default)]
    kind: String,
    envelope_id: Option<String>,
    #[serde(default)]
    payload: serde_json::Value,
}

#[derive(Deserialize)]
struct Command {
    channel_id: String,
    user_id: String,
    #[serde(default)]
    text: String,
    trigger_id: String,
    response_url: Option<String>,
}

#[derive(Deserialize)]
struct Push {
    event: Mention,
    event_id: String,
}

#[derive(Deserialize)]
struct Mention {
    #[serde(rename = "type")]
    kind: String,
    user: String,
    channel: String,
    ts: String,
    thread_ts: Option<String>,
    #[serde(default)]
    text: String,
    bot_id: Option<String>,
    /// Set for anything but a new message, such as an edit.
    subtype: Option<String>,
}

#[derive(Deserialize)]
struct Press {
    #[serde(rename = "type")]
    kind: String,
    user: ObjectId,
    channel: ObjectId,
    container: Container,
    trigger_id: String,
    actions: Vec<Action>,
    response_url: Option<String>,
}

#[derive(Deserialize)]
struct ObjectId {
    id: String,
}

#[derive(Deserialize)]
struct Container {
    message_ts: String,
    thread_ts: Option<String>,
}

#[derive(Deserialize)]
struct Action {
    action_id: String,
    value: Option<String>,
}

pub(super) fn read(text: &str) -> SocketFrame {
    if text.len() > LONGEST {
        return SocketFrame::Noise;
    }
    let Ok(frame) = serde_json::from_str::<Frame>(text) else { return SocketFrame::Noise };
    let Some(id) = frame.envelope_id else {
        return match frame.kind.as_str() {
            "hello" => SocketFrame::Hello,
            "disconnect" => SocketFrame::Disconnect,
            _ => SocketFrame::Noise,
        };
    };
    let request = match frame.kind.as_str() {
        "slash_commands" => serde_json::from_value(frame.payload).ok().map(command),
        "events_api" => serde_json::from_value(frame.payload).ok().and_then(mention),
        "interactive" => serde_json::from_value(frame.payload).ok().and_then(press),
        _ => None,
    };
    let request = request.filter(|it: &Request| is_id(&it.user) && is_id(&it.channel));
    SocketFrame::Envelope { id, request: request.map(Box::new) }
}

fn command(it: Command) -> Request {
    Request {
        key: key(&["command", &it.trigger_id, &it.text]),
        user: it.user_id,
        channel: it.channel_id,
        thread: None,
        trigger: None,
        wish: SlackRequest::of(&it.text),
        button: None,
        answer_at: it.response_url,
    }
}

fn mention(Push { event, event_id }: Push) -> Option<Request> {
    let is_said = event.kind == "app_mention" && event.bot_id.is_none() && event.subtype.is_none();
    let is_fine = is_ts(&event.ts) && event.thread_ts.as_deref().is_none_or(is_ts);
    (is_said && is_fine).then(|| Request {
        key: key(&["mention", &event_id, &event.channel, &event.ts]),
        user: event.user,
        channel: event.channel,
        thread: event.thread_ts,
        trigger: Some(event.ts),
        wish: SlackRequest::of(&event.text),
        button: None,
        answer_at: None,
    })
}

fn press(it: Press) -> Option<Request> {
    let [action] = it.actions.as_slice() else { return None };
    let named = action.action_id.strip_prefix(BUTTON)?;
    // Our own buttons say it twice.
    let is_ours = it.kind == "block_actions" && action.value.as_deref() == Some(named);
    let is_fine = is_ts(&it.container.message_ts) && it.container.thread_ts.as_deref().is_none_or(is_ts);
    (is_ours && is_fine).then(|| Request {
        key: key(&["button", &it.trigger_id, named]),
        user: it.user.id,
        channel: it.channel.id,
        thread: it.container.thread_ts,
        trigger: None,
        wish: SlackRequest::Stop(named.to_owned()),
        button: Some(it.container.message_ts),
        answer_at: it.response_url,
    })
}

/// A key of letters and digits: it becomes the name of a file, and of a loop.
fn key(parts: &[&str]) -> String {
    blake3::hash(parts.join("\n").as_bytes()).to_hex()[..32].to_owned()
}

fn is_id(id: &str) -> bool {
    (2..=32).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// A time stamp, which is how Slack calls a message.
fn is_ts(ts: &str) -> bool {
    (1..=32).contains(&ts.len()) && ts.bytes().all(|c| c.is_ascii_digit() || c == b'.')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn request(frame: &Value) -> Option<Request> {
        match read(&frame.to_string()) {
            SocketFrame::Envelope { id, request } => {
                assert_eq!(id, "e1");
                request.map(|request| *request)
            }
            heard => panic!("{heard:?}"),
        }
    }

    fn said(payload: Value) -> Value {
        let (mut event, mut push) = (
            json!({"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.5",
            "text": "<@U0> start Mend it."}),
            json!({"event_id": "Ev1"}),
        );
        for (name, value) in payload.as_object().unwrap() {
            event[name] = value.clone();
        }
        push["event"] = event;
        json!({"type": "events_api", "envelope_id": "e1", "payload": push})
    }

    fn pressed(action: Value) -> Value {
        json!({"type": "interactive", "envelope_id": "e1", "payload": {"type": "block_actions", "user": {"id": "U1"},
            "channel": {"id": "C1"}, "container": {"type": "message", "message_ts": "2.5"}, "trigger_id": "t",
            "actions": [action]}})
    }

    #[test]
    fn mentions_commands_and_buttons_become_requests() {
        let mention = request(&said(json!({"thread_ts": "1.0"}))).unwrap();
        assert_eq!((mention.user.as_str(), mention.channel.as_str()), ("U1", "C1"));
        assert_eq!((mention.thread.as_deref(), mention.trigger.as_deref()), (Some("1.0"), Some("1.5")));
        assert_eq!(mention.wish, SlackRequest::Start { project: None, goal: "Mend it.".to_owned() });
        assert_eq!(request(&said(json!({}))).unwrap().key, mention.key, "it is the same, delivered again");
        let command = json!({"type": "slash_commands", "envelope_id": "e1", "payload": {"channel_id": "C1",
            "user_id": "W1", "text": "stop a", "trigger_id": "1.2.3", "command": "/refrain"}});
        assert_eq!(request(&command).unwrap().wish, SlackRequest::Stop("a".to_owned()));
        let press = request(&pressed(json!({"action_id": "refrain:loop_stop:a", "value": "a"}))).unwrap();
        assert_eq!((press.wish, press.button.as_deref()), (SlackRequest::Stop("a".to_owned()), Some("2.5")));
    }

    #[rstest]
    #[case::a_program_speaks(said(json!({"bot_id": "B1"})))]
    #[case::an_edit(said(json!({"subtype": "message_changed"})))]
    #[case::another_event(said(json!({"type": "message"})))]
    #[case::no_time_stamp(said(json!({"ts": "../x"})))]
    #[case::no_user(said(json!({"user": "<!channel>"})))]
    #[case::no_channel(said(json!({"channel": ""})))]
    #[case::a_user_of_another_type(said(json!({"user": 7})))]
    #[case::a_forged_value(pressed(json!({"action_id": "refrain:loop_stop:a", "value": "b"})))]
    #[case::no_value(pressed(json!({"action_id": "refrain:loop_stop:a"})))]
    #[case::another_button(pressed(json!({"action_id": "approve", "value": "a"})))]
    #[case::no_payload(json!({"type": "interactive", "envelope_id": "e1"}))]
    #[case::a_payload_that_is_none(json!({"type": "slash_commands", "envelope_id": "e1", "payload": [1]}))]
    #[case::an_unknown_type(json!({"type": "what", "envelope_id": "e1", "payload": {}}))]
    fn an_invalid_frame_gives_no_request(#[case] frame: Value) {
        assert_eq!(request(&frame), None);
    }

    #[rstest]
    #[case(r#"{"type": "hello", "num_connections": 1}"#, SocketFrame::Hello)]
    #[case(r#"{"type": "disconnect", "reason": "warning"}"#, SocketFrame::Disconnect)]
    #[case(r#"{"type": "slash_commands"}"#, SocketFrame::Noise)]
    #[case("{", SocketFrame::Noise)]
    #[case("", SocketFrame::Noise)]
    #[case("[1]", SocketFrame::Noise)]
    #[case(r#"{"type": 7, "envelope_id": {}}"#, SocketFrame::Noise)]
    fn each_slack_frame_is_recognised_by_its_type(#[case] text: &str, #[case] heard: SocketFrame) {
        assert_eq!(read(text), heard);
    }
}
