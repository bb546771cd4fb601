//! The verification of what is about to land: the plan's own gates that are commands, on a clean checkout of the tree,
//! one after the other until one fails.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain_agents::environment;
use refrain_core::event::{Event, FORMAT, LoopStarted};
use refrain_core::gate::{Check, GateName, GateSpec};
use refrain_core::git::Oid;
use refrain_core::plan::{FailedGate, PlanEvent, PlanState};
use refrain_core::sandbox::Role;
use refrain_core::{AttemptId, LoopState, Record, Spec};
use refrain_git::{Cancel, GitError};
use refrain_proc::Meter;
use refrain_proc::keeper::StopLadder;
use refrain_proc::sweep::{Mark, sweep};
use refrain_store::{LoopDir, RunnerLock};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::landing::{HandingOver, Landing, refused};
use crate::blocking::blocking;
use crate::child::checkout_dir::CleanCheckout;
use crate::child::{ChildEvent, SupervisorReports, command_job, supervise};
use crate::sandbox::ConfinedChild;
use crate::{EngineError, Host, chain, now};

pub(super) struct Verification {
    pub(super) landing: Landing,
    pub(super) state: PlanState,
    pub(super) dir: LoopDir,
    pub(super) host: Host,
    pub(super) of: Of,
    /// Keeps other runners from the plan until this is over.
    pub(super) lock: Arc<RunnerLock>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// The outcome of the first tasks of the batch.
    Batch(usize),
    /// What is handed over, if that comes on top of what the person committed meanwhile.
    HandOver,
}

/// Gets the name of each gate when it starts, and again with whether it passed.
pub type GateNotice<'a> = &'a (dyn Fn(&GateName, Option<bool>) + Send + Sync);

/// Runs required gates on a tree, in a clean checkout.
pub(crate) struct TreeVerification<'a> {
    /// The loop, or what all loops of a plan have in common.
    pub(crate) each: &'a Spec,
    pub(crate) host: &'a Host,
    /// Where the logs of the gates are kept.
    pub(crate) dir: &'a LoopDir,
    pub(crate) landing: &'a Landing,
    /// No other process drives the loop or plan before it is over.
    pub(crate) lock: &'a Arc<RunnerLock>,
    /// The last event, which tells the logs from others.
    pub(crate) seq: u64,
    pub(crate) notice: GateNotice<'a>,
}

/// What came of a gate, or of all of them.
pub(crate) enum GateOutcome<T> {
    Passed,
    Failed(T),
    Stopped,
}

impl Verification {
    /// Runs the gates, and does what was to wait for them; no event where it was stopped before its time.
    pub(super) async fn run(self, cancel: Cancel, stopped: watch::Receiver<bool>) -> Option<PlanEvent> {
        let ran = match self.of {
            Of::Batch(upto) => self.verify_batch(upto, cancel, stopped).await,
            Of::HandOver => self.hand_over(cancel, stopped).await,
        };
        match ran {
            Ok(event) => event,
            Err(EngineError::Git(GitError::Cancelled)) => None,
            // It says nothing about what was to be verified.
            Err(EngineError::Git(error)) => Some(PlanEvent::Hindered { error: chain(&error) }),
            Err(error) => {
                let error = format!("the verification cannot be run: {}", chain(&error));
                Some(PlanEvent::Hindered { error })
            }
        }
    }

    async fn verify_batch(
        &self,
        upto: usize,
        cancel: Cancel,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<PlanEvent>, EngineError> {
        let merged = self.state.batch.as_ref().and_then(|batch| batch.merged.get(upto.saturating_sub(1)));
        let tree = merged.map(|merged| merged.tree.clone());
        let tree = tree.ok_or_else(|| not_run("nothing was merged".to_owned()))?;
        Ok(match self.verify(tree, cancel, stopped).await? {
            GateOutcome::Passed => Some(PlanEvent::BatchVerified { upto, failed: None }),
            GateOutcome::Failed(failed) => Some(PlanEvent::BatchVerified { upto, failed: Some(failed) }),
            GateOutcome::Stopped => None,
        })
    }

    /// Hands over what is due. If the person committed meanwhile, the merge is verified first.
    async fn hand_over(
        &self,
        cancel: Cancel,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<PlanEvent>, EngineError> {
        let mut verified = None;
        loop {
            let (landing, state, lock) = (self.landing.clone(), self.state.clone(), Arc::clone(&self.lock));
            let (tree, stop) = (verified.clone(), cancel.clone());
            let handed = blocking(move || {
                let handed = landing.hand_over(&state, tree.as_ref(), &stop);
                drop(lock);
                handed
            });
            let tree = match handed.await? {
                HandingOver::Told(event) => return Ok(Some(event)),
                HandingOver::ToVerify(tree) => tree,
            };
            match self.verify(tree.clone(), cancel.clone(), stopped.clone()).await? {
                GateOutcome::Passed => verified = Some(tree),
                GateOutcome::Failed(FailedGate { gate, log }) => {
                    let log = self.dir.0.join(log);
                    return Ok(Some(refused(format!(
                        "with what was committed meanwhile, {gate} fails: {log} says how; correct that on your branch, then let \
                         the plan go on"
                    ))));
                }
                GateOutcome::Stopped => return Ok(None),
            }
        }
    }

    async fn verify(
        &self,
        tree: Oid,
        cancel: Cancel,
        stopped: watch::Receiver<bool>,
    ) -> Result<GateOutcome<FailedGate>, EngineError> {
        let Self { landing, state, dir, host, lock, .. } = self;
        let (each, seq) = (&state.spec.each, state.seq);
        let tree_of = TreeVerification { each, host, dir, landing, lock, seq, notice: &|_, _| () };
        tree_of.verify(tree, cancel, stopped).await
    }
}

impl TreeVerification<'_> {
    /// Runs one gate after the other, until one fails.
    pub(crate) async fn verify(
        &self,
        tree: Oid,
        cancel: Cancel,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<GateOutcome<FailedGate>, EngineError> {
        // What the gates of a loop are started with, so are these: a loop without an agent. Who starts them comes while git
        // writes the files.
        let each = self.each;
        let mut supervised = supervise(each, self.host, (None, None), &Arc::default(), &Arc::default())?;
        if each.gates.iter().any(|gate| gate.hard && matches!(gate.check, Check::Command(_))) {
            supervised.supervisor.ready();
        }
        let (landing, lock) = (self.landing.clone(), Arc::clone(self.lock));
        let name = format!("{}-{}", self.seq, tree.short());
        let place = blocking(move || {
            let place = check_out(&landing, &tree, &cancel);
            drop(lock);
            place
        });
        let place = place.await;
        let ran = match &place {
            Ok(place) => {
                let (worktree, working_dir) = (place.folder(), inside(each, place));
                let spec = Spec { worktree, working_dir, ..each.clone() };
                self.run_gates(&mut supervised, (spec, &name), &mut stopped).await
            }
            Err(_) => Ok(GateOutcome::Stopped),
        };
        // First all processes that were started there must be gone.
        blocking(move || drop(supervised)).await;
        // Nothing that its gates wrote outlasts it: what passed here need not land.
        let place = place?;
        blocking(move || place.leave()).await;
        ran
    }

    async fn run_gates(
        &self,
        supervised: &mut SupervisorReports,
        (spec, name): (Spec, &str),
        stopped: &mut watch::Receiver<bool>,
    ) -> Result<GateOutcome<FailedGate>, EngineError> {
        let started = LoopStarted { format: FORMAT, refrain: self.host.version.clone(), spec };
        let record = Record { seq: 1, at: now(), event: Event::LoopStarted(Box::new(started)) };
        let of = LoopState::begin(&record).map_err(|why| not_run(why.to_string()))?;
        for gate in of.spec.gates.iter().filter(|gate| gate.hard) {
            let Check::Command(command) = &gate.check else { continue };
            (self.notice)(&gate.name, None);
            for retry in 0..=gate.retries {
                let run = run_number(self.seq, gate.retries, retry);
                let place = (run, self.dir, self.host);
                match run_gate(supervised, &of, (gate, command, name), place, stopped).await? {
                    GateOutcome::Passed => {
                        (self.notice)(&gate.name, Some(true));
                        break;
                    }
                    GateOutcome::Failed(()) if retry < gate.retries => {}
                    GateOutcome::Failed(()) => {
                        (self.notice)(&gate.name, Some(false));
                        let log = self.dir.attempt(AttemptId::BEFORE).gate(&gate.name, run);
                        let log = log.strip_prefix(&self.dir.0).unwrap_or(&log).to_string();
                        return Ok(GateOutcome::Failed(FailedGate { gate: gate.name.clone(), log }));
                    }
                    GateOutcome::Stopped => return Ok(GateOutcome::Stopped),
                }
            }
        }
        Ok(GateOutcome::Passed)
    }
}

/// The number of a gate's run, by which its log is called: each verification comes after another event, and has as many
/// numbers as the gate may have runs, so that no log is another's.
fn run_number(seq: u64, retries: u32, retry: u32) -> u32 {
    let first = seq.saturating_mul(u64::from(retries) + 1);
    u32::try_from(first.saturating_add(u64::from(retry))).unwrap_or(u32::MAX)
}

/// The folder in the checkout that corresponds to the one that the plan was started in.
fn inside(each: &Spec, place: &CleanCheckout) -> camino::Utf8PathBuf {
    match each.working_dir.strip_prefix(&each.worktree) {
        Ok(inside) if !inside.as_str().is_empty() => place.folder().join(inside),
        Ok(_) | Err(_) => place.folder(),
    }
}

fn check_out(landing: &Landing, tree: &Oid, cancel: &Cancel) -> Result<CleanCheckout, EngineError> {
    let place = CleanCheckout::take(&landing.project, &landing.state_home)?;
    place.fill(&landing.repository(Some(cancel))?, (tree, &[]), Some(cancel))?;
    Ok(place)
}

async fn run_gate(
    supervised: &mut SupervisorReports,
    of: &LoopState,
    (gate, command, verification): (&GateSpec, &str, &str),
    (run, dir, host): (u32, &LoopDir, &Host),
    stopped: &mut watch::Receiver<bool>,
) -> Result<GateOutcome<()>, EngineError> {
    let meter = Arc::new(Meter::new(|| {}));
    let job = command_job((of, &host.env), (gate, command), (AttemptId::BEFORE, run), dir, meter);
    let refused = job.listener.refused.clone();
    let confined = ConfinedChild {
        spec: &of.spec,
        role: Role::Gate,
        host,
        loop_dir: &dir.0,
        verification: Some(verification.to_owned()),
    };
    let job = confined.job(job, &refused).map_err(|error| not_run(format!("{}: {error}", gate.name)))?;
    supervised.supervisor.run(job);
    let until = Instant::now() + Duration::from_millis(gate.timeout.0);
    let (mut is_late, mut is_unwanted, mut ran) = (false, false, None);
    loop {
        let news = tokio::select! {
            news = supervised.news.recv() => news,
            () = sleep_until(until), if !is_late => {
                is_late = true;
                supervised.supervisor.stop(StopLadder::default());
                continue;
            }
            // A dropped sender counts as a request to stop, too.
            _ = stopped.wait_for(|is_said| *is_said), if !is_unwanted => {
                is_unwanted = true;
                supervised.supervisor.stop(StopLadder::default());
                continue;
            }
        };
        match news {
            Some(ChildEvent::Finished(event)) => {
                let Event::GateFinished(finished) = *event else { continue };
                let is_pass = !is_late && finished.is_pass();
                ran = Some(if is_pass { GateOutcome::Passed } else { GateOutcome::Failed(()) });
                if !finished.left {
                    break;
                }
            }
            Some(ChildEvent::Swept { .. }) if ran.is_some() => break,
            Some(ChildEvent::NotStarted(said)) => return Err(not_run(format!("{}: {said}", gate.name))),
            None => return Err(not_run(format!("{}: the supervisor is gone", gate.name))),
            Some(
                ChildEvent::Started(_)
                | ChildEvent::Used(_)
                | ChildEvent::Answered
                | ChildEvent::Retrying(_)
                | ChildEvent::Swept { .. }
                | ChildEvent::OutputLost,
            ) => {}
        }
    }
    Ok(if is_unwanted { GateOutcome::Stopped } else { ran.unwrap_or(GateOutcome::Failed(())) })
}

fn not_run(said: String) -> EngineError {
    EngineError::Process("its gates cannot be started", io::Error::other(said))
}

/// Ends leftover processes of an earlier runner's verification.
pub(super) fn sweep_leftovers(each: &Spec) {
    let _ = sweep(&Mark { variables: environment::marks(each), session: None, keeper: None });
}

#[cfg(test)]
mod tests {
    use super::run_number;

    #[test]
    fn no_run_of_a_gate_has_the_number_of_another() {
        for retries in 0..4 {
            let runs =
                (1..50).flat_map(|seq| (0..=retries).map(move |retry| run_number(seq, retries, retry)));
            let runs: Vec<_> = runs.collect();
            assert!(runs.is_sorted_by(|a, b| a < b), "{retries}: {runs:?}");
        }
        assert_eq!(run_number(u64::MAX, 1, 1), u32::MAX);
    }
}
