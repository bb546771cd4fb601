//! What loops left on this machine that ended here or elsewhere: their worktrees and branches. The git remote has the loops.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::LoopId;
use refrain_core::event::Asker;
use refrain_core::view::StatusWord;
use refrain_engine::{EngineError, Service, chain};

use crate::clone;
use crate::host::{Worker, locked};

/// How often a worker looks for them.
const EACH: Duration = Duration::from_secs(3600);

/// Looks for them until the worker ends.
pub(crate) async fn run(worker: Arc<Worker>) {
    loop {
        let worker = Arc::clone(&worker);
        let _ = tokio::task::spawn_blocking(move || tidy(&worker)).await;
        tokio::time::sleep(EACH).await;
    }
}

fn tidy(worker: &Worker) {
    for remote in &worker.allowed.remotes {
        let dir = clone::folder(&worker.context, remote);
        if !dir.is_dir() {
            continue;
        }
        let Ok(service) = Service::open(&dir, worker.context.host.clone()) else { continue };
        let folders = service.project().loop_dirs().unwrap_or_default();
        let names = folders.iter().filter_map(|folder| folder.0.file_name()?.parse::<LoopId>().ok());
        for id in names {
            match discard_if_over(worker, &service, (remote, &id)) {
                Ok(false) => {}
                Ok(true) => worker.say(id.as_str(), "it is over: its worktree here is removed"),
                Err(error) => worker.say(id.as_str(), &chain(&error)),
            }
        }
    }
}

/// Whether the loop is over by what the git remote has, and was removed here. Its work stays for 30 days.
fn discard_if_over(
    worker: &Worker,
    service: &Service,
    (remote, id): (&str, &LoopId),
) -> Result<bool, EngineError> {
    let dir = clone::folder(&worker.context, remote);
    let is_driven = || locked(&worker.driving).contains_key(&(remote.to_owned(), id.to_string()));
    let there = service.reading_at(id, (remote, &dir))?.service.status(id)?.status;
    if is_driven() || !matches!(there, StatusWord::Completed | StatusWord::Cancelled) {
        return Ok(false);
    }
    Ok(service.discard(id, Asker::Person)?.is_ok())
}
