//! What can be done with one loop, or plan, that is named by its project and its id: what the command line does, and no more.

use refrain_core::event::{Ask, Urgency};
use refrain_core::plan::TaskId;
use refrain_core::view::Status;
use refrain_core::view::plan::PlanStatus;
use refrain_core::{LoopId, MAX_STEERING};
use refrain_engine::{LoopRequest, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asking::check_runner;
use super::starting::option;
use super::wanted::{check_grant, check_text, steering};
use super::{Desk, Place, Refusal};

/// How a loop, or a plan, stands: what `refrain status --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Standing {
    /// A loop.
    Loop(Box<Status>),
    /// A plan.
    Plan(Box<PlanStatus>),
}

/// How soon something is to be done.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Urgent {
    /// End the agent now, and do not let it finish its iteration.
    pub(crate) now: bool,
}

/// What a loop, or a plan, may use from here on, in all; what is left out stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Resume {
    /// How many iterations; at most 200 more at a time.
    #[schemars(range(min = 1))]
    pub(crate) max_iterations: Option<u32>,
    /// How much money, in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) max_cost_usd: Option<f64>,
    /// How many tokens; a plan has none.
    pub(crate) max_tokens: Option<u64>,
    /// For how long, as in 2h or 30m.
    pub(crate) max_duration: Option<String>,
    /// Wait no longer for what it waits for.
    pub(crate) now: bool,
}

/// What a person says yes to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Approve {
    /// The tree that they looked at, or the beginning of its name: another that waits by now is not approved.
    #[schemars(length(min = 4, max = 64))]
    pub(crate) tree: Option<String>,
}

/// What an agent is told with its next iteration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steering {
    /// The words: at most 8192 bytes.
    #[schemars(length(min = 1, max = MAX_STEERING))]
    pub(crate) text: String,
}

/// How a task that a person is asked about goes on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tune {
    /// Which task.
    #[schemars(with = "String")]
    pub(crate) task: TaskId,
    /// What its agent is told.
    #[schemars(length(min = 1, max = 10_000))]
    pub(crate) text: String,
}

impl Desk {
    /// How it stands.
    pub(crate) fn standing(&self, place: &Place) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        standing(&service, &id)
    }

    /// Asks it to stop for now.
    pub(crate) fn pause(&self, place: &Place, how: Urgent) -> Result<Standing, Refusal> {
        self.ask(place, LoopRequest::Pause, Ask::Pause(urgency(how)))
    }

    /// Asks it to stop for good.
    pub(crate) fn cancel(&self, place: &Place, how: Urgent) -> Result<Standing, Refusal> {
        self.ask(place, LoopRequest::Cancel, Ask::Cancel(urgency(how)))
    }

    /// Has its agent told something with its next iteration.
    pub(crate) fn say(&self, place: &Place, asked: Steering) -> Result<Standing, Refusal> {
        steering(&asked.text)?;
        let (service, id) = self.open_place(place)?;
        if service.has_plan(&id) {
            return Err(Refusal::new(format!("{id} is a plan; accepted are the loops of its tasks")));
        }
        check_runner(&service, &id)?;
        service.ask(&id, LoopRequest::Steer, Ask::Steer(asked.text), |_| {})?;
        standing(&service, &id)
    }

    /// Lets it go on, with a runner of its own.
    pub(crate) fn resume(&self, place: &Place, asked: &Resume) -> Result<Standing, Refusal> {
        check_grant(asked)?;
        let (service, id) = self.open_place(place)?;
        let mut words = vec!["resume".to_owned(), id.to_string()];
        option(&mut words, "max-iterations", asked.max_iterations);
        option(&mut words, "max-cost", asked.max_cost_usd);
        option(&mut words, "max-tokens", asked.max_tokens);
        option(&mut words, "max-duration", asked.max_duration.as_ref());
        words.extend(asked.now.then(|| "--now".to_owned()));
        self.go_on(&service.project().worktree, &words)?;
        standing(&service, &id)
    }

    /// Says that what it waits with is good, and lets it finish, with a runner of its own.
    pub(crate) fn approve(&self, place: &Place, asked: &Approve) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        let mut words = vec!["approve".to_owned(), id.to_string()];
        option(&mut words, "tree", asked.tree.as_ref());
        self.go_on(&service.project().worktree, &words)?;
        standing(&service, &id)
    }

    /// Puts a loop that has stopped aside.
    pub(crate) fn archive(&self, place: &Place) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        if service.has_plan(&id) {
            return Err(Refusal::new(format!("{id} is a plan, which stays where it is; accepted are loops")));
        }
        service.archive(&id)?;
        standing(&service, &id)
    }

    /// Says how a task goes on that waits for that.
    pub(crate) fn tune(&self, place: &Place, asked: &Tune) -> Result<Standing, Refusal> {
        check_text("text", &asked.text)?;
        let (service, id) = self.open_place(place)?;
        service.plan_status(&id)?;
        service.tune(&id, &asked.task, asked.text.clone())?;
        standing(&service, &id)
    }

    fn ask(&self, place: &Place, what: LoopRequest, ask: Ask) -> Result<Standing, Refusal> {
        let (service, id) = self.open_place(place)?;
        check_runner(&service, &id)?;
        match service.has_plan(&id) {
            true => drop(service.ask_plan(&id, what, ask, |_| {})?),
            false => drop(service.ask(&id, what, ask, |_| {})?),
        }
        standing(&service, &id)
    }
}

fn urgency(how: Urgent) -> Urgency {
    if how.now { Urgency::Now } else { Urgency::AfterIteration }
}

pub(super) fn standing(service: &Service, id: &LoopId) -> Result<Standing, Refusal> {
    Ok(match service.has_plan(id) {
        true => Standing::Plan(Box::new(service.plan_status(id)?)),
        false => Standing::Loop(Box::new(service.status(id)?)),
    })
}
