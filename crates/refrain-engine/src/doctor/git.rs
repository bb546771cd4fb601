//! Git as a loop will find it: the program, the repository, the committer, operations in progress, stale locks, and the
//! worktrees of loops. Git is only queried; nothing here changes a repository without `fix`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::event::End;
use refrain_core::git::Operation;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::{LoopId, LoopState};
use refrain_git::{GitError, OLDEST, Repository, Worktree, read_version};
use refrain_proc::orphans;
use refrain_store::{LoopDir, journal};

use super::cure::{Cure, Diagnosis};
use crate::{Service, chain};

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The process that took a younger lock may still be at work.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Locks that keep git from committing: in the git folder of a worktree, and in the common one.
const LOCKS: [&str; 4] = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"];

pub(super) fn look(service: &Service) -> Vec<Diagnosis> {
    let project = service.project();
    let is_repository = project.is_repository();
    let env = environment::of_person(service.host().env.iter().cloned());
    let said = refrain_git::version(&project.worktree, &env, PATIENCE);
    if let Err(GitError::Missing(_)) = said {
        return vec![missing(is_repository).into()];
    }
    let mut found = vec![version(said).into()];
    let repository = match Repository::open_within(&project.worktree, &env, PATIENCE) {
        Err(error @ GitError::Bare(_)) => {
            let advice = "git worktree add PATH makes a worktree of it";
            found.push(Finding::problem(Subject::Git, chain(&error), advice).into());
            return found;
        }
        _ if !is_repository => {
            let plain = "no repository here: loops run, nothing is committed";
            found.push(Finding::ok(Subject::Git, plain).into());
            return found;
        }
        Ok(repository) => Arc::new(repository),
        Err(error) => {
            let is_planted = matches!(error, GitError::Planted(_));
            let advice =
                if is_planted { "run no git here before that" } else { "see what git status says here" };
            found.push(Finding::problem(Subject::Git, chain(&error), advice).into());
            return found;
        }
    };
    found.push(identity(&repository).into());
    found.extend(repository.operation().map(under_way).map(Diagnosis::from));
    let folders = [repository.git_dir(), repository.common_dir()];
    found.extend(locks(&[&project.worktree, &project.root], folders));
    found.extend(worktrees(service, &repository));
    found
}

fn missing(is_repository: bool) -> Finding {
    let advice = "install git 2.38 or newer";
    match is_repository {
        true => Finding::problem(Subject::Git, "git is not in PATH, and this is a repository", advice),
        false => Finding::warning(Subject::Git, "git is not in PATH: nothing can be committed", advice),
    }
}

fn version(said: Result<String, GitError>) -> Finding {
    let said = match said {
        Ok(said) => said,
        Err(error) => return Finding::problem(Subject::Git, chain(&error), "see that git --version works"),
    };
    match read_version(&said) {
        (version, true) => Finding::ok(Subject::Git, format!("git {version}")),
        (version, false) => Finding::problem(
            Subject::Git,
            format!("git {version} is older than {}.{}", OLDEST.0, OLDEST.1),
            "install a newer one: commits and worktrees of loops need it",
        ),
    }
}

fn identity(repository: &Repository) -> Finding {
    match repository.committer() {
        Ok(who) => Finding::ok(Subject::Git, format!("commits are made by {who}")),
        Err(_) => Finding::warning(
            Subject::Git,
            "git does not know who you are: no commit can be made here",
            "git config --global user.name NAME; git config --global user.email ADDRESS",
        ),
    }
}

fn under_way(what: Operation) -> Finding {
    Finding::warning(
        Subject::Git,
        format!("a {what} is under way here: loops commit nothing until it is over"),
        "finish it, or call it off; git status says how",
    )
}

/// A git lock stays only when git is killed, and then blocks git until a person removes it.
fn locks(worktrees: &[&Utf8PathBuf], folders: [&Utf8Path; 2]) -> Vec<Diagnosis> {
    // Both folders of the main worktree are the same, which may be written in two ways.
    let mut folders =
        folders.map(|folder| folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned())).to_vec();
    folders.dedup();
    let is_old = |path: &Utf8PathBuf| {
        let age = path.metadata().and_then(|meta| meta.modified()).ok().and_then(age);
        age.is_some_and(|age| age >= FRESH)
    };
    let paths = folders.iter().flat_map(|folder| LOCKS.map(|lock| folder.join(lock)));
    let old: Vec<Utf8PathBuf> = paths.filter(is_old).collect();
    if old.is_empty() || worktrees.iter().any(|dir| orphans::has_process_in(dir.as_std_path(), "git")) {
        return vec![];
    }
    let say = |path: Utf8PathBuf| {
        let finding = Finding::problem(
            Subject::Git,
            format!("a lock was left behind, and no git works here: {path}"),
            "refrain doctor --fix removes it, unless another program than git holds it",
        );
        Diagnosis::with(finding, Cure::Remove(path))
    };
    old.into_iter().map(say).collect()
}

fn age(at: SystemTime) -> Option<Duration> {
    let at = jiff::Timestamp::try_from(at).ok()?;
    Duration::try_from(crate::now().duration_since(at)).ok()
}

/// Worktrees of loops lie in Refrain's own folder; which loop one belongs to, its journal says.
fn worktrees(service: &Service, repository: &Arc<Repository>) -> Vec<Diagnosis> {
    let Ok(all) = repository.worktrees() else { return vec![] };
    let home = &service.host().state_home;
    let home = home.canonicalize_utf8().unwrap_or_else(|_| home.clone());
    // Worktrees of the pool change hands often, and are repaired when they are needed.
    let pool = service.project().pool(&home);
    let is_of_a_loop = |tree: &Worktree| tree.path.starts_with(&home) && !tree.path.starts_with(&pool);
    let ours: Vec<Worktree> = all.into_iter().filter(is_of_a_loop).collect();
    if ours.is_empty() {
        return vec![];
    }
    let states = states(service);
    // Those that `refrain gc` removes are shown with it.
    let garbage = service.garbage_on_disk().unwrap_or_default();
    let is_garbage = |tree: &&Worktree| garbage.iter().any(|it| it.name == tree.path.as_str());
    let owner = |path: &Utf8Path| states.iter().find(|state| state.spec.worktree == path);
    let judged = ours
        .iter()
        .filter(|tree| !is_garbage(tree))
        .filter_map(|tree| judge(tree, owner(&tree.path), repository))
        .collect::<Vec<_>>();
    if judged.is_empty() {
        let found = format!("{} of loops, each with its loop", ours.len());
        return vec![Finding::ok(Subject::Worktrees, found).into()];
    }
    judged
}

fn judge(tree: &Worktree, owner: Option<&LoopState>, repository: &Arc<Repository>) -> Option<Diagnosis> {
    let path = &tree.path;
    let id = owner.map(|state: &LoopState| &state.spec.id);
    let whose = id.map_or("no loop of this project".to_owned(), |id: &LoopId| format!("loop {id}"));
    if !path.is_dir() {
        let found = format!("the folder is gone; it was that of {whose}, and git still lists it");
        let finding = Finding::warning(Subject::Worktrees, found, "refrain doctor --fix has git forget it");
        let finding = finding.about(path.as_str());
        if tree.locked.is_some() {
            let advice = format!("it is locked: git worktree unlock {path}, then git worktree prune");
            return Some(Finding { advice: Some(advice), ..finding }.into());
        }
        return Some(Diagnosis::with(finding, Cure::Forget(Arc::clone(repository), path.clone())));
    }
    let (found, advice) = match owner {
        None => (
            "no loop of this project works in it".to_owned(),
            format!("see what lies in it; git worktree remove {path} takes it away"),
        ),
        Some(state)
            if state
                .ended
                .is_some_and(|ended| matches!(ended.end, End::Completed { .. } | End::Cancelled)) =>
        {
            let id = &state.spec.id;
            (
                format!("{whose} is over, and something in it may be nowhere else"),
                format!(
                    "refrain open {id} goes there; after you committed or removed what it holds, refrain gc removes it"
                ),
            )
        }
        Some(_) => return None,
    };
    Some(Finding::warning(Subject::Worktrees, found, advice).about(path.as_str()).into())
}

/// The states of the project's loops, those in the archive too; what cannot be read is reported elsewhere.
fn states(service: &Service) -> Vec<LoopState> {
    let project = service.project();
    let archived = project.archive().read_dir_utf8().into_iter().flatten().flatten();
    let archived = archived.map(|entry| LoopDir(entry.into_path()));
    let dirs = project.loop_dirs().unwrap_or_default().into_iter().chain(archived);
    dirs.filter_map(|dir| journal::read(&dir).ok()).map(|snapshot| snapshot.state).collect()
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Grade;

    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (said, grade) in [
            ("git version 2.47.3\n", Grade::Ok),
            ("git version 2.38.0.windows.1\n", Grade::Ok),
            ("git version 2.37.1 (Apple Git-137.1)\n", Grade::Problem),
            ("git version 2.9.0\n", Grade::Problem),
            ("git version 3.0.0\n", Grade::Ok),
            ("hello\n", Grade::Problem),
        ] {
            assert_eq!(version(Ok(said.to_owned())).grade, grade, "{said}");
        }
    }
}
