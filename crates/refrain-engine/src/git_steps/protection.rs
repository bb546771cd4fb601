//! The protected paths in a loop's base, and those that a candidate touches. Which changes break a rule is decided in
//! `refrain_core::protect`; `refrain-git` finds them.

use std::path::Path;

use camino::Utf8Path;
use jiff::SignedDuration;
use refrain_core::AttemptId;
use refrain_core::git::{Base, Oid, OmittedPath, RepoPath};
use refrain_core::r#loop::Proving;
use refrain_core::protect::{OtherProgram, Program, ProtectedPaths, ProtectionBreach};
use refrain_git::{ExactnessRequest, GitError, ProtectRequest, Repository, Touches};

use crate::git_steps::repository::Job;
use crate::git_steps::tool_pins;

/// How many touched paths are recorded: one is enough to refuse a claim, and a journal is no place for thousands.
const MOST: usize = 200;

impl Job {
    /// The base, with the protected paths and git's exclusions as they are now.
    pub(crate) fn with_protection(&self, repository: &Repository, base: Base) -> Result<Base, GitError> {
        let spec = &self.state.spec;
        let protected = match spec.protect.is_empty() {
            true => None,
            false => Some(self.guard(None, |request| repository.protected(request))?),
        };
        // Without gates nothing is proven of a tree.
        let hidden = if spec.gates.is_empty() { Vec::new() } else { repository.hidden_paths()? };
        Ok(Base { protected, programs: tool_pins::of_gates(spec, &self.env), hidden, ..base })
    }

    /// The protected paths that differ from the base. The changed lines are kept beside the gates' logs.
    pub(crate) fn touched(
        &self,
        repository: &Repository,
        (candidate, omitted): (&Oid, &[OmittedPath]),
    ) -> Result<Vec<ProtectionBreach>, GitError> {
        let mut touched = Vec::new();
        if let Some(base) = &self.state.git.base {
            if let Some(tree) = &base.protected {
                repository.verify_tree(tree, Some(&self.cancel))?;
                let mut touches = self.guard(None, |request| repository.touched(request, tree))?;
                let is_touched = !touches.paths.is_empty() || !touches.parts.is_empty();
                // A path that is touched in the worktree is in the tree, too: its lines are the useful ones.
                if !is_touched {
                    let trees = (self.state.git.began.as_ref(), candidate);
                    touches = self.guard(None, |request| repository.touched_in_tree(request, tree, trees))?;
                }
                touched.extend(self.keep(touches));
            }
            let is_new = |path: &RepoPath| !base.hidden.contains(path);
            touched
                .extend(repository.hidden_paths()?.into_iter().filter(is_new).map(ProtectionBreach::Hidden));
            if !base.programs.is_empty() {
                let now = tool_pins::of_gates(&self.state.spec, &self.env);
                touched
                    .extend(Program::others(&base.programs, &now).into_iter().map(ProtectionBreach::Program));
            }
        }
        let entries = repository.new_entries(self.state.git.began.as_ref(), candidate)?;
        touched.extend(repository.outside_links(&entries)?.into_iter().map(ProtectionBreach::Link));
        touched
            .extend(repository.local_commits(&entries, false)?.into_iter().map(ProtectionBreach::Submodule));
        // Gates in a clean checkout run on what git stores.
        if !self.state.spec.clean_checkout {
            let first = self.state.attempts.first().map(|attempt| attempt.started_at.as_duration());
            let since = first.map(SignedDuration::unsigned_abs);
            let dirty = self.state.git.base.as_ref().map_or(&[][..], |base| &base.dirty);
            let cancel = Some(&self.cancel);
            let request = ExactnessRequest { entries: &entries, since, omitted, dirty, cancel };
            touched.extend(repository.unlike_checkout(request)?.into_iter().map(ProtectionBreach::Unlike));
        }
        for also in self.touched_by_gates(repository)? {
            if !touched.contains(&also) {
                touched.push(also);
            }
        }
        touched.truncate(MOST);
        Ok(touched)
    }

    /// What is protected in a clean checkout, as it is now; none if nothing is.
    pub(crate) fn protected_in(
        &self,
        repository: &Repository,
        checkout: (&Utf8Path, &Utf8Path),
    ) -> Result<Option<Oid>, GitError> {
        match self.state.spec.protect.is_empty() {
            true => Ok(None),
            false => self.guard(Some(checkout), |request| repository.protected(request)).map(Some),
        }
    }

    /// The paths that a gate touched in a clean checkout; `before` is the protected content when it began.
    pub(crate) fn touched_in(
        &self,
        repository: &Repository,
        (folder, index): (&Utf8Path, &Utf8Path),
        before: Option<&Oid>,
    ) -> Result<Vec<ProtectionBreach>, GitError> {
        let mut touched = Vec::new();
        if let Some(before) = before {
            repository.verify_tree(before, Some(&self.cancel))?;
            let touches = self.guard(Some((folder, index)), |request| repository.touched(request, before))?;
            touched.extend(self.keep(touches));
        }
        let programs = self.state.git.base.as_ref().map_or(&[][..], |base| &base.programs);
        if !programs.is_empty() {
            let spec = &self.state.spec;
            let now = tool_pins::in_checkout(spec, folder, &self.env);
            // One that is missing there may lie around in the worktree: only what the gates made counts.
            let is_made = |other: &OtherProgram| {
                other.now.as_ref().is_some_and(|now| tool_pins::is_inside(Path::new(now), spec))
            };
            let others = Program::others(programs, &now).into_iter().filter(is_made);
            touched.extend(others.map(ProtectionBreach::Program));
        }
        Ok(touched)
    }

    /// The touched paths for events. The lines are a convenience for the agent and for people: the paths are on record.
    fn keep(&self, touches: Touches) -> impl Iterator<Item = ProtectionBreach> + use<> {
        let of = self.state.proving().map_or(AttemptId::BEFORE, Proving::folder);
        let _ = keep(&self.dir.attempt(of).touched(), &touches.lines);
        let paths = touches.paths.into_iter().map(ProtectionBreach::Path);
        paths.chain(touches.parts.into_iter().map(ProtectionBreach::Part))
    }

    fn guard<T>(
        &self,
        checkout: Option<(&Utf8Path, &Utf8Path)>,
        ask: impl FnOnce(ProtectRequest<'_>) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let protect = &self.state.spec.protect;
        ask(ProtectRequest {
            paths: &ProtectedPaths::new(&protect.frozen, &protect.existing)?.with_modules(&protect.modules),
            parts: &protect.parts,
            index: &self.dir.index().with_extension("protected"),
            checkout,
            cancel: Some(&self.cancel),
        })
    }
}

fn keep(path: &Utf8Path, lines: &[u8]) -> std::io::Result<()> {
    if lines.is_empty() { refrain_files::remove(path) } else { refrain_files::write(path, lines) }
}
