//! Shared by the bridge's tests: a recording, a specification, and an attempt's stream read to its end.

use std::sync::LazyLock;

use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, AgentReport};
use refrain_core::event::Exit;
use refrain_core::spec::{AgentKind, AgentSpec};

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
        working_dir: "/repo/sub".into(),
        ..Spec::new(
            "mend".parse().unwrap(),
            AgentSpec {
                args: args.iter().map(ToString::to_string).collect(),
                ..AgentSpec::new(AgentKind::Generic, program)
            },
            "Mend it.",
            "/repo",
        )
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
