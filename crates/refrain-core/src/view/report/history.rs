//! What a journal's events say and its state does not: what started the loop and which agents worked on it, which files
//! were sealed, which commits have which trees, and the usage of each.

use super::object::{AgentRow, Critique};
use crate::agent::{AgentReport, Usage};
use crate::event::{AttemptFinished, Event, Record, Seal};
use crate::gate::{GateName, GateSpec};
use crate::git::{CommitResult, Oid, OmittedPath, PublishResult};
use crate::ids::AttemptId;
use crate::spec::AgentSpec;

/// The traces of a loop, from its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    pub refrain: String,
    /// Each agent, model and version that made attempts, in the order in which they came.
    pub agents: Vec<AgentRow>,
    /// Every file whose hash is on record, in the order in which they were sealed.
    pub files: Vec<KeptFile>,
    /// Every commit that was recorded, oldest first: the commit, its tree if Refrain made it, and the iteration before
    /// it.
    pub commits: Vec<(Oid, Option<Oid>, u32)>,
    /// What the last commit omitted, and how much more than is named.
    pub left_out: (Vec<OmittedPath>, u64),
    /// The critics' messages, oldest first.
    pub critiques: Vec<Critique>,
    pub reviewers: Usage,
    pub critics: Usage,
    /// The machine of the runner.
    host: String,
    /// How many of the files were sealed when the loop last came from another machine.
    arrived: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The attempt that it followed; of iteration 0 before the first.
    pub of: AttemptId,
    pub kept: AttemptFile,
    pub seal: Seal,
    /// The machine where it was sealed.
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptFile {
    Prompt,
    Output {
        streams: bool,
    },
    /// The output of this run of a gate.
    Gate(GateName, u32),
}

impl Trail {
    /// The trail of these events, all of one loop, from the first on.
    pub fn of(records: &[Record]) -> Self {
        let mut trail = Self::default();
        let Some(Event::LoopStarted(started)) = records.first().map(|record| &record.event) else {
            return trail;
        };
        trail.refrain.clone_from(&started.refrain);
        let (spec, mut agent) = (&started.spec, &started.spec.agent);
        let (mut attempt, mut run, mut judge) = (AttemptId::BEFORE, 1, None);
        let mut pushed = 0;
        for record in records {
            match &record.event {
                Event::AgentChanged(other) => agent = other,
                Event::AttemptStarted(id) => attempt = *id,
                Event::AttemptFinished(finished) => trail.finish(attempt, finished, agent),
                Event::RunnerStarted { runner, interrupted: Some(id), adopted: Some(adopted), .. } => {
                    trail.host.clone_from(&runner.host);
                    trail.finish(*id, adopted, agent);
                }
                Event::GateStarted { gate, run: started } => {
                    let gate = spec.gates.iter().find(|it| it.name == *gate);
                    judge =
                        gate.and_then(GateSpec::reviewer).map(|it| Judge(it, |trail| &mut trail.reviewers));
                    run = *started;
                }
                Event::CritiqueStarted { .. } => {
                    judge = spec.critique.as_ref().map(|it| Judge(&it.critic, |trail| &mut trail.critics));
                }
                Event::RunnerStarted { runner, judged, .. } => {
                    trail.host.clone_from(&runner.host);
                    trail.pay(judge.take(), judged.as_deref());
                }
                Event::LoopMoved(_) => trail.arrived = trail.files.len(),
                Event::GateSpawnFailed { .. } | Event::CritiqueFailed { .. } => judge = None,
                Event::GateFinished(finished) => {
                    let kept = AttemptFile::Gate(finished.gate.clone(), run);
                    let host = trail.host.clone();
                    let file = finished.log.clone().map(|seal| KeptFile { of: attempt, kept, seal, host });
                    trail.files.extend(file);
                    let report = finished.review.as_ref().and_then(|said| said.report.as_deref());
                    trail.pay(judge.take(), report);
                }
                Event::CritiqueFinished(finished) => {
                    trail.pay(judge.take(), finished.report.as_deref());
                    let (feedback, error) = (finished.feedback.clone(), finished.error.clone());
                    trail.critiques.push(Critique { iteration: attempt.iteration, feedback, error });
                }
                Event::CommitSettled(report) => {
                    let of = |commit: &Oid, tree| (commit.clone(), tree, report.iteration);
                    trail.commits.extend(report.by_agent.iter().map(|commit| of(commit, None)));
                    if let CommitResult::Made { commit, tree } = &report.result {
                        trail.commits.push(of(commit, Some(tree.clone())));
                    }
                    trail.left_out = (report.left_out.clone(), report.left_out_more);
                }
                Event::PublishSettled(report) => match &report.result {
                    PublishResult::Pushed { .. } => pushed = trail.commits.len(),
                    PublishResult::Rebased { head, tree, commits } => {
                        // The journal says of each which it was, but not of which iteration.
                        trail.commits.truncate(pushed);
                        let tree = |commit: &Oid| (commit == head).then(|| tree.clone());
                        let of = |commit: &Oid| (commit.clone(), tree(commit), attempt.iteration);
                        trail.commits.extend(commits.iter().map(of));
                    }
                    PublishResult::Conflict { .. }
                    | PublishResult::Requested(_)
                    | PublishResult::Checked(_)
                    | PublishResult::Merged { .. }
                    | PublishResult::Returned { .. }
                    | PublishResult::Later { .. }
                    | PublishResult::Refused { .. } => {}
                },
                Event::PublishStarted { .. }
                | Event::LoopStarted(_)
                | Event::SessionBound(_)
                | Event::SessionLeft
                | Event::BaseTaken(_)
                | Event::BaseRefused { .. }
                | Event::IterationBegun { .. }
                | Event::AttemptSpawned { .. }
                | Event::AttemptSpawnFailed { .. }
                | Event::AttemptStopRequested { .. }
                | Event::AttemptSwept { .. }
                | Event::CandidateTaken { .. }
                | Event::CandidateRefused { .. }
                | Event::GateStopRequested { .. }
                | Event::CritiqueStopRequested { .. }
                | Event::WorkSaved { .. }
                | Event::WorkUnsaved { .. }
                | Event::WorktreeReleased { .. }
                | Event::Asked { .. }
                | Event::WaitStarted(_)
                | Event::LoopEnded(_)
                | Event::LoopResumed { .. }
                | Event::JournalTorn { .. }
                | Event::JournalRestored { .. }
                | Event::LoopLeft(_) => {}
            }
        }
        trail
    }

    /// Whether the loop came from another machine since this file was sealed there.
    pub fn is_from_elsewhere(&self, file: &KeptFile) -> bool {
        self.files[..self.arrived.min(self.files.len())].contains(file)
    }

    fn finish(&mut self, of: AttemptId, finished: &AttemptFinished, agent: &AgentSpec) {
        let output = AttemptFile::Output { streams: agent.streams() };
        let files = [(AttemptFile::Prompt, &finished.sealed.prompt), (output, &finished.sealed.output)];
        let sealed = files.into_iter().filter_map(|(kept, seal)| Some((kept, seal.clone()?)));
        let host = self.host.clone();
        self.files.extend(sealed.map(|(kept, seal)| KeptFile { of, kept, seal, host: host.clone() }));
        let session = finished.report.as_ref().map(|report| report.session.clone()).unwrap_or_default();
        let used = AgentRow {
            kind: agent.kind,
            command: std::iter::once(&agent.program).chain(&agent.args).cloned().collect(),
            model: session.model.or_else(|| agent.model.clone()),
            version: session.version,
            attempts: 0,
        };
        let is_it = |other: &&mut AgentRow| AgentRow { attempts: 0, ..(*other).clone() } == used;
        match self.agents.iter_mut().find(is_it) {
            Some(other) => other.attempts += 1,
            None => self.agents.push(AgentRow { attempts: 1, ..used }),
        }
    }

    /// Adds the usage of an agent that judged, whether or not its end was seen.
    fn pay(&mut self, judge: Option<Judge<'_>>, report: Option<&AgentReport>) {
        if let Some(Judge(agent, sum)) = judge {
            let sum = sum(self);
            *sum = *sum + used(agent, report);
        }
    }
}

/// An agent that judges, and where its usage is added up.
struct Judge<'a>(&'a AgentSpec, fn(&mut Trail) -> &mut Usage);

/// The usage of an agent that was started afresh.
fn used(agent: &AgentSpec, report: Option<&AgentReport>) -> Usage {
    let Some(report) = report else { return Usage::of_run(None, None, false) };
    let (tokens, cost) = (report.tokens.map(|(_, tokens)| tokens), report.cost.map(|(_, cost)| cost));
    agent.priced(Usage::of_run(tokens, cost, report.is_final))
}
