//! Makes the report from a loop's events, its state, and what was found outside of both.

use std::collections::BTreeMap;

use super::history::Trail;
use super::object::{
    BaseReport, ClaimMade, CommitMade, Files, GateProof, GoalReport, JournalMark, Log, ProofReport,
    Protection, RefusedClaimRow, Report, SCHEMA, SealedFile, UsageByRole, Versions,
};
use crate::agent::Usage;
use crate::event::{ClaimSource, End};
use crate::git::Oid;
use crate::r#loop::{Attempt, LoopState, Proof};
use crate::spec::Spec;
use crate::text::cut_middle;
use crate::view::{self, Alive, Status};

/// How much of a prompt a report holds, in bytes.
const PROMPT: usize = 64 << 10;
/// How many paths that were dirty before the loop are named.
const DIRTY: usize = 200;

/// Facts that neither the events nor the state of a loop have.
#[derive(Clone, Debug)]
pub struct ReportFacts {
    pub refrain: String,
    pub journal: JournalMark,
    /// Whether the loop's runner lives; none if that cannot be known.
    pub runner: Option<bool>,
    /// The error that it stopped by, if it is known.
    pub runner_error: Option<String>,
    /// The tree of the commit that the loop began at.
    pub base_tree: Option<Oid>,
    /// The files that differ between the base and the loop's work.
    pub files: Option<Files>,
    pub evidence: Vec<SealedFile>,
    /// The path of the log of each gate's last result, and the last lines of it, by the gate's place.
    pub gate_logs: BTreeMap<usize, (String, Option<String>)>,
}

/// The tree that a report is on: the one that the gates were asked about last, else that of the last commit. The tree of
/// the start is none once there were attempts.
pub fn tree<'a>(state: &'a LoopState, trail: &'a Trail) -> Option<&'a Oid> {
    let is_of_work = state.attempts.is_empty() || state.attempts.iter().any(|it| it.proof.is_some());
    let proof = state.proof.as_ref().filter(|_| is_of_work);
    let proven = proof.and_then(|proof| proof.candidate.tree.as_ref());
    proven.or_else(|| trail.commits.iter().rev().find_map(|(_, tree, _)| tree.as_ref()))
}

/// What shows the changes of a loop so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a> {
    Folder,
    /// A tree: the folder may be another's by now.
    Tree(&'a Oid),
    Gone,
}

/// What shows what a loop has changed so far: the candidate or the commit after its last attempt, or its folder, if no other
/// loop can have had it since. Others can have had a worktree of its own that was given back, one of a plan's tasks, or the
/// shared one after the loop ended there; the last is shown all the same if an attempt was cut short in it, as nothing else has
/// that attempt's work.
pub fn work<'a>(state: &'a LoopState, trail: &'a Trail) -> Work<'a> {
    let is_over = state.ended.is_some();
    let last = state.attempts.last();
    let is_proven = last.is_some_and(|last| last.proof.is_some());
    let is_settled =
        |last: &Attempt| state.git.last.as_ref().is_some_and(|it| it.iteration >= last.id.iteration);
    let is_recorded = is_proven || last.is_none_or(is_settled);
    let was_removed = state.git.released && state.git.kept.is_none();
    let has_left = was_removed || is_over && state.spec.task.is_some();
    let is_open = is_open(state);
    match tree(state, trail) {
        Some(tree) if has_left || is_over && is_proven || is_open && is_recorded => Work::Tree(tree),
        None if has_left => Work::Gone,
        Some(_) | None => Work::Folder,
    }
}

/// Whether others may work in the loop's folder by now: it ended, for more than a pause, in the folder it was started
/// in.
pub fn is_open(state: &LoopState) -> bool {
    let is_apart = state.spec.git.checkout.is_own_worktree();
    !is_apart && state.ended.is_some_and(|ended| ended.end != End::Paused)
}

pub fn make(state: &LoopState, trail: Trail, found: ReportFacts) -> Report {
    let mut status = view::status(state, Alive { runner: found.runner, ..Alive::default() });
    if let Some(error) = &found.runner_error {
        status = status.of_failed_runner(error);
    }
    let seal =
        |path: &str| found.evidence.iter().find(|file| file.path == path).map(|file| file.seal.clone());
    let log = |place: usize| {
        let (path, end) = found.gate_logs.get(&place).cloned().unwrap_or_default();
        Log { seal: seal(&path), path, end }
    };
    let gates = state.gate_results().zip(&status.gates).map(|(result, gate)| GateProof {
        gate: gate.clone(),
        iteration: result.of.iteration,
        run: result.run,
        log: log(result.gate),
    });
    let gates: Vec<_> = gates.collect();
    let proof = state.proof.as_ref().map(|proof| ProofReport {
        tree: proof.candidate.tree.clone(),
        iteration: state.attempts.iter().rev().find(|it| it.proof.is_some()).map_or(0, |it| it.id.iteration),
        partial: proof.candidate.partial,
        clean_checkout: state.spec.clean_checkout,
        restless: proof.restless,
        touched: proof.candidate.touched.iter().map(ToString::to_string).collect(),
        approval: status.approval.clone(),
        gates,
    });
    let (left_out, left_out_more) = trail.left_out;
    Report {
        schema: SCHEMA,
        id: status.id.clone(),
        status: status.status,
        verified: status.verified,
        signed: status.signed,
        signature: status.signature.clone(),
        started_at: status.started_at,
        updated_at: status.updated_at,
        ended_at: status.ended_at,
        active_ms: state.active(state.updated_at).into(),
        refrain: Versions { started: trail.refrain, reported: found.refrain },
        asked: asked(state, &status),
        agents: trail.agents,
        critiques: trail.critiques,
        base: state.git.base.as_ref().map(|base| BaseReport {
            commit: state.git.began.clone(),
            tree: found.base_tree,
            dirty: base.dirty.iter().take(DIRTY).map(|dirty| dirty.path.clone()).collect(),
            dirty_more: base.dirty.len().saturating_sub(DIRTY) as u64,
        }),
        protected: protected(state),
        claim: claim(state, &status),
        proof,
        refused: state.attempts.iter().filter_map(|attempt| refused(&state.spec, attempt)).collect(),
        spent: UsageByRole {
            total: state.spent.into(),
            workers: state.attempts.iter().fold(Usage::default(), |sum, attempt| sum + attempt.usage).into(),
            reviewers: trail.reviewers.into(),
            critics: trail.critics.into(),
        },
        commits: trail
            .commits
            .into_iter()
            .map(|(commit, tree, iteration)| CommitMade { by_agent: tree.is_none(), commit, tree, iteration })
            .collect(),
        left_out,
        left_out_more,
        files: found.files,
        saved: status.saved,
        journal: found.journal,
        evidence: found.evidence,
        reason: status.reason,
        needs: status.needs,
        iterations: status.iterations.unwrap_or_default(),
    }
}

fn protected(state: &LoopState) -> Option<Protection> {
    let protect = &state.spec.protect;
    let base = state.git.base.clone().unwrap_or_default();
    let found = Protection {
        frozen: protect.frozen.clone(),
        existing: protect.existing.clone(),
        parts: protect.parts.clone(),
        tree: base.protected,
        programs: base.programs,
    };
    (!protect.is_empty() || !found.programs.is_empty()).then_some(found)
}

fn asked(state: &LoopState, status: &Status) -> GoalReport {
    GoalReport {
        prompt: cut_middle(&state.spec.prompt, PROMPT).into_owned(),
        promise: status.completion_promise.clone(),
        limits: state.limits.clone(),
        project: state.spec.project.file_name().unwrap_or_default().to_owned(),
        branch: status.branch.clone(),
    }
}

fn claim(state: &LoopState, status: &Status) -> Option<ClaimMade> {
    let (claim, last) = (status.claim?, state.attempts.last()?);
    let said = last.finished.as_ref().map(|finished| finished.preview.clone()).unwrap_or_default();
    Some(ClaimMade { source: claim.source, iteration: last.id.iteration, at: claim.at, said })
}

/// Why what an attempt claimed did not count. If only gates decide, there was no claim.
fn refused(spec: &Spec, attempt: &Attempt) -> Option<RefusedClaimRow> {
    let is_made = |source: &ClaimSource| source.is_said() || *source == ClaimSource::ExitCode;
    let source = attempt.claim.filter(is_made)?;
    let proof = attempt.proof.as_ref().filter(|proof| !proof.holds(spec))?;
    let at = attempt.ended_at;
    Some(RefusedClaimRow { iteration: attempt.id.iteration, source, at, why: objections(spec, proof) })
}

fn objections(spec: &Spec, proof: &Proof) -> Vec<String> {
    let mut why: Vec<String> = proof
        .failing(spec)
        .filter_map(|result| {
            let failure = result.failure.as_ref()?;
            Some(format!("gate {} failed: {failure}", result.spec(spec)?.name))
        })
        .collect();
    why.extend(proof.candidate.touched.iter().map(ToString::to_string));
    if proof.is_refused() {
        why.push("a person did not approve it".to_owned());
    }
    why.extend(proof.instability());
    why
}
