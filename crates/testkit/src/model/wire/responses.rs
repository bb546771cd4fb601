use serde_json::{Value, json};

use super::super::script::Stop;
use super::super::tools::Input;
use super::parts::{list, pieces, text_of, tool, word};
use super::{Event, ModelRequest, Reply};

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut said = ModelRequest {
        model: word(&body["model"]),
        wants_stream: body["stream"] == true,
        schema: Some(&body["text"]["format"]["schema"]).filter(|schema| schema.is_object()).cloned(),
        ..ModelRequest::default()
    };
    let mut system = vec![word(&body["instructions"])];
    if body["input"].is_string() {
        said.user.push(word(&body["input"]));
    }
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap_or("message") {
            "message" if item["role"] == "user" => said.user.push(text_of(&item["content"])),
            "message" if item["role"] != "assistant" => system.push(text_of(&item["content"])),
            kind if kind.ends_with("_output") => said.tool_results.push(text_of(&item["output"])),
            _ => {}
        }
    }
    said.system = system.join("\n");
    for offered in list(&body["tools"]) {
        let name = if offered["name"].is_string() { &offered["name"] } else { &offered["type"] };
        said.tools.push(tool(name, &offered["parameters"], offered["type"] == "custom"));
        // Tools of one origin come together under its name.
        let inner = list(&offered["tools"]).iter();
        said.tools.extend(inner.map(|inner| tool(&inner["name"], &inner["parameters"], false)));
    }
    said
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut items = Vec::new();
    let serial = reply.serial;
    if !reply.thoughts.is_empty() {
        let summary = json!([{ "type": "summary_text", "text": reply.thoughts }]);
        items.push(json!({ "id": format!("rs_{serial:06}"), "type": "reasoning", "summary": summary }));
    }
    if reply.has_text() {
        items.push(json!({
            "id": format!("msg_{serial:06}"),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": reply.text, "annotations": [] }],
        }));
    }
    for call in &reply.calls {
        let call_id = format!("call_{}", call.id);
        let mut item = json!({ "status": "completed", "call_id": call_id, "name": call.name });
        match &call.input {
            Input::Arguments(arguments) => {
                item["type"] = "function_call".into();
                item["id"] = format!("fc_{}", call.id).into();
                item["arguments"] = arguments.to_string().into();
            }
            Input::Plain(text) => {
                item["type"] = "custom_tool_call".into();
                item["id"] = format!("ctc_{}", call.id).into();
                item["input"] = text.as_str().into();
            }
        }
        items.push(item);
    }
    let is_cut = reply.stop == Stop::OutputLimit;
    let usage = &reply.usage;
    json!({
        "id": format!("resp_{serial:06}"),
        "object": "response",
        "created_at": 0,
        "status": if is_cut { "incomplete" } else { "completed" },
        "model": reply.model,
        "output": items,
        "error": null,
        "incomplete_details": if is_cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null },
        "usage": {
            "input_tokens": usage.input + usage.cached,
            "input_tokens_details": { "cached_tokens": usage.cached },
            "output_tokens": usage.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage.input + usage.cached + usage.output,
        },
    })
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let full = whole(reply);
    let mut begun = full.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![
        Event::named("response.created", json!({ "response": begun })),
        Event::named("response.in_progress", json!({ "response": begun })),
    ];
    for (index, item) in list(&full["output"]).iter().enumerate() {
        events.extend(item_events(index, item));
        events
            .push(Event::named("response.output_item.done", json!({ "output_index": index, "item": item })));
    }
    let end = if full["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(Event::named(end, json!({ "response": full })));
    events
}

/// An item as it comes, but for its last event.
fn item_events(index: usize, item: &Value) -> Vec<Event> {
    let (field, names, place) = match item["type"].as_str() {
        Some("message") => (
            "content",
            ["response.output_text.delta", "response.output_text.done"],
            json!({ "content_index": 0 }),
        ),
        Some("reasoning") => (
            "summary",
            ["response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"],
            json!({ "summary_index": 0 }),
        ),
        Some("function_call") => (
            "arguments",
            ["response.function_call_arguments.delta", "response.function_call_arguments.done"],
            json!({}),
        ),
        _ => (
            "input",
            ["response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"],
            json!({}),
        ),
    };
    let mut empty = item.clone();
    empty["status"] = "in_progress".into();
    empty[field] = if item[field].is_array() { json!([]) } else { "".into() };
    let with = |key: &str, value: Value| {
        let mut data = place.clone();
        data["item_id"] = item["id"].clone();
        data["output_index"] = index.into();
        data[key] = value;
        data
    };
    let mut events =
        vec![Event::named("response.output_item.added", json!({ "output_index": index, "item": empty }))];
    let blank = |kind: &str| json!({ "type": kind, "text": "", "annotations": [] });
    match field {
        "content" => {
            events.push(Event::named("response.content_part.added", with("part", blank("output_text"))));
        }
        "summary" => events
            .push(Event::named("response.reasoning_summary_part.added", with("part", blank("summary_text")))),
        _ => {}
    }
    let text = text_of(&item[field]);
    events.extend(pieces(&text).into_iter().map(|piece| Event::named(names[0], with("delta", piece.into()))));
    let key = if ["content", "summary"].contains(&field) { "text" } else { field };
    events.push(Event::named(names[1], with(key, text.into())));
    if field == "content" {
        events.push(Event::named("response.content_part.done", with("part", item["content"][0].clone())));
    }
    events
}
