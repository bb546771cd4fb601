use serde_json::Value;

use super::super::request::Protocol;
use super::{Event, ModelRequest, Reply, anthropic, chat, gemini, responses};

pub(in super::super) fn read(protocol: Protocol, path: &str, body: &Value) -> ModelRequest {
    match protocol {
        Protocol::Anthropic => anthropic::read(body),
        Protocol::Responses => responses::read(body),
        Protocol::Chat => chat::read(body),
        Protocol::Gemini => gemini::read(path, body),
        Protocol::CodeAssist => gemini::read_wrapped(path, body),
        Protocol::Other => ModelRequest::default(),
    }
}

pub(in super::super) fn whole(protocol: Protocol, reply: &Reply) -> Value {
    match protocol {
        Protocol::Anthropic => anthropic::whole(reply),
        Protocol::Responses => responses::whole(reply),
        Protocol::Chat => chat::whole(reply),
        Protocol::Gemini => gemini::whole(reply),
        Protocol::CodeAssist => gemini::wrapped(&gemini::whole(reply)),
        Protocol::Other => Value::Null,
    }
}

pub(in super::super) fn events(protocol: Protocol, reply: &Reply) -> Vec<Event> {
    match protocol {
        Protocol::Anthropic => anthropic::events(reply),
        Protocol::Responses => responses::events(reply),
        Protocol::Chat => chat::events(reply),
        Protocol::Gemini => gemini::events(reply),
        Protocol::CodeAssist => gemini::wrapped_events(reply),
        Protocol::Other => Vec::new(),
    }
}
