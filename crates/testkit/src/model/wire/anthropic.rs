use serde_json::{Value, json};

use super::super::script::Stop;
use super::parts::{list, pieces, text_of, tool, word};
use super::{Event, ModelRequest, Reply};

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut said = ModelRequest {
        model: word(&body["model"]),
        wants_stream: body["stream"] == true,
        schema: [&body["output_config"]["format"]["schema"], &body["output_format"]["schema"]]
            .into_iter()
            .find(|schema| schema.is_object())
            .cloned(),
        ..ModelRequest::default()
    };
    let mut system = vec![text_of(&body["system"])];
    for message in list(&body["messages"]) {
        let content = &message["content"];
        match message["role"].as_str() {
            // Newer versions of Claude Code bring parts of their prompt this way.
            Some("system") => system.push(text_of(content)),
            Some("user") if content.is_string() => said.user.push(text_of(content)),
            Some("user") => {
                for part in list(content) {
                    if part["type"] == "tool_result" {
                        said.tool_results.push(text_of(&part["content"]));
                    } else if part["type"] == "text" {
                        said.user.push(text_of(part));
                    }
                }
            }
            _ => {}
        }
    }
    said.system = system.join("\n");
    // A quota probe asks for a single token; its tools are ignored.
    if body["max_tokens"] != 1 {
        let tools = list(&body["tools"]).iter();
        said.tools = tools.map(|offered| tool(&offered["name"], &offered["input_schema"], false)).collect();
    }
    said
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut content = Vec::new();
    if !reply.thoughts.is_empty() {
        content.push(json!({ "type": "thinking", "thinking": reply.thoughts, "signature": "c2NyaXB0ZWQ=" }));
    }
    if reply.has_text() {
        content.push(json!({ "type": "text", "text": reply.text }));
    }
    for call in &reply.calls {
        let id = format!("toolu_{}", call.id);
        content.push(json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.arguments() }));
    }
    let stop = match reply.stop {
        Stop::OutputLimit => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Done if reply.calls.is_empty() => "end_turn",
        Stop::Done => "tool_use",
    };
    json!({
        "id": format!("msg_{:06}", reply.serial),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {
            "input_tokens": reply.usage.input,
            "output_tokens": reply.usage.output,
            "cache_read_input_tokens": reply.usage.cached,
            "cache_creation_input_tokens": 0,
        },
    })
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let full = whole(reply);
    let mut start = full.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events = vec![Event::named("message_start", json!({ "message": start }))];
    for (index, block) in list(&full["content"]).iter().enumerate() {
        let (empty, deltas) = in_pieces(block);
        events.push(Event::named("content_block_start", json!({ "index": index, "content_block": empty })));
        let delta = |delta| Event::named("content_block_delta", json!({ "index": index, "delta": delta }));
        events.extend(deltas.into_iter().map(delta));
        events.push(Event::named("content_block_stop", json!({ "index": index })));
    }
    let delta = json!({ "stop_reason": full["stop_reason"], "stop_sequence": null });
    events.push(Event::named("message_delta", json!({ "delta": delta, "usage": full["usage"] })));
    events.push(Event::named("message_stop", json!({})));
    events
}

/// The start of a block, and its deltas.
fn in_pieces(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let kind = word(&block["type"]);
    match kind.as_str() {
        "text" => {
            empty["text"] = "".into();
            let delta = |text| json!({ "type": "text_delta", "text": text });
            (empty, pieces(&word(&block["text"])).into_iter().map(delta).collect())
        }
        "thinking" => {
            empty["thinking"] = "".into();
            empty["signature"] = "".into();
            let delta = |text| json!({ "type": "thinking_delta", "thinking": text });
            let mut deltas: Vec<Value> = pieces(&word(&block["thinking"])).into_iter().map(delta).collect();
            deltas.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
            (empty, deltas)
        }
        _ => {
            empty["input"] = json!({});
            let delta = |text| json!({ "type": "input_json_delta", "partial_json": text });
            (empty, pieces(&block["input"].to_string()).into_iter().map(delta).collect())
        }
    }
}
