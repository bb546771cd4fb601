//! The stored transcript of a session of Claude Code, Codex or Gemini, read from its end: information missing in the hook's
//! input, and whether the last turn did any work. Malformed lines and messages of agents below the session are
//! skipped.

pub(super) mod codex;
pub(super) mod gemini;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use camino::Utf8Path;
use refrain_core::agent::{Tokens, Usd};
use refrain_core::spec::AgentKind;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::lax;

/// How much of a transcript's end is read, in bytes: a turn that is longer has done something.
const LONGEST: u64 = 8 << 20;

/// The start of a hook's feedback in the transcript, with which the session continued.
const FEEDBACK: &str = "Stop hook feedback:";

/// The end of a session's transcript, back to the last prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    pub message: Option<String>,
    pub has_worked: bool,
    /// Whether it asks the user something, and has no answer.
    pub asks: bool,
    /// What it used, with the agents below it; none where it is not said.
    pub tokens: Option<Tokens>,
    pub cost: Option<Usd>,
    pub model: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    message: Option<TranscriptMessage>,
}

#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Deserialize)]
struct TranscriptMessage {
    content: Value,
    id: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
}

/// The tokens of one message, all of whose lines say them.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// Reads the end of an agent's transcript; none if its format is unknown, it cannot be read, or it belongs to no
/// session.
pub fn look(agent: AgentKind, path: &Utf8Path) -> Option<Tail> {
    let tail = match agent {
        AgentKind::Claude => tail,
        AgentKind::Codex => codex::tail,
        AgentKind::Gemini => gemini::tail,
        _ => return None,
    };
    // It may be a FIFO, which would block.
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST))).ok()?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    tail(&bytes, length > LONGEST)
}

/// The same, from the bytes of its end; `is_cut` if more precedes them.
pub(super) fn tail(bytes: &[u8], is_cut: bool) -> Option<Tail> {
    let (mut tail, mut answered, mut seen) = (Tail::default(), Vec::new(), false);
    let mut counted = BTreeSet::new();
    for line in bytes.rsplit(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        let Some(said) = &line.message else { continue };
        // The last line of a message has the whole of its tokens.
        if let (Some(usage), Some(id)) = (&said.usage, &said.id)
            && counted.insert(id.clone())
        {
            tail.tokens = Some(add(tail.tokens.unwrap_or_default(), usage.tokens()));
        }
        if line.is_sidechain {
            continue;
        }
        match line.kind.as_str() {
            "assistant" => {
                seen = true;
                tail.model = tail.model.or_else(|| said.model.clone());
                tail.hear(blocks(&said.content), &answered);
            }
            "user" => {
                let results: Vec<_> = blocks(&said.content)
                    .filter_map(|block| Some(block.get("tool_use_id")?.as_str()?.to_owned()))
                    .collect();
                let is_ours = said.content.as_str().is_some_and(|text| text.starts_with(FEEDBACK));
                if results.is_empty() && (!line.is_meta || is_ours) {
                    return Some(tail);
                }
                answered.extend(results);
            }
            _ => {}
        }
    }
    tail.has_worked |= is_cut;
    // What lies before is not counted.
    tail.tokens = tail.tokens.filter(|_| !is_cut);
    seen.then_some(tail)
}

impl Usage {
    fn tokens(&self) -> Tokens {
        let sum = |parts: &[Option<u64>]| {
            Some(parts.iter().flatten().fold(0_u64, |sum, part| sum.saturating_add(*part)))
        };
        let Self { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
            *self;
        Tokens {
            input: sum(&[input_tokens, cache_creation_input_tokens, cache_read_input_tokens]),
            cached_input: sum(&[cache_read_input_tokens]),
            output: sum(&[output_tokens]),
        }
    }
}

/// The sum; a part that one of them does not say counts as the other's.
pub(super) fn add(a: Tokens, b: Tokens) -> Tokens {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    Tokens {
        input: sum(a.input, b.input),
        cached_input: sum(a.cached_input, b.cached_input),
        output: sum(a.output, b.output),
    }
}

impl Tail {
    /// Reads one line of the agent; the lines come in reverse order.
    fn hear<'a>(&mut self, blocks: impl DoubleEndedIterator<Item = &'a Value>, answered: &[String]) {
        for block in blocks.rev() {
            let text = |name: &str| block.get(name).and_then(Value::as_str);
            match text("type") {
                Some("text") if self.message.is_none() => self.message = text("text").map(str::to_owned),
                Some("tool_use") => {
                    let is_answered = text("id").is_some_and(|id| answered.iter().any(|known| known == id));
                    self.asks |= text("name") == Some("AskUserQuestion") && !is_answered;
                    self.has_worked = true;
                }
                _ => {}
            }
        }
    }
}

/// The blocks of a message; a plain text has none.
fn blocks(content: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    content.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}
