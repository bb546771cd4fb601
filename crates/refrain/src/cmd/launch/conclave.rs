//! The rules of seed 004 (Conclave) for a task: its gates, its limits, and when it is stuck. `refrain run` uses them,
//! and so do Conclave's loops that continue here.

use camino::Utf8Path;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::values;
use refrain_app::repository_command::{RepositoryCommand, of_gates};
use refrain_app::{Context, RequestError};
use refrain_core::gate::Offer;
use refrain_core::gate::{Check, GateSpec};
use refrain_core::mirror::Mirror;
use refrain_core::spec::{Millis, Spec};
use refrain_core::values::Limit;
use refrain_engine::config::Settings;
use refrain_engine::{EngineError, GateProgramError, Service};

/// What the gates of a task's tests, and of its linters, are called.
const TESTS: &str = "tests";
const QUALITY: &str = "quality";

/// The gate of a project that has no tests yet.
const NEW_TESTS: &str = "new-tests";

pub(super) enum WithoutTests {
    /// The task creates them: a gate runs what is there.
    Begin,
    Refuse(String),
}

/// What is left to be done once there is a specification.
pub(super) struct Rules {
    environment: Environment,
    offer: Option<Offer>,
    /// How long every gate may take, where the user says so.
    timeout: Option<Millis>,
    notes: Vec<String>,
}

impl Rules {
    /// Fills in the task's gates and time limits where the options and the configuration leave them open.
    pub(super) fn of(
        context: &Context,
        service: &Service,
        dir: &Utf8Path,
        settings: &Settings,
        (begin, untested): (&mut BeginArgs, WithoutTests),
    ) -> Result<Self, RequestError> {
        let environment = Environment::read(context)?;
        let (work, task) = (&mut begin.work, &begin.task);
        work.timeout.get_or_insert(Limit::At(environment.implement));
        work.max_duration.get_or_insert(Limit::At(environment.global));
        work.stuck.stuck_threshold.get_or_insert(environment.threshold);
        if work.reviews.spec_gate.is_none() {
            work.reviews.spec_gate.clone_from(&task.prompt_file);
        }
        let timeout = work.gates.timeout();
        if work.gates.decide(&settings.config) {
            return Ok(Self { environment, offer: None, timeout, notes: Vec::new() });
        }
        let offer = service.offer(dir)?;
        let mut notes = offer.notes.clone();
        match (together(&offer, true), untested) {
            (Some(tests), _) => work.gates.add(TESTS, &tests)?,
            (None, WithoutTests::Begin) => {
                work.gates.add(NEW_TESTS, &service.new_tests(dir)?)?;
                notes.push(format!(
                    "{dir} has no tests yet: gate {NEW_TESTS} runs those that the run makes; without any, the result is unverified"
                ));
            }
            (None, WithoutTests::Refuse(hint)) => return Err(no_tests(dir, &offer).hint(hint)),
        }
        if let Some(linters) = together(&offer, false) {
            work.gates.add_advisory(QUALITY, &linters)?;
        }
        Ok(Self { environment, offer: Some(offer), timeout, notes })
    }

    pub(super) fn offered(&self) -> impl Iterator<Item = RepositoryCommand> {
        self.offer.iter().flat_map(|offer| of_gates(&offer.gates))
    }

    /// The specification with what no option says; returns what the user should know of that.
    pub(super) fn applied(self, service: &Service, spec: &mut Spec) -> Result<Vec<String>, RequestError> {
        let Self { environment, offer, timeout, notes } = self;
        // The seed's own times hold for the seed's own gates; times that the user set, for all.
        let time =
            |set: Option<Millis>, seconds: u64| set.or(offer.is_some().then_some(Millis(seconds * 1000)));
        let limit = |gate: &GateSpec| match gate.hard {
            _ if gate.is_review() => Some(environment.spec),
            true => time(environment.test, 600),
            false => time(environment.quality, 180),
        };
        for gate in spec.gates.iter_mut().filter(|_| timeout.is_none()) {
            gate.timeout = limit(gate).unwrap_or(gate.timeout);
        }
        for gate in spec.gates.iter_mut().filter(|gate| offer.is_some() && gate.name.as_str() == NEW_TESTS) {
            gate.own_tests = true;
        }
        decide_as_conclave(spec);
        // Together they are two commands at most, of which only the first program would be looked at.
        let offered = offer.iter().map(|offer| service.check_gates(spec, &offer.gates));
        offered.collect::<Result<(), _>>().map_err(|error| match error {
            EngineError::GateProgram(error) => {
                let owner = format!("{}, which the project's files offer", error.owner);
                EngineError::GateProgram(GateProgramError { owner, ..error })
            }
            error => error,
        })?;
        Ok(notes)
    }
}

/// One command for all tests that the project's files offer, or for all linters.
fn together(offer: &Offer, hard: bool) -> Option<String> {
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
fn no_tests(dir: &Utf8Path, offer: &Offer) -> RequestError {
    let found = offer.notes.iter().map(|note| format!(" ({note})")).collect::<String>();
    RequestError::usage(format!(
        "{dir}: nothing there says how to test it{found}; accepted: a project with tests"
    ))
}

/// What seed 004 always does, which no option says.
fn decide_as_conclave(spec: &mut Spec) {
    spec.keep_failed = true;
    // It counts as stuck when the same error repeats, even if other things change.
    spec.stuck.by_failure = true;
    // Its own files are always there.
    spec.mirrors.retain(|mirror| *mirror != Mirror::Ralph);
    spec.mirrors.push(Mirror::Ralph);
}

/// The variables of seed 004, and its values where they are not set.
struct Environment {
    implement: Millis,
    test: Option<Millis>,
    spec: Millis,
    quality: Option<Millis>,
    global: Millis,
    threshold: u32,
}

impl Environment {
    fn read(context: &Context) -> Result<Self, RequestError> {
        let set = |name: &str| {
            let text = context.variable(name);
            let time = text.map(|text| {
                values::duration(text).ok().filter(|time| time.0 > 0).ok_or_else(|| {
                    RequestError::usage(format!("{name}: {text:?}: accepted: seconds, or like 90s, 20m"))
                })
            });
            time.transpose()
        };
        let time = |name: &str, seconds: u64| set(name).map(|time| time.unwrap_or(Millis(seconds * 1000)));
        let threshold = match context.variable("RALPH_STUCK_THRESHOLD") {
            None => refrain_core::spec::StuckSpec::THRESHOLD,
            Some(text) => text.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| {
                RequestError::usage(format!("RALPH_STUCK_THRESHOLD: {text:?}: accepted: 1 to 100"))
            })?,
        };
        Ok(Self {
            implement: time("RALPH_TIMEOUT_IMPLEMENT", 1200)?,
            test: set("RALPH_TIMEOUT_TEST")?,
            spec: time("RALPH_TIMEOUT_SPEC", 300)?,
            quality: set("RALPH_TIMEOUT_QUALITY")?,
            global: time("RALPH_TIMEOUT_GLOBAL", 3600)?,
            threshold,
        })
    }
}
