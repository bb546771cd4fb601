use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::DefaultGates;
use refrain_core::text::printable;
use refrain_core::{LoopId, LoopState, Spec};
use refrain_engine::config::Settings;
use refrain_engine::{
    DetachedRunner, EngineError, MANY_FILES, Runner, Service, Signals, Talk, chain, check_folder,
    left_to_others,
};

use crate::caller::Action;
use crate::error::{Code, RequestError};
use crate::options::notify::NotifyArgs;
use crate::repository_command::RepositoryCommand;
use crate::resolve::{self, ResolvedStart, StartLoop, Workspace};
use crate::{Context, Note, trust};

/// A loop that can be started: nothing is begun yet.
#[derive(Debug)]
pub struct PreparedLoop {
    pub service: Service,
    pub settings: Settings,
    pub dir: Utf8PathBuf,
    pub spec: Spec,
    /// The commands of its gates that the project's files offer.
    pub offered: Vec<RepositoryCommand>,
    /// The gates that it would take by default if they were trusted.
    pub untrusted_gates: DefaultGates,
    pub named: Option<LoopId>,
    pub notes: Vec<String>,
}

/// A loop that was started or may continue, with the right to drive it.
pub struct StartedLoop {
    pub service: Service,
    pub settings: Settings,
    pub dir: Utf8PathBuf,
    pub runner: Runner,
    pub notes: Vec<String>,
}

impl PreparedLoop {
    pub fn new(context: &Context, workspace: Workspace, request: &StartLoop) -> Result<Self, RequestError> {
        let Workspace { service, settings, dir } = workspace;
        let resolved = resolve::spec(context, request, &settings, &service, &dir);
        let start = &settings.config.start;
        let has_agent =
            request.options.work.command.is_some() || start.command.is_some() || start.agent.is_some();
        let ResolvedStart { mut spec, mut notes, offered, untrusted_gates } =
            resolved.map_err(|error| if has_agent { error } else { error.hint(to_choose(&service)) })?;
        let sandbox = (&request.options.work.sandbox, &settings.config.sandbox);
        crate::sandbox::check_worktree(context, &mut spec, sandbox, &mut notes)?;
        let named = request.options.name.clone();
        Ok(Self { service, settings, dir, spec, offered, untrusted_gates, named, notes })
    }

    /// Trusts the gates of the project that are not trusted yet, and takes them.
    pub fn trust_gates(&mut self, context: &Context, request: &StartLoop) -> Result<(), RequestError> {
        let more = std::mem::take(&mut self.untrusted_gates);
        trust::grant(context, &self.service, &more.gates)?;
        self.spec.add_default_gates(more);
        let is_configured = self.settings.config.start.clean_checkout;
        self.spec.clean_checkout = request.options.work.gates.are_clean(is_configured);
        Ok(())
    }

    fn check_request(&self, context: &Context) -> Result<(), RequestError> {
        context.check(Action::Start)?;
        context.typed.check_loop(&self.spec)?;
        check_writable(&self.spec)?;
        trust::check(context, &self.service, &self.offered, None)
    }

    /// Refuses what [`Self::start`] would refuse, except for what other loops hold.
    pub fn check(&self, context: &Context) -> Result<(), RequestError> {
        self.check_request(context)?;
        let mut spec = self.spec.clone();
        self.service.drop_missing_gates(&mut spec);
        Ok(self.service.check_start(&spec)?)
    }

    /// Starts it; `note` receives the loops that may be running beside it.
    pub fn start(self, context: &Context, note: Note<'_>) -> Result<StartedLoop, RequestError> {
        self.check_request(context)?;
        let Self { service, settings, dir, mut spec, offered: _, untrusted_gates, named, mut notes } = self;
        notes.extend(service.drop_missing_gates(&mut spec));
        notes.extend(not_trusted(&untrusted_gates));
        spec.untrusted.extend(untrusted_gates.gates.iter().map(|gate| gate.check.to_string()));
        // A loop that needs a worktree for itself has it.
        let is_shared = spec.git.shared || spec.needs_worktree_alone();
        notes.extend(context.typed.short_limits());
        notes.extend(not_shown(&spec));
        let untested = service.untested(&spec);
        if service.lacks_committer(&spec) {
            notes.push(NO_COMMITTER.to_owned());
        }
        let runner = service.start(spec, named)?;
        notes.extend(trust::announce(context, &service));
        if !is_shared {
            note_neighbours(&runner, note);
        }
        notes.extend(untested.map(|(version, tested)| {
            let program = format!("loop {} runs a program of version {version}", runner.id());
            format!("{program}; Refrain was tested with {tested}")
        }));
        if runner.reads_many_files() {
            notes.push(format!(
                "{} is no git repository and holds more than {MANY_FILES} files and folders, which Refrain reads after each \
                 iteration; git init there makes that fast, -C DIR names a smaller folder",
                runner.worktree()
            ));
        }
        notes.extend(memories(&runner));
        Ok(StartedLoop { service, settings, dir, runner, notes })
    }
}

/// Refuses a folder of the user where the loop can write nothing.
fn check_writable(spec: &Spec) -> Result<(), RequestError> {
    let notes = spec.worktree.join(".refrain");
    if spec.git.checkout.is_own_worktree() || notes.is_dir() {
        return Ok(());
    }
    check_folder(&notes).map_err(|error| {
        RequestError::new(Code::Failed, chain(&error))
            .hint("give yourself the right to write there, or --worktree gives the loop a folder of its own")
    })
}

impl StartedLoop {
    /// Drives the loop in this thread until it stops; returns its state then. Signals are the surface's own affair.
    pub fn drive(self, context: &Context) -> Result<LoopState, RequestError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            RequestError::new(Code::Failed, format!("the runtime cannot be started: {error}"))
        })?;
        Ok(runtime.block_on(self.runner.drive(&context.host, Signals::None, || {}))?)
    }
}

const NO_COMMITTER: &str = "git does not know who you are, so nothing will be committed: git config --global user.name NAME; \
                            git config --global user.email ADDRESS";

/// The gates that the loop starts without, as they are not trusted.
fn not_trusted(gates: &DefaultGates) -> Option<String> {
    let commands: Vec<_> = gates.gates.iter().map(|gate| gate.check.to_string()).collect();
    let commands = printable(&commands.join(", ")).replace('\n', " ");
    let next = "refrain trust shows them and asks, --yes takes them for one start";
    (!gates.gates.is_empty()).then(|| {
        format!("the loop starts without gates that the project offers and you do not trust yet ({commands}): {next}")
    })
}

/// How an agent is chosen, with those that are installed.
fn to_choose(service: &Service) -> String {
    let installed: Vec<_> = service.installed_agents().iter().map(ToString::to_string).collect();
    match installed.first() {
        Some(first) => format!(
            "refrain start --agent {first} \"Fix the tests.\" runs {first}; found in PATH: {}",
            installed.join(", ")
        ),
        None => "no agent is in PATH (claude, codex, opencode, gemini); --command runs any other program"
            .to_owned(),
    }
}

/// Resolves a request in the folder that it names.
pub fn prepare(context: &Context, request: &StartLoop, note: Note<'_>) -> Result<PreparedLoop, RequestError> {
    let workspace = Workspace::open(context, &request.options.work, note)?;
    PreparedLoop::new(context, workspace, request)
}

/// Starts a loop that the caller drives or hands over.
pub fn start(context: &Context, request: &StartLoop, note: Note<'_>) -> Result<StartedLoop, RequestError> {
    prepare(context, request, note)?.start(context, note)
}

/// Hands a loop to a process of its own: `refrain drive ID`. Returns the loop's state once that has taken over, or, if
/// the loop ends without an attempt, once it has ended.
pub fn detach(
    context: &Context,
    (service, runner): (&Service, Runner),
    dir: &Utf8Path,
    notify: &NotifyArgs,
) -> Result<(LoopState, DetachedRunner), RequestError> {
    context.check(Action::Detach)?;
    let (id, ends) = (runner.id().clone(), runner.ends_at_once());
    let words = drive_words(dir, &id, notify);
    let (state, started) = service.detach(runner, &words)?;
    if !ends {
        return Ok((state, started));
    }
    let mut follower = service.follow(&id, false)?;
    while follower.look().map_err(EngineError::from)?.is_some() {}
    Ok((service.state(&id)?, started))
}

/// Starts a loop in a process of its own, with the notify options of the configuration.
pub fn start_detached(
    context: &Context,
    prepared: PreparedLoop,
    talk: Option<&Talk>,
    note: Note<'_>,
) -> Result<(Service, LoopId), RequestError> {
    let StartedLoop { service, settings, dir, runner, notes } = prepared.start(context, note)?;
    let id = runner.id().clone();
    // On disk before the loop runs: what is noted later could find another note of it.
    talk.map_or(Ok(()), |talk| service.note_talk(&id, talk))?;
    let notify = NotifyArgs::default().or_configured(&settings.config.notify);
    notes.into_iter().chain(notify.notes(context, &settings, false)).for_each(note);
    detach(context, (&service, runner), &dir, &notify)?.1.reap();
    Ok((service, id))
}

pub(crate) fn drive_words(dir: &Utf8Path, id: &LoopId, notify: &NotifyArgs) -> Vec<String> {
    let words = ["-C", dir.as_str(), "drive", id.as_str()].map(str::to_owned).into_iter();
    words.chain(notify.as_words()).collect()
}

/// Files that the loop would be shown in, and that another system owns.
pub fn not_shown(spec: &Spec) -> impl Iterator<Item = String> {
    left_to_others(spec).into_iter().map(|path| {
        let next = "resume --from continues with what another system began there";
        format!("{path} is not Refrain's and stays as it is: the loop is not shown there; {next}")
    })
}

/// The notes about memories of earlier loops: they cost tokens in each iteration.
fn memories(runner: &Runner) -> Vec<String> {
    let count = match runner.recalled() {
        0 => None,
        1 => Some("1 memory".to_owned()),
        count => Some(format!("{count} memories")),
    };
    let told =
        count.map(|told| format!("the prompt has {told} of earlier loops; --memory off leaves them out"));
    runner.forgetful().map(ToString::to_string).into_iter().chain(told).collect()
}

/// Loops that neither commit nor have gates may share a worktree; but the user who starts the second should know of the
/// first.
fn note_neighbours(runner: &Runner, note: Note<'_>) {
    let neighbours = runner.neighbours();
    if !neighbours.is_empty() {
        let (names, worktree) = (neighbours.join(", "), runner.worktree());
        note(format!("{names} may be running in {worktree} too; --share-worktree says that this is meant"));
    }
}
