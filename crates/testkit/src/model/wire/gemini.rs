use serde_json::{Value, json};

use super::super::script::Stop;
use super::parts::{list, pieces, text_of, tool, word};
use super::{Event, ModelRequest, Reply};

pub(super) fn read(path: &str, body: &Value) -> ModelRequest {
    let (model, verb) = path.rsplit('/').next().and_then(|last| last.split_once(':')).unwrap_or_default();
    let settings = &body["generationConfig"];
    let mut said = ModelRequest {
        model: model.to_owned(),
        system: text_of(&body["systemInstruction"]),
        wants_stream: verb == "streamGenerateContent",
        schema: [&settings["responseJsonSchema"], &settings["responseSchema"]]
            .into_iter()
            .find(|schema| schema.is_object())
            .cloned(),
        ..ModelRequest::default()
    };
    for content in list(&body["contents"]) {
        for part in list(&content["parts"]) {
            if part["functionResponse"].is_object() {
                let response = &part["functionResponse"]["response"];
                said.tool_results.push(text_of(response));
            } else if part["text"].is_string() && content["role"] != "model" {
                said.user.push(word(&part["text"]));
            }
        }
    }
    let offered = list(&body["tools"]).iter().flat_map(|tools| list(&tools["functionDeclarations"]));
    said.tools = offered
        .map(|offered| {
            let schemas = [&offered["parametersJsonSchema"], &offered["parameters"]];
            let schema = schemas.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
            tool(&offered["name"], schema, false)
        })
        .collect();
    said
}

/// The request is a part of the message, and so is its model.
pub(super) fn read_wrapped(path: &str, message: &Value) -> ModelRequest {
    ModelRequest { model: word(&message["model"]), ..read(path, &message["request"]) }
}

/// The parts of an answer; text comes in pieces.
fn parts(reply: &Reply) -> Vec<Value> {
    let mut parts: Vec<Value> =
        pieces(&reply.thoughts).into_iter().map(|text| json!({ "text": text, "thought": true })).collect();
    parts.extend(pieces(&reply.text).into_iter().map(|text| json!({ "text": text })));
    for call in &reply.calls {
        let id = format!("fc_{}", call.id);
        let call = json!({ "id": id, "name": call.name, "args": call.arguments() });
        parts.push(json!({ "functionCall": call }));
    }
    if parts.is_empty() {
        parts.push(json!({ "text": "" }));
    }
    parts
}

fn chunk(reply: &Reply, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    let id = format!("{:06}", reply.serial);
    if !is_last {
        return json!({ "candidates": [candidate], "modelVersion": reply.model, "responseId": id });
    }
    candidate["finishReason"] = match reply.stop {
        Stop::Done => "STOP",
        Stop::OutputLimit => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
    .into();
    let usage = &reply.usage;
    json!({
        "candidates": [candidate],
        "modelVersion": reply.model,
        "responseId": id,
        "usageMetadata": {
            "promptTokenCount": usage.input + usage.cached,
            "candidatesTokenCount": usage.output,
            "cachedContentTokenCount": usage.cached,
            "totalTokenCount": usage.input + usage.cached + usage.output,
        },
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    chunk(reply, &parts(reply), true)
}

pub(super) fn wrapped(response: &Value) -> Value {
    json!({ "response": response })
}

pub(super) fn wrapped_events(reply: &Reply) -> Vec<Event> {
    chunks(reply).iter().map(|chunk| Event::plain(wrapped(chunk))).collect()
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    chunks(reply).into_iter().map(Event::plain).collect()
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let parts = parts(reply);
    let chunks = parts.iter().enumerate();
    chunks.map(|(place, part)| chunk(reply, std::slice::from_ref(part), place + 1 == parts.len())).collect()
}
