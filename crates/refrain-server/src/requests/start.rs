use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::Context;
use refrain_app::remote::{self, PlanRun, Start};
use refrain_core::LoopId;
use refrain_core::gate::Check;
use refrain_core::text::printable;
use refrain_core::view::usage::Forecast;

use super::{LoopParams, Refusal, RequestHandler, StartResult};

/// The agent of a loop that runs a command.
pub(crate) const COMMAND: &str = "generic";

/// What is found for a loop in a folder.
#[derive(Default)]
pub(crate) struct StartOffer {
    pub(crate) folder: Utf8PathBuf,
    pub(crate) is_repository: bool,
    /// The agents in `PATH`.
    pub(crate) agents: Vec<String>,
    /// What loops of an agent took so far.
    pub(crate) forecasts: Vec<(String, Forecast)>,
    /// Gates as `NAME=CMD`, and whether they are required.
    pub(crate) gates: Vec<(String, bool)>,
}

impl RequestHandler {
    /// Starts a loop with a runner of its own.
    pub(crate) fn start(&self, asked: &Start) -> Result<StartResult, Refusal> {
        let (context, mut notes) = (self.context_in(asked.workspace.as_deref())?, Vec::new());
        let _handover = self.handovers.begin();
        let (_, id) = remote::start(&context, asked, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &context.dir, notes)
    }

    /// Works on the tasks of a plan, with a runner of its own.
    pub(crate) fn run_plan(&self, asked: PlanRun) -> Result<StartResult, Refusal> {
        let (context, mut notes) = (self.context_in(asked.workspace.as_deref())?, Vec::new());
        let plan = asked.plan.as_ref().map(|plan| self.file("plan", plan, &context.dir)).transpose()?;
        let asked = PlanRun { plan: plan.map(Into::into), ..asked };
        let _handover = self.handovers.begin();
        let (_, id) = remote::run_plan(&context, &asked, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &context.dir, notes)
    }

    /// The command line that a start comes to.
    pub(crate) fn preview(&self, asked: &Start) -> Result<Vec<String>, Refusal> {
        Ok(remote::preview(&self.context_in(asked.workspace.as_deref())?, asked)?)
    }

    /// What a form offers for a loop in that folder.
    pub(crate) fn offer(&self, workspace: Option<&str>) -> Result<StartOffer, Refusal> {
        let folder = self.folder(workspace)?;
        let service = self.service(&folder)?;
        let gates = service.offer(&folder).map(|offer| offer.gates).unwrap_or_default();
        let commands = gates.into_iter().filter_map(|gate| match gate.check {
            Check::Command(command) => Some((format!("{}={command}", gate.name), gate.hard)),
            Check::Review(_) => None,
        });
        let agents: Vec<_> = service.installed_agents().iter().map(ToString::to_string).collect();
        let forecast = |agent: &str| Some((agent.to_owned(), self.forecast(&service, agent)?));
        Ok(StartOffer {
            forecasts: agents.iter().map(String::as_str).chain([COMMAND]).filter_map(forecast).collect(),
            is_repository: service.project().worktree.join(".git").exists(),
            folder,
            agents,
            gates: commands.collect(),
        })
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
