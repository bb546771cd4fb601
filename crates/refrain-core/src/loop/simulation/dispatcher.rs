//! What the engine's dispatcher does, in numbers: record, fold, ask for the next step, execute it; and what a client
//! does if no runner is alive.

use jiff::Timestamp;

use super::agent::{Agent, Sign};
use super::critic::{Critic, judged};
use super::gate::Gate;
use super::person::{Act, Leave};
use super::world::{World, span_ms};
use crate::agent::{FaultKind, Until};
use crate::event::{Ask, AttemptFinished, Event, Exit, StopReason, Urgency};
use crate::ids::AttemptId;
use crate::r#loop::tests::journal::{asked, event_of, grant, request, runner, spawn_failed, spawned};
use crate::r#loop::{ChildId, Grant, Live, Outcome, Phase, ProviderRetry, Step, next_step};
use crate::simulation::Crash;
use crate::simulation::tally::Tally;
use crate::spec::Millis;
use crate::stuck::Verdict;

/// A run that takes more of these turns spins.
const MANY_TURNS: u32 = 3_000;
/// After so many events a person loses patience, and cancels: without limits nothing else need end a run.
const MANY_EVENTS: u64 = 250;

impl World {
    /// One runner's life, or what a person does with a stopped loop; returns whether it may continue.
    pub(super) fn live(&mut self, tally: &mut Tally) -> Result<bool, Crash> {
        self.live = Live::default();
        if std::mem::take(&mut self.torn) {
            self.append(Event::JournalTorn { bytes: 7, kept_as: "torn".into() })?;
            self.sync();
            tally.add("disk", "a torn line");
        }
        if self.state.ended.is_some() {
            // A client may have died between the cancel and the end.
            self.end_if_asked()?;
        }
        if self.state.is_final() {
            return Ok(false);
        }
        // Without a runner, the client handles its own request.
        if self.state.ended.is_some() && !self.hear(tally)? {
            let random = &mut self.random;
            match self.person.finds(random, &self.state) {
                Leave::It => return Ok(false),
                Leave::Ask(ask) => {
                    tally.add("request", "by an asker, with no runner alive");
                    self.post(ask);
                    self.hear(tally)?;
                }
                Leave::Resume { iterations, duration } => {
                    self.real += self.random.below(1_000_000);
                    if self.state.awaits_approval().is_some() {
                        tally.add("approval", "not given");
                    }
                    if let Ok(Some(event)) = self.state.resume(&grant(iterations, duration)) {
                        self.append(event)?;
                        self.sync();
                        tally.add("loop", "resumed");
                    }
                }
                Leave::Approve => self.approve(tally)?,
            }
        } else if self.crashes > 0 && self.state.ended.is_none() && self.random.once_in(8) {
            // With no runner alive the client takes the lock, recovers, and handles the request itself.
            self.recover(tally)?;
            let urgency = self.random.pick(&[Urgency::AfterIteration, Urgency::Now]);
            let ask = match self.random.below(5) {
                0 => Ask::Cancel(urgency),
                1 | 2 => Ask::Pause(urgency),
                _ => Ask::Steer("while it lay there".into()),
            };
            tally.add("request", "by an asker, with no runner alive");
            self.post(ask);
            self.hear(tally)?;
            self.end_if_asked()?;
            self.is_left_alone();
        } else if self.crashes > 0 && self.state.ended.is_none() && self.random.once_in(6) {
            self.recover(tally)?;
            let more = self.state.charged + 1 + u32::try_from(self.random.below(5)).expect("a small number");
            // Some grant more; some only resume, which takes back a pending pause.
            let more = self.random.once_in(2).then_some(more);
            let pausing = self.state.pause.is_some();
            if let Ok(event) = self.state.resume(&grant(more, None)) {
                // A loop that was about to be cancelled gets nothing more, and is only finished.
                let changes = (more.is_some() || pausing) && self.state.cancel.is_none();
                assert_eq!(event.is_some(), changes, "what is to change is recorded");
                if let Some(event) = event {
                    self.append(event)?;
                    self.sync();
                    tally.add(
                        "loop",
                        if more.is_some() {
                            "granted more after a crash"
                        } else {
                            "let go on before its pause"
                        },
                    );
                }
            }
        }
        if self.state.ended.is_some() {
            self.end_if_asked()?;
        } else {
            self.recover(tally)?;
            self.hear(tally)?;
            self.drive(tally)?;
        }
        Ok(true)
    }

    /// A person approves what the loop waits with; now and then the work was changed meanwhile.
    fn approve(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        self.real += self.random.below(1_000_000);
        let Ok(Some(event)) = self.state.approve(&Grant::default(), None) else { return Ok(()) };
        if self.random.once_in(4) {
            self.tree += 1;
            tally.add("approval", "given to what is another by now");
        }
        self.append(event)?;
        self.sync();
        tally.add("approval", "given");
        Ok(())
    }

    /// A client ends the processes that a runner left, and records the end that it asked for, but starts nothing.
    fn end_if_asked(&mut self) -> Result<(), Crash> {
        if self.state.sweeping {
            self.append(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] })?;
        }
        while let step @ (Step::Finish(_) | Step::ReleaseWorktree) =
            next_step(&self.state, &self.live, self.now())
        {
            self.append(event_of(&self.state, step).expect("both are recorded"))?;
            self.sync();
        }
        Ok(())
    }

    fn recover(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        if self.state.in_flight().is_some() {
            tally.add("loop", "recovered in flight");
        }
        if self.state.running_gate().is_some() {
            tally.add("gate", "lost with its runner");
        }
        let mut event = self.state.recover(runner(1));
        if let (Event::RunnerStarted { judged: heard, .. }, None, Some(_)) =
            (&mut event, self.state.in_flight(), self.state.runs())
        {
            *heard = judged(&mut self.random);
            tally.add("critic", "or a reviewer lost with its runner");
        }
        self.append(event)?;
        self.sync();
        Ok(())
    }

    /// The dispatcher, until there is nothing more to do.
    fn drive(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        loop {
            self.turns += 1;
            assert!(self.turns < MANY_TURNS, "it spins");
            let step = next_step(&self.state, &self.live, self.now());
            let event = match step {
                Step::TakeCandidate => Some(self.candidate()),
                Step::Commit { iteration } => Some(self.commit(iteration, tally)),
                Step::Publish(effect) => Some(self.publish(effect, tally)),
                Step::TakeBase => Some(self.base()),
                Step::BeginIteration { iteration } => {
                    Some(Event::IterationBegun { iteration, work: self.work.digest() })
                }
                Step::ChangeAgent => {
                    let other = self.state.other_agent().expect("there is another").clone();
                    Some(Event::AgentChanged(Box::new(other)))
                }
                step => event_of(&self.state, step),
            };
            if let Some(event) = event {
                self.append(event)?;
            }
            match step {
                // The runner stays until no process of the last attempt is left.
                Step::Rest if self.swept_at.is_some() => self.wait(None, tally)?,
                Step::Rest => return Ok(()),
                Step::Await { until } => self.wait(until, tally)?,
                Step::Start(ChildId::Attempt(id)) => self.start(id, tally),
                Step::Stop(because) => match self.state.child().expect("what is stopped is there").0 {
                    ChildId::Attempt(_) => {
                        self.agent.as_mut().expect("what is stopped is there").stop(self.real);
                        self.assert_silent(because);
                        tally.add("agent", stop_name(because));
                    }
                    ChildId::Gate { .. } => self.stop_gate(because, tally),
                    ChildId::Critic { .. } => self.stop_critic(because, tally),
                },
                Step::Wait(_) | Step::Finish(_) => {
                    if matches!(self.state.phase, Phase::Idle { uncommitted: true, .. }) {
                        tally.add("git", "stopped before its commit");
                    }
                    self.sync();
                }
                Step::BeginIteration { .. } => {}
                Step::TakeCandidate => {
                    let is_over = self.state.proving().is_none();
                    tally.add("gate", if is_over { "candidate settles it" } else { "candidate taken" });
                }
                Step::Start(ChildId::Gate { gate, .. }) => self.start_gate(gate, tally)?,
                Step::TakeBase => tally.add("git", "base taken"),
                Step::Commit { .. } => {
                    tally.add("git", "commit settled");
                    self.sync();
                }
                // An intent is on disk before anything is done about it.
                Step::Intend(_) => self.sync(),
                Step::Publish(_) => {}
                Step::ReleaseWorktree => tally.add("git", "worktree released"),
                Step::Start(ChildId::Critic { .. }) => self.start_critic(tally)?,
                Step::ChangeAgent => tally.add("stuck", "another agent continues"),
                Step::SaveWork => tally.add("stuck", "work is kept"),
            }
        }
    }

    fn start(&mut self, id: AttemptId, tally: &mut Tally) {
        self.sync();
        assert!(self.agent.is_none(), "two agents at a time");
        assert!(!self.started.contains(&id), "an agent was started twice for {id}");
        self.started.push(id);
        if let Verdict::Shift(_) = self.state.verdict() {
            tally.add("stuck", "told to do something else");
        }
        if self.state.feedback.said.is_some() {
            tally.add("critic", "heard");
        }
        if !self.state.steering.is_empty() {
            tally.add("loop", "steered");
        }
        let able = self.boasts || u64::from(id.iteration) >= self.able_from;
        let whether = (able, self.despairs);
        let mut agent = Agent::sample(&mut self.random, self.temper, self.real, whether);
        // A loop outside a plan ignores it.
        agent.gives_up &= self.state.spec.task.is_some();
        self.agent = Some(agent);
        self.live = Live::default();
        tally.add("agent", "started");
    }

    /// Waits for the first thing to happen, and takes it.
    fn wait(&mut self, until: Option<Timestamp>, tally: &mut Tally) -> Result<(), Crash> {
        let now = self.now();
        assert!(until.is_none_or(|until| until > now), "it awaits what has passed");
        // Nanoseconds do not matter here: every time of this world is a whole millisecond.
        let timer = until.map(|until| self.real.saturating_add(span_ms(now, until)));
        let agent = self.agent.as_ref().and_then(Agent::next).map(|at| at.max(self.real));
        let gate = self.gate.as_ref().and_then(Gate::next).map(|at| at.max(self.real));
        let critic = self.critic.as_ref().and_then(Critic::next).map(|at| at.max(self.real));
        let person = self.person.acts.next().map(|at| at.max(self.real));
        let swept = self.swept_at.map(|at| at.max(self.real));
        let tired = self.written > MANY_EVENTS
            && self.state.cancel != Some(Urgency::Now)
            && self.state.ended.is_none();
        let first = [agent, gate, critic, swept, person, timer].into_iter().flatten().min();
        let Some(first) = first.filter(|_| !tired) else {
            // Nothing will ever happen, or too much did.
            self.real += 1_000;
            self.post(Ask::Cancel(Urgency::Now));
            return self.hear(tally).map(|_| ());
        };
        self.real = first;
        if agent == Some(first) {
            return self.hear_agent(tally);
        }
        if gate == Some(first) {
            return self.hear_gate(tally);
        }
        if critic == Some(first) {
            return self.hear_critic();
        }
        if swept == Some(first) {
            self.swept_at = None;
            if self.state.ended.is_some() {
                tally.add("loop", "ended while being swept");
            }
            let survivors = if self.random.once_in(9) { vec![4711] } else { vec![] };
            return self.append(Event::AttemptSwept { killed: 1, survivors, names: vec![] });
        }
        if person == Some(first) {
            match self.person.acts.act() {
                Act::Request(ask) => self.post(ask),
                Act::Withdraw => {
                    let queued = self.state.queued().last();
                    let last = queued.as_ref().map(|queued| &queued.request).or(self.told.last()).cloned();
                    tally.add(
                        "request",
                        if queued.is_some() { "taken back" } else { "too late to take back" },
                    );
                    last.into_iter().for_each(|request| self.post(Ask::Withdraw(request)));
                }
                Act::Interrupt => {
                    let again = self.state.pause.is_some();
                    let urgency = if again { Urgency::Now } else { Urgency::AfterIteration };
                    self.append(asked(Ask::Pause(urgency)))?;
                    self.sync();
                }
            }
            self.hear(tally)?;
        }
        Ok(())
    }

    fn hear_agent(&mut self, tally: &mut Tally) -> Result<(), Crash> {
        match self.agent.as_mut().expect("it did something").act() {
            Sign::Spawned => self.append(spawned()),
            Sign::Printed => {
                self.live.last_output = Some(self.now());
                Ok(())
            }
            Sign::Used(tokens) => {
                self.live.used.tokens = tokens;
                Ok(())
            }
            Sign::Retries(kind, until) => {
                self.live.last_output = Some(self.now());
                self.live.retrying = Some(ProviderRetry { kind, until, since: self.now() });
                Ok(())
            }
            Sign::Filled => {
                self.live.output_lost = true;
                Ok(())
            }
            Sign::CannotStart => {
                self.agent = None;
                self.append(spawn_failed())?;
                self.sync();
                Ok(())
            }
            Sign::Finished(finished, leaves) => {
                self.agent = None;
                self.assert_in_time(finished.exit);
                self.swept_at = leaves.map(|ms| self.real + ms);
                if leaves.is_some() {
                    tally.add("agent", "left a process behind");
                }
                if !self.random.once_in(3) {
                    self.tree += 1;
                }
                self.work.attempted();
                let work = self.work.digest();
                self.append(Event::AttemptFinished(Box::new(AttemptFinished { work, ..*finished })))?;
                if matches!(self.state.attempts.last(), Some(last) if matches!(last.outcome, Outcome::Limit | Outcome::Outage))
                {
                    tally.add("agent", "met a limit or an outage");
                }
                if self.random.once_in(200) {
                    self.set_clock(tally);
                }
                Ok(())
            }
        }
    }

    fn assert_silent(&self, because: StopReason) {
        if because == StopReason::ProviderWait {
            let ProviderRetry { kind, until, since } = self.live.retrying.expect("it waits for its provider");
            let sleeps = matches!(until, Some(Until::After(Millis(60_001..))));
            let is_limited = matches!(kind, FaultKind::RateLimit | FaultKind::Limit);
            assert!(sleeps || is_limited && span_ms(since, self.now()) >= 120_000, "it tries again soon");
        }
        if let (StopReason::Silence, Some(heard)) = (because, self.live.last_output) {
            let Millis(limit) = self.state.limits.idle_timeout.expect("a limit");
            assert!(span_ms(heard, self.now()) >= limit, "it was stopped though it spoke");
        }
    }

    /// No agent runs past a limit: one that got no stop request has ended before its limit.
    fn assert_in_time(&self, exit: Exit) {
        let flight = self.state.in_flight().expect("what ended was there");
        let Some((_, since)) =
            flight.spawned.filter(|_| flight.child.stopping.is_none() && exit != Exit::Lost)
        else {
            return;
        };
        if let Some(Millis(limit)) = self.state.limits.timeout {
            assert!(span_ms(since, self.now()) <= limit, "it ran past its time");
        }
    }

    fn post(&mut self, ask: Ask) {
        self.inbox.push_back((request(format!("r{}-{}", self.real, self.written)), ask));
    }

    /// Takes what is in the inbox: recorded and answered, or refused; a request leaves the inbox only then.
    fn hear(&mut self, tally: &mut Tally) -> Result<bool, Crash> {
        let found = !self.inbox.is_empty();
        while let Some((request, ask)) = self.inbox.front().cloned() {
            if self.state.has_answered(&request) {
                tally.add("request", "seen again after a crash");
            } else if self.state.admits(&ask).is_ok() {
                self.append(Event::Asked { request: Some(request.clone()), ask, by: Default::default() })?;
                tally.add("request", "answered");
            } else {
                tally.add("request", "refused");
                self.inbox.pop_front();
                continue;
            }
            self.sync();
            self.told.push(request);
            self.inbox.pop_front();
        }
        Ok(found)
    }
}

fn stop_name(because: StopReason) -> &'static str {
    match because {
        StopReason::Cancel => "stopped: cancel",
        StopReason::Interrupt => "stopped: interrupt",
        StopReason::TimeLimit => "stopped: time limit",
        StopReason::Silence => "stopped: silence",
        StopReason::LoopDuration => "stopped: loop duration",
        StopReason::OutputLost => "stopped: output lost",
        StopReason::Budget => "stopped: budget",
        StopReason::ProviderWait => "stopped: sleeps until its provider works",
    }
}
