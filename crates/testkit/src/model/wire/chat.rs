use serde_json::{Value, json};

use super::super::script::Stop;
use super::parts::{list, pieces, text_of, tool, word};
use super::{Event, ModelRequest, Reply};

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut said = ModelRequest {
        model: word(&body["model"]),
        wants_stream: body["stream"] == true,
        schema: Some(&body["response_format"]["json_schema"]["schema"])
            .filter(|schema| schema.is_object())
            .cloned(),
        ..ModelRequest::default()
    };
    let mut system = Vec::new();
    for message in list(&body["messages"]) {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => said.user.push(text),
            Some("tool") => said.tool_results.push(text),
            Some("system" | "developer") => system.push(text),
            _ => {}
        }
    }
    said.system = system.join("\n");
    let tools = list(&body["tools"]).iter().map(|offered| &offered["function"]);
    said.tools = tools.map(|offered| tool(&offered["name"], &offered["parameters"], false)).collect();
    said
}

fn finish(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::OutputLimit => "length",
        Stop::Refusal => "content_filter",
        Stop::Done if reply.calls.is_empty() => "stop",
        Stop::Done => "tool_calls",
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "prompt_tokens": usage.input + usage.cached,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.cached + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = json!({ "role": "assistant", "content": reply.text });
    if !reply.thoughts.is_empty() {
        message["reasoning_content"] = reply.thoughts.as_str().into();
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments().to_string() });
            json!({ "id": format!("call_{}", call.id), "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": format!("chatcmpl-{:06}", reply.serial),
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish(reply) }],
        "usage": usage(reply),
    })
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{:06}", reply.serial),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": reply.model,
            "choices": choices,
        })
    };
    let delta =
        |delta: Value| Event::plain(chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }])));
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }))];
    events
        .extend(pieces(&reply.thoughts).into_iter().map(|text| delta(json!({ "reasoning_content": text }))));
    events.extend(pieces(&reply.text).into_iter().map(|text| delta(json!({ "content": text }))));
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        let id = format!("call_{}", call.id);
        let begin = json!({ "index": index, "id": id, "type": "function", "function": function });
        events.push(delta(json!({ "tool_calls": [begin] })));
        for text in pieces(&call.arguments().to_string()) {
            let more = json!({ "index": index, "function": { "arguments": text } });
            events.push(delta(json!({ "tool_calls": [more] })));
        }
    }
    events.push(Event::plain(chunk(json!([{ "index": 0, "delta": {}, "finish_reason": finish(reply) }]))));
    let mut last = chunk(json!([]));
    last["usage"] = usage(reply);
    events.push(Event::plain(last));
    events.push(Event::plain("[DONE]"));
    events
}
