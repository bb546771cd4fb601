//! Where a loop works, and what is configured there.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_engine::Service;
use refrain_engine::config::{Chosen, ProjectFile, Settings};

use crate::error::RequestError;
use crate::options::work::WorkArgs;
use crate::{Context, Note};

/// Where a loop is to work, and what is configured there.
#[derive(Debug)]
pub struct Workspace {
    /// The project.
    pub service: Service,
    /// What is configured for loops in it.
    pub settings: Settings,
    /// The folder.
    pub dir: Utf8PathBuf,
}

impl Workspace {
    /// Opens the folder that a request names, or the one that it was made in.
    pub fn open(context: &Context, work: &WorkArgs, note: Note<'_>) -> Result<Self, RequestError> {
        let dir = folder(context, work.working_dir.as_deref())?;
        let service = context.open(&dir, work.yes)?;
        let chosen = Chosen { agent: work.agent.as_deref(), command: work.command.is_some() };
        let settings = service.settings(chosen, context.has_variables())?;
        note_untrusted(&settings, note);
        Ok(Self { service, settings, dir })
    }
}

/// The folder that a request names, or the one that it was made in.
pub fn folder(context: &Context, named: Option<&Utf8Path>) -> Result<Utf8PathBuf, RequestError> {
    let dir = named.map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    match dir.is_dir() {
        true => Ok(dir),
        false => Err(RequestError::usage(format!("--working-dir {dir}: there is no such folder"))),
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
