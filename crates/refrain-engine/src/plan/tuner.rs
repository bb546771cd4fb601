//! The history of a task that failed, and an agent that is asked what to make of it: it is to read only, as reviewers
//! do, and gets a checkout of what has landed, so that anything it writes is discarded.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;
use refrain_agents::{environment, generic};
use refrain_core::git::Oid;
use refrain_core::r#loop::Attempt;
use refrain_core::plan::file::draft;
use refrain_core::plan::tune::{LastRound, TriedAttempt, TriedGate, proposal, question};
use refrain_core::plan::{PlanState, TaskId};
use refrain_core::spec::AgentSpec;
use refrain_core::{AttemptId, LoopState, Spec};
use refrain_proc::output;
use refrain_store::{LoopDir, journal, make_dir, make_dir_nofollow};

use crate::child::checkout_dir::CleanCheckout;
use crate::child::one_shot::{Question, ask};
use crate::driver::lifecycle::pin_programs;
use crate::git_steps::repository;
use crate::{EngineError, Service};

/// How long an agent may think about a proposal.
const LIMIT: Duration = Duration::from_secs(600);
/// How much of a log is passed on, in bytes.
const EXCERPT: u64 = 8 << 10;

impl Service {
    /// How a task of a plan was tried last; none if no round of it was begun.
    pub fn tried(&self, plan: &PlanState, task: &TaskId) -> Result<Option<LastRound>, EngineError> {
        let Some(state) = plan.task(task).filter(|task| task.rounds > 0) else { return Ok(None) };
        let id = plan.spec.loop_of(task, state.rounds);
        let dir = self.locate(&id)?.dir;
        let of = journal::read(&dir)?.state;
        let first = of.attempts.first().map_or(AttemptId { iteration: 1, attempt: 1 }, |attempt| attempt.id);
        Ok(Some(LastRound {
            task: task.clone(),
            title: state.card.title.clone(),
            reason: plan
                .blocked_because(state)
                .unwrap_or_else(|| "a person said how it continues".to_owned()),
            id_of_loop: id.to_string(),
            told: read(&dir.attempt(first).prompt()),
            attempts: of.attempts.iter().map(|attempt| tried(&of, &dir, attempt)).collect(),
            diff: self.diff_of(plan, task).unwrap_or_default(),
        }))
    }

    fn diff_of(&self, plan: &PlanState, task: &TaskId) -> Option<String> {
        let state = plan.task(task)?;
        let env = environment::of_git(&plan.spec.each, self.host.env.iter().cloned());
        let repository = repository::open(&self.project.worktree, &env, &plan.spec.each).ok()?;
        Some(repository.changes(state.onto.as_ref(), state.head.as_ref()?).ok()?.diff)
    }

    /// Asks an agent what the next one is to be told; returns its words, or its whole answer if it proposes none.
    pub fn propose(
        &self,
        plan: &PlanState,
        tried: &LastRound,
        reviewer: &AgentSpec,
    ) -> Result<Result<String, String>, EngineError> {
        let at = plan.tip.as_ref().or(plan.base.as_ref().map(|(head, _)| head));
        let dir = self.locate_plan(&plan.spec.id)?.0.join("tune");
        make_dir_nofollow(&dir)?;
        let file = dir.join(format!("{}.md", tried.task.slug()));
        let spec = Spec { agent: reviewer.clone(), ..(*plan.spec.each).clone() };
        let said = self.ask_about(at, &spec, &question(tried), &file)?;
        Ok(proposal(&said).ok_or(said))
    }

    /// Asks an agent for a plan; returns the plan, or its whole answer if it has none.
    pub fn draft_plan(
        &self,
        spec: &Spec,
        idea: &str,
        before: Option<(&str, &[String])>,
    ) -> Result<Result<String, String>, EngineError> {
        generic::locate(spec, &environment::base(spec, self.host.env.iter().cloned()))?;
        let env = environment::of_git(spec, self.host.env.iter().cloned());
        let head = repository::open(&self.project.worktree, &env, spec)?.head_at(0)?;
        let dir = self.host.state_home.join(format!("plan-draft-{:016x}", rand::random::<u64>()));
        make_dir(&dir)?;
        let said = self.ask_about(head.as_ref(), spec, &draft::question(idea, before), &dir.join("plan.md"));
        // What is left of it is only a question.
        let _ = fs::remove_dir_all(&dir);
        let said = said?;
        Ok(draft::draft(&said).ok_or(said))
    }

    /// Asks the agent of `spec`, which only reads a checkout of this commit, made for it alone.
    fn ask_about(
        &self,
        at: Option<&Oid>,
        spec: &Spec,
        prompt: &str,
        file: &Utf8Path,
    ) -> Result<String, EngineError> {
        let env = environment::of_git(spec, self.host.env.iter().cloned());
        let dir = LoopDir(file.parent().unwrap_or(file).to_owned());
        let repository = repository::open_in_sandbox(&self.project.worktree, &env, (&self.host, spec, &dir))?;
        let place = CleanCheckout::take(&self.project, &self.host.state_home)?;
        if let Some(at) = at {
            place.fill(&repository, (&repository.tree_of(at)?, &[]), None)?;
        }
        let mut spec = spec.clone();
        pin_programs(&mut spec);
        let spec = Spec {
            agent: refrain_agents::judge::judge(&spec.agent),
            promise: None,
            worktree: place.folder(),
            working_dir: place.folder(),
            ..spec
        };
        let question = Question { spec: &spec, prompt, file, schema: None, budget: None, limit: LIMIT };
        let answer = ask(&self.host, &question);
        place.leave();
        Ok(answer?.said)
    }
}

fn tried(state: &LoopState, dir: &LoopDir, attempt: &Attempt) -> TriedAttempt {
    let files = dir.attempt(attempt.id);
    let said = match state.spec.agent.streams() {
        true => read(&files.last_message()),
        false => read(&files.stdout(false)),
    };
    let failed = attempt.proof.iter().flat_map(|proof| &proof.results).filter(|result| !result.passed());
    let failed = failed.filter_map(|result| {
        let gate = &result.spec(&state.spec)?.name;
        let printed = read(&dir.attempt(result.of).gate(gate, result.run));
        Some(TriedGate { gate: gate.to_string(), printed })
    });
    TriedAttempt { attempt: attempt.id.to_string(), said, failed: failed.collect() }
}

/// The end of a file; nothing if there is none.
fn read(path: &Utf8Path) -> String {
    let end = output::read_end(path, EXCERPT).unwrap_or_default();
    String::from_utf8_lossy(&end).into_owned()
}
