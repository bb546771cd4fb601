//! The money that all loops share, as one runner sees it: what is reserved for the agent that it is about to start,
//! grows while that works, and is settled after it. What is enough is decided by the core; the sums are in the ledger.
//!
//! The caps of this machine's user are kept by the ledger of this machine. Under a lease the caps that the loop was started
//! with are kept by a ledger that machines share.

use std::fmt::Debug;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use refrain_core::agent::Usd;
use refrain_core::budget::{
    Allowance, CapUsage, Caps, LastCosts, Ledger, MoneyAnswer, MoneyChange, Reservation, to_grow,
};
use refrain_core::event::Identity;
use refrain_core::spec::AgentSpec;
use refrain_core::{LoopState, Record, Spec, Step};
use refrain_proc::identity;
use refrain_store::config::UserCaps;
use refrain_store::journal::{JournalError, Unreplicated};
use refrain_store::{LedgerFile, LoopDir, journal};

use crate::driver::recovery;
use crate::host::Host;
use crate::{EngineError, Service, now};

/// The ledger that machines share, for one drive of a loop.
pub trait SharedMoney: Debug + Send + Sync {
    /// Asks it; may be called where blocking is allowed. If it cannot be reached, [`MoneyChange::Ask`] and
    /// [`MoneyChange::Release`] wait for it as long as the lease holds, as no agent runs; the others fail soon.
    /// Errors: why it did not answer.
    fn change(&self, change: MoneyChange) -> Result<MoneyAnswer, String>;
}

/// A loop's reservation of the money that all loops share.
#[derive(Debug)]
pub(crate) struct BudgetReservation {
    file: LedgerFile,
    shared: Option<Arc<dyn SharedMoney>>,
    user: UserCaps,
    /// What the project's file said when the loop was started.
    pinned: Caps,
    of: Utf8PathBuf,
    project: String,
    runner: Identity,
    held: Option<BudgetHold>,
}

/// What is reserved for the agent that runs, or is about to.
#[derive(Clone, Copy, Debug)]
struct BudgetHold {
    run: u64,
    /// By the ledger of this machine; none if no cap counts there.
    own: Option<Allowance>,
    /// By the one that machines share.
    shared: Option<Allowance>,
}

impl BudgetHold {
    /// None if no cap counts.
    fn allowance(&self) -> Option<Allowance> {
        lower(self.own, self.shared)
    }
}

/// The one that allows less.
fn lower(one: Option<Allowance>, other: Option<Allowance>) -> Option<Allowance> {
    one.into_iter().chain(other).min_by_key(|allowance| allowance.amount)
}

/// The query before a step that costs money, with all its data; made while the state is available.
#[derive(Debug)]
pub(crate) struct Question {
    /// That the ledger of this machine keeps, and that the shared one does.
    caps: Caps,
    shared: Caps,
    /// Here, and in UTC, as machines share it.
    day: Date,
    utc: Date,
    run: u64,
    /// How much is to be reserved; none if it is only looked whether there is any.
    wish: Option<Usd>,
    /// The costs of this loop's agents that have run.
    costs: Vec<Option<Usd>>,
}

impl BudgetReservation {
    pub(crate) fn new(spec: &Spec, dir: &LoopDir, host: &Host, shared: Option<Arc<dyn SharedMoney>>) -> Self {
        Self {
            file: LedgerFile::new(&host.state_home),
            shared,
            user: UserCaps::new(&host.config_home),
            pinned: spec.caps,
            of: dir.0.clone(),
            project: spec.project.to_string(),
            runner: identity::own(),
            held: None,
        }
    }

    /// The question to ask before a step of which `agent` costs the money; none if there is nothing to ask. The user's
    /// caps are read anew, because a lowered cap applies to running loops too.
    pub(crate) fn question(
        &mut self,
        state: &LoopState,
        (step, agent): (&Step, &AgentSpec),
        now: Timestamp,
    ) -> Result<Option<Question>, EngineError> {
        let tells = agent.tells_cost();
        let caps = match self.user.read() {
            // An agent without known costs continues, even if the configuration is wrong.
            Err(_) if !tells => Caps::default(),
            caps => caps?,
        };
        let (caps, shared) = match &self.shared {
            Some(_) => (caps, self.pinned),
            None => (caps.lower(self.pinned), Caps::default()),
        };
        let starts = !matches!(step, Step::BeginIteration { .. }) && tells;
        let wish = starts.then(|| state.to_reserve(agent));
        Ok((!caps.is_none() || !shared.is_none() || starts).then(|| Question {
            caps,
            shared,
            day: today(now),
            utc: now.to_zoned(TimeZone::UTC).date(),
            run: state.costs.len() as u64,
            wish,
            costs: state.costs.clone(),
        }))
    }

    /// Asks: what dead runners left is taken back, then money is reserved. Says what the shared caps allow; none if
    /// there is no cap. Blocks.
    pub(crate) fn ask(&mut self, question: Question) -> Result<Option<Allowance>, EngineError> {
        let shared = self.ask_shared(&question)?;
        let Question { caps, day, run, wish, costs, .. } = question;
        let is_capped = !caps.is_none();
        let wish = wish.map(|wish| shared.map_or(wish, |shared| shared.amount.min(wish)));
        let answer = self.file.change(|ledger| {
            take_back(ledger, &self.of, &costs);
            let Some(amount) = wish else { return ledger.left(&caps, &self.project, day) };
            let (of, project, runner) = (self.of.clone(), self.project.clone(), self.runner.clone());
            ledger.reserve(Reservation { of, run, project, day, runner, amount }, &caps)
        });
        let own = match answer {
            Ok(allowance) => allowance,
            Err(error) if is_capped => return Err(error.into()),
            // Without a cap the loop is not held up: doctor reports it.
            Err(_) => None,
        };
        self.held = wish.map(|_| BudgetHold { run, own, shared });
        Ok(lower(own, shared))
    }

    /// Asks the ledger that machines share. What a run that is not begun has reserved there is given back when the drive ends.
    fn ask_shared(&self, question: &Question) -> Result<Option<Allowance>, EngineError> {
        let Some(ledger) = self.shared.as_ref().filter(|_| !question.shared.is_none()) else {
            return Ok(None);
        };
        let costs = LastCosts::of(&question.costs);
        let ask = MoneyChange::Ask { day: question.utc, caps: question.shared, wish: question.wish, costs };
        match ledger.change(ask).map_err(EngineError::SharedMoney)? {
            MoneyAnswer::Allowed(allowance) => Ok(allowance),
            MoneyAnswer::Done => Ok(None),
            MoneyAnswer::Overtaken => Err(JournalError::Unreplicated(Unreplicated::Fenced).into()),
        }
    }

    /// What the running agent may use in total.
    pub(crate) fn allowance(&self) -> Option<Allowance> {
        self.held?.allowance()
    }

    /// Whether more is to be reserved now that the agent that runs has used so much.
    pub(crate) fn is_tight(&self, used: Usd) -> bool {
        self.allowance().is_some_and(|allowance| to_grow(used, allowance.amount).is_some())
    }

    /// Reserves more for the running agent, as far as there is any; it is tried again later. Blocks.
    pub(crate) fn grow(&mut self, used: Usd) {
        let Some(BudgetHold { run, own, mut shared }) = self.held else { return };
        let Some(to) = lower(own, shared).and_then(|allowance| to_grow(used, allowance.amount)) else {
            return;
        };
        if let (Some(ledger), Some(_)) = (&self.shared, shared) {
            let grow = MoneyChange::Grow { run, to, caps: self.pinned };
            if let Ok(MoneyAnswer::Allowed(Some(grown))) = ledger.change(grow) {
                shared = Some(grown);
                self.held = Some(BudgetHold { run, own, shared });
            }
        }
        if own.is_none() {
            return;
        }
        // If the ledger or the caps cannot be read or written, the reservation stays as it is, and the agent ends when
        // that is used up.
        let Ok(caps) = self.user.read() else { return };
        let caps = if self.shared.is_some() { caps } else { caps.lower(self.pinned) };
        if let Ok(Some(grown)) = self.file.change(|ledger| ledger.grow(&self.of, run, to, &caps)) {
            self.held = Some(BudgetHold { run, own: Some(grown), shared });
        }
    }

    /// The cost of the last agent, once it is known to have ended; none while it runs.
    pub(crate) fn due(&self, state: &LoopState) -> Option<Option<Usd>> {
        let held = self.held.filter(|_| state.runs().is_none())?;
        Some(cost_of(&state.costs, held.run))
    }

    /// Settles what an earlier runner of this loop left reserved. Where that cannot be written the next start of an agent
    /// takes it back. Blocks.
    pub(crate) fn settle_left(&self, costs: &[Option<Usd>]) {
        let _ = self.file.change(|ledger| {
            let open = ledger.open().iter().filter(|it| it.of == self.of);
            let left: Vec<_> = open.map(|it| it.run).collect();
            for run in left {
                ledger.settle(&self.of, run, cost_of(costs, run));
            }
        });
    }

    /// Settles what was reserved. Where that cannot be written it stays reserved: it is taken back later. Blocks.
    pub(crate) fn settle(&mut self, cost: Option<Usd>) {
        if let Some(held) = self.held.take() {
            if let (Some(ledger), Some(_)) = (&self.shared, held.shared) {
                let _ = ledger.change(MoneyChange::Settle { run: held.run, cost });
            }
            let _ = self.file.change(|ledger| ledger.settle(&self.of, held.run, cost));
        }
    }
}

/// The limits an agent is started with: what it may spend, if it keeps a cap itself; and whether there is any cap, for
/// which it is to report its usage early.
pub(crate) fn told(state: &LoopState, agent: &AgentSpec, shared: Option<Allowance>) -> (Option<Usd>, bool) {
    let handed = shared.filter(|_| agent.keeps_a_budget()).map(|allowance| allowance.amount);
    let budget = [state.budget(), handed].into_iter().flatten().min();
    (budget, state.limits.max_cost.is_some() || state.limits.max_tokens.is_some() || shared.is_some())
}

/// What one of a loop's agents cost; none if that is unknown. One that is not among them was never started.
fn cost_of(costs: &[Option<Usd>], run: u64) -> Option<Usd> {
    let known = usize::try_from(run).ok().and_then(|at| costs.get(at));
    known.copied().unwrap_or(Some(Usd(0)))
}

/// Takes back the reservations of dead runners, and the earlier ones of this loop: known usage is booked as spent.
fn take_back(ledger: &mut Ledger, own: &Utf8Path, costs: &[Option<Usd>]) {
    let is_left = |it: &&Reservation| it.of == own || identity::is_alive(&it.runner) == Some(false);
    let left: Vec<_> = ledger.open().iter().filter(is_left).map(|it| (it.of.clone(), it.run)).collect();
    for (of, run) in left {
        let used = match of == own {
            true => cost_of(costs, run),
            false => costs_of(of.clone()).and_then(|costs| cost_of(&costs, run)),
        };
        ledger.settle(&of, run, used);
    }
}

/// What the agents of a loop without a runner cost: for one that was in flight, what its stream says.
fn costs_of(dir: Utf8PathBuf) -> Option<Vec<Option<Usd>>> {
    let dir = LoopDir(dir);
    let mut state = journal::read(&dir).ok()?.state;
    if state.is_busy() {
        let event = recovery::taken_over(&state, &dir);
        state.apply(&Record { seq: state.seq + 1, at: state.updated_at, event }).ok()?;
    }
    Some(state.costs)
}

fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::system()).date()
}

impl Service {
    /// The state of the caps that count for this project's loops; for one of them, with those that it was started with.
    pub fn shared_caps(&self, pinned: Caps) -> Result<Vec<CapUsage>, EngineError> {
        let caps = self.caps_of_user(pinned)?;
        if caps.is_none() {
            return Ok(Vec::new());
        }
        let ledger = LedgerFile::new(&self.host.state_home).read()?;
        Ok(ledger.standings(&caps, self.project.root.as_str(), today(now())))
    }

    pub(crate) fn caps_of_user(&self, pinned: Caps) -> Result<Caps, EngineError> {
        Ok(UserCaps::new(&self.host.config_home).read()?.lower(pinned))
    }
}
