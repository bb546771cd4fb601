//! Moving a loop between machines: when it may leave, what changes where it arrives, and which machine has it. A *fence*
//! is a number that grows with each take-over: the machine with the highest one has the loop.

use jiff::{SignedDuration, Timestamp};

use super::next_step::Step;
use super::state::{LoopState, Phase};
use crate::event::{Arrival, BlockReason, Departure, End};
use crate::git::{Checkout, Oid};
use crate::machine::{MachineEnd, Refusal};

/// Which machine has the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// That of this machine: 1 where the loop was started.
    pub fence: u64,
    /// A runner drove the loop under a fence: another machine takes it over without a departure.
    pub is_leased: bool,
    /// The remote that has the loop, while no machine that this journal knows has it.
    pub departure: Option<Box<Departure>>,
    /// The address of the remote that the loop came from, and the commit that claimed it there.
    pub claim: Option<(String, Oid)>,
}

impl Default for Tenure {
    fn default() -> Self {
        Self { fence: 1, is_leased: false, departure: None, claim: None }
    }
}

/// What the reference of a loop at a remote says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteLoop {
    pub commit: Oid,
    pub fence: u64,
    /// The machine that has claimed the loop; none if it can be claimed.
    pub holder: Option<String>,
}

/// What taking a loop over from a remote needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// Its departure has not reached the remote: that comes first.
    FinishDeparture,
    /// To claim it with this fence, and then to take what the remote has.
    Claim { fence: u64 },
    /// It was claimed with this fence by an earlier call; the rest is missing.
    Continue { fence: u64 },
}

/// Why a loop is not taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeOverRefusal {
    #[error("it is here already")]
    Here,
    #[error("that remote does not have it")]
    Missing,
    #[error("{0} has taken it over from there")]
    Claimed(String),
    #[error("it left here later, for {0}")]
    Stale(String),
    #[error("a machine has it under fence {there}, and {own} is not higher")]
    Fenced { there: u64, own: u64 },
}

impl Tenure {
    /// What the reference was before the loop left for this remote.
    pub fn before(&self, remote: &str) -> Option<&Oid> {
        self.claim.as_ref().filter(|(from, _)| from == remote).map(|(_, commit)| commit)
    }

    /// Whether the departure to this remote has not reached it.
    pub fn is_leaving(&self, remote: &str, there: Option<&RemoteLoop>) -> bool {
        let goes_there = self.departure.as_ref().is_some_and(|departure| departure.to == remote);
        goes_there && there.map(|there| &there.commit) == self.before(remote)
    }
}

/// What to do to take a loop over from this remote. `here` is its tenure by the journal of this machine, if there is
/// one; `own` are the commits with which this machine has tried to claim it.
pub fn take_over(
    here: Option<&Tenure>,
    remote: &str,
    there: Option<&RemoteLoop>,
    own: &[Oid],
) -> Result<Takeover, TakeOverRefusal> {
    let departure = match here {
        Some(here) if here.is_leaving(remote, there) => return Ok(Takeover::FinishDeparture),
        Some(here) => Some(here.departure.as_ref().ok_or(TakeOverRefusal::Here)?),
        None => None,
    };
    let there = there.ok_or(TakeOverRefusal::Missing)?;
    if let Some(departure) = departure.filter(|departure| departure.fence > there.fence) {
        return Err(TakeOverRefusal::Stale(departure.to.clone()));
    }
    match &there.holder {
        None => Ok(Takeover::Claim { fence: there.fence.saturating_add(1) }),
        Some(_) if own.contains(&there.commit) => Ok(Takeover::Continue { fence: there.fence }),
        Some(holder) => Err(TakeOverRefusal::Claimed(holder.clone())),
    }
}

/// What to do to take a loop over under a fence; nothing if the remote does not have the loop yet. `own` are the commits
/// with which this machine has tried to claim it.
pub fn take_lease(
    there: Option<&RemoteLoop>,
    fence: u64,
    own: &[Oid],
) -> Result<Option<Takeover>, TakeOverRefusal> {
    match there {
        None => Ok(None),
        Some(there) if there.fence < fence => Ok(Some(Takeover::Claim { fence })),
        Some(there) if there.fence == fence && own.contains(&there.commit) => {
            Ok(Some(Takeover::Continue { fence }))
        }
        Some(there) => Err(TakeOverRefusal::Fenced { there: there.fence, own: fence }),
    }
}

/// A wait that is longer than this needs no machine.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(2);

/// Why a machine leaves a loop that it has under a lease, before the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// Something is wrong with this machine; another may be able to continue.
    Unable(BlockReason),
    /// It is asked to end after the iteration.
    Drained,
    /// There is nothing to do before this time.
    Rests(Timestamp),
}

impl LoopState {
    /// Whether this step is not for a machine that has the loop under a lease, and is to be drained or not.
    pub fn leaves(&self, step: Step, is_drained: bool, now: Timestamp) -> Option<LeaveReason> {
        match step {
            Step::Finish(End::Blocked { why }) if why.is_of_machine() => Some(LeaveReason::Unable(why)),
            Step::BeginIteration { .. } if is_drained => Some(LeaveReason::Drained),
            // What its gates prove of the work before it is for the machine that continues it.
            Step::TakeCandidate if is_drained && self.is_unbegun() => Some(LeaveReason::Drained),
            Step::Await { until: Some(until) }
                if self.wait.is_some() && !self.is_busy() && !self.sweeping =>
            {
                match (is_drained, until.duration_since(now) > LONGEST_WAIT) {
                    (true, _) => Some(LeaveReason::Drained),
                    (false, true) => Some(LeaveReason::Rests(until)),
                    (false, false) => None,
                }
            }
            Step::TakeBase
            | Step::TakeCandidate
            | Step::Start(_)
            | Step::Stop(_)
            | Step::Commit { .. }
            | Step::Intend(_)
            | Step::Publish(_)
            | Step::ChangeAgent
            | Step::SaveWork
            | Step::ReleaseWorktree
            | Step::BeginIteration { .. }
            | Step::Wait(_)
            | Step::Await { .. }
            | Step::Finish(_)
            | Step::Rest => None,
        }
    }

    /// Refuses what is asked of a loop that was moved away.
    pub fn check_here(&self) -> Result<(), Refusal> {
        match &self.tenure.departure {
            Some(departure) => Err(Refusal::Moved { to: departure.to.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses to move a loop that cannot be moved, as far as its journal says so. It has stopped.
    pub fn check_movable(&self) -> Result<(), Refusal> {
        let spec = &self.spec;
        let refuse = |why: String| Err(Refusal::Immovable(why));
        match self.ended.map(|ended| ended.end) {
            Some(end) if end.is_final() => return Err(Refusal::Final(end.name())),
            Some(_) if self.cancel.is_some() => return Err(Refusal::Final("cancelled")),
            Some(_) | None => {}
        }
        // Those of a plan on a fleet have a worktree of their own.
        if spec.task.is_some() && !spec.git.checkout.is_own_worktree() {
            return refuse("it is a task of a plan, and plans cannot be moved".to_owned());
        }
        if self.session.is_some() {
            return refuse(
                "an agent's own session drives it; refrain resume takes it out of the session".to_owned(),
            );
        }
        let is_set = |agent: &crate::spec::AgentSpec| agent.env.keys().next().cloned();
        let of_gates =
            || spec.gate_env.variables.iter().find_map(|(name, value)| value.as_ref().map(|_| name));
        if let Some(name) = spec.agents().find_map(is_set).or_else(|| of_gates().cloned()) {
            return refuse(format!(
                "its journal holds the value of {name}, which --env or --gate-env set and no remote may get; set variables \
                 in the environment of each machine instead"
            ));
        }
        let is_own = spec.git.checkout.is_own_worktree();
        let why = match &self.git.base {
            Some(_) if !is_own && spec.git.workflow.publishes() => {
                "it pushes the branch that you have checked out; a loop that pushes and is started with --worktree can be moved"
            }
            Some(_) if !self.git.released => return Ok(()),
            None if !is_own && self.charged > 0 => {
                "it neither commits nor has gates, so git does not know where it began; a loop that is started with --worktree can \
                 be moved"
            }
            // Its first step makes its branch and its worktree, wherever that is.
            None if is_own => return Ok(()),
            Some(_) | None => "it has not begun, and has no branch yet",
        };
        refuse(why.to_owned())
    }

    /// Whether no gate and no agent of it was started.
    fn is_unbegun(&self) -> bool {
        self.iteration == 0 && self.baseline.is_none() && matches!(self.phase, Phase::Idle { .. })
    }

    /// Whether the loop may be handed over as far as what it is doing goes: it has stopped, or was only prepared.
    pub fn is_at_rest(&self) -> bool {
        self.ended.is_some() || self.tenure.is_leased && self.is_unbegun()
    }

    pub(super) fn leave(&mut self, departure: &Departure) -> Result<(), &'static str> {
        let fits = self.is_at_rest()
            && self.check_here().is_ok()
            && self.check_movable().is_ok()
            && departure.fence == self.tenure.fence;
        if !fits {
            return Err("loop.left");
        }
        self.tenure.departure = Some(Box::new(departure.clone()));
        Ok(())
    }

    pub(super) fn arrive(&mut self, arrival: &Arrival) -> Result<(), &'static str> {
        let departure = self.tenure.departure.clone();
        let may_leave = departure.is_some() || self.tenure.is_leased;
        if !may_leave || arrival.fence <= self.tenure.fence {
            return Err("loop.moved");
        }
        let claim = arrival.claim.clone().map(|claim| (arrival.from.clone(), claim));
        let claim = claim.or_else(|| self.tenure.claim.take());
        let is_leased = departure.is_none();
        self.tenure = Tenure { fence: arrival.fence, is_leased, departure: None, claim };
        let spec = &mut self.spec;
        spec.project.clone_from(&arrival.project);
        spec.worktree.clone_from(&arrival.worktree);
        spec.working_dir.clone_from(&arrival.working_dir);
        spec.git.pins.clone_from(&arrival.pins);
        // An arrival takes no sandbox away. It gives one if the user of the machine asks for it.
        if arrival.sandbox.is_some() {
            spec.sandbox.clone_from(&arrival.sandbox);
        }
        for agent in spec.agents_mut() {
            if let Some(program) = arrival.agents.get(&agent.program) {
                agent.program.clone_from(program);
            }
        }
        if let Some(base) = &mut self.git.base {
            base.programs.clone_from(&arrival.programs);
            if let Some(branch) = &arrival.branch {
                base.branch = Some(branch.clone());
                base.dirty.clear();
                base.hidden.clear();
                let head = departure.map(|departure| departure.head).or_else(|| self.git.head.clone());
                let from = head.map_or_else(|| "HEAD".to_owned(), |head| head.to_string());
                spec.git.checkout = Checkout::Worktree { branch: branch.clone(), from };
            }
        }
        self.git.unwatched = true;
        Ok(())
    }

    /// A runner drives the loop under this fence. What was wrong with the machine before may not be wrong with this one.
    pub(super) fn lease(&mut self, fence: u64) {
        (self.tenure.fence, self.tenure.is_leased) = (fence, true);
        if self.missing_gate().is_some() {
            (self.baseline, self.proof) = (None, None);
        }
        let hindered = match &mut self.phase {
            Phase::Begun { hindered, .. } => hindered,
            Phase::Proving(proving) => &mut proving.hindered,
            Phase::Idle { .. } | Phase::InFlight(_) | Phase::Publishing(_) | Phase::Critiquing(_) => return,
        };
        *hindered = hindered.filter(|why| !why.is_of_machine());
    }
}
