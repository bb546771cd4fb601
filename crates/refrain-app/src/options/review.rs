//! The options of `start` that name agents which judge the work: by a specification, as a gate, or now and then, as a critic.

use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::{Check, ReviewSpec};
use refrain_core::review::LONGEST_SPEC;
use refrain_core::spec::{AgentSpec, CritiqueSpec, Limits};
use refrain_core::values::{self, Limit};
use refrain_engine::config::Settings;
use refrain_engine::config::keys::Gate;

use super::heading;
use crate::error::RequestError;
use crate::resolve::agents;

// Who judges the work.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = heading::PROOF)]
pub struct ReviewArgs {
    /// A specification: an agent that can only read checks every claim against it. The gate is named `spec`
    #[arg(long, value_name = "FILE")]
    pub spec_gate: Option<Utf8PathBuf>,
    /// The reviewer: an agent's name or a command [default: the loop's own agent, in a new session]
    #[arg(long, value_name = "KIND|CMD")]
    pub reviewer: Option<String>,
    /// Which model it uses
    #[arg(long, value_name = "NAME")]
    pub reviewer_model: Option<String>,
    /// Have a critic comment on the progress after every N iterations; `none` overrides the configuration
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = every)]
    pub critique_every: Option<Limit<NonZeroU32>>,
    /// The critic: an agent's name or a command [default: the loop's own agent, in a new session]
    #[arg(long, value_name = "KIND|CMD")]
    pub critic: Option<String>,
}

fn every(text: &str) -> Result<Limit<NonZeroU32>, String> {
    values::limit(text, |text| text.parse().map_err(|_| "accepted: whole numbers above 0".to_owned()))
}

impl ReviewArgs {
    /// What `--spec-gate` checks; none where it is not given.
    pub fn check(
        &self,
        dir: &Utf8Path,
        worker: (&AgentSpec, &Limits),
        settings: &Settings,
    ) -> Result<Option<Check>, RequestError> {
        let Some(file) = &self.spec_gate else { return Ok(None) };
        let (reviewer, model) = (self.reviewer.as_deref(), self.reviewer_model.as_deref());
        let spec = specification(file.as_str(), &dir.join(file))?;
        let agent = agents::judge("--reviewer", reviewer, model, worker, settings)?;
        Ok(Some(Check::Review(Box::new(ReviewSpec { agent, spec }))))
    }

    pub fn critique(
        &self,
        worker: (&AgentSpec, &Limits),
        settings: &Settings,
    ) -> Result<Option<CritiqueSpec>, RequestError> {
        let configured = &settings.config.critique;
        let every = self.critique_every.or(configured.every.map(Limit::At)).and_then(Option::from);
        let Some(every) = every.map(NonZeroU32::get) else {
            return Ok(None);
        };
        let (who, critic, model) = match &self.critic {
            Some(critic) => ("--critic", Some(critic.as_str()), None),
            None => ("critique", configured.critic.as_deref(), configured.model.as_deref()),
        };
        let critic = agents::judge(who, critic, model, worker, settings)?;
        let timeout = configured.timeout.unwrap_or(CritiqueSpec::TIMEOUT);
        Ok(Some(CritiqueSpec { every, critic, timeout }))
    }
}

pub fn configured(
    name: &str,
    gate: &Gate,
    worker: (&AgentSpec, &Limits),
    settings: &Settings,
) -> Result<Check, RequestError> {
    let Some(file) = &gate.spec else {
        return Ok(Check::Command(gate.command.clone().unwrap_or_default()));
    };
    let who = format!("gates.{name}");
    let spec = specification(&format!("{who}.spec: {file}"), file)?;
    let agent = agents::judge(&who, gate.reviewer.as_deref(), gate.model.as_deref(), worker, settings)?;
    Ok(Check::Review(Box::new(ReviewSpec { agent, spec })))
}

/// The specification the work is compared with: read once, so that it cannot change while the loop runs.
fn specification(who: &str, path: &Utf8Path) -> Result<String, RequestError> {
    let refuse = |why: String| {
        let accepted = format!("accepted: a file of UTF-8 text, at most {LONGEST_SPEC} bytes");
        RequestError::usage(format!("{who} cannot be read as a specification: {why}; {accepted}"))
    };
    let meta = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    // What is no file may never end, or never begin.
    if !meta.is_file() {
        return Err(refuse("it is no file".to_owned()));
    }
    if meta.len() > LONGEST_SPEC as u64 {
        return Err(refuse(format!("it has {} bytes", meta.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    match text.trim().is_empty() {
        true => Err(refuse("it is empty".to_owned())),
        false => Ok(text),
    }
}
