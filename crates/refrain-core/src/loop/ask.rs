//! Which requests a loop accepts in its present state, and the event of a runner that takes it over.

mod queued;

use super::state::{LoopState, Phase, is_over};
use crate::agent::Usd;
use crate::event::{ApprovedTree, Ask, End, Event, Identity, Urgency};
use crate::git::Oid;
use crate::machine::{MAX_STEERING, MachineEnd, Refusal, check_steering};
use crate::sandbox::SandboxSpec;
use crate::spec::{AgentSpec, Limits, Millis, OutputFormat};
use crate::text::{clip, printable, squeeze};

pub use queued::{QueuedEffect, QueuedRequest};

/// How much of a queued text a refusal shows, in bytes.
const LONGEST_SHOWN: usize = 200;

/// What `resume` grants: totals, not additions; a total that is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    pub max_iterations: Option<u32>,
    pub max_duration: Option<Millis>,
    pub max_cost: Option<Usd>,
    pub max_tokens: Option<u64>,
    /// How long it may wait for its provider, in a row.
    pub retry_for: Option<Millis>,
    /// The user's rights instead of its sandbox.
    pub no_sandbox: bool,
}

impl AgentSpec {
    /// Whether caps on money and on tokens can be kept with this agent: on money also if it reports its tokens, and its
    /// model has a price.
    pub fn admits(&self, cost: bool, tokens: bool) -> Result<(), Refusal> {
        let untold = |what, flag| Err(Refusal::Unreported { agent: self.kind, what, flag });
        let is_stream = self.output_format == OutputFormat::StreamJson;
        let tells_usage = self.kind.streams() || is_stream;
        let tells_cost = self.kind.tells_cost() || is_stream || self.price.is_some() && tells_usage;
        match (cost && !tells_cost, tokens && !tells_usage) {
            (true, _) => untold("what it costs", "--max-cost"),
            (false, true) => untold("what it uses", "--max-tokens"),
            (false, false) => Ok(()),
        }
    }
}

impl LoopState {
    pub fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.check_here()?;
        if let Ask::AllowHost(_) = ask {
            self.lifecycle.admits(ask)?;
            let has_network = self.spec.sandbox.as_ref().is_some_and(SandboxSpec::has_network);
            return if has_network { Ok(()) } else { Err(Refusal::NoSandbox) };
        }
        if let Ask::Withdraw(request) = ask {
            let is_queued = self.queued().any(|queued| queued.request == *request);
            return if is_queued { Ok(()) } else { self.lifecycle.admits(ask) };
        }
        let Ask::Steer(text) = ask else { return self.lifecycle.admits(ask) };
        check_steering(text)?;
        self.lifecycle.admits(ask)?;
        let waiting = self.steering.iter().map(|said| said.text.len() + 1).sum();
        let fits = waiting + text.len() <= MAX_STEERING;
        fits.then_some(()).ok_or(Refusal::TooLong { waiting, asked: text.len() })
    }

    /// Whether the agent, gate or critic that is being stopped is killed at once for this: it was asked to stop before,
    /// and is asked again.
    pub fn kills_at_once(&self, ask: &Ask) -> bool {
        self.ending() == Some(false)
            && match ask {
                Ask::Cancel(Urgency::Now) => true,
                Ask::Pause(Urgency::Now) => self.pause.is_some(),
                Ask::Cancel(Urgency::AfterIteration) | Ask::Pause(Urgency::AfterIteration) => false,
                Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_) => false,
            }
    }

    /// Whether the child that is being stopped is killed at once.
    pub fn is_killed(&self) -> bool {
        self.ending() == Some(true)
    }

    /// Whether the child that is being stopped is killed; none if there is none.
    fn ending(&self) -> Option<bool> {
        let (_, child) = self.child()?;
        child.stopping.map(|_| child.killed)
    }

    /// The event that resumes the loop under new totals; a total that is not named stays. A loop whose runner died
    /// needs none, because it has not stopped, unless it gets more or was about to pause. One that was about to be
    /// cancelled gets no more: the next runner finishes the cancel.
    pub fn resume(&self, grant: &Grant) -> Result<Option<Event>, Refusal> {
        self.let_go_on(grant, None)
    }

    /// The same, with a person's approval of what the loop waits with: of the tree whose name begins like this, if one
    /// is named.
    /// Errors: A [`Refusal`] if it waits for no approval, or with another tree, or a text for its agent is queued, or it
    /// would stop again at once.
    pub fn approve(&self, grant: &Grant, named: Option<&str>) -> Result<Option<Event>, Refusal> {
        self.check_here()?;
        let end = self.ended.map(|ended| ended.end);
        let Some(approved) = self.awaits_approval() else {
            let (Some(end), true) = (end, self.is_final()) else {
                return Err(Refusal::NotAsked(end.map_or("not over", End::name)));
            };
            return Err(Refusal::Final(end.name()));
        };
        let tree = approved.tree.as_ref().map(Oid::as_str);
        let is_it = |named: &str| tree.map_or(named == "none", |tree| tree.starts_with(named));
        if let Some(asked) = named.filter(|named| !is_it(named)) {
            let waits = tree.map_or_else(|| "no tree".to_owned(), |tree| format!("tree {tree}"));
            return Err(Refusal::AnotherTree { waits, asked: asked.to_owned() });
        }
        if let Some(said) = self.steering.first() {
            let words = squeeze(&printable(&said.text));
            return Err(Refusal::TextQueued(clip(&words, LONGEST_SHOWN).into_owned()));
        }
        self.let_go_on(grant, Some(approved))
    }

    fn let_go_on(&self, grant: &Grant, approved: Option<ApprovedTree>) -> Result<Option<Event>, Refusal> {
        self.check_here()?;
        if !self.may_resume(*grant != Grant::default())? {
            return Ok(None);
        }
        let end = self.ended.map(|ended| ended.end);
        self.spec.agent.admits(grant.max_cost.is_some(), grant.max_tokens.is_some())?;
        let Grant { max_iterations: iterations, max_duration: duration, .. } = *grant;
        let most = self.charged.saturating_add(Limits::MAX_GRANT);
        if let Some(asked) = iterations.filter(|asked| *asked > most) {
            return Err(Refusal::TooMany { asked, most });
        }
        let mut limits = self.limits.clone();
        limits.max_iterations = iterations.or(limits.max_iterations);
        limits.max_duration = duration.or(limits.max_duration);
        limits.max_cost = grant.max_cost.or(limits.max_cost);
        limits.max_tokens = grant.max_tokens.or(limits.max_tokens);
        limits.retry_for = grant.retry_for.or(limits.retry_for);
        // A loop that still has to prove, commit or publish the last iteration needs no other.
        let is_refused = approved.is_none() && self.awaits_approval().is_some();
        let is_pending = match self.phase {
            Phase::Proving(_) if is_refused => false,
            Phase::Proving(_) | Phase::Publishing(_) | Phase::Idle { uncommitted: true, .. } => true,
            // It is done, and only has to record it; a loop of 0.1.0 that stopped there as used up needs more.
            Phase::Idle { .. } if self.completes_by().is_some() => end != Some(End::IterationCap),
            Phase::Idle { uncommitted: false, .. }
            | Phase::Begun { .. }
            | Phase::InFlight(_)
            | Phase::Critiquing(_) => false,
        };
        let is_capped = !is_pending && limits.max_iterations.is_some_and(|cap| cap <= self.charged);
        let lacking: Vec<(String, String)> = is_capped
            .then(|| self.more_iterations())
            .into_iter()
            .chain(self.more_of_the_rest(&limits, approved.is_some()))
            .collect();
        if lacking.is_empty() {
            let no_sandbox = grant.no_sandbox && self.spec.sandbox.is_some();
            return Ok(Some(Event::LoopResumed { limits, approved, no_sandbox }));
        }
        let (used, flags): (Vec<_>, Vec<_>) = lacking.into_iter().unzip();
        Err(Refusal::NothingGranted { used: used.join(", "), flag: flags.join(" ") })
    }

    /// How many iterations are used, and the option that grants more.
    fn more_iterations(&self) -> (String, String) {
        let (used, are) = if self.charged == 1 { ("iteration", "is") } else { ("iterations", "are") };
        let more = Limits::larger_total(self.charged);
        (format!("{} {used} {are} used up", self.charged), format!("--max-iterations {more}"))
    }

    /// The same of time, money and tokens, as far as these limits leave none. The offer is twice the used and likely
    /// amount. Finishing approved work costs nothing more.
    fn more_of_the_rest(&self, limits: &Limits, is_approved: bool) -> impl Iterator<Item = (String, String)> {
        let time = self.more_time(limits.max_duration);
        let likely = self.likely_use();
        let words = |used: String, more: String, passes: bool| match passes {
            true => format!("{used} used, and an iteration like the last takes {more} more"),
            false => format!("{used} used up"),
        };
        let used = self.counted();
        let (spent, more) = (used.cost.unwrap_or_default(), likely.cost.unwrap_or_default());
        let money =
            limits.max_cost.filter(|_| is_over(&Limits { max_tokens: None, ..limits.clone() }, used, likely));
        let money = money.map(|cap| {
            let enough = f64::from(Usd(spent.0.saturating_add(more.0).saturating_mul(2)));
            let used = words(
                format!("{spent} of {cap}{} are", self.assumed.assumed_part()),
                more.to_string(),
                spent < cap,
            );
            (used, format!("--max-cost {:.2}", enough.max(0.01)))
        });
        let (counted, more) = (used.tokens.counted(), likely.tokens.counted());
        let tokens =
            limits.max_tokens.filter(|_| is_over(&Limits { max_cost: None, ..limits.clone() }, used, likely));
        let tokens = tokens.map(|cap| {
            let enough = counted.saturating_add(more).saturating_mul(2);
            let used = words(format!("{counted} of {cap} tokens are"), more.to_string(), counted < cap);
            (used, format!("--max-tokens {enough}"))
        });
        let spent = [money, tokens].into_iter().flatten().filter(move |_| !is_approved);
        time.into_iter().chain(spent)
    }

    /// The first event of a runner: it says what became of the attempt that it found in flight.
    pub fn recover(&self, runner: Identity) -> Event {
        self.recover_under(runner, None)
    }

    /// The same, of a runner that drives the loop under a fence if there is one.
    pub fn recover_under(&self, runner: Identity, fence: Option<u64>) -> Event {
        let interrupted = self.in_flight().map(|flight| flight.id);
        Event::RunnerStarted { runner, interrupted, adopted: None, judged: None, fence }
    }
}
