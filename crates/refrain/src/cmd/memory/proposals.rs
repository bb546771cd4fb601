use std::fmt::Write;
use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::evolution::{FirstPass, Proposal, ProposalState};
use refrain_core::text::{printable, squeeze};
use refrain_engine::{EvolutionError, ProposalEffect};
use schemars::JsonSchema;
use serde::Serialize;

use crate::out;

/// Show proposed changes of the instructions for agents, and their effect
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory proposals
  refrain memory proposals docs-3f9c")]
pub(super) struct Args {
    /// Only the one of this loop, with its patch and the reasons
    id: Option<LoopId>,
    /// Print an array of objects
    #[arg(long)]
    json: bool,
}

/// A proposal, as `memory proposals --json` has it.
#[derive(Serialize, JsonSchema)]
pub(in crate::cmd) struct Row {
    /// It.
    proposal: Proposal,
    /// What it changes, as a patch; null where the file is another by now.
    patch: Option<String>,
    /// Of the project's loops that were started before it was applied, how many were proven done by their first iteration; null
    /// where it was not.
    before: Option<FirstPass>,
    /// The same of those that were started since.
    after: Option<FirstPass>,
}

impl From<ProposalEffect> for Row {
    fn from(proposed: ProposalEffect) -> Self {
        let ProposalEffect { proposal, patch, measured } = proposed;
        let (before, after) = measured.unzip();
        Self { proposal, patch, before, after }
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let mut found = context.service()?.proposals()?;
    if let Some(id) = &args.id {
        found.retain(|it| it.proposal.id == *id);
        if found.is_empty() {
            return Err(EvolutionError::None(id.clone()).into());
        }
    }
    if args.json {
        out::print_json(&found.into_iter().map(Row::from).collect::<Vec<_>>())?;
    } else if found.is_empty() {
        out::print(
            "Nothing is proposed. [evolution] of your config.toml says who reflects on loops: refrain docs memory\n",
        );
    } else {
        found.iter().for_each(|it| out::print(&told(it, args.id.is_some())));
    }
    Ok(Code::Done.into())
}

/// A proposal in a line; in full if it was asked for by name.
fn told(proposed: &ProposalEffect, is_whole: bool) -> String {
    let ProposalEffect { proposal, patch, measured } = proposed;
    let line = |text: &str| squeeze(&printable(text));
    let standing = match (proposal.standing, patch) {
        (ProposalState::Open, Some(_)) => "open",
        (ProposalState::Open, None) => "open, for a file that is another by now",
        (ProposalState::Applied, _) => "applied",
        (ProposalState::Dismissed, _) => "dismissed",
    };
    let at = proposal.at.strftime("%Y-%m-%d %H:%M");
    let mut text = format!("{}  {at}  {}: {standing}", proposal.id, line(&proposal.file));
    if let Some((before, after)) = measured {
        let rate = |of: &FirstPass| format!("{} of {}", of.first, of.ended);
        let _ = write!(text, "; proven at once: {} loops before, {} since", rate(before), rate(after));
    }
    text.push('\n');
    if !is_whole {
        return text;
    }
    for change in &proposal.changes {
        let shown: Vec<_> = change.iterations.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "line {}: {} (iteration {})",
            change.line,
            line(&change.because),
            shown.join(", ")
        );
    }
    if let Some(patch) = patch {
        let _ = write!(text, "\n{}", printable(patch));
    }
    if proposal.standing == ProposalState::Open {
        let id = &proposal.id;
        let _ = write!(text, "\nnext: refrain memory apply {id}, or refrain memory dismiss {id}\n");
    }
    text
}
