//! Proposals to a project's instructions for agents, from finished loops: an agent is asked, in a process of its own
//! (`memory/background_work`), what it would change. Its answer passes the gates of `core::evolution` or is dropped; a
//! person applies or dismisses the proposal. None of that can change the loop.

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_agents::judge::judge as only_reading;
use refrain_core::agent::Usd;
use refrain_core::evolution::{
    self, Fault, FirstPass, History, Proposal, ProposalState, SCHEMA, diff, is_of_use, measured,
};
use refrain_core::spec::AgentSpec;
use refrain_core::values::Limit;
use refrain_core::{LoopId, LoopState, Spec};
use refrain_secrets as secrets;
use refrain_store::outbox::proposals;
use refrain_store::{DiskError, journal, make_dir_nofollow, memory as kept};

use crate::child::checkout_dir::CleanCheckout;
use crate::child::one_shot::{Question, ask};
use crate::git_steps::failure_branch::logins;
use crate::git_steps::repository;
use crate::service::redact::Redactor;
use crate::{EngineError, Service, now};

const LIMIT: Duration = Duration::from_secs(600);
const PROPOSAL: &str = "proposal";
/// The files that agents read their instructions from, the first that is there.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Why there is no proposal, or it was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum EvolutionError {
    #[error("what was proposed is refused: {0}")]
    Fault(#[from] Fault),
    #[error("there is no proposal {0}")]
    None(LoopId),
    #[error("proposal {id} is {what} already")]
    Decided { id: LoopId, what: &'static str },
    #[error("{0} was changed since that was proposed")]
    Changed(String),
    /// Its loop has not ended, or has nothing to teach.
    #[error(
        "there is nothing to be learnt of {0}: it has not come to its end, never ran, or is part of another"
    )]
    Useless(LoopId),
    /// The files cannot be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

#[derive(Clone, Debug)]
pub struct ProposalEffect {
    pub proposal: Proposal,
    /// What it changes, as a patch; none if the file is another by now.
    pub patch: Option<String>,
    /// Of loops before and after it was taken over, how many were proven done by their first iteration; none if it was
    /// not.
    pub measured: Option<(FirstPass, FirstPass)>,
}

impl Service {
    /// Asks an agent what the project's instructions should say for what happened in a loop; what passes all gates is
    /// kept as a proposal. None if it would change nothing.
    /// Errors: [`EvolutionError`]; nothing is kept then.
    pub fn reflect(
        &self,
        id: &LoopId,
        agent: &AgentSpec,
        budget: Option<Limit<Usd>>,
    ) -> Result<Option<Proposal>, EvolutionError> {
        let state = self.state(id)?;
        if !is_of_use(&state) {
            return Err(EvolutionError::Useless(id.clone()));
        }
        let (file, old) = self.instructions()?;
        let redactor = Redactor::new(&state.spec, logins(&self.host.env));
        let prompt = evolution::question(&state, file, old.as_deref(), |text| redactor.clean(text));
        let place = proposals::place(&self.project, id);
        make_dir_nofollow(&place)?;
        let checkout = self.beside(&state.spec);
        let folder = checkout.as_ref().map_or_else(|| place.clone(), CleanCheckout::folder);
        let spec = Spec {
            agent: only_reading(agent),
            promise: None,
            worktree: folder.clone(),
            working_dir: folder,
            ..state.spec.clone()
        };
        let budget = budget.and_then(Option::from);
        let (file_of_it, form) = (place.join("question.md"), evolution::schema().to_string());
        let question = Question {
            spec: &spec,
            prompt: &prompt,
            file: &file_of_it,
            schema: Some(&form),
            budget,
            limit: LIMIT,
        };
        // One agent is paid about one end of a loop; if that cannot be noted, none is.
        let home = &self.host.data_home;
        let is_first = kept::make(home, |file| file.begin_asking(&state, PROPOSAL, now()));
        let answer = is_first.is_ok_and(|first| first).then(|| ask(&self.host, &question));
        if let Some(checkout) = checkout {
            checkout.leave();
        }
        let Some(answer) = answer.transpose()? else { return Ok(None) };
        let _ = kept::make(home, |file| file.asked(&state, PROPOSAL, answer.cost));
        let reflection = evolution::read(&answer.said)?;
        if reflection.changes.is_empty() {
            return Ok(None);
        }
        let made_for = old.as_deref().map(hash);
        let old = old.unwrap_or_default();
        evolution::judge(&old, &reflection, History { iterations: &iterations(&state) }, secret)?;
        let proposal = Proposal {
            schema: SCHEMA,
            id: id.clone(),
            at: now(),
            file: file.to_owned(),
            made_for,
            changes: reflection.changes,
            standing: ProposalState::Open,
            decided_at: None,
        };
        proposals::keep(&self.project, &proposal, &diff(file, &old, &proposal.changes))?;
        Ok(Some(proposal))
    }

    /// A separate checkout of what is committed: anything that the agent writes is discarded. None without a
    /// repository.
    fn beside(&self, spec: &Spec) -> Option<CleanCheckout> {
        let repository = repository::open(&self.project.root, &self.host.git_env(spec), spec).ok()?;
        let tree = repository.tree_of(&repository.resolve("HEAD").ok()?).ok()?;
        let place = CleanCheckout::take(&self.project, &self.host.state_home).ok()?;
        match place.fill(&repository, (&tree, &[]), None) {
            Ok(_) => Some(place),
            Err(_) => {
                place.leave();
                None
            }
        }
    }

    /// The file of instructions for agents here, and its content.
    fn instructions(&self) -> Result<(&'static str, Option<String>), DiskError> {
        // One is often a link to the other.
        let is_file = |name: &&&str| fs::symlink_metadata(self.path(name)).is_ok_and(|meta| meta.is_file());
        let file = FILES.iter().find(is_file).copied().unwrap_or(FILES[0]);
        Ok((file, proposals::text_of(&self.path(file))?))
    }

    fn path(&self, file: &str) -> Utf8PathBuf {
        self.project.root.join(file)
    }

    /// The proposals to the instructions of this project, newest first.
    pub fn proposals(&self) -> Result<Vec<ProposalEffect>, EngineError> {
        let found = proposals::list(&self.project)?;
        let mut loops = Vec::new();
        // Only what was taken over is measured.
        if found.iter().any(|proposal| proposal.standing == ProposalState::Applied) {
            for dir in self.project.loop_dirs()? {
                let Ok(state) = journal::read(&dir).map(|snapshot| snapshot.state) else { continue };
                loops.extend(evolution::first_pass(&state).map(|is_first| (state.started_at, is_first)));
            }
        }
        let shown = |proposal: Proposal| {
            let at = proposal.decided_at.filter(|_| proposal.standing == ProposalState::Applied);
            let patch = self.current(&proposal).ok().map(|old| diff(&proposal.file, &old, &proposal.changes));
            ProposalEffect { patch, measured: at.map(|at| measured(at, &loops)), proposal }
        };
        Ok(found.into_iter().map(shown).collect())
    }

    /// The file that a proposal is for, as long as it is unchanged.
    fn current(&self, proposal: &Proposal) -> Result<String, EvolutionError> {
        let changed = || EvolutionError::Changed(proposal.file.clone());
        // The proposal on disk is not trusted: it may name one of two files, and nothing else.
        let file = FILES.into_iter().find(|name| *name == proposal.file).ok_or_else(changed)?;
        let text = proposals::text_of(&self.path(file))?;
        match text.as_deref().map(hash) == proposal.made_for {
            true => Ok(text.unwrap_or_default()),
            false => Err(changed()),
        }
    }

    /// Takes a proposal over: the file is written anew, and nothing is committed. All gates are asked once more, as
    /// what lies on disk could have been changed by then.
    /// Errors: [`EvolutionError`]; nothing was written then.
    pub fn apply_proposal(&self, id: &LoopId) -> Result<Proposal, EvolutionError> {
        let proposal = self.open_proposal(id)?;
        let old = self.current(&proposal)?;
        let state = self.state(id)?;
        let reflection = evolution::Reflection { changes: proposal.changes.clone() };
        let new = evolution::judge(&old, &reflection, History { iterations: &iterations(&state) }, secret)?;
        let before = proposal.made_for.as_ref().map(|_| old.as_str());
        if !proposals::rewrite(&self.path(&proposal.file), before, &new)? {
            return Err(EvolutionError::Changed(proposal.file));
        }
        self.decide(proposal, ProposalState::Applied)
    }

    pub fn dismiss_proposal(&self, id: &LoopId) -> Result<Proposal, EvolutionError> {
        self.decide(self.open_proposal(id)?, ProposalState::Dismissed)
    }

    fn open_proposal(&self, id: &LoopId) -> Result<Proposal, EvolutionError> {
        let found = proposals::read(&self.project, id)?.ok_or_else(|| EvolutionError::None(id.clone()))?;
        let what = match found.standing {
            ProposalState::Open => return Ok(found),
            ProposalState::Applied => "applied",
            ProposalState::Dismissed => "dismissed",
        };
        Err(EvolutionError::Decided { id: id.clone(), what })
    }

    fn decide(&self, proposal: Proposal, standing: ProposalState) -> Result<Proposal, EvolutionError> {
        let decided = Proposal { standing, decided_at: Some(now()), ..proposal };
        proposals::note(&self.project, &decided)?;
        Ok(decided)
    }
}

fn iterations(state: &LoopState) -> Vec<u32> {
    state.attempts.iter().filter(|attempt| attempt.charged).map(|attempt| attempt.id.iteration).collect()
}

fn secret(line: &str) -> Option<&'static str> {
    secrets::screen(b"text", line.as_bytes(), None).map(|found| found.what)
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
