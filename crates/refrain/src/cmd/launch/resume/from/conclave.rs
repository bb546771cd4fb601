//! A loop of Conclave continues as `refrain run` would work on its task (seed 004): its tests decide, and a reviewer of
//! its specification if the task is a file.

use camino::Utf8Path;
use refrain_app::options::begin::BeginArgs;
use refrain_app::repository_command::{RepositoryCommand, of_gates};
use refrain_app::{Context, RequestError};
use refrain_core::Spec;
use refrain_core::gate::GateSpec;
use refrain_core::spec::Millis;
use refrain_core::values::Limit;
use refrain_engine::Service;
use refrain_engine::config::Settings;

use crate::cmd::launch::conclave::{Environment, QUALITY, TESTS, decide_as_conclave, no_tests, together};

/// The settings that are applied once there is a specification.
pub(super) struct Run {
    environment: Environment,
    /// The project's own tests were found.
    is_detected: bool,
    /// The time limit of every gate, if the user sets one.
    timeout: Option<Millis>,
    notes: Vec<String>,
    /// The commands that the project's files offer.
    pub(super) offered: Vec<RepositoryCommand>,
}

impl Run {
    /// Fills in what `refrain run` sets: the gates and the time limits.
    pub(super) fn of(
        context: &Context,
        service: &Service,
        (file, dir): (&Utf8Path, &Utf8Path),
        settings: &Settings,
        begin: &mut BeginArgs,
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
        let is_detected = !work.gates.decide(&settings.config);
        let (mut notes, mut offered) = (Vec::new(), Vec::new());
        if is_detected {
            let offer = service.offer(dir)?;
            let tests = together(&offer, true).ok_or_else(|| {
                no_tests(dir, &offer)
                    .hint(format!("refrain resume --from {file} --gate CMD takes any command"))
            })?;
            work.gates.add(TESTS, &tests)?;
            if let Some(linters) = together(&offer, false) {
                work.gates.add_advisory(QUALITY, &linters)?;
            }
            offered = of_gates(&offer.gates).collect();
            notes = offer.notes;
        }
        Ok(Self { environment, is_detected, timeout, notes, offered })
    }

    /// Applies the settings for which there is no option; returns notes for the user.
    pub(super) fn applied(self, spec: &mut Spec) -> Vec<String> {
        let Self { environment, is_detected, timeout, notes, .. } = self;
        let limit = |gate: &GateSpec| match gate.name.as_str() {
            _ if gate.is_review() => Some(environment.spec),
            TESTS if is_detected => Some(environment.test),
            QUALITY if is_detected => Some(environment.quality),
            _ => None,
        };
        for gate in spec.gates.iter_mut().filter(|_| timeout.is_none()) {
            gate.timeout = limit(gate).unwrap_or(gate.timeout);
        }
        decide_as_conclave(spec);
        notes
    }
}
