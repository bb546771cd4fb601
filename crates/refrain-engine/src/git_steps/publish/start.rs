//! What must be there before a publishing loop begins: a target, and permission to publish there.

use std::ffi::OsString;

use refrain_core::git::GitSpec;
use refrain_core::text::{printable, squeeze};
use refrain_forge::{Forge, Trouble};
use refrain_git::{Repository, Upstream};

use super::unknown_forge;
use crate::{EngineError, chain};

/// Checks before the start that the loop has a place to publish, and fills in what its pull request is for. A remote
/// that cannot be reached now may be there later.
pub(crate) fn settle(
    git: &mut GitSpec,
    repository: &Repository,
    env: &[(OsString, OsString)],
) -> Result<(), EngineError> {
    let missing = |what: String| Err(EngineError::Unpublishable(what));
    if !git.workflow.publishes() {
        return Ok(());
    }
    let now = repository.branch()?;
    let own = git.new_branch().map(str::to_owned).or_else(|| now.clone());
    let Some(own) = own else {
        return missing(
            "the head is detached: check a branch out, or give the loop one with --create-branch".into(),
        );
    };
    let Some(upstream) = repository.upstream(&own)? else {
        return missing(
            "there is no remote to push to: git remote add origin URL adds one; of several, git config \
             remote.pushDefault NAME says which"
                .into(),
        );
    };
    if !git.workflow.requests() {
        return Ok(());
    }
    let unreachable = |trouble: Trouble| {
        let passes = matches!(
            trouble,
            Trouble::Unreachable { .. } | Trouble::RateLimited { .. } | Trouble::Cancelled | Trouble::Tool(_)
        );
        (!passes).then(|| squeeze(&printable(&chain(&trouble))))
    };
    let forge = match Forge::of(&upstream.url, &repository.folders(), env, None) {
        Ok(Some(forge)) => forge,
        Ok(None) => return missing(unknown_forge(&upstream)),
        Err(trouble) => return unreachable(trouble).map_or(Ok(()), missing),
    };
    let project = match forge.project() {
        Ok(project) => project,
        Err(trouble) => return unreachable(trouble).map_or(Ok(()), missing),
    };
    if project.may_push == Some(false) {
        return missing(format!("you may not push to {}", squeeze(&printable(&upstream.url))));
    }
    // A commit that is not at the remote can be no base.
    git.onto = match now.filter(|now| *now != own) {
        Some(now) => {
            let there = Upstream { branch: now.clone(), ..upstream };
            matches!(repository.look_at(&there, None)?, Ok(Some(_))).then_some(now)
        }
        None => None,
    };
    if git.onto.is_none() && own == project.default_branch {
        return missing(format!(
            "{own} is what pull requests are for: give the loop a branch of its own with --create-branch or --worktree"
        ));
    }
    Ok(())
}
