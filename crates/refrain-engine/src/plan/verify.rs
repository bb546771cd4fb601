//! The verification of what is about to land: the plan's own gates that are commands, on a clean checkout of the tree, one
//! after the other until one fails.

use std::sync::Arc;

use refrain_agents::environment;
use refrain_core::event::{Event, FORMAT, LoopStarted};
use refrain_core::gate::{Check, GateSpec};
use refrain_core::git::Oid;
use refrain_core::plan::{FailedGate, PlanEvent, PlanState};
use refrain_core::{AttemptId, LoopState, Record, Spec};
use refrain_git::{Cancel, CleanRequest};
use refrain_proc::Meter;
use refrain_proc::keeper::StopLadder;
use refrain_proc::sweep::{Mark, sweep};
use refrain_store::{CleanPlace, LoopDir};
use tokio::time::{Instant, timeout_at};

use super::landing::Landing;
use crate::agent_news::{AgentNews, Supervised, supervise};
use crate::dispatcher::blocking;
use crate::{EngineError, Host, chain, gate, now};

/// Runs them on what so many of the batch come to.
pub(super) async fn verify(
    landing: &Landing,
    state: &PlanState,
    (dir, upto): (LoopDir, usize),
    host: &Host,
    cancel: &Cancel,
) -> Result<PlanEvent, EngineError> {
    let merged = state.batch.as_ref().and_then(|batch| batch.merged.get(upto.saturating_sub(1)));
    let Some(tree) = merged.map(|merged| merged.tree.clone()) else {
        return Ok(PlanEvent::Hindered { error: "there is nothing to verify".to_owned() });
    };
    let (landing, stop) = (landing.clone(), cancel.clone());
    let place = match blocking(move || check_out(&landing, &tree, &stop)).await {
        Ok(place) => place,
        Err(error) => return Ok(PlanEvent::Hindered { error: chain(&error) }),
    };
    // What the gates of a loop are started with, so are these: a loop without an agent.
    let spec = Spec {
        worktree: place.folder(),
        working_dir: inside(&state.spec.each, &place),
        ..(*state.spec.each).clone()
    };
    let started = LoopStarted { format: FORMAT, refrain: host.version.clone(), spec: spec.clone() };
    let record = Record { seq: 1, at: now(), event: Event::LoopStarted(Box::new(started)) };
    let Ok(of) = LoopState::begin(&record) else {
        return Ok(PlanEvent::Hindered { error: "the plan's gates cannot be run".to_owned() });
    };
    let mut supervised = supervise(&spec, host, &Arc::default(), &Arc::default())?;
    let mut failed = None;
    for gate in spec.gates.iter().filter(|gate| gate.hard) {
        let Check::Command(command) = &gate.check else { continue };
        // As many verifications as there were events before, so that no log is another's.
        let mut run = u32::try_from(state.seq).unwrap_or(u32::MAX);
        let mut passed = false;
        for _ in 0..=gate.retries {
            passed = run_gate(&mut supervised, &of, (gate, command), run, &dir).await?;
            if passed {
                break;
            }
            run = run.saturating_add(1);
        }
        if !passed {
            let log = dir.attempt(AttemptId::BEFORE).gate(&gate.name, run.saturating_sub(1));
            let log = log.strip_prefix(&dir.0).unwrap_or(&log).to_string();
            failed = Some(FailedGate { gate: gate.name.clone(), log });
            break;
        }
    }
    blocking(move || {
        drop(supervised);
        place.leave();
    })
    .await;
    Ok(PlanEvent::BatchVerified { upto, failed })
}

/// The folder in the checkout that corresponds to the one that the plan was started in.
fn inside(each: &Spec, place: &CleanPlace) -> camino::Utf8PathBuf {
    match each.working_dir.strip_prefix(&each.worktree) {
        Ok(inside) if !inside.as_str().is_empty() => place.folder().join(inside),
        Ok(_) | Err(_) => place.folder(),
    }
}

fn check_out(landing: &Landing, tree: &Oid, cancel: &Cancel) -> Result<CleanPlace, EngineError> {
    let place = CleanPlace::take(&landing.project, &landing.state_home)?;
    let (folder, index) = (place.folder(), place.index());
    let request = CleanRequest { tree, over: &[], folder: &folder, index: &index, cancel: Some(cancel) };
    landing.repository(Some(cancel))?.check_out_clean(request)?;
    Ok(place)
}

/// Runs one gate once; whether it passed.
async fn run_gate(
    supervised: &mut Supervised,
    of: &LoopState,
    (gate, command): (&GateSpec, &str),
    run: u32,
    dir: &LoopDir,
) -> Result<bool, EngineError> {
    let meter = Arc::new(Meter::new(|| {}));
    let job = gate::job(of, (gate, command), (AttemptId::BEFORE, run), dir, meter);
    supervised.supervisor.run(job);
    let until = Instant::now() + std::time::Duration::from_millis(gate.timeout.0);
    let (mut stopped, mut passed) = (false, None);
    loop {
        let news = if stopped {
            Ok(supervised.news.recv().await)
        } else {
            timeout_at(until, supervised.news.recv()).await
        };
        match news {
            Err(_) => {
                stopped = true;
                supervised.supervisor.stop(StopLadder::default());
            }
            Ok(Some(AgentNews::GateFinished(finished))) => {
                passed = Some(!stopped && finished.is_pass());
                if !finished.left {
                    break;
                }
            }
            Ok(Some(AgentNews::Swept { .. })) if passed.is_some() => break,
            Ok(Some(AgentNews::NotStarted(_)) | None) => break,
            Ok(Some(
                AgentNews::Started(_)
                | AgentNews::Used(_)
                | AgentNews::Answered
                | AgentNews::Finished(_)
                | AgentNews::CritiqueFinished(_)
                | AgentNews::Swept { .. }
                | AgentNews::OutputLost,
            )) => {}
        }
    }
    Ok(passed.unwrap_or(false))
}

/// Ends what the verification of a runner before this one left behind.
pub(super) fn sweep_leftovers(each: &Spec) {
    let _ = sweep(&Mark { variable: environment::mark(each), session: None, keeper: None });
}
