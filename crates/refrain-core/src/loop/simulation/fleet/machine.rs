//! What a machine of the fleet does: its keeper, its runner, its witness, and how it takes the loop over.

use super::{Agent, Barrier, Drive, Fleet, LEASE, PushResult, Unreplicated};
use crate::agent::Scope;
use crate::event::{Event, Exit, Record};
use crate::ids::AttemptId;
use crate::r#loop::tests::journal::{event_of, finished, moved, reporting, runner, spawned, time, tokens};
use crate::r#loop::{ChildId, Live, LoopState, Step, Takeover, next_step, take_lease};
use crate::simulation::tally::Tally;

impl Fleet {
    /// The keeper of a machine: it enforces the deadline, even if the runner is frozen.
    pub(super) fn keep(&mut self, which: usize, tally: &mut Tally) {
        let (now, machine) = (self.now, &mut self.machines[which]);
        if machine.frozen_until > now {
            return;
        }
        let Some(agent) = &mut machine.agent else { return };
        agent.left = agent.left.saturating_sub(1);
        if now >= machine.keeper_deadline {
            tally.add("drive", "its keeper ended the agent");
            machine.agent = None;
            machine.exited = Some(finished(Exit::Lost));
        } else if agent.left == 0 {
            machine.exited = machine.agent.take().map(|agent| agent.finished);
        }
    }

    pub(super) fn is_cut(&self, which: usize) -> bool {
        self.machines[which].cut_until > self.now
    }

    /// A heartbeat of a drive under this fence; says whether the scheduler accepts it.
    fn beat(&mut self, which: usize, fence: u64) -> bool {
        let is_accepted = !self.is_cut(which) && self.fence == fence;
        if is_accepted {
            self.heard = self.now;
        }
        is_accepted
    }

    /// One second of the runner of a machine.
    pub(super) fn work(&mut self, which: usize, tally: &mut Tally) {
        if self.machines[which].drive.is_none() {
            if let Some(fence) = self.machines[which].orders.last().copied()
                && !self.is_cut(which)
                && self.take(which, fence, tally)
            {
                self.machines[which].orders.clear();
            }
            return;
        }
        let Some(mut drive) = self.machines[which].drive.take() else { return };
        if self.now >= drive.deadline {
            tally.add("drive", "lapsed");
            return self.end_agent(which);
        }
        if self.beat(which, drive.fence) {
            drive.deadline = self.now + LEASE;
            self.machines[which].keeper_deadline = drive.deadline;
        }
        if let Some(finished) = self.machines[which].exited.take() {
            self.append(which, &mut drive, Event::AttemptFinished(Box::new(finished)));
        }
        if self.steps(which, &mut drive, tally) {
            self.machines[which].drive = Some(drive);
        } else {
            self.end_agent(which);
        }
    }

    fn end_agent(&mut self, which: usize) {
        let machine = &mut self.machines[which];
        (machine.agent, machine.exited) = (None, None);
    }

    fn append(&mut self, which: usize, drive: &mut Drive, event: Event) {
        let at = time(i64::try_from(self.now * 1_000).expect("a run is short"));
        let record = Record { seq: drive.state.seq + 1, at, event };
        if self.aloud {
            println!("{which} under {}: {record:?}", drive.fence);
        }
        drive.state.apply(&record).expect("what was decided can be recorded");
        self.machines[which].disk.push(record);
    }

    /// Does what can be done now; says whether the drive continues.
    fn steps(&mut self, which: usize, drive: &mut Drive, tally: &mut Tally) -> bool {
        loop {
            if let Some(barrier) = drive.barrier {
                match self.replicate(which, drive, tally) {
                    Ok(()) => drive.barrier = None,
                    Err(Unreplicated::Unreachable) => return true,
                    Err(Unreplicated::Fenced) => {
                        tally.add("drive", "fenced");
                        return false;
                    }
                }
                match barrier {
                    Barrier::Agent(id) => {
                        self.start(which, id);
                        self.append(which, drive, spawned());
                    }
                    Barrier::End => {}
                }
            }
            let now = time(i64::try_from(self.now * 1_000).expect("a run is short"));
            match next_step(&drive.state, &Live::default(), now) {
                Step::Await { .. } => return true,
                Step::Rest => {
                    let end = drive.state.ended.expect("it rests").end;
                    // Without an answer of the scheduler the loop is given again, and found to be over.
                    self.ended = Some(end).filter(|_| self.beat(which, drive.fence)).or(self.ended);
                    return false;
                }
                Step::Start(ChildId::Attempt(id)) => {
                    self.append(which, drive, Event::AttemptStarted(id));
                    drive.barrier = Some(Barrier::Agent(id));
                }
                Step::Finish(end) => {
                    self.append(which, drive, Event::LoopEnded(end));
                    drive.barrier = Some(Barrier::End);
                }
                step => {
                    let event = event_of(&drive.state, step).expect("it is recorded");
                    self.append(which, drive, event);
                }
            }
        }
    }

    fn start(&mut self, which: usize, id: AttemptId) {
        assert!(!self.started.contains(&id), "an agent was started twice for {id}");
        self.started.push(id);
        let used = self.random.between(50, 400);
        let mut finished = reporting(|report| {
            report.tokens = Some((Scope::Attempt, tokens(used, 0)));
        });
        finished.promised = u64::from(id.iteration) >= self.able_from;
        self.machines[which].agent = Some(Agent { left: self.random.between(3, 20), finished });
    }

    /// What the witness does: it looks where the reference is, and moves it from where it left it.
    fn replicate(&mut self, which: usize, drive: &mut Drive, tally: &mut Tally) -> Result<(), Unreplicated> {
        if self.is_cut(which) {
            return Err(Unreplicated::Unreachable);
        }
        let there = self.remote.as_ref().map(|commit| commit.found.commit.clone());
        if let Some((commit, has)) = drive.tried.iter().find(|(commit, _)| Some(commit) == there.as_ref()) {
            drive.known = Some(commit.clone());
            drive.covered = *has;
        }
        if there != drive.known {
            return Err(Unreplicated::Fenced);
        }
        if drive.covered >= drive.state.seq {
            return Ok(());
        }
        let commit = self.commit(which, drive.fence, self.machines[which].disk.clone());
        let at = commit.found.commit.clone();
        drive.tried.push((at.clone(), drive.state.seq));
        match self.push(drive.known.clone(), commit, tally) {
            PushResult::Done => {
                (drive.known, drive.covered) = (Some(at), drive.state.seq);
                Ok(())
            }
            PushResult::Stale | PushResult::Unknown => Err(Unreplicated::Unreachable),
        }
    }

    /// Takes the loop over under a fence; says whether the order is dealt with.
    fn take(&mut self, which: usize, fence: u64, tally: &mut Tally) -> bool {
        let there = self.remote.clone();
        match take_lease(there.as_ref().map(|it| &it.found), fence, &self.machines[which].claims) {
            Err(_) => {
                tally.add("order", "stale, refused");
                return true;
            }
            Ok(None) if self.machines[which].disk.is_empty() => return true,
            Ok(Some(Takeover::Claim { .. })) => {
                let there = there.clone().expect("it is claimed");
                let commit = self.commit(which, fence, there.records);
                self.machines[which].claims.push(commit.found.commit.clone());
                let expected = Some(there.found.commit);
                if self.push(expected, commit, tally) != PushResult::Done {
                    return false;
                }
            }
            Ok(_) => {}
        }
        // The order may be old: nothing is begun before the scheduler has accepted a heartbeat.
        match self.beat(which, fence) {
            true => self.lay_out(which, fence, tally),
            false => tally.add("order", "stale, dropped"),
        }
        true
    }

    fn lay_out(&mut self, which: usize, fence: u64, tally: &mut Tally) {
        let there = self.remote.clone();
        let records = there.as_ref().map(|it| it.records.clone()).unwrap_or_default();
        let machine = &mut self.machines[which];
        let is_ahead = !machine.disk.is_empty() && machine.disk.starts_with(&records);
        if is_ahead && machine.disk.len() > records.len() && there.is_some() {
            tally.add("journal", "its tail was kept");
        }
        if !is_ahead {
            if !records.starts_with(&machine.disk) {
                tally.add("journal", "its tail was put aside");
            }
            machine.disk.clone_from(&records);
        }
        machine.claims.clear();
        let state = LoopState::fold(&machine.disk).expect("what is there folds");
        let (known, covered) = (there.map(|it| it.found.commit), records.len() as u64);
        let deadline = self.now + LEASE;
        self.machines[which].keeper_deadline = deadline;
        let mut drive = Drive { fence, state, known, tried: Vec::new(), covered, deadline, barrier: None };
        if !is_ahead {
            self.append(which, &mut drive, moved(fence));
        }
        if drive.state.ended.is_none() {
            let pid = i32::try_from(which).expect("a small number");
            let recover = drive.state.recover_under(runner(pid), Some(fence));
            self.append(which, &mut drive, recover);
        } else {
            drive.barrier = Some(Barrier::End);
        }
        self.machines[which].drive = Some(drive);
    }
}
