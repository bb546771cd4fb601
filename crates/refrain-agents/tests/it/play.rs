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
use refrain_core::spec::{AgentKind, AgentSpec, Limits, Permissions, PromptMode};

/// Every agent that has an adapter.
pub(crate) const AGENTS: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

/// The result of a played stream.
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

/// Plays a stream to the adapter, then the exit.
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
        id: "sample".parse().expect("an id"),
        agent: AgentSpec {
            kind: AgentKind::Generic,
            program: agent.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            prompt_mode: PromptMode::Auto,
            env: [].into(),
            clean_env: false,
            model: None,
            permissions: Permissions::Auto,
            output_format: Default::default(),
            price: None,
        },
        prompt: "-do it".to_owned(),
        iteration_context: true,
        promise: None,
        limits: Limits {
            max_iterations: None,
            max_duration: None,
            timeout: None,
            idle_timeout: None,
            pause: None,
            max_cost: None,
            max_tokens: None,
            retry_for: None,
            timeout_grace: None,
        },
        project: "/repo".into(),
        worktree: "/repo".into(),
        working_dir: "/repo/sub".into(),
        git: Default::default(),
        gates: Vec::new(),
        gate_env: Default::default(),
        protect: Default::default(),
        until: Default::default(),
        clean_checkout: false,
        gates_must_run: false,
        approval: false,
        stuck: Default::default(),
        critique: None,
        caps: Default::default(),
        keep_failed: false,
        mirrors: Vec::new(),
        memory: None,
        carried: None,
        mode: None,
        trace: None,
        task: None,
        session: None,
        depth: 0,
        parent: None,
        sandbox: None,
        output_cap: Spec::OUTPUT_CAP,
    }
}
