//! The parts of a repository that take effect only once the user trusts them: its `refrain.toml`, and the commands that
//! its task files and manifests name.

use std::collections::BTreeSet;

use camino::Utf8Path;
use refrain_core::gate::GateSpec;
use refrain_core::plan::file::Shape;
use refrain_core::text::printable;
use refrain_engine::config::{self, ConfigFile};
use refrain_engine::{Content, EngineError, Service, Trust, TrustedContent, now};

use crate::plan::{Source, SourceArgs};
use crate::repository_command::{RepositoryCommand, of_gates};
use crate::{Action, Context, RequestError};

/// What can be trusted of this repository, as it is now.
#[derive(Debug)]
pub struct Trustable {
    pub file: Option<ConfigFile>,
    /// The commands that its task files and manifests name.
    pub commands: BTreeSet<RepositoryCommand>,
}

impl Trustable {
    /// What can be trusted: with the commands of all selected tasks, or of the only tag.
    pub fn of(context: &Context, service: &Service, args: &SourceArgs) -> Result<Self, RequestError> {
        let file = config::project_file(service.project())?;
        let is_named = args.tag.is_some() || args.plan.is_some();
        let source = match args.read(context, &mut |_| ()) {
            Ok(source) => Some(source),
            Err(error) if is_named => return Err(error),
            // There is no task file, or it is unclear which one is meant.
            Err(_) => None,
        };
        let worktree = &service.project().worktree;
        let mut commands: BTreeSet<_> = source.iter().flat_map(of_source).collect();
        commands.extend(source.iter().filter_map(|source| of_cargo(source, worktree)));
        commands.extend(of_gates(&service.offer(worktree)?.gates));
        Ok(Self { file, commands })
    }

    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.commands.is_empty()
    }

    /// The hash of all of it: another content has another.
    pub fn hash(&self) -> String {
        let mut hashes: Vec<_> = self.contents().map(Content::hash).collect();
        match hashes.as_slice() {
            [only] => only.clone(),
            _ => {
                hashes.sort();
                Content::File(&hashes.join("\n")).hash()
            }
        }
    }

    pub fn is_trusted(&self, service: &Service) -> bool {
        self.contents().all(|content| service.trusts(content))
    }

    pub fn grant(&self, service: &Service) -> Result<(), RequestError> {
        let trust = Trust::new(&service.host().state_home);
        for content in self.contents().filter(|content| !service.trusts(*content)) {
            trust.grant(&service.project().root, content, now()).map_err(EngineError::from)?;
        }
        Ok(())
    }

    fn contents(&self) -> impl Iterator<Item = Content<'_>> {
        let file = self.file.iter().map(|file| Content::File(&file.text));
        file.chain(self.commands.iter().map(|it| Content::Command(&it.command)))
    }
}

/// Whether the command of a gate that the project offers is trusted.
pub fn is_trusted(service: &Service, gate: &GateSpec) -> bool {
    of_gates(std::slice::from_ref(gate)).all(|it| service.trusts(Content::Command(&it.command)))
}

/// Trusts the commands of gates that the project offers from now on.
pub fn grant(context: &Context, service: &Service, gates: &[GateSpec]) -> Result<(), RequestError> {
    context.check(Action::Trust)?;
    Trustable { file: None, commands: of_gates(gates).collect() }.grant(service)
}

/// Refuses commands of the repository that are not trusted.
pub fn check<'a>(
    context: &Context,
    service: &Service,
    commands: impl IntoIterator<Item = &'a RepositoryCommand>,
    source: Option<&SourceArgs>,
) -> Result<(), RequestError> {
    let untrusted: BTreeSet<_> =
        commands.into_iter().filter(|it| !service.trusts(Content::Command(&it.command))).collect();
    let Some(first) = untrusted.first() else { return Ok(()) };
    let more = match untrusted.len() - 1 {
        0 => String::new(),
        1 => ", nor is one more".to_owned(),
        more => format!(", nor are {more} more"),
    };
    let flat = |text: &str| printable(text).replace('\n', " ");
    let error =
        format!("the command {:?} of {} is not trusted{more}", flat(&first.command), flat(&first.from));
    let any = SourceArgs::default();
    let source = source.unwrap_or(&any);
    let of = source.as_words();
    let hash = Trustable::of(context, service, source)?.hash();
    Err(RequestError::usage(error)
        .hint(format!("refrain trust{of} shows every command, and asks on a terminal"))
        .hint(format!("refrain trust{of} --hash {hash}"))
        .hint("or --yes, which trusts this one start"))
}

/// The trust that no start has named yet, in one line: an agent could have given it since the last loop.
pub fn announce(context: &Context, service: &Service) -> Option<String> {
    if context.caller.is_attempt() {
        return None;
    }
    let new = Trust::new(&service.host().state_home).announce(&service.project().root);
    let name =
        |it: &TrustedContent| it.command.as_ref().map_or("refrain.toml".to_owned(), |it| format!("{it:?}"));
    let names = new.iter().map(name).collect::<Vec<_>>().join(", ");
    let names = printable(&names).replace('\n', " ");
    (!new.is_empty()).then(|| {
        format!("trusted since the last start here: {names}; refrain trust --revoke takes that back")
    })
}

/// The commands of a task file: its own, and those of its tasks.
pub(crate) fn of_source(source: &Source) -> impl Iterator<Item = RepositoryCommand> {
    let from = source.file.path.to_string();
    let of_tasks = source.graph.tasks().iter().filter_map(|task| task.verification.clone());
    let commands = source.verification.clone().into_iter().chain(of_tasks);
    commands.map(move |command| RepositoryCommand { command, from: from.clone() })
}

/// What proves the tasks of a Cargo project if nothing says otherwise (seed 001).
pub(crate) fn of_cargo(source: &Source, dir: &Utf8Path) -> Option<RepositoryCommand> {
    let is_cargo = source.file.shape != Shape::Markdown && dir.join("Cargo.toml").is_file();
    is_cargo.then(|| RepositoryCommand::offered("cargo check && cargo test"))
}
