use camino::Utf8Path;
use refrain_app::Context;
use refrain_app::remote::{self, PlanRun, Start};
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_core::view::usage::Forecast;
use refrain_engine::StartOffer;

use super::{LoopParams, Refusal, RequestHandler, StartResult};

/// The agent of a loop that runs a command.
pub(crate) const COMMAND: &str = "generic";

/// What loops of an agent took so far.
pub(crate) type Forecasts = Vec<(String, Forecast)>;

impl RequestHandler {
    /// Starts a loop with a runner of its own.
    pub(crate) fn start(&self, asked: &Start) -> Result<StartResult, Refusal> {
        let (context, mut notes) = (self.context_in(asked.workspace.as_deref())?, Vec::new());
        let _handover = self.handovers.begin();
        let (_, id) = remote::start(&context, asked, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &context.dir, notes)
    }

    /// Works on the tasks of a plan, with a runner of its own.
    pub(crate) fn run_plan(&self, asked: &PlanRun) -> Result<StartResult, Refusal> {
        let (context, mut notes) = (self.context_in(asked.workspace.as_deref())?, Vec::new());
        let plan = asked.plan.as_ref().map(|plan| self.file("plan", plan, &context.dir)).transpose()?;
        let asked = PlanRun { plan: plan.map(Into::into), ..asked.clone() };
        let _handover = self.handovers.begin();
        let (_, id) = remote::run_plan(&context, &asked, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &context.dir, notes)
    }

    /// The command line that a start comes to.
    pub(crate) fn preview(&self, asked: &Start) -> Result<Vec<String>, Refusal> {
        Ok(remote::preview(&self.context_in(asked.workspace.as_deref())?, asked)?)
    }

    /// What a form offers for a loop in that folder.
    pub(crate) fn offer(&self, workspace: Option<&str>) -> Result<(StartOffer, Forecasts), Refusal> {
        let folder = self.folder(workspace)?;
        let service = self.service(&folder)?;
        let offer = service.start_offer(folder);
        let forecast = |agent: &str| Some((agent.to_owned(), self.forecast(&service, agent)?));
        let forecasts =
            offer.agents.iter().map(String::as_str).chain([COMMAND]).filter_map(forecast).collect();
        Ok((offer, forecasts))
    }

    /// The surroundings of a request in the folder that it names.
    fn context_in(&self, workspace: Option<&str>) -> Result<Context, Refusal> {
        Ok(Context { dir: self.folder(workspace)?, ..self.context.clone() })
    }

    fn started(&self, id: &LoopId, folder: &Utf8Path, notes: Vec<String>) -> Result<StartResult, Refusal> {
        let which = LoopParams { loop_id: id.to_string(), workspace: Some(folder.to_string()) };
        Ok(StartResult { started: true, view: self.status(&which)?.view, notes })
    }
}

/// A note without control characters: others wrote parts of it.
fn one_line(note: &str) -> String {
    printable(note).replace('\n', " ")
}
