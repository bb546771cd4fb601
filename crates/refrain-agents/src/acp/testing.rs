//! Shared by the bridge's tests: a recording, a specification, and an attempt's stream read to its end.

use std::sync::LazyLock;

use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, AgentReport};
use refrain_core::event::Exit;
use refrain_core::spec::{AgentKind, AgentSpec, Limits, Permissions, PromptMode};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::adapter::{Adapter, Call, Clock, Launch};

macro_rules! recording {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/", $name, ".jsonl")).as_slice()
    };
}
pub(crate) use recording;

/// A loop that runs this program with these arguments.
pub(crate) fn spec(program: &str, args: &[&str]) -> Spec {
    Spec {
        id: "mend".parse().unwrap(),
        agent: AgentSpec {
            kind: AgentKind::Generic,
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            prompt_mode: PromptMode::Auto,
            env: [].into(),
            clean_env: false,
            model: None,
            permissions: Permissions::Auto,
            output_format: Default::default(),
            price: None,
        },
        prompt: "Mend it.".to_owned(),
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

static CLOCK: LazyLock<Clock> =
    LazyLock::new(|| Clock { now: || Timestamp::UNIX_EPOCH, zone: TimeZone::UTC });

fn call(spec: &Spec) -> Call<'_> {
    Call {
        spec,
        prompt: &spec.prompt,
        prompt_file: "/data/prompt.md".into(),
        env: &[],
        budget: None,
        capped: false,
        schema: None,
        clock: &CLOCK,
        root: false,
    }
}

pub(crate) fn launch(adapter: &dyn Adapter, spec: &Spec) -> Launch {
    adapter.launch(&call(spec))
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct AttemptTrace {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) report: AgentReport,
    /// The last `Final`.
    pub(crate) last_word: Option<(bool, Option<String>)>,
}

/// All events of an attempt's stream and its end.
pub(crate) fn hear(
    adapter: &dyn Adapter,
    spec: &Spec,
    stdout: &[u8],
    exit: Exit,
    stderr: &str,
) -> AttemptTrace {
    let mut heard = AttemptTrace::default();
    let mut say = |event: AgentEvent| {
        heard.report.hear(&event);
        if let AgentEvent::Final { ok, message } = &event {
            heard.last_word = Some((*ok, message.clone()));
        }
        heard.events.push(event);
    };
    let mut dialect = adapter.dialect(&call(spec));
    stdout.split(|byte| *byte == b'\n').for_each(|line| dialect.line(line, &mut say));
    dialect.conclude(exit, stderr, &mut say);
    heard
}
