//! Turns a request of another program into the request that the command line makes too.

use std::fmt::Display;
use std::str::FromStr;

use refrain_core::agent::Usd;
use refrain_core::git::Workflow;
use refrain_core::spec::{AgentKind, Millis};
use refrain_core::values::{self, Limit};
use refrain_engine::config::{Command, Settings};

use super::{PlanRun, Start, check};
use crate::error::Message;
use crate::options::begin::BeginArgs;
use crate::options::gates::GateArgs;
use crate::options::git::GitArgs;
use crate::options::review::ReviewArgs;
use crate::options::sandbox::SandboxArgs;
use crate::options::work::{TaskArgs, WorkArgs};
use crate::plan::{HowArgs, RunPlan, SourceArgs, SpecArgs};
use crate::resolve::{StartLoop, Workspace};
use crate::{Context, Note, RequestError};

/// The default limit of one iteration, in minutes (seed 003).
const MINUTES: u32 = 30;
/// How long an agent has to end by itself after its time limit (issue 8).
const GRACE: Millis = Millis(30_000);
/// The default cost limit of a loop, in US dollars (seed 003).
const COST: f64 = 5.0;

/// An option by its long name, and its value, if it takes one.
pub(super) type GivenOption = (&'static str, Option<String>);

impl Start {
    /// The loop that it asks for, and where that is to work.
    pub(super) fn request(
        &self,
        context: &Context,
        note: Note<'_>,
    ) -> Result<(Workspace, StartLoop), RequestError> {
        check(self)?;
        let mut work = worker(&self.agent, &self.command, &self.model)?;
        let mut untrusted = Vec::new();
        let workspace = Workspace::open(context, &work, &mut |note| untrusted.push(note))?;
        let kind = kind(&work, &workspace.settings).ok_or_else(|| {
            RequestError::usage(
                "nothing says who works: accepted: --agent (claude, codex, opencode, gemini) or --command, \
                 or start.agent of the configuration",
            )
        })?;
        let uncapped =
            bound(&mut work, &workspace.settings, kind, (self.max_cost_usd, self.max_tick_duration_minutes))?;
        uncapped.into_iter().chain(untrusted).for_each(note);
        work.gates = GateArgs {
            gate: self.gates.iter().map(|gate| read("gate", gate)).collect::<Result<_, _>>()?,
            success_command: self.success_command.clone(),
            allow_missing_gates: self.allow_missing_gates,
            require_approval: self.require_approval,
            ..GateArgs::default()
        };
        let every = self.checkpoint_interval.map(|every| every.try_into().map_or(Limit::None, Limit::At));
        work.reviews = ReviewArgs { critique_every: every, ..ReviewArgs::default() };
        if self.sandbox {
            work.sandbox = SandboxArgs::on();
        }
        let options = BeginArgs {
            task: TaskArgs { prompt: Some(self.goal.clone()), ..TaskArgs::default() },
            name: self.name.as_deref().map(|name| read("name", name)).transpose()?,
            work,
            no_gates: self.no_gates,
            max_iterations: self.max_iterations,
            git: self.git()?,
            ..BeginArgs::default()
        };
        Ok((workspace, StartLoop { options, takes_default_gates: true, ..StartLoop::default() }))
    }

    fn git(&self) -> Result<GitArgs, RequestError> {
        let commits = GitArgs { git_workflow: Some(Workflow::Commit), ..GitArgs::default() };
        match self.place.as_deref() {
            None | Some("folder") => Ok(GitArgs::default()),
            Some("worktree") => Ok(GitArgs { worktree: true, ..commits }),
            Some("branch") => Ok(GitArgs { create_branch: true, ..commits }),
            Some(other) => {
                Err(refused("worktree", format!(" {other}: accepted: worktree, branch and folder")))
            }
        }
    }
}

impl PlanRun {
    pub(super) fn request(&self, context: &Context, note: Note<'_>) -> Result<RunPlan, RequestError> {
        check(self)?;
        let mut work = worker(&self.agent, &self.command, &self.model)?;
        // The plan reads them once more, and says then what is not trusted.
        let settings = Workspace::open(context, &work, &mut |_| ())?.settings;
        let kind = kind(&work, &settings).unwrap_or(AgentKind::Claude);
        bound(&mut work, &settings, kind, (self.max_cost_usd, self.max_tick_duration_minutes))?
            .into_iter()
            .for_each(note);
        work.gates.allow_missing_gates = self.allow_missing_gates;
        Ok(RunPlan {
            source: SourceArgs { tag: self.tag.clone(), plan: self.plan.as_ref().map(Into::into) },
            spec: SpecArgs { verify: self.verify.clone(), ..SpecArgs::default() },
            how: HowArgs {
                jobs: self.jobs,
                max_iterations_per_task: self.max_iterations_per_task,
                ..HowArgs::default()
            },
            name: self.name.as_deref().map(|name| read("name", name)).transpose()?,
            work,
            mirror: Vec::new(),
        })
    }
}

/// The options that such a request can set, as the command line calls them.
pub(super) fn options(begin: &BeginArgs) -> Vec<GivenOption> {
    let BeginArgs { name, work, no_gates, max_iterations, git, .. } = begin;
    let mut options = work_options(work);
    let mut option = |name, value: Option<String>| options.extend(value.map(|value| (name, Some(value))));
    option("name", name.as_ref().map(ToString::to_string));
    option("max-iterations", max_iterations.map(|most| most.to_string()));
    option("success-command", work.gates.success_command.clone());
    option(
        "critique-every",
        work.reviews.critique_every.map(|every| limit(every, |every| every.to_string())),
    );
    work.gates.gate.iter().for_each(|gate| option("gate", Some(gate.to_string())));
    options.extend(no_gates.then_some(("no-gates", None)));
    options.extend(work.gates.require_approval.then_some(("require-approval", None)));
    options.extend(work.sandbox.sandbox.map(|_| ("sandbox", None)));
    options.extend(git.worktree.then_some(("worktree", None)));
    options.extend(git.create_branch.then_some(("create-branch", None)));
    options.extend(git.git_workflow.map(|_| ("git-workflow", Some("commit".to_owned()))));
    options
}

pub(super) fn work_options(work: &WorkArgs) -> Vec<GivenOption> {
    let mut options = Vec::new();
    let mut option = |name, value: Option<String>| options.extend(value.map(|value| (name, Some(value))));
    option("timeout", work.timeout.map(|most| limit(most, seconds)));
    option("timeout-grace", work.timeout_grace.map(seconds));
    option("max-cost", work.max_cost.map(|most| limit(most, |most| f64::from(most).to_string())));
    option("agent", work.agent.clone());
    option("command", work.command.as_ref().map(ToString::to_string));
    option("model", work.model.clone());
    options.extend(work.gates.allow_missing_gates.then_some(("allow-missing-gates", None)));
    options
}

fn limit<T>(limit: Limit<T>, text: impl Fn(T) -> String) -> String {
    match limit {
        Limit::None => "none".to_owned(),
        Limit::At(value) => text(value),
    }
}

fn seconds(time: Millis) -> String {
    match time.0 / 1000 {
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

fn read<T: FromStr<Err: Display>>(option: &str, text: &str) -> Result<T, RequestError> {
    text.parse().map_err(|error| refused(option, format!(" {text}: {error}")))
}

fn refused(option: &str, why: String) -> RequestError {
    RequestError::usage(Message::option(option).then(why))
}

fn worker(
    agent: &Option<String>,
    command: &Option<String>,
    model: &Option<String>,
) -> Result<WorkArgs, RequestError> {
    let command = command.as_deref().map(str::parse::<Command>).transpose();
    let command = command.map_err(|error| refused("command", format!(": {error}")))?;
    Ok(WorkArgs { agent: agent.clone(), command, model: model.clone(), ..WorkArgs::default() })
}

/// The adapter that will run; none if no agent is named.
fn kind(work: &WorkArgs, settings: &Settings) -> Option<AgentKind> {
    let start = &settings.config.start;
    let program = work.command.as_ref().or(start.command.as_ref()).map(|command| command.program.as_str());
    let named = start.agent.as_deref().and_then(AgentKind::named);
    named.or_else(|| program.map(AgentKind::of_program)).or(work.agent.as_ref().map(|_| AgentKind::Generic))
}

/// Sets what the caller and the configuration leave open as seed 003 does; returns what of that cannot be kept.
fn bound(
    work: &mut WorkArgs,
    settings: &Settings,
    kind: AgentKind,
    (cost, minutes): (Option<f64>, Option<u32>),
) -> Result<Option<String>, RequestError> {
    let start = &settings.config.start;
    let is_limited = !matches!(start.timeout, Some(Limit::None)) || minutes.is_some();
    let minutes = minutes.or_else(|| start.timeout.is_none().then_some(MINUTES));
    work.timeout = minutes.map(|minutes| Limit::At(Millis(u64::from(minutes) * 60_000)));
    if start.timeout_grace.is_none() && is_limited {
        work.timeout_grace = Some(GRACE);
    }
    let model = work.model.as_deref().or(start.model.as_deref());
    let is_priced = kind.streams() && model.and_then(|model| settings.price(model)).is_some();
    let tells = kind.tells_cost() || is_priced;
    let why = format!("{kind} does not say what it costs");
    match cost {
        Some(cost) if !tells => {
            let accepted = "accepted: agents that do (claude, opencode, acp; codex and gemini with a model that the \
                            configuration has a price for), or leaving it out";
            return Err(refused("max-cost", format!(" {cost}: {why}; {accepted}")));
        }
        Some(cost) => work.max_cost = Some(Limit::At(dollars(cost)?)),
        None if start.max_cost.is_some() => {}
        None if tells => work.max_cost = Some(Limit::At(dollars(COST)?)),
        None => {
            let bound = "its iterations and their time are all that bounds it";
            return Ok(Some(format!("max_cost_usd: {why}, so no cap is kept; {bound}")));
        }
    }
    Ok(None)
}

fn dollars(cost: f64) -> Result<Usd, RequestError> {
    values::usd(&cost.to_string()).map_err(|why| refused("max-cost", format!(" {cost}: {why}")))
}
