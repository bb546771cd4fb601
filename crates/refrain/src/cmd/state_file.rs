//! `--state-file` of seed 001's verbs: the file in which another system, or a mirror of Refrain's, shows a loop.

use camino::Utf8Path;
use refrain_app::{Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{ForeignError, Service, found_in};
use refrain_formats::mirror::ForeignLoop;

pub(super) enum StateFile {
    /// One of this project, which Refrain drives.
    Own(LoopId),
    Foreign(Box<ForeignLoop>),
}

/// Reads a state file. Nothing is written there.
pub(super) fn read(context: &Context, service: &Service, file: &Utf8Path) -> Result<StateFile, RequestError> {
    let found = found_in(&context.dir.join(file)).map_err(|error| unread(file, &error))?;
    Ok(match &found.id {
        Some(id) if found.began.is_some() && service.locate(id).is_ok() => StateFile::Own(id.clone()),
        Some(_) | None => StateFile::Foreign(Box::new(found)),
    })
}

fn unread(file: &Utf8Path, error: &ForeignError) -> RequestError {
    RequestError::usage(format!("--state-file {file}: {error}"))
}
