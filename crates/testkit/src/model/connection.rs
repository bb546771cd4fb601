//! One connection: reads requests, assigns their turns, and plays them.

use std::io::{self, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use super::http::{self, Incoming, Whole};
use super::request::{ConnectionEnd, Protocol, Request, TakenTurn};
use super::script::{Act, ModelReply, StreamBreak, Turn, Usage};
use super::state::State;
use super::wire::{self, ModelRequest, Reply};
use super::{refusal, tools};

/// The beginnings of text that programs add to the user's side by themselves.
const ADDED: [&str; 10] = [
    "<system-reminder",
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "<collaboration_mode",
    "<session_context",
    "<skills_instructions",
    "<apps_instructions",
    "<INSTRUCTIONS",
    "# AGENTS.md instructions",
];

pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    pub(super) state: Arc<State>,
    /// A byte comes out of it for each turn that may pass.
    pub(super) passes: Arc<UnixStream>,
}

impl Connection {
    /// Serves it until one of both sides has had enough.
    pub(super) fn serve(&self) {
        let mut reader = BufReader::new(&*self.stream);
        while let Ok(Some(incoming)) = Incoming::read(&mut reader) {
            let is_last = incoming.wants_close();
            if !self.answer(&incoming) || is_last {
                break;
            }
        }
    }

    fn answer(&self, incoming: &Incoming) -> bool {
        let (lane, path) = lane_and_path(&incoming.path);
        let asked = IncomingRequest::of(path, incoming);
        let request = asked.request(lane, path, incoming);
        let Some((number, turn)) = self.state.take(request, asked.wants_turn()) else {
            return not_found("there is no such lane").write(&mut &*self.stream, true).is_ok();
        };
        let played = match turn.or_else(|| asked.side_turn()) {
            Some(turn) => self.play(&turn, &asked, number),
            None => {
                let whole = asked.information(incoming);
                whole.write(&mut &*self.stream, incoming.method != "HEAD").map(|()| ConnectionEnd::Answered)
            }
        };
        let ending = played.unwrap_or(ConnectionEnd::Left);
        self.state.end(number, ending);
        ending == ConnectionEnd::Answered
    }

    fn play(&self, turn: &Turn, asked: &IncomingRequest, number: usize) -> io::Result<ConnectionEnd> {
        if turn.is_held && !self.may_pass()? {
            return Ok(ConnectionEnd::Left);
        }
        match &turn.act {
            Act::Answer(answer) => self.say(answer, asked, number),
            Act::Refuse(refusal) => {
                refusal::answer(asked.protocol, refusal).write(&mut &*self.stream, true)?;
                Ok(ConnectionEnd::Answered)
            }
            Act::Hang => self.wait_until_left(),
            Act::Reset => self.reset(),
        }
    }

    fn say(&self, answer: &ModelReply, asked: &IncomingRequest, number: usize) -> io::Result<ConnectionEnd> {
        let folder = tools::folder(&format!("{}\n{}", asked.said.system, asked.said.user.join("\n")));
        let reply = Reply {
            model: asked.said.model.clone(),
            text: answer.text.clone(),
            thoughts: answer.thoughts.clone(),
            calls: tools::calls(&answer.actions, &asked.said.tools, &folder, number),
            usage: answer.usage,
            stop: answer.stop,
            serial: number,
        };
        let mut to = &*self.stream;
        if !asked.said.wants_stream {
            Whole::ok(wire::whole(asked.protocol, &reply)).write(&mut to, true)?;
            return Ok(ConnectionEnd::Answered);
        }
        let events = wire::events(asked.protocol, &reply);
        let until = if answer.cut.is_some() { events.len() / 2 } else { events.len() };
        http::begin_stream(&mut to)?;
        for event in &events[..until] {
            http::write_part(&mut to, &event.frame())?;
        }
        match answer.cut {
            None => http::end_stream(&mut to).map(|()| ConnectionEnd::Answered),
            Some(StreamBreak::End) => http::end_stream(&mut to).map(|()| ConnectionEnd::Broken),
            Some(StreamBreak::Hang) => self.wait_until_left(),
            Some(StreamBreak::Reset) => self.reset(),
        }
    }

    /// Waits until the test lets a turn pass; false if the client is gone.
    fn may_pass(&self) -> io::Result<bool> {
        loop {
            let mut ready =
                [PollFd::new(&*self.passes, PollFlags::IN), PollFd::new(&*self.stream, PollFlags::IN)];
            retry_on_intr(|| poll(&mut ready, None))?;
            // Several may wait for one byte; the others wait again.
            if !ready[0].revents().is_empty() && matches!((&*self.passes).read(&mut [0]), Ok(1)) {
                return Ok(true);
            }
            if !ready[1].revents().is_empty() {
                return Ok(false);
            }
        }
    }

    /// Sends nothing until the client or the test closes the connection.
    fn wait_until_left(&self) -> io::Result<ConnectionEnd> {
        io::copy(&mut &*self.stream, &mut io::sink())?;
        Ok(ConnectionEnd::Left)
    }

    /// Sees to it that the connection closes with a reset.
    fn reset(&self) -> io::Result<ConnectionEnd> {
        set_socket_linger(&*self.stream, Some(Duration::ZERO))?;
        Ok(ConnectionEnd::Broken)
    }
}

fn not_found(message: &str) -> Whole {
    let body = json!({ "error": { "message": message, "type": "not_found" } });
    Whole { status: 404, headers: Vec::new(), body }
}

/// `/lane/NAME/…` is lane NAME and the rest; all else is the model's own.
fn lane_and_path(path: &str) -> (&str, &str) {
    let Some(rest) = path.strip_prefix("/lane/") else { return ("", path) };
    let cut = rest.find('/').unwrap_or(rest.len());
    rest.split_at(cut)
}

struct IncomingRequest {
    protocol: Protocol,
    is_count: bool,
    said: ModelRequest,
}

impl IncomingRequest {
    fn of(path: &str, incoming: &Incoming) -> Self {
        let is_post = incoming.method == "POST";
        let protocol = match path {
            _ if !is_post => Protocol::Other,
            _ if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") => {
                Protocol::Anthropic
            }
            _ if path.ends_with("/responses") => Protocol::Responses,
            _ if path.ends_with("/chat/completions") => Protocol::Chat,
            _ if path.starts_with("/v1internal:") && path.ends_with("enerateContent") => Protocol::CodeAssist,
            _ if path.contains("/models/") && path.contains(':') => Protocol::Gemini,
            _ => Protocol::Other,
        };
        let is_count = path.ends_with("/count_tokens") || path.ends_with(":countTokens");
        Self { protocol, is_count, said: wire::read(protocol, path, &incoming.json()) }
    }

    /// Main conversations offer tools; titles, classifiers and probes do not.
    fn wants_turn(&self) -> bool {
        self.protocol != Protocol::Other && !self.is_count && !self.said.tools.is_empty()
    }

    fn request(&self, lane: &str, path: &str, incoming: &Incoming) -> Request {
        let said = &self.said;
        let is_added = |text: &String| ADDED.iter().any(|begin| text.trim_start().starts_with(begin));
        let (context, prompts) = said.user.iter().cloned().partition(is_added);
        let is_model = self.protocol != Protocol::Other && !self.is_count;
        Request {
            lane: lane.to_owned(),
            protocol: self.protocol,
            path: path.to_owned(),
            took: if is_model { TakenTurn::Side } else { TakenTurn::Nothing },
            model: said.model.clone(),
            prompts,
            context,
            system: said.system.clone(),
            tool_results: said.tool_results.clone(),
            tools: said.tools.iter().map(|tool| tool.name.clone()).collect(),
            has_key: ["authorization", "x-api-key", "x-goog-api-key"]
                .iter()
                .any(|name| !incoming.header(name).is_empty())
                || incoming.query.contains("key="),
            at: Duration::ZERO,
            ending: ConnectionEnd::Open,
        }
    }

    /// The answer to a side question of the program; `None` if the request is none to a model.
    fn side_turn(&self) -> Option<Turn> {
        if self.protocol == Protocol::Other || self.is_count {
            return None;
        }
        let text = self.said.schema.as_ref().map(|schema| smallest(schema).to_string());
        let text = text.unwrap_or_else(|| "A scripted title".to_owned());
        Some(Turn::say(text).usage(Usage { input: 10, output: 5, cached: 0 }))
    }

    /// Answers requests that ask no model: token counts, lists of models, liveness checks.
    fn information(&self, incoming: &Incoming) -> Whole {
        if self.is_count {
            let count = incoming.body.len() / 4 + 1;
            return Whole::ok(json!({ "input_tokens": count, "totalTokens": count }));
        }
        match incoming.method.as_str() {
            "GET" if incoming.path.ends_with("/models") => {
                let model = json!({ "id": "scripted", "object": "model", "type": "model", "created": 0 });
                Whole::ok(json!({ "object": "list", "data": [model], "models": [], "has_more": false }))
            }
            "HEAD" => Whole::ok(json!({})),
            "POST" if incoming.path.ends_with("/token") => Whole::ok(renewed_login()),
            "POST" if incoming.path.ends_with("/tokeninfo") => {
                Whole::ok(json!({ "expires_in": 3600, "scope": "" }))
            }
            "POST" if incoming.path.ends_with(":loadCodeAssist") => Whole::ok(
                json!({ "currentTier": { "id": "standard-tier" }, "cloudaicompanionProject": "project" }),
            ),
            _ => not_found("the scripted model has no such thing"),
        }
    }
}

/// What providers answer to a refresh token.
fn renewed_login() -> Value {
    let mut answer = login("renewed", 4_000_000_000);
    answer["token_type"] = "Bearer".into();
    answer["expires_in"] = 36_000.into();
    answer["scope"] = "user:inference user:profile".into();
    answer
}

/// The tokens of a login to a provider, of which the refresh token is `refresh`; the others expire at that second.
#[must_use]
pub fn login(refresh: &str, expires: u64) -> Value {
    use base64::Engine;
    let part = |claims: Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims.to_string());
    let claims = json!({
        "email": "test@localhost",
        "exp": expires,
        "https://api.openai.com/auth": { "chatgpt_plan_type": "pro", "chatgpt_account_id": "account" },
    });
    let token = [part(json!({ "alg": "none" })), part(claims), part(json!({}))].join(".");
    json!({ "id_token": token, "access_token": token, "refresh_token": refresh, "account_id": "account" })
}

/// The smallest value of a JSON schema: the answer to a classifier's question.
fn smallest(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0).or_else(|| schema.get("const")) {
        return first.clone();
    }
    if let Some(first) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[key].get(0)) {
        return smallest(first);
    }
    match schema["type"].as_str().unwrap_or("object").to_ascii_lowercase().as_str() {
        "string" => "scripted".into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => false.into(),
        "array" => json!([]),
        "null" => Value::Null,
        _ => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, inner)| (name.clone(), smallest(inner))).collect())
        }
    }
}
