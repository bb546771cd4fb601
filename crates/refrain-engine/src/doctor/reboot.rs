//! Which loops the end of the machine's last run interrupted: those whose runner vanished with it, and those that it was
//! told to pause by the signal that the system sends to all when it goes down. What a person paused before stays paused.
//!
//! Two files in the state home say what journals cannot: `boot` holds the run of the machine that was looked at last, and
//! `end` was touched when it ended.

use std::fs;

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use refrain_core::event::{Ask, End, Event, Urgency};
use refrain_core::{LoopId, LoopState, Record};
use refrain_proc::identity;
use refrain_store::{LoopDir, RunnerLock, journal, projects, write_atomic};

use crate::{EngineError, Host, Service};

/// A system that goes down gives everybody up to 90 s to stop, one after the other.
const NEAR_THE_END: SignedDuration = SignedDuration::from_secs(120);

/// The file that is touched when the machine's run ends.
pub(super) fn end_mark(host: &Host) -> Utf8PathBuf {
    host.state_home.join("end")
}

fn boot_file(host: &Host) -> Utf8PathBuf {
    host.state_home.join("boot")
}

/// Remembers that what earlier runs of the machine interrupted was seen to.
///
/// # Errors
/// [`EngineError`] where it cannot be written down.
pub fn remember_this_boot(host: &Host) -> Result<(), EngineError> {
    fs::create_dir_all(&host.state_home).map_err(|source| refrain_store::DiskError {
        action: "create",
        path: host.state_home.clone(),
        source,
    })?;
    Ok(write_atomic(&boot_file(host), identity::own().boot.as_bytes())?)
}

/// The loops of every known project that the end of the machine's last run interrupted, each with the door to its project.
/// A second look in the same run of the machine finds none once it was remembered.
#[must_use]
pub fn interrupted_by_reboot(host: &Host) -> Vec<(Service, LoopId)> {
    let (own, last) = (identity::own(), fs::read_to_string(boot_file(host)).ok());
    if last.as_deref() == Some(own.boot.as_str()) {
        return Vec::new();
    }
    let ended = fs::metadata(end_mark(host)).and_then(|meta| meta.modified()).ok();
    let ended = ended.and_then(|at| Timestamp::try_from(at).ok());
    let mut found = Vec::new();
    for root in projects::known(&host.data_home) {
        let Ok(service) = Service::open(&root, host.clone()) else { continue };
        for dir in service.project().loop_dirs().unwrap_or_default() {
            // What cannot be read is named by `doctor` and `list`.
            let Ok(snapshot) = journal::read(&dir) else { continue };
            let state = snapshot.state;
            let runs = |boot: &str| boot != own.boot && last.as_deref().is_none_or(|last| boot == last);
            let was_then =
                state.runner.as_ref().is_some_and(|runner| runner.host == own.host && runs(&runner.boot));
            if was_then && RunnerLock::is_free(&dir) && is_interrupted(&state, &dir, ended) {
                found.push((service.clone(), state.spec.id));
            }
        }
    }
    found
}

fn is_interrupted(state: &LoopState, dir: &LoopDir, ended: Option<Timestamp>) -> bool {
    match (state.ended.map(|ended| ended.end), ended) {
        // It had not stopped, unless somebody had asked for that.
        (None, _) => state.cancel.is_none() && state.pause.is_none(),
        (Some(End::Paused), Some(ended)) => {
            let records = journal::records(dir).unwrap_or_default();
            last_signal(&records).is_some_and(|at| at.duration_since(ended).abs() <= NEAR_THE_END)
        }
        (Some(_), _) => false,
    }
}

/// When the system told the loop's last runner to stop; none where a person was the first to ask for a pause, with a request
/// or with Ctrl-C, which asks for less at first.
fn last_signal(records: &[Record]) -> Option<Timestamp> {
    let taken_over =
        |record: &Record| matches!(record.event, Event::RunnerStarted { .. } | Event::LoopResumed { .. });
    let since = records.iter().rposition(taken_over)?;
    let first = records[since..]
        .iter()
        .find(|record| matches!(record.event, Event::Asked { ask: Ask::Pause(_), .. }))?;
    let by_signal = matches!(first.event, Event::Asked { request: None, ask: Ask::Pause(Urgency::Now) });
    by_signal.then_some(first.at)
}
