//! Makes a specification from options and configuration: an omitted option comes from the configuration, and then from
//! the built-in defaults. Code after this never sees an option that means "default".

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::budget::{CapKind, Caps};
use refrain_core::gate::{DefaultGates, GateChoice, GateSpec};
use refrain_core::git::{Checkout, GitSpec};
use refrain_core::memory::{self, MemorySpec};
use refrain_core::mirror::MirrorName;
use refrain_core::promise::{MatchMode, Promise};
use refrain_core::spec::{AgentKind, AgentSpec, Limits, OutputFormat, PromptMode, Secret, Until};
use refrain_core::text::printable;
use refrain_core::values::{self, Limit};
use refrain_core::{LoopId, Spec};
use refrain_engine::config::keys::{Gate, Memory, PROMISE, Start, Switch};
use refrain_engine::config::{self, AgentChoice, Origin, ProjectFile, Settings};
use refrain_engine::{Service, objection, own_model, prompt_limit};

use crate::error::{Message, RequestError};
use crate::options::begin::BeginArgs;
use crate::options::gates::GateArgs;
use crate::options::review;
use crate::options::work::{PromiseArgs, WorkArgs};
use crate::repository_command::RepositoryCommand;
use crate::{Context, Note, trust};

pub mod agents;
pub mod prompt;
pub mod remote_copy;

/// Where a loop is to work, and what is configured there.
#[derive(Debug)]
pub struct Workspace {
    pub service: Service,
    pub settings: Settings,
    pub dir: Utf8PathBuf,
}

impl Workspace {
    /// Opens the folder that a request names, or the one that it was made in.
    pub fn open(context: &Context, work: &WorkArgs, note: Note<'_>) -> Result<Self, RequestError> {
        let dir = folder(context, work.working_dir.as_deref())?;
        let service = context.open(&dir, work.yes)?;
        let chosen = AgentChoice { agent: work.agent.as_deref(), command: work.command.is_some() };
        let settings = service.settings(chosen, context.has_variables())?;
        note_untrusted(&settings, note);
        Ok(Self { service, settings, dir })
    }
}

/// The settings, with Claude Code if no agent is configured: seeds 001 and 004 know no other.
pub fn settings_or_claude(
    context: &Context,
    service: &Service,
    work: &mut WorkArgs,
) -> Result<Settings, RequestError> {
    let choose = |work: &WorkArgs| {
        let chosen = AgentChoice { agent: work.agent.as_deref(), command: work.command.is_some() };
        service.settings(chosen, context.has_variables())
    };
    let settings = choose(work)?;
    let start = &settings.config.start;
    let is_said = work.agent.is_some() || work.command.is_some();
    if is_said || start.agent.is_some() || start.command.is_some() {
        return Ok(settings);
    }
    work.agent = Some("claude".to_owned());
    Ok(choose(work)?)
}

/// The folder that a request names, or the one that it was made in.
pub fn folder(context: &Context, named: Option<&Utf8Path>) -> Result<Utf8PathBuf, RequestError> {
    let dir = named.map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    match dir.is_dir() {
        true => Ok(dir),
        false => {
            let error = Message::from("--working-dir ")
                .then(format!("{dir}: there is no such folder; accepted: a folder that exists"));
            Err(RequestError::usage(error))
        }
    }
}

/// Notes that the project's configuration is ignored because it is not trusted.
pub fn note_untrusted(settings: &Settings, note: Note<'_>) {
    if let ProjectFile::Untrusted(path) = &settings.project_file {
        note(format!(
            "{path} is not trusted and counts as not there; refrain trust shows what it would allow"
        ));
    }
}

#[derive(Debug)]
pub enum Words {
    Text(String),
    /// The text on standard input, read once the rest of the request is accepted.
    Stdin,
}

/// A loop to start: what is omitted comes from the configuration, and then from the built-in defaults.
#[derive(Debug, Default)]
pub struct StartLoop {
    pub words: Option<Words>,
    pub mode: Option<String>,
    pub options: BeginArgs,
    /// A known agent takes the project's gates if none is named: true for a plain start.
    pub takes_default_gates: bool,
}

/// The specification of a request, and notes on it.
#[derive(Debug)]
pub struct ResolvedStart {
    pub spec: Spec,
    /// What the user should know about its gates.
    pub notes: Vec<String>,
    /// The commands of its gates that the project's files offer.
    pub offered: Vec<RepositoryCommand>,
    /// The gates that the loop would take by default if they were trusted.
    pub untrusted_gates: DefaultGates,
}

/// The specification, and what a person should know of what proves it.
pub fn spec(
    context: &Context,
    request: &StartLoop,
    settings: &Settings,
    service: &Service,
    dir: &Utf8Path,
) -> Result<ResolvedStart, RequestError> {
    let (start, options) = (&settings.config.start, &request.options);
    let gates = GateChoice {
        // Research changes no code.
        starts_agent: request.takes_default_gates && request.mode.as_deref() != Some("research"),
        no_promise: has_no_promise(&options.promise, start),
        no_gates: options.no_gates,
        ..GateChoice::default()
    };
    let resolved = common(context, &options.work, gates, settings, service, dir)?;
    let ResolvedStart { spec, notes, offered, untrusted_gates } = resolved;
    let prompt = prompt::prompt(context, request, settings)?;
    if matches!(spec.agent.prompt_mode, PromptMode::Arg | PromptMode::Env) {
        prompt_limit::check(&prompt).map_err(|error| {
            RequestError::usage(format!("{error}; --prompt-mode stdin or file passes it in another way"))
        })?;
    }
    let (until, most) = options.until.resolve(options.max_iterations, start.max_iterations)?;
    if until == Until::Forever {
        let why = "a loop without an end is never done; remove --infinite";
        refuse_approval(&spec, options.work.gates.require_approval, settings, why)?;
    }
    let of_loop = |name: &MirrorName| match name {
        MirrorName::Loop(mirror) => Ok(*mirror),
        MirrorName::Scud => Err(RequestError::usage(
            "--mirror scud: it shows a plan; accepted for a loop are ralph, synthex, descartes, randroid",
        )),
    };
    let git = options.git.spec(&settings.config.git, start.share_worktree.unwrap_or_default())?;
    let spec = Spec {
        id: options.name.clone().unwrap_or(spec.id),
        prompt,
        mode: request.mode.clone(),
        promise: promise(&options.promise, start, &spec.agent)?,
        limits: Limits { max_iterations: most, ..spec.limits },
        mirrors: match options.mirror.as_slice() {
            [] => start.mirrors.clone().unwrap_or_default(),
            names => names.iter().map(of_loop).collect::<Result<_, _>>()?,
        },
        until,
        git: GitSpec { setup: spec.git.setup.filter(|_| git.checkout != Checkout::AsIs), ..git },
        ..spec
    };
    if spec.trusts_exit_code() {
        let who = match options.promise.no_promise {
            true => "--no-promise".to_owned(),
            false => format!("{} = false", who(false, settings, "promise")),
        };
        let kind = spec.agent.kind;
        let error = format!("{who}: {kind} exits with 0 whatever it did, so its exit code is no claim; ");
        let accepted =
            "accepted with a required gate (--gate CMD or --success-command CMD), or for a generic command";
        return Err(RequestError::usage(Message::from(error).then(accepted))
            .hint("without --no-promise, or with --completion-promise TEXT, the agent claims"));
    }
    check_caps(settings, &spec.agent)?;
    Ok(ResolvedStart { spec, notes, offered, untrusted_gates })
}

/// The part of a specification that does not depend on the goal, and notes on its gates: the agent, the folder, the
/// limits, and the gates. `gates` is the part of the choice that is not among these options.
pub fn common(
    context: &Context,
    args: &WorkArgs,
    gates: GateChoice,
    settings: &Settings,
    service: &Service,
    dir: &Utf8Path,
) -> Result<ResolvedStart, RequestError> {
    let project = service.project();
    let start = &settings.config.start;
    let agent = agent(args, settings)?;
    let working_dir = dir.canonicalize_utf8().map_err(|error| {
        RequestError::usage(Message::from("--working-dir ").then(format!("{dir}: {error}")))
    })?;
    let limits = limits(args, start, &agent);
    let worker = (&agent, &limits);
    let review = args.reviews.check(&context.dir, worker, settings)?;
    let configured = |name: &str, gate: &Gate| review::configured(name, gate, worker, settings);
    let offer = || Ok(service.offer(&working_dir)?);
    let source = GateChoice {
        starts_agent: gates.starts_agent && agent.kind != AgentKind::Generic,
        names_gate: args.gates.names_gate(&settings.config),
        auto_gates: args.gates.auto_gates(&settings.config),
        ..gates
    }
    .source();
    let is_trusted = |gate: &GateSpec| trust::is_trusted(service, gate);
    let proof = args.gates.proof(source, &settings.config, review, configured, offer, is_trusted)?;
    let critique = args.reviews.critique(worker, settings)?;
    let memory = memory(args.memory, &agent, &settings.config.memory);
    let mut notes = proof.notes;
    notes.extend(uncovered(service, &args.gates)?);
    // On a fleet it is the worker's machine that has it.
    let is_here = !context.typed.names("on");
    if let Some(name) = agent.env_names.iter().find(|name| is_here && context.variable(name).is_none()) {
        let accepted = "accepted: NAME=VALUE, or the NAME of a variable that is set";
        return Err(RequestError::usage(format!("--env {name}: it is not set here; {accepted}")));
    }
    notes.extend(invalid_file(settings, service));
    // The id is replaced if no name is given: the service makes one up that is free.
    let id = LoopId::derived(&agent.program, 0);
    let mut spec = Spec {
        iteration_context: !args.no_iteration_context && start.iteration_context.unwrap_or(true),
        limits,
        stuck: args.stuck.spec(&agent, settings)?,
        gate_env: proof.env,
        protect: proof.protect,
        gates_must_run: !args.gates.allow_missing_gates,
        untrusted: untrusted_file(settings, service).into_iter().collect(),
        approval: args.gates.require_approval || start.require_approval.unwrap_or_default(),
        critique,
        // Elsewhere nothing knows what the user's own file says here.
        caps: if is_here { settings.project_caps } else { Caps::from(&settings.config.budget) },
        memory,
        worktree: project.worktree.clone(),
        working_dir,
        git: GitSpec { setup: settings.config.worktrees.setup.clone(), ..GitSpec::default() },
        gates: proof.gates,
        depth: context.depth,
        parent: context.caller.loop_dir().map(Utf8Path::to_owned),
        output_cap: start.output_cap.unwrap_or(Spec::OUTPUT_CAP),
        ..Spec::new(id, agent, "", project.root.clone())
    };
    for glob in spec.protect.frozen.iter_mut().chain(&mut spec.protect.existing) {
        *glob = in_worktree(glob, &spec.worktree);
    }
    spec.add_default_gates(proof.default_gates);
    spec.clean_checkout = !spec.gates.is_empty() && args.gates.are_clean(start.clean_checkout);
    spec.sandbox =
        crate::sandbox::of(context, service, &spec, (&args.sandbox, &settings.config.sandbox), &mut notes)?;
    Ok(ResolvedStart { spec, notes, offered: proof.offered, untrusted_gates: proof.untrusted_gates })
}

/// A glob of `--protect`; an absolute path in the worktree as it is there.
fn in_worktree(glob: &str, worktree: &Utf8Path) -> String {
    let rest = glob.strip_prefix(worktree.as_str()).filter(|rest| rest.starts_with('/'));
    rest.unwrap_or(glob).to_owned()
}

/// The given protections that cover no file.
fn uncovered(service: &Service, args: &GateArgs) -> Result<Option<String>, RequestError> {
    let given = args.protect.iter().chain(&args.protect_existing);
    let globs: Vec<_> = given.map(|glob| in_worktree(glob, &service.project().worktree)).collect();
    let globs = service.globs_without_files(&globs)?;
    let list = printable(&globs.join(", ")).into_owned();
    Ok((!globs.is_empty()).then(|| format!("no file matches what is to be protected: {list}")))
}

/// What is wrong with the project's file, if it is not trusted and invalid as well.
fn invalid_file(settings: &Settings, service: &Service) -> Option<String> {
    let ProjectFile::Untrusted(_) = &settings.project_file else { return None };
    let error = config::project_file(service.project()).ok()??.parse().err()?;
    Some(format!("the file that is not trusted is invalid too: {error}"))
}

/// The name of the project's file, if it is not trusted and names gates, or may name some as it cannot be read.
fn untrusted_file(settings: &Settings, service: &Service) -> Option<String> {
    let ProjectFile::Untrusted(path) = &settings.project_file else { return None };
    let file = config::project_file(service.project()).ok()??;
    let names_gates = match file.parse() {
        Ok(config) => config.gates.named().next().is_some() || config.start.auto_gates == Some(true),
        Err(_) => file.text.contains("gates"),
    };
    names_gates.then(|| path.file_name().unwrap_or(path.as_str()).to_owned())
}

/// The use of memories: as typed, as configured, else on for a known agent. A command may be anything, and its prompt
/// is its own.
fn memory(said: Option<Switch>, agent: &AgentSpec, configured: &Memory) -> Option<MemorySpec> {
    let usual = if agent.kind.streams() { Switch::On } else { Switch::Off };
    let is_on = said.or(configured.recall).unwrap_or(usual) == Switch::On;
    let budget = configured.budget.unwrap_or(memory::BUDGET);
    is_on.then(|| MemorySpec { budget, recalled: Vec::new() })
}

/// The origin of a value, for a refusal: the option, or the place in the configuration.
pub fn who(is_option: bool, settings: &Settings, name: &str) -> String {
    if is_option { format!("--{name}") } else { format!("{}: start.{name}", settings.origin(name)) }
}

/// Refuses what would have to wait for a person's approval, and cannot: `why`.
pub fn refuse_approval(
    spec: &Spec,
    is_option: bool,
    settings: &Settings,
    why: &'static str,
) -> Result<(), RequestError> {
    let who = || Message::own(&who(is_option, settings, "require-approval"));
    if spec.approval { Err(RequestError::usage(who().then(": ").then(why))) } else { Ok(()) }
}

/// Takes the configured key back if nothing waits for a person here, and says so: it is meant for loops, and a user who
/// set it for all of them still wants the others to begin.
pub fn forget_approval(settings: &mut Settings, why: &str) -> Option<String> {
    let is_configured = settings.config.start.require_approval.take() == Some(true);
    is_configured.then(|| format!("{} does not count here: {why}", who(false, settings, "require-approval")))
}

/// The agent, and whether it can do what is asked of it.
fn agent(args: &WorkArgs, settings: &Settings) -> Result<AgentSpec, RequestError> {
    let start = &settings.config.start;
    let (kind, program, mut words) = program(args, settings)?;
    let more = if args.agent_arg.is_empty() { start.agent_arg.as_deref() } else { Some(&*args.agent_arg) };
    words.extend(more.unwrap_or_default().iter().cloned());
    if let Some(why) = objection(kind, &words) {
        return Err(RequestError::usage(why).hint("--agent generic reads what any command prints"));
    }
    let prompt_mode = args.prompt_mode.or(start.prompt_mode).unwrap_or(PromptMode::Auto);
    if kind == AgentKind::Acp && !matches!(prompt_mode, PromptMode::Auto | PromptMode::Stdin) {
        let who = who(args.prompt_mode.is_some(), settings, "prompt-mode");
        let error = format!("{who}: an ACP agent gets its prompt in the protocol; accepted: auto");
        return Err(RequestError::usage(error));
    }
    // Defaults for agents in general do not apply to a command, which has no such options.
    let tellable = kind != AgentKind::Generic;
    for (is_given, flag) in [(args.model.is_some(), "--model"), (args.permissions.is_some(), "--permissions")]
    {
        if is_given && !tellable {
            let error = ": a generic command cannot be told; accepted: known agents";
            return Err(RequestError::usage(Message::from(flag).then(error))
                .hint("--agent-arg passes an argument of its own"));
        }
    }
    // What the command says is what is used: no adapter adds an argument that is there.
    let model = own_model(kind, &words).or_else(|| args.model.clone()).or_else(|| start.model.clone());
    let permissions = args.permissions.or(start.permissions.filter(|_| tellable));
    let mut env = start.env.clone();
    let valued =
        args.env.iter().filter_map(|(name, value)| Some((name.clone(), Secret::new(value.clone()?))));
    env.extend(valued);
    let named = args.env.iter().filter(|(name, value)| value.is_none() && !env.contains_key(name));
    let env_names = named.map(|(name, _)| name.clone()).collect();
    let agent = AgentSpec {
        kind,
        program,
        args: words,
        prompt_mode,
        env,
        env_names,
        clean_env: args.clean_env || start.clean_env.unwrap_or_default(),
        price: model.as_deref().and_then(|model| settings.price(model)),
        model: model.filter(|_| tellable),
        permissions: permissions.unwrap_or_default(),
        output_format: output_format(args, settings, kind)?,
    };
    admits(args, settings, &agent)?;
    Ok(agent)
}

fn program(args: &WorkArgs, settings: &Settings) -> Result<(AgentKind, String, Vec<String>), RequestError> {
    let start = &settings.config.start;
    let asked = start.agent.as_deref().and_then(AgentKind::named);
    if let Some(command) = args.command.as_ref().or(start.command.as_ref()) {
        let kind = asked.unwrap_or_else(|| AgentKind::of_program(&command.program));
        return Ok((kind, command.program.clone(), command.args.clone()));
    }
    let Some(kind) = asked else {
        let error = "what is to run is missing; accepted: --command or --agent";
        return Err(
            RequestError::usage(error).hint("start.command or start.agent of the configuration says it too")
        );
    };
    let program = kind.program().ok_or_else(|| {
        let needs = ": it needs --command, which says what to run";
        RequestError::usage(Message::from("--agent ").then(kind.to_string()).then(needs))
    })?;
    Ok((kind, program.to_owned(), Vec::new()))
}

/// The format of its standard output: for known agents their stream, which is read by its own rules.
fn output_format(
    args: &WorkArgs,
    settings: &Settings,
    kind: AgentKind,
) -> Result<OutputFormat, RequestError> {
    let asked = args.output_format.or(settings.config.start.output_format);
    match (asked.unwrap_or_default(), kind) {
        (format @ (OutputFormat::Text | OutputFormat::Json), kind) if kind.streams() => {
            let name = if format == OutputFormat::Text { "text" } else { "json" };
            let who = who(args.output_format.is_some(), settings, "output-format");
            let error = format!("{who} {name}: of {kind} its stream is read; accepted: auto and stream-json");
            Err(RequestError::usage(error).hint("--agent generic reads what any command prints"))
        }
        (format, _) => Ok(format),
    }
}

/// Refuses caps that the agent cannot keep.
fn admits(args: &WorkArgs, settings: &Settings, agent: &AgentSpec) -> Result<(), RequestError> {
    let start = &settings.config.start;
    let (cost, tokens) = (limit(args.max_cost, start.max_cost), limit(args.max_tokens, start.max_tokens));
    for (cost, tokens, is_option, name) in [
        (cost.is_some(), false, args.max_cost.is_some(), "max-cost"),
        (false, tokens.is_some(), args.max_tokens.is_some(), "max-tokens"),
    ] {
        agent.admits(cost, tokens).map_err(|refusal| {
            let refusal = Message::own(&refusal.to_string());
            let error = RequestError::usage(match is_option {
                true => refusal,
                false => Message::from(format!("{}: ", who(false, settings, name))).then(refusal),
            });
            let error = error.hint(if agent.kind.streams() {
                "accepted: --max-tokens; --max-cost too, with --model and a price for that model in the configuration"
            } else {
                "accepted: --max-iterations and --max-duration; --max-tokens with known agents, --max-cost with some"
            });
            if is_option { error } else { error.hint(Message::own(&format!("--{name} none takes it back"))) }
        })?;
    }
    Ok(())
}

/// Refuses an agent that could not keep the shared caps on money. Asked last, as it hides no other fault of a request.
pub fn check_caps(settings: &Settings, agent: &AgentSpec) -> Result<(), RequestError> {
    let caps = Caps::from(&settings.config.budget);
    let Some(which) = CapKind::ALL.into_iter().find(|which| caps.of(*which).is_some()) else { return Ok(()) };
    if agent.tells_cost() {
        return Ok(());
    }
    let (origin, key, kind) = (settings.origin_of_cap(which), which.key(), agent.kind);
    let error = format!(
        "{origin}: budget.{key}: {kind} does not say what it costs, so this cap could not be kept; accepted: claude, \
         opencode, acp; and codex, gemini with --model and a price for that model"
    );
    let cure = match &origin {
        Origin::File { path, .. } if *path == settings.user_file => {
            format!("refrain config set budget.{key} none takes the cap back, for all loops")
        }
        _ => format!("remove budget.{key} there to start it without the cap"),
    };
    Err(RequestError::usage(Message::own(&error)).hint(Message::own(&cure)))
}

fn limit<T: Copy>(option: Option<Limit<T>>, configured: Option<Limit<T>>) -> Option<T> {
    option.or(configured).and_then(Option::from)
}

fn limits(args: &WorkArgs, start: &Start, agent: &AgentSpec) -> Limits {
    let silence = agent.kind.streams().then_some(Limits::DEFAULT_SILENCE);
    Limits {
        max_iterations: None,
        max_duration: limit(args.max_duration, start.max_duration),
        timeout: limit(args.timeout, start.timeout),
        idle_timeout: args.idle_timeout.or(start.idle_timeout).map_or(silence, Option::from),
        pause: limit(args.pause, start.pause),
        max_cost: limit(args.max_cost, start.max_cost),
        max_tokens: limit(args.max_tokens, start.max_tokens),
        retry_for: limit(args.retry_for, start.retry_for),
        timeout_grace: args.timeout_grace.or(start.timeout_grace),
    }
}

fn has_no_promise(args: &PromiseArgs, start: &Start) -> bool {
    args.no_promise || args.completion_promise.is_none() && start.promise == Some(false)
}

/// The completion promise, and where it counts by default: in the final message of a stream, else in the whole output.
fn promise(args: &PromiseArgs, start: &Start, agent: &AgentSpec) -> Result<Option<Promise>, RequestError> {
    if has_no_promise(args, start) {
        return Ok(None);
    }
    let text = args.completion_promise.clone().or_else(|| start.completion_promise.clone());
    let text = text.map_or_else(|| values::promise(PROMISE), Ok).map_err(RequestError::usage)?;
    let default = if agent.streams() { MatchMode::Tag } else { MatchMode::Plain };
    let mode = args.promise_match.or(start.promise_match).unwrap_or(default);
    Ok(Some(Promise { text, mode }))
}
