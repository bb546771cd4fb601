//! What a loop's base says of what is protected, and what of that a candidate touches. Which changes break a rule is said
//! in `refrain_core::protect`; how they are found lives with git.

use camino::Utf8Path;
use refrain_core::AttemptId;
use refrain_core::git::Base;
use refrain_core::r#loop::Proving;
use refrain_core::protect::{Program, Protected, Touched};
use refrain_git::{GitError, ProtectRequest, Repository};

use crate::pins;
use crate::repository::Job;

/// How many touched things are recorded: one is enough to refuse a claim, and a journal is no place for thousands.
const MOST: usize = 200;

impl Job {
    /// The base, with what is protected as it is now.
    pub(crate) fn with_protection(&self, repository: &Repository, base: Base) -> Result<Base, GitError> {
        let spec = &self.state.spec;
        let protected = match spec.protect.is_empty() {
            true => None,
            false => Some(self.guard(|request| repository.protected(request))?),
        };
        Ok(Base { protected, programs: pins::of_gates(spec, &self.env), ..base })
    }

    /// What is not as the base has it. The lines are kept beside the gates' logs.
    pub(crate) fn touched(&self, repository: &Repository) -> Result<Vec<Touched>, GitError> {
        let Some(base) = &self.state.git.base else { return Ok(Vec::new()) };
        let mut touched = Vec::new();
        if let Some(tree) = &base.protected {
            let touches = self.guard(|request| repository.touched(request, tree))?;
            let of = self.state.proving().map_or(AttemptId::BEFORE, Proving::folder);
            // A convenience for the agent and for people: what was touched is on record anyway.
            let _ = keep(&self.dir.attempt(of).touched(), &touches.lines);
            touched.extend(touches.paths.into_iter().map(Touched::Path));
            touched.extend(touches.parts.into_iter().map(Touched::Part));
        }
        if !base.programs.is_empty() {
            let now = pins::of_gates(&self.state.spec, &self.env);
            touched.extend(Program::others(&base.programs, &now).into_iter().map(Touched::Program));
        }
        touched.truncate(MOST);
        Ok(touched)
    }

    fn guard<T>(&self, ask: impl FnOnce(ProtectRequest<'_>) -> Result<T, GitError>) -> Result<T, GitError> {
        let protect = &self.state.spec.protect;
        ask(ProtectRequest {
            paths: &Protected::new(&protect.frozen, &protect.existing)?,
            parts: &protect.parts,
            index: &self.dir.index().with_extension("protected"),
            cancel: Some(&self.cancel),
        })
    }
}

fn keep(path: &Utf8Path, lines: &[u8]) -> std::io::Result<()> {
    if lines.is_empty() { refrain_files::remove(path) } else { refrain_files::write(path, lines) }
}
