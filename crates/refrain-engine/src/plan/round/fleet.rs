//! A round of a task whose loop the machines of a fleet drive. The loop is made here and leaves for the git remote; from then
//! on the remote says how it stands, and the server is needed only to give it to a machine and to pass requests on.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_core::agent::Usd;
use refrain_core::event::Urgency;
use refrain_core::git::{Checkout, CommitWhen, Oid};
use refrain_core::r#loop::TakeOverRefusal;
use refrain_core::plan::{RemoteFault, TaskEnded, look_again};
use refrain_core::{LoopId, LoopState};
use refrain_store::journal;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::{Quiet, Round, Turns};
use crate::blocking::blocking;
use crate::move_error::MoveError;
use crate::plan::requests::tell;
use crate::{EngineError, Runner, Service, Signals};

/// How often a round looks whether it is to be told something.
const TICK: Duration = Duration::from_millis(500);
/// How long to wait before the server is asked again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long the server may not take a loop before the task is not worked on.
const SUBMIT: Duration = Duration::from_mins(10);

/// The scheduler of a fleet, as a plan uses it. It is asked where blocking is allowed.
pub trait TaskFleet: Debug + Send + Sync {
    /// Gives it a loop that is at the git remote. It may be repeated.
    /// Errors: why it did not take the loop.
    fn submit(&self, id: &LoopId, remote: &str, agent: &str) -> Result<(), String>;

    /// Passes a request on.
    /// Errors: why it did not take the request.
    fn ask(&self, id: &LoopId, remote: &str, ask: FleetAsk) -> Result<(), String>;
}

/// What a plan asks of the loop of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FleetAsk {
    Pause(Urgency),
    Cancel(Urgency),
    /// To continue, with at most so much money in total.
    Resume {
        max_cost: Option<Usd>,
    },
}

/// The fleet of a plan, and where the remote has its loops.
#[derive(Debug)]
pub(in crate::plan) struct PlanFleet {
    scheduler: Arc<dyn TaskFleet>,
    service: Service,
    remote: String,
    last: Mutex<Option<RemoteLook>>,
}

/// What the remote had when it was looked at last.
#[derive(Debug)]
struct RemoteLook {
    at: Instant,
    /// When it is looked at again, from then.
    again: Duration,
    heads: BTreeMap<LoopId, Oid>,
}

impl PlanFleet {
    pub(in crate::plan) fn new(scheduler: Arc<dyn TaskFleet>, service: Service, remote: String) -> Arc<Self> {
        Arc::new(Self { scheduler, service, remote, last: Mutex::new(None) })
    }

    /// The commit of the loop's reference. One look answers for all rounds; if it fails, the last one does.
    async fn head_of(self: &Arc<Self>, id: &LoopId) -> Option<Oid> {
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|look| look.at.elapsed() >= look.again) {
            let fleet = Arc::clone(self);
            let found = blocking(move || {
                let root = &fleet.service.project().root;
                fleet.service.heads_at((&fleet.remote, root))
            });
            let found = found.await.ok();
            let (waited, before) = last.take().map(|look| (look.again, look.heads)).unwrap_or_default();
            let has_changed = found.as_ref().is_some_and(|heads| *heads != before);
            let again = look_again(waited, has_changed);
            *last = Some(RemoteLook { at: Instant::now(), again, heads: found.unwrap_or(before) });
        }
        last.as_ref()?.heads.get(id).cloned()
    }

    /// Something was asked of a loop: the remote changes soon.
    async fn look_soon(&self) {
        if let Some(look) = self.last.lock().await.as_mut() {
            look.again = look_again(look.again, true);
        }
    }

    /// Asks the scheduler; says whether it took that.
    async fn asked(
        self: &Arc<Self>,
        ask: impl FnOnce(&dyn TaskFleet) -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        let fleet = Arc::clone(self);
        blocking(move || ask(&*fleet.scheduler)).await
    }
}

/// How a round begins.
enum BeginOfRound {
    /// The loop is here, and is to leave.
    Leaves(Box<Runner>),
    /// The remote has it.
    Away(Away),
    Over(Box<LoopState>),
}

/// A loop that is at the remote.
struct Away {
    /// The address, as the departure has it.
    remote: String,
    agent: String,
    /// It has stopped after so many records, and is to continue.
    resumes_after: Option<u64>,
}

/// Has the round's loop driven by the fleet, and returns its result.
pub(in crate::plan) async fn work(
    round: Round,
    fleet: Arc<PlanFleet>,
    quiet: Quiet,
    turns: Turns,
) -> TaskEnded {
    let round = Arc::new(round);
    let state = driven(&round, &fleet, &quiet, &turns).await;
    blocking(move || round.conclude(state)).await
}

async fn driven(
    round: &Arc<Round>,
    fleet: &Arc<PlanFleet>,
    quiet: &Quiet,
    turns: &Turns,
) -> Result<LoopState, EngineError> {
    // It is never closed; without it there would only be less order.
    let turn = Arc::clone(turns).acquire_owned().await.ok();
    let (of, to) = (Arc::clone(round), fleet.remote.clone());
    let away = match blocking(move || of.begin_away(&to)).await? {
        BeginOfRound::Over(state) => return Ok(*state),
        BeginOfRound::Away(away) => away,
        BeginOfRound::Leaves(runner) => match leave(round, fleet, *runner, quiet).await? {
            Ok(away) => away,
            Err(state) => return Ok(*state),
        },
    };
    drop(turn);
    give(round, fleet, &away, quiet).await?;
    follow(round, fleet, &away, quiet).await
}

/// Hands the loop to the remote; or drives it here, if it is to come to rest before it has begun.
async fn leave(
    round: &Arc<Round>,
    fleet: &PlanFleet,
    runner: Runner,
    quiet: &Quiet,
) -> Result<Result<Away, Box<LoopState>>, EngineError> {
    let host = round.host.clone();
    if let Some(how) = quiet.get() {
        let (of, dir) = (host.clone(), round.landing.loop_dir(&round.running.id));
        blocking(move || tell(&of, &dir, how)).await?;
        return Ok(Err(Box::new(Box::pin(runner.drive_unnoted(&host, Signals::None, || {})).await?)));
    }
    let root = round.service.project().root.clone();
    let submitted = Box::pin(round.service.submit(runner, (&fleet.remote, &root))).await;
    let of = Arc::clone(round);
    blocking(move || match submitted {
        Ok(_) => of.away(None).map(Ok),
        // A request may have come before the loop left.
        Err(error) => match journal::read_believed::<LoopState>(
            &of.landing.loop_dir(&of.running.id),
            &of.host.signing(),
        ) {
            Ok(state) if state.ended.is_some() => Ok(Err(Box::new(state))),
            Ok(_) | Err(_) => Err(error),
        },
    })
    .await
}

/// Gives the loop to the scheduler, which may be away for a time. A plan that is to come to rest does not wait for it.
async fn give(round: &Round, fleet: &Arc<PlanFleet>, away: &Away, quiet: &Quiet) -> Result<(), EngineError> {
    let since = Instant::now();
    loop {
        let (id, remote, agent) = (round.running.id.clone(), away.remote.clone(), away.agent.clone());
        let max_cost = round.running.money;
        let resumes = away.resumes_after.is_some();
        let given = fleet.asked(move |scheduler| match resumes {
            true => scheduler.ask(&id, &remote, FleetAsk::Resume { max_cost }),
            false => scheduler.submit(&id, &remote, &agent),
        });
        match given.await {
            Ok(()) => {
                fleet.look_soon().await;
                return Ok(());
            }
            Err(_) if since.elapsed() < SUBMIT && quiet.get().is_none() => sleep(AGAIN).await,
            Err(why) => return Err(EngineError::Fleet(why)),
        }
    }
}

/// Waits until the remote says that the loop has stopped. Requests to all loops of the plan are passed on.
async fn follow(
    round: &Arc<Round>,
    fleet: &Arc<PlanFleet>,
    away: &Away,
    quiet: &Quiet,
) -> Result<LoopState, EngineError> {
    let (mut told, mut tried) = (None, None::<Instant>);
    let mut seen = None;
    let id = &round.running.id;
    loop {
        let wish = quiet.get();
        if let Some((urgency, for_good, _)) = wish.filter(|_| told != wish)
            && tried.is_none_or(|at| at.elapsed() >= AGAIN)
        {
            let ask = if for_good { FleetAsk::Cancel(urgency) } else { FleetAsk::Pause(urgency) };
            let (to, remote) = (id.clone(), away.remote.clone());
            match fleet.asked(move |scheduler| scheduler.ask(&to, &remote, ask)).await {
                Ok(()) => {
                    (told, tried) = (wish, None);
                    fleet.look_soon().await;
                }
                Err(_) => tried = Some(Instant::now()),
            }
        }
        let head = fleet.head_of(id).await;
        if head.is_some() && head != seen {
            let of = Arc::clone(round);
            match blocking(move || of.look(head)).await {
                Ok((state, commit)) => {
                    let continues = away.resumes_after.is_some_and(|seq| state.seq <= seq);
                    if state.ended.is_some() && !continues {
                        return Ok(state);
                    }
                    seen = Some(commit);
                }
                Err(error) if fault(&error).is_passing() => {}
                Err(error) => return Err(error),
            }
        }
        sleep(TICK).await;
    }
}

/// What a look at the remote failed of.
fn fault(error: &EngineError) -> RemoteFault {
    let EngineError::Copy { why, .. } = error else {
        return if matches!(error, EngineError::Journal(_)) {
            RemoteFault::Damaged
        } else if matches!(error, EngineError::Remote { .. }) {
            RemoteFault::NoAnswer
        } else {
            RemoteFault::Here
        };
    };
    match why {
        MoveError::Signer { .. } => RemoteFault::Signer,
        MoveError::OtherJournal { .. } | MoveError::Occupied(_) => RemoteFault::OtherLoop,
        MoveError::Journal(_) => RemoteFault::Damaged,
        MoveError::Raced(_) => RemoteFault::Raced,
        MoveError::Remote { .. } | MoveError::Unknown { .. } | MoveError::NotTaken { .. } => {
            RemoteFault::NoAnswer
        }
        MoveError::Uncommitted { .. }
        | MoveError::OlderChange { .. }
        | MoveError::LeftOut(_)
        | MoveError::Secret(_)
        | MoveError::OtherBranch { .. }
        | MoveError::Configuration(_)
        | MoveError::NoKey(_)
        | MoveError::Diverged(_)
        | MoveError::Changed(_)
        | MoveError::OtherTarget { .. }
        | MoveError::Sandbox(_)
        | MoveError::NotPrepared(_) => RemoteFault::Here,
    }
}

impl Round {
    /// Makes the loop, or finds out where it is.
    fn begin_away(&self, remote: &str) -> Result<BeginOfRound, EngineError> {
        let (id, service) = (&self.running.id, &self.service);
        let dir = self.landing.loop_dir(id);
        if !dir.exists() {
            let repository = self.landing.repository(None)?;
            let begin = self.begin(&repository)?;
            let folder = &service.project().worktree;
            let mut spec = self.loop_spec(folder, &repository, &begin)?;
            let branch = self.spec.branch(&self.task.card.id, self.running.round);
            spec.git.checkout = Checkout::Worktree { branch, from: begin.at.to_string() };
            // What no commit has is lost with a machine.
            spec.git.commit_when = CommitWhen::Each;
            return Ok(BeginOfRound::Leaves(Box::new(service.start(spec, Some(id.clone()))?)));
        }
        if !journal::has_left(&dir) {
            let state: LoopState = journal::read_believed(&dir, &self.host.signing())?;
            let grant = self.grant(&state);
            return Ok(match self.goes_on(&state) && state.resume(&grant).is_ok() {
                true => BeginOfRound::Leaves(Box::new(service.resume(id, &grant, false)?)),
                false => BeginOfRound::Over(Box::new(state)),
            });
        }
        // Its departure may not have reached the remote.
        match service.move_to(id, (remote, &service.project().root), false) {
            Ok(_)
            | Err(EngineError::Move {
                why: MoveError::NotTaken { why: TakeOverRefusal::Claimed(_), .. },
                ..
            }) => {}
            Err(error) => return Err(error),
        }
        let (state, _) = self.look(None)?;
        Ok(match state.ended.is_some() {
            false => BeginOfRound::Away(self.away(None)?),
            true if self.goes_on(&state) && state.resume(&self.grant(&state)).is_ok() => {
                BeginOfRound::Away(self.away(Some(state.seq))?)
            }
            true => BeginOfRound::Over(Box::new(state)),
        })
    }

    /// The loop is at the remote; here it needs neither its worktree nor its branch.
    fn away(&self, resumes_after: Option<u64>) -> Result<Away, EngineError> {
        let dir = self.landing.loop_dir(&self.running.id);
        let state: LoopState = journal::read_believed(&dir, &self.host.signing())?;
        let worktree = &state.spec.worktree;
        if state.spec.git.checkout.is_own_worktree() && worktree.exists() {
            // What it holds went with the loop. One that stays is only in the way.
            self.landing.repository(None)?.remove_saved_worktree(worktree)?;
        }
        let remote = state.tenure.departure.map(|departure| departure.to).unwrap_or_default();
        Ok(Away { remote, agent: state.spec.agent.kind.to_string(), resumes_after })
    }

    /// The loop as the remote has it. The branch of one that has stopped is then here.
    fn look(&self, commit: Option<Oid>) -> Result<(LoopState, Oid), EngineError> {
        let found = self.service.look_at_remote(&self.running.id, commit)?;
        if let Some(head) = found.head.filter(|_| found.state.ended.is_some()) {
            let repository = self.landing.repository(None)?;
            let branch = self.spec.branch(&self.task.card.id, self.running.round);
            let was = repository.branch_head(&branch)?;
            let name = format!("refs/heads/{branch}");
            if was.as_ref() != Some(&head)
                && !repository.move_reference(&name, was.as_ref(), &head, "refrain plan")?
            {
                return Err(refrain_git::GitError::ReferenceMoved(name).into());
            }
        }
        Ok((found.state, found.commit))
    }
}
