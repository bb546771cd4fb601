//! Writing Refrain's files into a project, and trusting what was written.

use refrain_engine::{Choices, Extras, PreparedFile, Service};

use crate::plan::SourceArgs;
use crate::trust::Trustable;
use crate::{Action, Context, RequestError};

/// The files of a project, and what is done about them.
#[derive(Clone, Debug)]
pub struct Initialize {
    pub extras: Extras,
    pub choices: Choices,
    pub is_rehearsal: bool,
    /// Trust the configuration file if it is written, and the project's gates with it.
    pub trusts: bool,
}

/// Writes the files; returns what was done to each, and whether the new configuration is trusted.
pub fn initialize(
    context: &Context,
    service: &Service,
    request: &Initialize,
) -> Result<(Vec<PreparedFile>, bool), RequestError> {
    context.check(Action::Initialize)?;
    if request.trusts {
        context.check(Action::Trust)?;
    }
    let files = service.init(request.extras, &request.choices, request.is_rehearsal)?;
    let trusts =
        request.trusts && !request.is_rehearsal && files.iter().any(PreparedFile::is_new_configuration);
    if trusts {
        let mut found = Trustable::of(context, service, &SourceArgs::default())?;
        // Commands of task files were not shown.
        found.commands.retain(|it| request.choices.gates && it.is_offered());
        found.grant(service)?;
    }
    Ok((files, trusts))
}
