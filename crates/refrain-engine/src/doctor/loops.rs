//! The loops of this project: every byte of their journals, runners that died, requests that no runner read, doorbells
//! that are none, and what the clock says of them.

use std::os::unix::fs::FileTypeExt;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{SignedDuration, Timestamp};
use refrain_core::plan::PlanState;
use refrain_core::view::StatusWord;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::{LoopId, LoopState};
use refrain_git::GitError;
use refrain_store::access::signing::Signing;
use refrain_store::project::inbox;
use refrain_store::{JournalError, LoopDir, RunnerLock, catalog, journal, memory};

use super::cure::{Cure, Diagnosis};
use super::leftovers;
use crate::driver::liveness::{is_driven, look as view};
use crate::git_steps::repository;
use crate::{Service, chain, now};

/// The usual difference between the clocks of machines that share a disk.
const USUAL: SignedDuration = SignedDuration::from_secs(60);
/// A healthy runner takes a request at once.
const PROMPT: SignedDuration = SignedDuration::from_secs(30);
/// How many loops of one kind of trouble are named one by one.
const NAMED: usize = 20;

pub(super) fn look(service: &Service) -> Vec<Diagnosis> {
    let dirs = match service.project().loop_dirs() {
        Ok(dirs) => dirs,
        Err(error) => {
            let advice = "see who owns that folder";
            return vec![Finding::problem(Subject::Loops, chain(&error), advice).into()];
        }
    };
    let signing = service.host().signing();
    let (mut found, crashed) = of_plans(service);
    let (mut running, mut latest) = (0, None::<(Timestamp, LoopId)>);
    for dir in &dirs {
        match journal::read_signed(dir, &signing) {
            Ok(snapshot) => {
                let state = &snapshot.state;
                latest = latest.max(Some((state.updated_at, state.spec.id.clone())));
                let status = view(dir, state).status;
                running += u32::from(matches!(status, StatusWord::Running | StatusWord::Waiting));
                if let Some(objection) = state.signatures.objection() {
                    let id = &state.spec.id;
                    let finding = Finding::problem(
                        Subject::Loops,
                        format!("unsigned: {objection}"),
                        format!("refrain status {id} says what to do"),
                    );
                    found.push(finding.about(id.as_str()).into());
                }
                found.extend(lost_link(state).map(Diagnosis::from));
                // The loops of a plan continue with the plan.
                let is_of_crashed = state.spec.task.as_ref().is_some_and(|task| crashed.contains(&task.plan));
                let is_crashed = status == StatusWord::Crashed && !is_of_crashed;
                found.extend(of_machine(dir, ("refrain", &state.spec.id), is_crashed, snapshot.torn));
                if status == StatusWord::Crashed {
                    found.extend(leftovers::of_gates(dir, &state.spec));
                }
            }
            Err(error) => found.push(damaged(dir, &error)),
        }
    }
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    if more > 0 {
        let finding = Finding::warning(Subject::Loops, format!("{more} more like these"), "refrain list");
        found.push(finding.into());
    }
    let counted = match dirs.len() {
        0 => "no loops here yet".to_owned(),
        1 => format!("1 loop, {running} running"),
        count => format!("{count} loops, {running} running"),
    };
    found.push(Finding::ok(Subject::Loops, counted).into());
    found.push(key(&signing).into());
    found.push(clock(latest, now()).into());
    found.extend(catalog::aside(&service.host().data_home).map(put_aside));
    found.extend(memory::aside(&service.host().data_home).into_iter().map(memories_put_aside));
    found
}

/// Its own worktree if that no longer leads to its repository.
fn lost_link(state: &LoopState) -> Option<Finding> {
    let id = &state.spec.id;
    match repository::check_link(&state.spec.worktree, &state.spec) {
        Err(GitError::LostLink { worktree, why, cure }) => {
            let found = format!("its worktree {worktree} has lost the link to its repository: {why}");
            Some(Finding::problem(Subject::Worktrees, found, cure).about(id.as_str()))
        }
        Ok(()) | Err(_) => None,
    }
}

/// The key that ends and approvals are signed with.
fn key(signing: &Signing) -> Finding {
    let file = signing.key_file();
    match signing.public_key() {
        Some(key) => {
            Finding::ok(Subject::Loops, format!("ends are signed with your key; its public key is {key}"))
        }
        None if file.symlink_metadata().is_err() => {
            Finding::ok(Subject::Loops, "no key to sign ends with yet; the first start makes one")
        }
        None => Finding::problem(
            Subject::Loops,
            "your key cannot be read: ends are not signed",
            format!("see who owns {file}; move it away to have another made, which does not know what this one signed"),
        )
        .about(file.as_str()),
    }
}

fn memories_put_aside(path: Utf8PathBuf) -> Diagnosis {
    let found = "memories that could not be read were put aside here; a new file has been begun since";
    let next = "sqlite3 may recover them (.recover); else remove the file";
    Finding::warning(Subject::Loops, found, next).about(path.as_str()).into()
}

fn damaged(dir: &LoopDir, error: &JournalError) -> Diagnosis {
    let name = dir.0.file_name().unwrap_or_default();
    let advice = match error {
        JournalError::Disk(_) => format!("refrain verify {name} tries to read it again"),
        JournalError::Damaged { .. }
        | JournalError::Missing(_)
        | JournalError::OutOfOrder(..)
        | JournalError::Taken(_)
        | JournalError::Foreign(_)
        | JournalError::Usurped(_)
        | JournalError::Failed(_)
        | JournalError::Unreplicated(_) => format!(
            "refrain verify {name} names the line; what happened up to it is still in its folder, {}; move that folder away \
             to use the name again",
            dir.0
        ),
    };
    Finding::problem(Subject::Loops, chain(error), advice).about(name).into()
}

/// Everything in it is in the journals, and by now in the catalog that was built in its place.
fn put_aside(path: Utf8PathBuf) -> Diagnosis {
    let told =
        "a catalog of loops that was damaged, or made by a newer refrain, was put aside and built anew";
    let advice = "refrain doctor --fix removes it: nothing is lost by that";
    Diagnosis::with(Finding::warning(Subject::Loops, told, advice).about(path.as_str()), Cure::Remove(path))
}

/// What is to be said of the plans, and which of them have lost their runner.
fn of_plans(service: &Service) -> (Vec<Diagnosis>, Vec<LoopId>) {
    let (mut found, mut crashed) = (Vec::new(), Vec::new());
    for dir in service.project().plan_dirs().unwrap_or_default() {
        match journal::read_as::<PlanState>(&dir) {
            Ok(snapshot) => {
                let (state, id) = (&snapshot.state, &snapshot.state.spec.id);
                let is_crashed =
                    state.ended.is_none() && is_driven(&dir, state.runner.as_ref()) == Some(false);
                crashed.extend(is_crashed.then(|| id.clone()));
                found.extend(of_machine(&dir, ("refrain plan", id), is_crashed, snapshot.torn));
            }
            Err(error) => found.push(damaged(&dir, &error)),
        }
    }
    (found, crashed)
}

/// What is to be said of a loop or plan; `verbs` begins the commands that continue and end it.
fn of_machine(dir: &LoopDir, (verbs, id): (&str, &LoopId), is_crashed: bool, torn: u64) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let mut say = |finding: Finding| found.push(finding.about(id.as_str()).into());
    if is_crashed {
        let advice = format!("{verbs} resume {id} continues where it was; {verbs} cancel {id} ends it");
        say(Finding::warning(Subject::Loops, "its runner died", advice));
    }
    let is_free = RunnerLock::is_free(dir);
    if torn > 0 && is_free {
        let told = format!("the last {torn} bytes of its journal were cut off while they were written");
        say(Finding::warning(Subject::Loops, told, "nothing to do: the next runner archives them"));
    }
    let waiting = inbox::waiting(dir).unwrap_or_default();
    if let Some(oldest) = waiting.iter().filter_map(|(_, path)| waits_for(path)).max() {
        let told = match waiting.len() {
            1 => "1 request that no runner heard".to_owned(),
            count => format!("{count} requests that no runner heard"),
        };
        if is_free {
            let advice = format!("{verbs} resume {id} obeys, {verbs} cancel {id} ends it");
            say(Finding::warning(Subject::Requests, told, advice));
        } else if oldest > PROMPT {
            let advice =
                format!("its runner hangs or was stopped: refrain status {id} says which process it is");
            say(Finding::problem(Subject::Requests, told, advice));
        }
    }
    // A runner makes it if it is missing; what is something else keeps every runner from starting.
    let doorbell = std::fs::symlink_metadata(dir.doorbell()).ok();
    if is_free && doorbell.is_some_and(|meta| !meta.file_type().is_fifo()) {
        let told = "its doorbell is no FIFO: no runner can take it over";
        let finding = Finding::problem(Subject::Requests, told, "refrain doctor --fix removes that file");
        found.push(Diagnosis::with(finding.about(id.as_str()), Cure::FreeDoorbell(dir.clone())));
    }
    found
}

fn waits_for(path: &Utf8Path) -> Option<SignedDuration> {
    let made = path.metadata().and_then(|meta| meta.modified()).ok()?;
    Some(now().duration_since(Timestamp::try_from(made).ok()?))
}

/// A journal's records are never before those in front of them, so a clock that was set back shows in the latest.
fn clock(latest: Option<(Timestamp, LoopId)>, now: Timestamp) -> Finding {
    match latest {
        Some((at, id)) if at.duration_since(now) > USUAL => Finding::problem(
            Subject::Clock,
            format!("the clock was set back: loop {id} was last heard of at {at}, and now it is {now}"),
            "set the clock (timedatectl); until then limits of time and waits last longer",
        ),
        _ => Finding::ok(Subject::Clock, "the system clock is consistent with all loops"),
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Grade;

    use super::*;

    #[test]
    fn a_clock_that_was_set_back_shows_in_the_latest_record() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let heard = |seconds: i64| Some((now + SignedDuration::from_secs(seconds), "job".parse().unwrap()));
        assert_eq!(clock(None, now).grade, Grade::Ok);
        assert_eq!(clock(heard(-5), now).grade, Grade::Ok);
        assert_eq!(clock(heard(59), now).grade, Grade::Ok);
        let finding = clock(heard(3600), now);
        assert_eq!(finding.grade, Grade::Problem);
        assert!(finding.found.contains("job"), "{}", finding.found);
    }
}
