//! The gates' results on a candidate, and the state while they run.

use std::fmt;

use jiff::Timestamp;

use super::child::Child;
use crate::agent::Usage;
use crate::event::{BlockReason, ClaimSource, Exit, Seal};
use crate::fingerprint::Fingerprint;
use crate::gate::{GateName, GateSpec, GateWhen};
use crate::git::{Oid, RepoPath};
use crate::ids::AttemptId;
use crate::protect::ProtectionBreach;
use crate::spec::{Millis, Spec};
use crate::text::{clip, squeeze};

/// How much of a reviewer's findings fits on one line, in bytes.
const LONGEST_FINDINGS: usize = 160;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its tree; none if there is no repository, and then no candidate is known to be the same as another.
    pub tree: Option<Oid>,
    /// The loop changed something that the tree does not show.
    pub partial: bool,
    pub touched: Vec<ProtectionBreach>,
}

impl Candidate {
    /// Whether this is known to be the same as `other`.
    pub fn is_same(&self, other: &Self) -> bool {
        self.tree.is_some() && self.tree == other.tree && !self.partial && !other.partial
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub candidate: Candidate,
    /// A result of each gate that was asked, in their order.
    pub results: Vec<GateResult>,
    /// The candidate was another each time the gates, or a commit hook, had run.
    pub restless: bool,
    /// The paths that the gates changed in their last run: the first [`CHANGED`] ones.
    pub changed: Vec<RepoPath>,
    /// A person's answer, if one is asked: last of all.
    pub approval: Option<Approval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    Awaited,
    Given(Timestamp),
    /// The loop continues without it; and when.
    Refused(Timestamp),
}

impl Proof {
    /// Whether every hard gate of `spec` was asked about this very candidate, and passed, nothing protected was
    /// touched, and no person refused it.
    pub fn holds(&self, spec: &Spec) -> bool {
        let passed = |(place, _): (usize, &GateSpec)| self.of_gate(place).is_some_and(GateResult::passed);
        !self.restless
            && self.candidate.touched.is_empty()
            && !self.is_refused()
            && spec.gates.iter().enumerate().filter(|(_, gate)| gate.hard).all(passed)
    }

    /// Says that it never stayed the same, with the cause, in words that follow "because".
    pub fn instability(&self) -> Option<String> {
        let paths = self.changed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let named = if paths.is_empty() { String::new() } else { format!(": {paths}") };
        self.restless.then(|| format!("the gates or commit hooks change files each time they run{named}"))
    }

    /// Whether a person was asked about it, and did not approve it.
    pub fn is_refused(&self) -> bool {
        matches!(self.approval, Some(Approval::Refused(_)))
    }

    pub fn failing<'a>(&'a self, spec: &'a Spec) -> impl Iterator<Item = &'a GateResult> {
        self.results
            .iter()
            .filter(|result| !result.passed() && result.spec(spec).is_some_and(|gate| gate.hard))
    }

    pub fn of_gate(&self, gate: usize) -> Option<&GateResult> {
        self.results.iter().find(|result| result.gate == gate)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    pub gate: usize,
    /// The attempt that it followed; of iteration 0 if it ran before the first.
    pub of: AttemptId,
    pub run: u32,
    /// Why it did not pass.
    pub failure: Option<GateFailure>,
    /// How its process ended; none if it could not be started.
    pub exit: Option<Exit>,
    pub duration: Millis,
    /// It failed on the same candidate before it passed.
    pub flaky: bool,
    /// The last line that it printed.
    pub preview: String,
    pub summaries: u32,
    pub fingerprint: Option<Fingerprint>,
    pub log: Option<Seal>,
    pub usage: Usage,
}

impl GateResult {
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }

    pub fn spec<'a>(&self, spec: &'a Spec) -> Option<&'a GateSpec> {
        spec.gates.get(self.gate)
    }
}

/// A default gate that could not run before the first iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedGate {
    pub name: GateName,
    pub why: String,
    /// The last line that it printed.
    pub said: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFailure {
    /// Its process ended with a code that is not 0, or by a signal.
    Exit(Exit),
    /// It took longer than it may, and was stopped.
    TimeLimit,
    /// It ended well, but tested nothing: its message about that.
    NoTest(String),
    /// It could not be started: what the system said.
    NotStarted(String),
    /// It is an agent, and its findings reject the work.
    Review(String),
    /// It is an agent, and said neither yes nor no.
    NoVerdict(String),
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(Exit::Code(code)) => write!(f, "exit code {code}"),
            Self::Exit(Exit::Signal(signal)) => write!(f, "ended by signal {signal}"),
            Self::Exit(Exit::Lost | Exit::Unseen) => f.write_str("its end was not observed"),
            Self::TimeLimit => f.write_str("it took longer than it may"),
            Self::NoTest(said) => write!(f, "it tested nothing: {said}"),
            Self::Review(findings) => {
                write!(f, "the reviewer refuses it: {}", clip(&squeeze(findings), LONGEST_FINDINGS))
            }
            Self::NoVerdict(why) => write!(f, "the reviewer passed no verdict: {why}"),
            Self::NotStarted(error) => write!(f, "it could not be started: {error}"),
        }
    }
}

/// Candidate and gates after an attempt, or before the first one.
#[derive(Clone, Debug, PartialEq)]
pub struct Proving {
    /// The attempt that it follows; none before the first.
    pub of: Option<AttemptId>,
    pub claim: Option<ClaimSource>,
    /// The gates that are asked, as their places in the specification.
    pub asked: Vec<usize>,
    /// The candidate, once it is taken.
    pub candidate: Option<Candidate>,
    /// The paths that the gates changed in the one before.
    pub changed: Vec<RepoPath>,
    /// The results so far, in the order of the gates.
    pub results: Vec<GateResult>,
    pub running: Option<RunningGate>,
    /// How often the next gate failed on this candidate and is still to be tried.
    pub failed: u32,
    pub runs: Vec<u32>,
    /// All have spoken, and the candidate is looked at once more: it has to be the same still.
    pub to_check: bool,
    /// Why it would fail, until a person resolves that; or that a person has to approve it.
    pub hindered: Option<BlockReason>,
}

impl Proving {
    /// A name that no other verification of the loop has; none before the first attempt.
    pub(super) fn name(&self) -> Option<String> {
        let tree = self.candidate.as_ref().and_then(|candidate| candidate.tree.as_ref());
        let tree = tree.map_or("", |tree| tree.short());
        self.of.map(|of| format!("{of}-{tree}"))
    }

    /// Which gates are asked after this attempt, or before the first: some only if there is a claim to prove. A
    /// reviewer has nothing to review before the first.
    pub(in crate::r#loop) fn new(
        of: Option<AttemptId>,
        claim: Option<ClaimSource>,
        gates: &[GateSpec],
    ) -> Self {
        let is_asked = |gate: &GateSpec| match (of, gate.when) {
            (None, _) => !gate.is_review(),
            (Some(_), _) if gate.completes => true,
            (Some(_), GateWhen::Iteration | GateWhen::Auto) => true,
            (Some(_), GateWhen::Claim) => claim.is_some(),
        };
        Self {
            of,
            claim,
            asked: (0..gates.len()).filter(|place| is_asked(&gates[*place])).collect(),
            candidate: None,
            changed: Vec::new(),
            results: Vec::new(),
            running: None,
            failed: 0,
            runs: vec![0; gates.len()],
            to_check: false,
            hindered: None,
        }
    }

    /// All that were asked passed, and one of them completes the loop: that is a claim, for which the others are asked
    /// as well.
    pub(in crate::r#loop) fn claim_by_gates(&mut self, gates: &[GateSpec]) {
        if self.claim.is_none() {
            self.claim = Some(ClaimSource::Gates);
            let missing: Vec<_> = (0..gates.len()).filter(|place| !self.asked.contains(place)).collect();
            self.asked.extend(missing);
        }
    }

    /// The attempt whose folder has the logs; that of iteration 0 before the first.
    pub fn folder(&self) -> AttemptId {
        self.of.unwrap_or(AttemptId::BEFORE)
    }

    /// The gate that is run next, and which of its runs that is.
    pub fn next_gate(&self) -> Option<(usize, u32)> {
        let gate = *self.asked.get(self.results.len())?;
        Some((gate, self.runs.get(gate)? + 1))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunningGate {
    pub gate: usize,
    pub run: u32,
    pub child: Child,
}
