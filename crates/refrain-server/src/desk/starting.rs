//! Starting: what a caller asked for becomes the request that the command line makes too.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::effects::TypedOptions;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::gates::GateArgs;
use refrain_app::options::review::ReviewArgs;
use refrain_app::options::work::{TaskArgs, WorkArgs};
use refrain_app::plan::{HowArgs, RunPlan, SourceArgs, SpecArgs, run_detached};
use refrain_app::resolve::StartLoop;
use refrain_app::verbs::start::start_detached;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::agent::Usd;
use refrain_core::spec::{AgentKind, Millis};
use refrain_core::text::printable;
use refrain_core::values::{self, Limit};
use refrain_engine::Service;
use refrain_engine::config::{Chosen, Command, Settings};

use super::{Desk, PlanRun, Refusal, RefusalKind, Start, Started, Which};

/// What one iteration may take unless something is said or configured, in minutes (seed 003).
const MINUTES: u32 = 30;
/// How long an agent that its time limit stops has to come to an end by itself (issue 8).
const GRACE: Millis = Millis(30_000);
/// What a loop may cost unless something is said or configured, in US dollars (seed 003).
const COST: f64 = 5.0;

/// Who works, as both tools say it.
struct Worker<'a> {
    agent: Option<&'a str>,
    command: Option<&'a str>,
    model: Option<&'a str>,
}

/// What it may cost, and how long an iteration may take, as both tools say it.
struct Bounds {
    cost: Option<f64>,
    minutes: Option<u32>,
}

impl Desk {
    /// Starts a loop with a runner of its own.
    pub(crate) fn start(&self, asked: &Start) -> Result<Started, Refusal> {
        let (folder, request, mut notes) = self.start_request(asked)?;
        let context = self.context_in(&folder, "start", &options(&request.options));
        let _handover = self.handovers.begin();
        let (_, id) = start_detached(&context, &request, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &folder, notes)
    }

    /// The request that this comes to: where, what, and what the caller should know.
    fn start_request(&self, asked: &Start) -> Result<(Utf8PathBuf, StartLoop, Vec<String>), Refusal> {
        asked.check()?;
        let folder = self.folder(asked.workspace.as_deref())?;
        let service = self.service(&folder)?;
        let worker = Worker::new(&asked.agent, &asked.command, &asked.model);
        let settings = worker.settings(&service)?;
        let kind = worker.kind(&settings)?.ok_or_else(|| {
            let accepted = "accepted are agent (claude, codex, opencode, gemini) or command";
            Refusal::new(format!("nothing says who works: {accepted}, or start.agent of the configuration"))
        })?;
        let mut work = worker.work()?;
        let bounds = Bounds { cost: asked.max_cost_usd, minutes: asked.max_tick_duration_minutes };
        let notes = bounds.apply(&mut work, &settings, kind, &worker)?;
        work.gates = GateArgs {
            gate: asked.gates.iter().map(|gate| read("gates", gate)).collect::<Result<_, _>>()?,
            success_command: asked.success_command.clone(),
            allow_missing_gates: asked.allow_missing_gates,
            require_approval: asked.require_approval,
            ..GateArgs::default()
        };
        work.reviews = ReviewArgs {
            critique_every: asked
                .checkpoint_interval
                .map(|every| every.try_into().map_or(Limit::None, Limit::At)),
            ..ReviewArgs::default()
        };
        let options = BeginArgs {
            task: TaskArgs { prompt: Some(asked.goal.clone()), ..TaskArgs::default() },
            name: asked.name.as_deref().map(|name| read("name", name)).transpose()?,
            work,
            max_iterations: asked.max_iterations,
            ..BeginArgs::default()
        };
        Ok((folder, StartLoop { options, ..StartLoop::default() }, notes))
    }

    /// Works on the tasks of a plan, with a runner of its own.
    pub(crate) fn run_plan(&self, asked: &PlanRun) -> Result<Started, Refusal> {
        asked.check()?;
        let folder = self.folder(asked.workspace.as_deref())?;
        let service = self.service(&folder)?;
        let worker = Worker::new(&asked.agent, &asked.command, &asked.model);
        let settings = worker.settings(&service)?;
        let kind = worker.kind(&settings)?.unwrap_or(AgentKind::Claude);
        let mut work = worker.work()?;
        let bounds = Bounds { cost: asked.max_cost_usd, minutes: asked.max_tick_duration_minutes };
        let mut notes = bounds.apply(&mut work, &settings, kind, &worker)?;
        work.gates.allow_missing_gates = asked.allow_missing_gates;
        let plan = asked.plan.as_ref().map(|plan| self.file("plan", plan, &folder)).transpose()?;
        let request = RunPlan {
            source: SourceArgs { tag: asked.tag.clone(), plan },
            spec: SpecArgs { verify: asked.verify.clone(), ..SpecArgs::default() },
            how: HowArgs {
                jobs: asked.jobs,
                max_iterations_per_task: asked.max_iterations_per_task,
                ..HowArgs::default()
            },
            name: asked.name.as_deref().map(|name| read("name", name)).transpose()?,
            work,
        };
        let options = work_options(&request.work);
        let context = self.context_in(&folder, "plan run", &options);
        let _handover = self.handovers.begin();
        let (_, id) = run_detached(&context, request, &mut |note| notes.push(one_line(&note)))?;
        self.started(&id, &folder, notes)
    }

    /// The command line that a start comes to, as a person would type it; the goal is read from standard input.
    pub(crate) fn preview(&self, asked: &Start) -> Result<Vec<String>, Refusal> {
        let (folder, request, _) = self.start_request(asked)?;
        let options = options(&request.options).into_iter().map(|(name, value)| match value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        });
        let words = ["refrain", "-C", folder.as_str(), "start"].map(str::to_owned).into_iter();
        Ok(words.chain(options).chain(["-".to_owned()]).collect())
    }

    /// The surroundings of a request in this folder, which has these options.
    fn context_in(&self, folder: &Utf8Path, verb: &str, options: &[GivenOption]) -> Context {
        let typed = TypedOptions::named(verb, options.iter().map(|(name, value)| (*name, value.as_deref())));
        Context { dir: folder.to_owned(), typed, ..self.context.clone() }
    }

    fn started(&self, id: &LoopId, folder: &Utf8Path, notes: Vec<String>) -> Result<Started, Refusal> {
        let which = Which { loop_id: id.to_string(), workspace: Some(folder.to_string()) };
        Ok(Started { started: true, view: self.status(&which)?.view, notes })
    }
}

/// A note without control characters: others wrote parts of it.
fn one_line(note: &str) -> String {
    printable(note).replace('\n', " ")
}

/// An option by its long name, and its value, where it takes one.
type GivenOption = (&'static str, Option<String>);

/// The options that a tool can set, as the command line calls them.
fn options(begin: &BeginArgs) -> Vec<GivenOption> {
    let BeginArgs { name, work, max_iterations, .. } = begin;
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
    options.extend(work.gates.require_approval.then_some(("require-approval", None)));
    options
}

fn work_options(work: &WorkArgs) -> Vec<GivenOption> {
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

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|error| Refusal::new(format!("{name} {text}: {error}")))
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let kind = match error.code() {
            _ if error.is_fault() => RefusalKind::Failed,
            Code::Usage => RefusalKind::Asked,
            Code::NotFound => RefusalKind::NotFound,
            _ => RefusalKind::Conflict,
        };
        Self::of(kind, in_own_words(&error.line()))
    }
}

/// What a refusal says of options, said of parameters: whoever called has no command line.
fn in_own_words(text: &str) -> String {
    /// Longer ones first, as one may begin like another.
    const WORDS: [(&str, &str); 19] = [
        ("--allow-missing-gates", "allow_missing_gates"),
        ("--require-approval", "require_approval"),
        ("--max-iterations-per-task", "max_iterations_per_task"),
        ("--max-iterations", "max_iterations"),
        ("--max-cost", "max_cost_usd"),
        ("--timeout-grace", "max_tick_duration_minutes"),
        ("--timeout", "max_tick_duration_minutes"),
        ("--critique-every", "checkpoint_interval"),
        ("--success-command", "success_command"),
        ("--working-dir", "workspace"),
        ("--command", "command"),
        ("--verify", "verify"),
        ("--agent", "agent"),
        ("--model", "model"),
        ("--gate", "gates"),
        ("--name", "name"),
        ("--jobs", "jobs"),
        ("--plan", "plan"),
        ("--tag", "tag"),
    ];
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        said.push_str(before);
        let goes_on = |known: &str| {
            let behind = option[known.len()..].chars().next();
            behind.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-')
        };
        let known = WORDS.iter().find(|(known, _)| option.starts_with(known) && !goes_on(known));
        let (skipped, own) = known.map_or((2, "--"), |(known, own)| (known.len(), own));
        said.push_str(own);
        rest = &option[skipped..];
    }
    said + rest
}

impl<'a> Worker<'a> {
    fn new(agent: &'a Option<String>, command: &'a Option<String>, model: &'a Option<String>) -> Self {
        Self { agent: agent.as_deref(), command: command.as_deref(), model: model.as_deref() }
    }

    fn settings(&self, service: &Service) -> Result<Settings, Refusal> {
        let chosen = Chosen { agent: self.agent, command: self.command.is_some() };
        // Inside an attempt variables were set for the agent; nothing can be started there, and its own words say why.
        service.settings(chosen, true).map_err(|error| Refusal::new(in_own_words(&error.to_string())))
    }

    /// Which adapter will run; none where nothing says who works.
    fn kind(&self, settings: &Settings) -> Result<Option<AgentKind>, Refusal> {
        let start = &settings.config.start;
        let said = self.command.map(str::parse::<Command>).transpose();
        let said = said.map_err(|error| Refusal::new(format!("command: {error}")))?;
        let program = said.as_ref().or(start.command.as_ref()).map(|command| command.program.as_str());
        let named = start.agent.as_deref().and_then(AgentKind::named);
        Ok(named.or_else(|| program.map(AgentKind::of_program)).or(self.agent.map(|_| AgentKind::Generic)))
    }

    fn work(&self) -> Result<WorkArgs, Refusal> {
        Ok(WorkArgs {
            agent: self.agent.map(str::to_owned),
            command: self.command.map(|command| read("command", command)).transpose()?,
            model: self.model.map(str::to_owned),
            ..WorkArgs::default()
        })
    }
}

impl Bounds {
    /// Sets what the caller and the configuration leave open as seed 003 does; returns what of that cannot be kept.
    fn apply(
        &self,
        work: &mut WorkArgs,
        settings: &Settings,
        kind: AgentKind,
        worker: &Worker<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let start = &settings.config.start;
        let minutes = self.minutes.or_else(|| start.timeout.is_none().then_some(MINUTES));
        work.timeout = minutes.map(|minutes| Limit::At(Millis(u64::from(minutes) * 60_000)));
        let is_open = start.timeout_grace.is_none();
        if is_open && (!matches!(start.timeout, Some(Limit::None)) || self.minutes.is_some()) {
            work.timeout_grace = Some(GRACE);
        }
        let model = worker.model.or(start.model.as_deref());
        let is_priced = kind.streams() && model.and_then(|model| settings.price(model)).is_some();
        let tells = kind.tells_cost() || is_priced;
        let why = format!("{kind} does not say what it costs");
        match self.cost {
            Some(cost) if !tells => {
                let accepted = "accepted are agents that do (claude, opencode, acp; codex and gemini with a model that \
                                the configuration has a price for), or leaving it out";
                return Err(Refusal::new(format!("max_cost_usd {cost}: {why}; {accepted}")));
            }
            Some(cost) => work.max_cost = Some(Limit::At(dollars(cost)?)),
            None if start.max_cost.is_some() => {}
            None if tells => work.max_cost = Some(Limit::At(dollars(COST)?)),
            None => {
                let bound = "its iterations and their time are all that bounds it";
                return Ok(vec![format!("max_cost_usd: {why}, so no cap is kept; {bound}")]);
            }
        }
        Ok(Vec::new())
    }
}

fn dollars(cost: f64) -> Result<Usd, Refusal> {
    values::usd(&cost.to_string()).map_err(|error| Refusal::new(format!("max_cost_usd {cost}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_parameters_and_no_options() {
        for (said, expected) in [
            (
                "--max-cost 5: claude …; leave --max-cost out",
                "max_cost_usd 5: claude …; leave max_cost_usd out",
            ),
            ("--max-iterations 900: accepted are 1 to 200", "max_iterations 900: accepted are 1 to 200"),
            (
                "--gate-timeout stays, -- too, and --gate=x goes",
                "--gate-timeout stays, -- too, and gates=x goes",
            ),
            ("--max-iterations-per-task", "max_iterations_per_task"),
        ] {
            assert_eq!(in_own_words(said), expected);
        }
    }
}
