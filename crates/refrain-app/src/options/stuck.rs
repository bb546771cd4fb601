//! The options of `start` that say when a loop is stuck, and what is done then.

use std::str::FromStr;

use refrain_core::spec::{AgentSpec, OnStuck, StuckSpec};
use refrain_core::values::OnStuck as Answer;
use refrain_engine::config::Settings;

use super::{heading, values};
use crate::error::RequestError;
use crate::resolve::agents;

// When it is stuck, and what is done then.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = heading::DONE)]
pub struct StuckArgs {
    /// Ask for another strategy after N iterations without progress
    ///
    /// 1 to 100, default 3. The loop is stuck after N + 2. Both are doubled for the same failure over changed work without a
    /// claim. A gate that failed before the first iteration never ends such a loop.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| values::whole_number(text, 1u32..=100))]
    pub stuck_threshold: Option<u32>,
    /// What to do with a stuck loop: stop, ask, model=NAME, agent=NAME [default: stop]
    #[arg(long, value_name = "WHAT", value_parser = Answer::from_str)]
    pub on_stuck: Option<Answer>,
}

impl StuckArgs {
    pub fn spec(&self, worker: &AgentSpec, settings: &Settings) -> Result<StuckSpec, RequestError> {
        let start = &settings.config.start;
        let who = match self.on_stuck.is_some() {
            true => "--on-stuck".to_owned(),
            false => format!("{}: start.on-stuck", settings.origin("on-stuck")),
        };
        let answer = match self.on_stuck.as_ref().or(start.on_stuck.as_ref()) {
            None | Some(Answer::Stop) => OnStuck::Stop,
            Some(Answer::Ask) => OnStuck::Ask,
            Some(Answer::Model(model)) => OnStuck::Change(Box::new(agents::with_model(
                &format!("{who} model={model}"),
                model,
                worker,
                settings,
            )?)),
            Some(Answer::Agent(name)) => {
                let agent = agents::agent(&format!("{who} agent={name}"), name, worker, settings)?;
                OnStuck::Change(Box::new(agent))
            }
        };
        let threshold = self.stuck_threshold.or(start.stuck_threshold).unwrap_or(StuckSpec::THRESHOLD);
        Ok(StuckSpec { threshold, answer, ..StuckSpec::default() })
    }
}
