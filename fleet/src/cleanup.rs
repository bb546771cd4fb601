//! What loops left on this machine that ended here or elsewhere: their worktrees and branches. The git remote has the loops.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::event::Asker;
use refrain_core::r#loop::TakeOverRefusal;
use refrain_core::view::StatusWord;
use refrain_engine::{DiscardRefusal, EngineError, MoveError, Service, chain, now};

use crate::clone;
use crate::host::{Worker, locked};
use crate::shared::logs;

/// How often a worker looks for them.
const INTERVAL: Duration = Duration::from_secs(3600);
/// A loop that the git remote has no longer, and that had not ended here, is over after so long, in seconds.
const GONE: i64 = 30 * 86_400;

/// Looks for them until the worker ends.
pub(crate) async fn run(worker: Arc<Worker>) {
    loop {
        let worker = Arc::clone(&worker);
        let _ = tokio::task::spawn_blocking(move || clean_up(&worker)).await;
        tokio::time::sleep(INTERVAL).await;
    }
}

fn clean_up(worker: &Worker) {
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
                Ok(None) => {}
                Ok(Some(said)) => worker.say(id.as_str(), &said),
                Err(error) => worker.say(id.as_str(), &chain(&error)),
            }
        }
    }
}

/// Whether the loop is over by what the git remote has. The machine of its person removes it there once it is over; then the
/// journal here says it.
fn is_over(service: &Service, at: (&str, &Utf8Path), id: &LoopId) -> Result<bool, EngineError> {
    let is_final = |word| matches!(word, StatusWord::Completed | StatusWord::Cancelled);
    match service.reading_at(id, at) {
        Ok(there) => Ok(is_final(there.service.status(id)?.status)),
        Err(EngineError::Copy { why: MoveError::NotTaken { why: TakeOverRefusal::Missing, .. }, .. }) => {
            let here = service.status(id)?;
            let last = now().as_second().saturating_sub(here.updated_at.as_second());
            Ok(is_final(here.status) || last >= GONE)
        }
        Err(error) => Err(error),
    }
}

/// Discards the loop if it is over by what the git remote has, and returns what became of it. Its work stays for 30 days.
fn discard_if_over(
    worker: &Worker,
    service: &Service,
    (remote, id): (&str, &LoopId),
) -> Result<Option<String>, EngineError> {
    let dir = clone::folder(&worker.context, remote);
    let is_driven = || locked(&worker.driving).contains_key(&(remote.to_owned(), id.to_string()));
    if is_driven() || !is_over(service, (remote, &dir), id)? {
        return Ok(None);
    }
    // A worker that was killed did not get to it.
    if let Some(store) = &worker.logs
        && let Some(why) = logs::keep(service, id, store.as_ref(), &mut BTreeSet::new())
    {
        return Ok(Some(format!("it is over, and stays: its long logs are only here: {why}")));
    }
    Ok(match service.discard(id, Asker::Person)? {
        Ok(outcome) if outcome.was_archived => None,
        Ok(_) => Some("it is over: its worktree here is removed".to_owned()),
        Err(DiscardRefusal::NotKept { worktree, why }) => {
            Some(format!("it is over; {worktree} is kept: {why}"))
        }
        Err(DiscardRefusal::CheckedOut { branch, worktree }) => {
            Some(format!("it is over; its branch {branch} is kept: it is checked out in {worktree}"))
        }
        Err(DiscardRefusal::Running) => None,
    })
}
