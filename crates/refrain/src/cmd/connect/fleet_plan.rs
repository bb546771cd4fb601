//! Plans on the fleet: the plan is driven here, and machines of the fleet drive the loops of its tasks.

use std::fmt;
use std::sync::Arc;

use refrain_app::verbs::fleet::{self as app, FleetRequest};
use refrain_app::verbs::resume::Resume;
use refrain_app::{Action, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::event::Urgency;
use refrain_core::plan::{PlanSpec, PlanState};
use refrain_engine::{FleetAsk, PlanRunner, Service, TaskFleet};

use super::fleet;

/// The program of the fleet, in the folder where the plan is driven.
struct FleetProgram(Context);

impl fmt::Debug for FleetProgram {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("FleetProgram")
    }
}

impl TaskFleet for FleetProgram {
    fn submit(&self, id: &LoopId, remote: &str, agent: &str) -> Result<(), String> {
        fleet::call(&self.0, &["submit", id.as_str(), remote, agent]).map(drop).map_err(said)
    }

    fn ask(&self, id: &LoopId, remote: &str, ask: FleetAsk) -> Result<(), String> {
        let is_now = |urgency| urgency == Urgency::Now;
        let request = match ask {
            FleetAsk::Pause(urgency) => FleetRequest::Pause { now: is_now(urgency) },
            FleetAsk::Cancel(urgency) => FleetRequest::Cancel { now: is_now(urgency) },
            FleetAsk::Resume { max_cost } => {
                let max_cost_usd = max_cost.map(f64::from);
                FleetRequest::Resume(Resume { max_cost_usd, ..Resume::default() })
            }
        };
        fleet::pass_on(&self.0, (id, remote), &request).map(drop).map_err(said)
    }
}

fn said(error: RequestError) -> String {
    error.line()
}

/// Gives the plan its fleet, if it is on one.
pub(crate) fn with_fleet(context: &Context, runner: PlanRunner) -> PlanRunner {
    match runner.state().spec.fleet {
        Some(_) => runner.with_fleet(Arc::new(FleetProgram(context.clone()))),
        None => runner,
    }
}

/// Puts a plan on the fleet, which has to be reachable.
pub(crate) fn adapt(context: &Context, spec: &mut PlanSpec) -> Result<(), RequestError> {
    context.check(Action::Move)?;
    let state = fleet::state(context)?;
    app::check_plan(spec, &state)?;
    spec.fleet = Some(state);
    Ok(())
}

/// Passes a request on to the loops of a plan that nothing drives: machines of the fleet may be at work on them.
pub(crate) fn tell_tasks(
    context: &Context,
    service: &Service,
    state: &PlanState,
    request: &FleetRequest,
) -> Result<(), RequestError> {
    if state.spec.fleet.is_none() || state.ended.is_none() {
        return Ok(());
    }
    for (_, running) in state.running() {
        if let Some(remote) = app::remote_of(service, &running.id) {
            fleet::pass_on(context, (&running.id, &remote), request)?;
        }
    }
    Ok(())
}
