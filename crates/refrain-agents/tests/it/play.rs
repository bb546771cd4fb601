//! Feeds a stream to an adapter and collects its events.

use std::fs;
use std::sync::LazyLock;

use camino::Utf8Path;
use jiff::tz::TimeZone;
use refrain_agents::adapter::{Adapter, Call, Clock};
use refrain_agents::output_parser;
use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, AgentReport};
use refrain_core::event::Exit;
use refrain_core::spec::{AgentKind, AgentSpec};

pub(crate) const AGENTS: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) report: AgentReport,
    pub(crate) events: Vec<AgentEvent>,
}

impl Played {
    /// The final message: whether it was a success, and its text.
    pub(crate) fn last_word(&self) -> Option<(bool, Option<&str>)> {
        self.events.iter().rev().find_map(|event| match event {
            AgentEvent::Final { ok, message } => Some((*ok, message.as_deref())),
            _ => None,
        })
    }
}

pub(crate) fn adapter(agent: &str) -> &'static dyn Adapter {
    output_parser::adapter(AgentKind::of_program(agent))
        .unwrap_or_else(|| panic!("no adapter is called {agent}"))
}

/// A recorded stream, byte by byte as it was printed.
pub(crate) fn recording(agent: &str, name: &str) -> Vec<u8> {
    let path = format!("{}/recordings/{agent}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn play(agent: &str, stream: &[u8], exit: Exit, stderr: &str) -> Played {
    play_with(agent, &spec(agent, &[]), stream, exit, stderr)
}

/// Plays a stream to the adapter of a loop.
pub(crate) fn play_with(agent: &str, spec: &Spec, stream: &[u8], exit: Exit, stderr: &str) -> Played {
    let mut events = Vec::new();
    let mut dialect = adapter(agent).dialect(&call(spec));
    let stream = stream.strip_suffix(b"\n").unwrap_or(stream);
    for line in stream.split(|byte| *byte == b'\n') {
        dialect.line(line, &mut |event| events.push(event));
    }
    dialect.conclude(exit, stderr, &mut |event| events.push(event));
    let mut report = AgentReport::default();
    events.iter().for_each(|event| report.hear(event));
    Played { report, events }
}

/// Half past eleven at night in a time zone one hour ahead.
static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock {
    now: || "2026-11-23T22:30:00Z".parse().expect("a time"),
    zone: TimeZone::get("Europe/Paris").expect("a zone"),
});

/// An attempt of a loop, with the prompt in `/prompt`.
pub(crate) fn call(spec: &Spec) -> Call<'_> {
    let prompt_file = Utf8Path::new("/prompt");
    Call {
        spec,
        prompt: &spec.prompt,
        prompt_file,
        env: &[],
        budget: None,
        capped: false,
        schema: None,
        clock: &CLOCK,
        root: false,
    }
}

/// A loop with an agent with these arguments.
pub(crate) fn spec(agent: &str, args: &[&str]) -> Spec {
    Spec {
        working_dir: "/repo/sub".into(),
        ..Spec::new(
            "sample".parse().expect("an id"),
            AgentSpec {
                args: args.iter().map(|&arg| arg.to_owned()).collect(),
                ..AgentSpec::new(AgentKind::Generic, agent)
            },
            "-do it",
            "/repo",
        )
    }
}
