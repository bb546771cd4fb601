//! The worktrees that tasks work in: how much room they take, which are held and why, and those of projects that are
//! gone.

use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_agents::environment;
use refrain_core::text::printable;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_git::Repository;
use refrain_store::config::{AgentChoice, keys::Worktrees};
use refrain_store::project::pool::{self as slots, SlotEntry as Slot};

use super::cure::{Cure, Diagnosis};
use super::data_folders::size;
use crate::Service;
use crate::git_steps::pool;

/// `variables` as for [`Service::settings`].
pub(super) fn look(service: &Service, variables: bool) -> Vec<Diagnosis> {
    let (host, project) = (service.host(), service.project());
    let orphaned = slots::orphaned(&host.state_home);
    let mut found: Vec<Diagnosis> = orphaned.into_iter().map(without_project).collect();
    let all = pool::sized(project, &host.state_home);
    if all.is_empty() {
        return found;
    }
    let env = environment::of_person(host.env.iter().cloned());
    let repository = Repository::open(&project.worktree, &env).ok().map(Arc::new);
    for slot in all.iter().filter(|slot| !slot.found.held.is_empty()) {
        found.push(held(service, &slot.found, repository.as_ref()));
    }
    let budget = service.settings(AgentChoice::default(), variables);
    let budget = budget.map_or(Worktrees::DISK_BUDGET, |settings| settings.config.worktrees.disk_budget());
    let (unused, used) = (pool::unused(&all), all.iter().filter(|slot| slot.found.is_taken).count());
    let told = format!("{} for tasks, {used} used now; the others take {}", all.len(), size(unused));
    found.push(match repository {
        Some(repository) if unused > budget => {
            let finding = Finding::warning(
                Subject::Worktrees,
                format!("{told}, more than {} ([worktrees] disk-budget)", size(budget)),
                "refrain doctor --fix removes caches of those that were unused for longest, then them; never work",
            );
            let project = project.clone();
            Diagnosis::with(finding, Cure::TidyPool { project, host: host.clone(), repository, budget })
        }
        _ => Finding::ok(Subject::Worktrees, told).into(),
    });
    found
}

fn held(service: &Service, slot: &Slot, repository: Option<&Arc<Repository>>) -> Diagnosis {
    let (host, project) = (service.host(), service.project());
    let folder = pool::folder(project, slot);
    let reasons: Vec<_> = slot.held.iter().map(|reason| printable(reason)).collect();
    let finding = |advice: &str| {
        let told = format!("no task is given it: {}", reasons.join("; "));
        Finding::warning(Subject::Worktrees, told, advice).about(folder.as_str())
    };
    let is_free = |repository: &&Arc<Repository>| {
        let confined = pool::in_sandbox_of_slot(host, repository, &slot.dir);
        confined.is_ok_and(|it| it.slot_value(&folder, &slot.dir).is_ok_and(|value| value.is_empty()))
    };
    match repository.filter(is_free).filter(|_| !slot.is_taken) {
        Some(repository) => Diagnosis::with(
            finding("that is gone by now: refrain doctor --fix gives it back to tasks"),
            Cure::GiveBack {
                project: project.clone(),
                host: host.clone(),
                repository: Arc::clone(repository),
                number: slot.number,
            },
        ),
        None => finding("take out of it what you want to keep, then refrain doctor --fix").into(),
    }
}

fn without_project((home, root): (Utf8PathBuf, Utf8PathBuf)) -> Diagnosis {
    let found = format!("worktrees for tasks of {}, which is gone", printable(root.as_str()));
    let finding =
        Finding::warning(Subject::Worktrees, found, "refrain doctor --fix removes them, unless one is held");
    Diagnosis::with(finding.about(home.as_str()), Cure::RemovePool(home))
}
