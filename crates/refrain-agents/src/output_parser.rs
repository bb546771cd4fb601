//! Parses the output of one attempt of any agent: bytes in, and a result at the end. A command's output is its
//! message; a stream is cut into lines, which the agent's decoder turns into events.

use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, AgentReport, Fault, Scope, Usage};
use refrain_core::event::Exit;
use refrain_core::promise::{Finding, NearMiss, PREVIEW, Scanner};
use refrain_core::spec::{AgentKind, OutputFormat};
use refrain_core::text::clip;
use refrain_proc::StopLadder;

use crate::acp::Acp;
use crate::adapter::{Adapter, Call, Launch, StreamDecoder};
use crate::args;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::environment;
use crate::gemini::Gemini;
use crate::generic::{self, Document};
use crate::opencode::OpenCode;

/// The limit of a line, in bytes. A longer line is no event of any agent, and is skipped.
const LONGEST_LINE: usize = 16 << 20;
/// The longest partial line that is kept for lists, in bytes.
const LONGEST_BEGUN: usize = 4 << 10;
/// The longest examined line of standard error, in bytes.
const LONGEST_STDERR_LINE: usize = 8 << 10;

/// The adapter of a kind; a generic command has none.
pub fn adapter(kind: AgentKind) -> Option<&'static dyn Adapter> {
    match kind {
        AgentKind::Generic => None,
        AgentKind::Claude => Some(&Claude),
        AgentKind::Codex => Some(&Codex),
        AgentKind::Opencode => Some(&OpenCode),
        AgentKind::Gemini => Some(&Gemini),
        AgentKind::Acp => Some(&Acp),
    }
}

/// Why these user arguments prevent an agent of this kind from working: its stream could not be parsed. Names the
/// value and the accepted ones.
pub fn objection(kind: AgentKind, args: &[String]) -> Option<String> {
    adapter(kind)?.objection(args)
}

/// The model that these user arguments name, which counts whatever else names one.
pub fn own_model(kind: AgentKind, args: &[String]) -> Option<String> {
    adapter(kind)?.own_model(args)
}

/// These user arguments without the model that they name.
pub fn without_model(kind: AgentKind, args: &[String]) -> Vec<String> {
    let flags = adapter(kind).map_or(&[][..], |adapter| adapter.model_flags());
    args::without_values(args, flags)
}

/// The command that starts an agent: from its adapter, or as a generic command.
pub fn launch(call: &Call<'_>) -> Launch {
    match adapter(call.spec.agent.kind) {
        Some(adapter) => adapter.launch(call),
        None => generic::launch(call),
    }
}

/// The signals that end this kind of agent.
pub fn ladder(kind: AgentKind) -> StopLadder {
    adapter(kind).map_or_else(StopLadder::default, |adapter| adapter.ladder())
}

/// The decoder for the stream of this kind of agent; none if standard output is a message.
pub fn dialect(call: &Call<'_>) -> Option<Box<dyn StreamDecoder>> {
    match (adapter(call.spec.agent.kind), call.spec.agent.output_format) {
        (Some(adapter), _) => Some(adapter.dialect(call)),
        (None, OutputFormat::StreamJson) => Some(Claude.dialect(call)),
        (None, OutputFormat::Json) => Some(Box::new(Document::default())),
        (None, OutputFormat::Auto | OutputFormat::Text) => None,
    }
}

/// Cuts a stream into lines for its decoder, in bounded memory.
pub struct Stream {
    dialect: Box<dyn StreamDecoder>,
    begun: Vec<u8>,
    /// The current line is too long.
    skips: bool,
    /// The incomplete line of standard error, up to the length that is examined.
    stderr_line: Vec<u8>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("begun", &self.begun.len()).finish_non_exhaustive()
    }
}

impl Stream {
    /// Starts at the first byte of a stream.
    pub fn new(dialect: Box<dyn StreamDecoder>) -> Self {
        Self { dialect, begun: Vec::new(), skips: false, stderr_line: Vec::new() }
    }

    /// Starts in the middle of a stream: the text before the next line is skipped.
    pub fn joined(dialect: Box<dyn StreamDecoder>) -> Self {
        Self { skips: true, ..Self::new(dialect) }
    }

    /// The next bytes, cut anywhere.
    pub fn push(&mut self, mut bytes: &[u8], say: &mut dyn FnMut(AgentEvent)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.begun.is_empty() && !self.skips && line.len() <= LONGEST_LINE {
                self.dialect.line(line, say);
            } else {
                self.hold(line);
                self.release(say);
            }
        }
        self.hold(bytes);
    }

    /// The next bytes of standard error, cut anywhere.
    pub fn push_stderr(&mut self, bytes: &[u8], say: &mut dyn FnMut(AgentEvent)) {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            let room = LONGEST_STDERR_LINE.saturating_sub(self.stderr_line.len());
            self.stderr_line.extend_from_slice(&part[..part.len().min(room)]);
            if parts.peek().is_some() {
                self.dialect.stderr_line(&self.stderr_line, say);
                self.stderr_line.clear();
            }
        }
    }

    fn hold(&mut self, part: &[u8]) {
        if self.begun.len() + part.len() > LONGEST_LINE {
            self.skips = true;
            self.begun = Vec::new();
        }
        if !self.skips {
            self.begun.extend_from_slice(part);
        }
    }

    fn release(&mut self, say: &mut dyn FnMut(AgentEvent)) {
        if std::mem::take(&mut self.skips) {
            say(AgentEvent::Unknown);
        } else if !self.begun.is_empty() {
            self.dialect.line(&self.begun, say);
        }
        self.begun.clear();
    }

    /// The stream ended while the program's exit is unknown: reports what is known.
    pub fn end(&mut self, say: &mut dyn FnMut(AgentEvent)) {
        self.release(say);
    }

    pub fn conclude(&mut self, exit: Exit, stderr: &str, say: &mut dyn FnMut(AgentEvent)) {
        self.release(say);
        self.dialect.conclude(exit, stderr, say);
    }
}

#[derive(Debug)]
pub struct ParsedOutput {
    pub finding: Finding,
    pub message: Option<String>,
    /// The report of the stream; none for a command.
    pub report: Option<AgentReport>,
}

/// Parses one attempt's standard output as it arrives.
#[derive(Debug)]
pub struct OutputParser(ParserKind);

#[derive(Debug)]
enum ParserKind {
    Message(Box<Scanner>),
    Stream(Box<StreamScan>),
}

#[derive(Debug)]
struct StreamScan {
    stream: Stream,
    scanner: Scanner,
    has_promise: bool,
    told: StreamState,
}

#[derive(Debug, Default)]
struct StreamState {
    report: AgentReport,
    message: Option<String>,
    /// The agent's last line, for lists, if there is no final message.
    said: String,
    /// The current line of a message that arrives in parts.
    begun: String,
    is_answered: bool,
    has_event: bool,
    retries: u32,
    /// Its final message exceeded the limit.
    is_too_long: bool,
}

impl OutputParser {
    /// A parser for the attempt started by this call.
    pub fn new(call: &Call<'_>) -> Self {
        let scanner = Scanner::of_attempt(call.spec, call.prompt);
        let (resumed, pool) = (resumes(call.spec), environment::pool(call.spec, call.env));
        let report = AgentReport { resumed, pool, ..AgentReport::default() };
        Self(match dialect(call) {
            None => ParserKind::Message(Box::new(scanner)),
            Some(dialect) => ParserKind::Stream(Box::new(StreamScan {
                stream: Stream::new(dialect),
                scanner,
                has_promise: call.spec.promise.is_some(),
                told: StreamState { report, ..StreamState::default() },
            })),
        })
    }

    /// The next bytes; returns the attempt's usage so far if it has changed and the attempt continues.
    pub fn hear(&mut self, chunk: &[u8]) -> Option<Usage> {
        match &mut self.0 {
            ParserKind::Message(scanner) => {
                scanner.push(chunk);
                None
            }
            ParserKind::Stream(listening) => {
                let before = listening.told.used();
                let StreamScan { stream, told, .. } = &mut **listening;
                stream.push(chunk, &mut |event| told.hear(event));
                let now = told.used();
                (now != before && !told.report.is_final).then_some(now)
            }
        }
    }

    /// The next bytes of standard error.
    pub fn hear_stderr(&mut self, chunk: &[u8]) {
        if let ParserKind::Stream(listening) = &mut self.0 {
            let StreamScan { stream, told, .. } = &mut **listening;
            stream.push_stderr(chunk, &mut |event| told.hear(event));
        }
    }

    /// The fault for which its program waits before a retry, until any other event follows; and the number of such
    /// retries.
    pub fn retrying(&self) -> Option<(u32, &Fault)> {
        match &self.0 {
            ParserKind::Message(_) => None,
            ParserKind::Stream(listening) => {
                let StreamState { report, retries, .. } = &listening.told;
                report.retrying.as_ref().map(|fault| (*retries, fault))
            }
        }
    }

    /// Whether the model has answered: its provider works.
    pub fn is_answered(&self) -> bool {
        match &self.0 {
            ParserKind::Message(_) => false,
            ParserKind::Stream(listening) => listening.told.is_answered,
        }
    }

    pub fn conclude(self, exit: Exit, stderr: &str) -> ParsedOutput {
        match self.0 {
            ParserKind::Message(scanner) => {
                ParsedOutput { finding: scanner.finish(), message: None, report: None }
            }
            ParserKind::Stream(mut listening) => {
                let StreamScan { stream, told, .. } = &mut *listening;
                stream.end(&mut |event| told.hear(event));
                told.report.no_events = stream.dialect.is_live() && !told.has_event;
                stream.conclude(exit, stderr, &mut |event| told.hear(event));
                listening.heard()
            }
        }
    }

    /// The program's end was not seen: the result of its stream alone; none for a command.
    pub fn adopt(self) -> Option<ParsedOutput> {
        match self.0 {
            ParserKind::Message(_) => None,
            ParserKind::Stream(mut listening) => {
                let StreamScan { stream, told, .. } = &mut *listening;
                stream.end(&mut |event| told.hear(event));
                Some(listening.heard())
            }
        }
    }
}

impl StreamScan {
    fn heard(mut self) -> ParsedOutput {
        let StreamState { report, message, said, is_too_long, .. } = self.told;
        if let Some(message) = &message {
            self.scanner.push(message.as_bytes());
        }
        let mut finding = self.scanner.finish();
        if is_too_long && self.has_promise {
            finding.near_miss = Some(NearMiss::TooLong);
        }
        if finding.last_line.is_empty() {
            finding.last_line = clip(said.trim(), PREVIEW).into_owned();
        }
        ParsedOutput { finding, message, report: Some(report) }
    }
}

impl StreamState {
    /// The usage of this attempt so far, if the agent reports it while it runs.
    fn used(&self) -> Usage {
        let own = |scope: Scope| scope == Scope::Attempt;
        let tokens = self.report.tokens.filter(|(of, _)| own(*of)).map(|(_, tokens)| tokens);
        let cost = self.report.cost.filter(|(of, _)| own(*of)).map(|(_, cost)| cost);
        Usage { tokens: tokens.unwrap_or_default(), cost, ..Usage::default() }
    }

    fn hear(&mut self, event: AgentEvent) {
        self.report.hear(&event);
        // A notice may be any line that the program's runtime printed.
        self.has_event |= !matches!(event, AgentEvent::Notice(_));
        self.retries += u32::from(matches!(event, AgentEvent::Retry(_)));
        self.is_answered |=
            matches!(event, AgentEvent::Text { .. } | AgentEvent::Thought(_) | AgentEvent::ToolCall { .. });
        if let AgentEvent::Text { text, part, .. } = &event {
            self.say(text, *part);
        }
        self.is_too_long |= event == AgentEvent::TooLong;
        if let AgentEvent::Final { ok, message } = event {
            self.message = message.filter(|_| ok);
        }
    }
}

impl StreamState {
    /// Keeps the last line of its text, as much as lists show.
    fn say(&mut self, text: &str, part: bool) {
        let begun = if part { std::mem::take(&mut self.begun) } else { String::new() };
        let last = text.rsplit_once('\n').map(|(before, last)| (Some(before), last));
        let (before, last) = last.unwrap_or((None, text));
        let whole = before.map(|before| format!("{begun}{before}"));
        let line = whole.iter().flat_map(|whole| whole.lines()).rev().find(|line| !line.trim().is_empty());
        if let Some(line) = line {
            self.said = clip(line.trim(), PREVIEW).into_owned();
        }
        let mut begun = if whole.is_some() { last.to_owned() } else { begun + last };
        begun.truncate(begun.floor_char_boundary(LONGEST_BEGUN));
        if !begun.trim().is_empty() {
            self.said = clip(begun.trim(), PREVIEW).into_owned();
        }
        self.begun = if part { begun } else { String::new() };
    }
}

/// Whether the user's arguments continue an earlier session; it matters only for agents that report totals of a
/// session.
fn resumes(spec: &Spec) -> bool {
    let words: &[&str] = match spec.agent.kind {
        AgentKind::Claude | AgentKind::Generic => &["--resume", "-r", "--continue", "-c"],
        AgentKind::Codex => &["resume", "fork"],
        AgentKind::Opencode | AgentKind::Gemini | AgentKind::Acp => &[],
    };
    let is = |argument: &String| words.iter().any(|word| argument.split('=').next() == Some(word));
    spec.agent.args.iter().any(is)
}
