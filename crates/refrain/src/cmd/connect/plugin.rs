use std::process::ExitCode;

use clap::Subcommand;
use owo_colors::OwoColorize;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::spec::AgentKind;
use refrain_core::text::printable;
use refrain_core::view::plugin::{PluginState, PluginStatus};
use refrain_engine::{PluginChange, PluginWork};

use crate::cmd::connect::hook::agent;
use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plugin install claude
  refrain plugin status")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Install the plugin for an agent; your other settings stay as they are
    #[command(
        after_help = "Examples:\n  refrain plugin install claude\n  refrain plugin install codex --dry-run"
    )]
    Install(Work),
    /// Remove what install added
    #[command(
        after_help = "Examples:\n  refrain plugin remove claude\n  refrain plugin remove codex --dry-run"
    )]
    Remove(Work),
    /// Show which agents have the plugin
    #[command(after_help = "Examples:\n  refrain plugin status\n  refrain plugin status claude --json")]
    Status {
        /// The agent [default: all four]
        #[arg(value_parser = agent)]
        agent: Option<AgentKind>,
        /// Print an array
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Work {
    /// claude, codex, gemini or opencode
    #[arg(value_parser = agent)]
    agent: AgentKind,
    /// Change nothing, and print what would be
    #[arg(long)]
    dry_run: bool,
}

const AGENTS: [AgentKind; 4] = [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode];

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        match &self.verb {
            Verb::Install(Work { dry_run: false, .. }) | Verb::Remove(Work { dry_run: false, .. }) => {
                Action::ChangePlugins
            }
            Verb::Install(_) | Verb::Remove(_) | Verb::Status { .. } => Action::Look,
        }
    }
}

/// Runs the verb, and reports what was done.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    match &args.verb {
        Verb::Install(Work { agent, dry_run }) => {
            let work = context.host.install_plugin(*agent, *dry_run)?;
            out::print(&told(&work, *dry_run, &format!("the plugin for {agent} is installed already")));
            out::print(&after(*agent, &work));
        }
        Verb::Remove(Work { agent, dry_run }) => {
            let work = context.host.remove_plugin(*agent, *dry_run)?;
            out::print(&told(&work, *dry_run, &format!("nothing of the plugin for {agent} is there")));
        }
        Verb::Status { agent, json } => {
            let agents = agent.map_or_else(|| AGENTS.to_vec(), |agent| vec![agent]);
            let all: Result<Vec<_>, _> =
                agents.into_iter().map(|agent| context.host.plugin_status(agent)).collect();
            let all = all?;
            if *json {
                out::print_json(&all)?;
            } else {
                out::print(&all.iter().map(standing).collect::<String>());
            }
        }
    }
    Ok(Code::Done.into())
}

fn flat(text: &str) -> String {
    printable(text).replace('\n', " ")
}

/// The changes made or planned: a line for each file, and in a dry run its differences.
fn told(work: &PluginWork, is_rehearsal: bool, nothing: &str) -> String {
    let mut text = String::new();
    for change in &work.changes {
        let (done, would) = match (&change.before, &change.after) {
            (None, _) => ("wrote", "would write"),
            (Some(_), Some(_)) => ("changed", "would change"),
            (Some(_), None) => ("removed", "would remove"),
        };
        let word = if is_rehearsal { would } else { done };
        text.push_str(&format!("{word} {}\n", flat(change.path.as_str())));
        if is_rehearsal && change.after.is_some() {
            text.push_str(&differences(change));
        }
    }
    for path in &work.kept {
        text.push_str(&format!("kept {}, as it was changed since\n", flat(path.as_str())));
    }
    if work.changes.is_empty() {
        text.push_str(&format!(
            "{nothing}; nothing {} changed\n",
            if is_rehearsal { "would be" } else { "was" }
        ));
    }
    text
}

/// The lines that go and come; those around them are the same.
fn differences(change: &PluginChange) -> String {
    let lines = |text: &Option<String>| -> Vec<String> {
        text.as_deref().unwrap_or_default().lines().map(flat).collect()
    };
    let (before, after) = (lines(&change.before), lines(&change.after));
    let same =
        |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut before.iter().zip(&after));
    let tail = same(&mut before[head..].iter().rev().zip(after[head..].iter().rev()));
    let gone = before[head..before.len() - tail]
        .iter()
        .map(|line| format!("  {}\n", format!("- {line}").trim_end().red()));
    let come = after[head..after.len() - tail]
        .iter()
        .map(|line| format!("  {}\n", format!("+ {line}").trim_end().green()));
    gone.chain(come).collect()
}

fn after(agent: AgentKind, work: &PluginWork) -> String {
    let mut text = String::new();
    text.push_str(&format!("{agent} calls {}; install again when that moves\n", flat(&work.program)));
    text.extend(work.then.iter().map(|line| format!("next: {line}\n")));
    text
}

/// The status of a plugin, followed by its places.
fn standing(status: &PluginStatus) -> String {
    let mut text = format!("{:<8}  {}\n", status.agent.to_string(), status.standing.as_str());
    // Without an installation, all parts are missing.
    let parts = status.parts.iter().filter(|_| status.standing != PluginState::NotInstalled);
    for part in parts {
        text.push_str(format!("  {:<7}  {}", part.state.as_str(), flat(part.path.as_str())).trim_end());
        text.push('\n');
    }
    if let Some((program, problem)) = status.program.as_ref().zip(status.problem.as_ref()) {
        text.push_str(&format!(
            "  problem: {} cannot run {}: {}; refrain plugin install {} mends it\n",
            status.agent,
            flat(program),
            flat(problem),
            status.agent
        ));
    }
    text
}
