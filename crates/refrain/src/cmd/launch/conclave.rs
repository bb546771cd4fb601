//! The rules of seed 004 (Conclave) for a task: its gates, its limits, and when it is stuck. `refrain run` uses them,
//! and so do Conclave's loops that continue here.

use camino::Utf8Path;
use refrain_app::options::values;
use refrain_app::{Context, RequestError};
use refrain_core::formats::detect::Offer;
use refrain_core::formats::mirror::Mirror;
use refrain_core::gate::{Check, GateSpec};
use refrain_core::spec::{Millis, Spec};

/// The names of a task's gates for tests and linters.
pub(crate) const TESTS: &str = "tests";
pub(crate) const QUALITY: &str = "quality";

/// One command for all tests that the project's files offer, or for all linters.
pub(crate) fn together(offer: &Offer, hard: bool) -> Option<String> {
    let command = |gate: &GateSpec| match &gate.check {
        Check::Command(command) => Some(command.clone()),
        Check::Review(_) => None,
    };
    let commands: Vec<_> = offer.gates.iter().filter(|gate| gate.hard == hard).filter_map(command).collect();
    match commands.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        all => Some(all.iter().map(|command| format!("( {command} )")).collect::<Vec<_>>().join(" && ")),
    }
}

/// A project without tests that could decide.
pub(crate) fn no_tests(dir: &Utf8Path, offer: &Offer) -> RequestError {
    let found = offer.notes.iter().map(|note| format!(" ({note})")).collect::<String>();
    RequestError::usage(format!(
        "{dir}: nothing there says how to test it{found}; accepted is a project with tests"
    ))
}

/// The rules of seed 004 for which there is no option.
pub(crate) fn decide_as_conclave(spec: &mut Spec) {
    spec.keep_failed = true;
    // It counts as stuck when the same error repeats, even if other things change.
    spec.stuck.by_failure = true;
    // Its own files are always there.
    spec.mirrors.retain(|mirror| *mirror != Mirror::Ralph);
    spec.mirrors.push(Mirror::Ralph);
}

/// The environment variables of seed 004, with its defaults.
pub(crate) struct Environment {
    pub(crate) implement: Millis,
    pub(crate) test: Millis,
    pub(crate) spec: Millis,
    pub(crate) quality: Millis,
    pub(crate) global: Millis,
    pub(crate) threshold: u32,
}

impl Environment {
    pub(crate) fn read(context: &Context) -> Result<Self, RequestError> {
        let time = |name: &str, seconds: u64| match context.variable(name) {
            None => Ok(Millis(seconds * 1000)),
            Some(text) => values::duration(text).ok().filter(|time| time.0 > 0).ok_or_else(|| {
                RequestError::usage(format!("{name}: {text:?}: accepted are seconds, or like 90s, 20m"))
            }),
        };
        let threshold = match context.variable("RALPH_STUCK_THRESHOLD") {
            None => refrain_core::spec::StuckSpec::THRESHOLD,
            Some(text) => text.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| {
                RequestError::usage(format!("RALPH_STUCK_THRESHOLD: {text:?}: accepted are 1 to 100"))
            })?,
        };
        Ok(Self {
            implement: time("RALPH_TIMEOUT_IMPLEMENT", 1200)?,
            test: time("RALPH_TIMEOUT_TEST", 600)?,
            spec: time("RALPH_TIMEOUT_SPEC", 300)?,
            quality: time("RALPH_TIMEOUT_QUALITY", 180)?,
            global: time("RALPH_TIMEOUT_GLOBAL", 3600)?,
            threshold,
        })
    }
}
