//! Which loops the end of the machine's last run interrupted: those whose runner vanished with it, and those that were
//! paused by the signal that the system sends to all when it goes down. What a person paused before stays paused.
//!
//! Two files in the state home say what journals cannot: `boot` holds the run of the machine that was looked at last,
//! and `end` was touched when it ended.

use std::fs;

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use refrain_core::event::{Ask, End, Event, Identity, Urgency};
use refrain_core::{LoopId, LoopState, Record};
use refrain_proc::identity;
use refrain_store::project::projects;
use refrain_store::{LoopDir, RunnerLock, journal, make_dir, write_atomic};

use crate::{EngineError, Host, Service};

/// A system that goes down gives each process up to 90 s to stop, one after the other.
const NEAR_THE_END: SignedDuration = SignedDuration::from_secs(120);

/// The file that is touched when the machine's run ends.
pub(super) fn end_mark(host: &Host) -> Utf8PathBuf {
    host.state_home.join("end")
}

fn boot_file(host: &Host) -> Utf8PathBuf {
    host.state_home.join("boot")
}

/// Remembers that what earlier runs of the machine interrupted was seen to.
pub fn remember_this_boot(host: &Host) -> Result<(), EngineError> {
    make_dir(&host.state_home)?;
    Ok(write_atomic(&boot_file(host), identity::own().boot.as_bytes())?)
}

/// The loops of every known project that the end of the machine's last run interrupted, each with the service of
/// its project. A second look in the same run of the machine finds none once it was remembered.
pub fn interrupted_by_reboot(host: &Host) -> Vec<(Service, LoopId)> {
    let (own, last) = (identity::own(), fs::read_to_string(boot_file(host)).ok());
    if last.as_deref() == Some(own.boot.as_str()) {
        return Vec::new();
    }
    let ended = fs::metadata(end_mark(host)).and_then(|meta| meta.modified()).ok();
    let ended = ended.and_then(|at| Timestamp::try_from(at).ok());
    let runs = |boot: &str| boot != own.boot && last.as_deref().is_none_or(|last| boot == last);
    let was_then = |runner: Option<&Identity>| runner.is_some_and(|it| it.host == own.host && runs(&it.boot));
    let mut found = Vec::new();
    for root in projects::listed(&host.data_home) {
        let Ok(service) = Service::open(&root, host.clone()) else { continue };
        for dir in service.project().loop_dirs().unwrap_or_default() {
            // Journals that cannot be read are named by `doctor` and `list`.
            let Ok(snapshot) = journal::read(&dir) else { continue };
            let state = snapshot.state;
            // The loop of a task is resumed with its plan.
            if state.spec.task.is_some() {
                continue;
            }
            if was_then(state.runner.as_ref())
                && RunnerLock::is_free(&dir)
                && is_interrupted(&state, &dir, ended)
            {
                found.push((service.clone(), state.spec.id));
            }
        }
        for id in service.plans().unwrap_or_default() {
            let Ok(state) = service.plan(&id) else { continue };
            let was_to_go_on = state.ended.is_none() && state.cancel.is_none() && state.pause.is_none();
            if was_then(state.runner.as_ref())
                && was_to_go_on
                && service.is_plan_driven(&id).is_ok_and(|driven| !driven)
            {
                found.push((service.clone(), id));
            }
        }
    }
    found
}

fn is_interrupted(state: &LoopState, dir: &LoopDir, ended: Option<Timestamp>) -> bool {
    let by_the_system = || {
        let records = journal::records(dir).unwrap_or_default();
        last_signal(&records)
            .zip(ended)
            .is_some_and(|(told, ended)| told.duration_since(ended).abs() <= NEAR_THE_END)
    };
    match state.ended.map(|ended| ended.end) {
        None if state.cancel.is_some() => false,
        // It had not stopped, or not yet.
        None => state.pause.is_none() || by_the_system(),
        Some(End::Paused) => by_the_system(),
        Some(_) => false,
    }
}

/// When the system sent the loop's last runner its signal to stop; none if a person was the first to ask for a pause,
/// with a request or with Ctrl-C, which asks for less at first.
fn last_signal(records: &[Record]) -> Option<Timestamp> {
    let taken_over =
        |record: &Record| matches!(record.event, Event::RunnerStarted { .. } | Event::LoopResumed { .. });
    let since = records.iter().rposition(taken_over)?;
    let first = records[since..]
        .iter()
        .find(|record| matches!(record.event, Event::Asked { ask: Ask::Pause(_), .. }))?;
    let by_signal = matches!(first.event, Event::Asked { request: None, ask: Ask::Pause(Urgency::Now), .. });
    by_signal.then_some(first.at)
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use refrain_core::event::{Asker, FORMAT, Identity, LoopStarted, Process};
    use refrain_store::Journal;
    use refrain_store::journal::Durability;
    use serde_json::json;

    use super::*;

    const BEFORE: &str = "the run before";

    fn host(dir: &Utf8Path) -> Host {
        Host {
            program: "refrain".into(),
            env: vec![],
            config_home: dir.join("config"),
            data_home: dir.join("data"),
            state_home: dir.join("state"),
            version: "1".into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// A runner of that run of this machine.
    fn runner(boot: &str) -> Event {
        let runner =
            Identity { process: Process { pid: 1, start: 1 }, boot: boot.to_owned(), ..identity::own() };
        Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None, fence: None }
    }

    fn signal(urgency: Urgency) -> Event {
        Event::Asked { request: None, ask: Ask::Pause(urgency), by: Asker::Person }
    }

    fn person(ask: Ask) -> Event {
        Event::Asked { request: Some("a-person".parse().unwrap()), ask, by: Asker::Person }
    }

    /// A loop to which this happened, one event a second.
    fn write(project: &Utf8Path, id: &str, events: Vec<Event>) {
        let spec = json!({
            "id": id, "prompt": "p", "iteration_context": true, "promise": null, "depth": 0,
            "agent": {"kind": "generic", "program": "a", "args": [], "prompt_mode": "auto", "env": {},
                "clean_env": false, "model": null, "permissions": "auto", "output_format": "auto"},
            "limits": {"max_iterations": 20, "max_duration_ms": null, "timeout_ms": null, "idle_timeout_ms": null,
                "pause_ms": null, "max_cost_usd": null, "max_tokens": null, "retry_for_ms": null},
            "project": project, "worktree": project, "working_dir": project, "output_cap": 1024,
        });
        let spec: refrain_core::Spec = serde_json::from_value(spec).unwrap();
        let dir = refrain_store::Project::find(project).unwrap().loop_dir(&spec.id);
        drop(RunnerLock::claim(&dir).unwrap());
        let started = LoopStarted { format: FORMAT, refrain: "1".into(), spec };
        let mut journal: Journal =
            Journal::create(dir, Event::LoopStarted(Box::new(started)), at(0)).unwrap();
        for (second, event) in (1..).zip(events) {
            journal.push(event, at(second)).unwrap();
        }
        journal.commit(Durability::Synced).unwrap();
    }

    #[test]
    fn only_loops_that_ran_at_the_reboot_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let (host, project) = (host(&dir), dir.join("project"));
        fs::create_dir_all(&project).unwrap();
        projects::remember(&host.data_home, &project).unwrap();
        let paused = || Event::LoopEnded(End::Paused);
        let now = || signal(Urgency::Now);
        let cases = [
            ("a-vanished", vec![runner(BEFORE)]),
            ("a-terminated", vec![runner(BEFORE), now(), paused()]),
            ("a-terminated-at-the-end", vec![runner(BEFORE), now()]),
            ("b-paused", vec![runner(BEFORE), person(Ask::Pause(Urgency::Now)), paused()]),
            ("b-ctrl-c-twice", vec![runner(BEFORE), signal(Urgency::AfterIteration), now(), paused()]),
            ("b-about-to-pause", vec![runner(BEFORE), person(Ask::Pause(Urgency::AfterIteration))]),
            ("b-cancelled", vec![runner(BEFORE), person(Ask::Cancel(Urgency::Now))]),
            ("b-capped", vec![runner(BEFORE), Event::LoopEnded(End::IterationCap)]),
            ("b-never-driven", vec![]),
            ("b-of-an-earlier-run", vec![runner("long ago")]),
            ("b-of-this-run", vec![runner(&identity::own().boot)]),
        ];
        for (id, events) in cases {
            write(&project, id, events);
        }
        let found = || -> Vec<String> {
            interrupted_by_reboot(&host).into_iter().map(|(_, id)| id.to_string()).collect()
        };
        make_dir(&host.state_home).unwrap();
        write_atomic(&boot_file(&host), BEFORE.as_bytes()).unwrap();
        assert_eq!(found(), ["a-vanished"], "the end of that run is unknown");
        let end = |second| {
            let file = fs::File::create(end_mark(&host)).unwrap();
            file.set_modified(at(second).into()).unwrap();
        };
        end(60);
        assert_eq!(found(), ["a-terminated", "a-terminated-at-the-end", "a-vanished"]);
        end(3600);
        assert_eq!(found(), ["a-vanished"], "the signal came long before the end");
        remember_this_boot(&host).unwrap();
        assert!(found().is_empty(), "once is enough");
    }
}
