//! `refrain hook EVENT`: called by agents when something happens in a session. It always exits 0 and prints valid JSON
//! or nothing: on any error the session continues as it likes (contract.md).

use std::io::Read;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::ValueEnum;
use refrain_app::Context;
use refrain_core::session::TurnDecision;
use refrain_core::spec::AgentKind;
use refrain_engine::Service;
use refrain_engine::hook::{self, HookInput};

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain hook stop --agent claude
  refrain hook session-start --agent codex")]
pub(crate) struct Args {
    /// What happened
    event: SessionEvent,
    /// The agent that calls the hook
    #[arg(long, value_name = "KIND", value_parser = agent)]
    agent: AgentKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SessionEvent {
    /// The session ends its turn
    Stop,
    /// A session starts, continues, or was compacted
    SessionStart,
    /// A subagent ends: never a claim
    SubagentStop,
}

/// More is no hook's input, in bytes.
const LARGEST: u64 = 16 << 20;

pub(crate) fn agent(text: &str) -> Result<AgentKind, String> {
    let known = AgentKind::named(text).filter(|kind| kind.program().is_some());
    known.ok_or_else(|| "accepted: claude, codex, gemini and opencode".to_owned())
}

pub(crate) fn run(context: &Context, args: &Args) -> ExitCode {
    let mut input = Vec::new();
    let read = std::io::stdin().take(LARGEST).read_to_end(&mut input);
    let told = read.ok().and_then(|_| hook::read(&input));
    if let Some(answer) = told.and_then(|told| answer(context, args, &told)) {
        out::print(&format!("{answer}\n"));
    }
    ExitCode::SUCCESS
}

/// The answer of the session's project. The session may have moved into a nested repository, or out of all of them:
/// the folder where it was started is tried too.
fn answer(context: &Context, args: &Args, told: &HookInput) -> Option<String> {
    let began = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"]
        .map(|name| context.variable(name).map(Utf8PathBuf::from));
    let dirs = [told.cwd.clone(), Some(context.dir.clone())].into_iter().chain(began).flatten();
    // Most often they are all the same; to find a project takes longer than to compare.
    let mut asked: Vec<Utf8PathBuf> = Vec::new();
    for dir in dirs {
        if asked.contains(&dir) {
            continue;
        }
        let Ok(service) = Service::open(&dir, context.host.clone()) else { continue };
        let project = service.project().root.clone();
        if !asked.contains(&project)
            && let Some(answer) = answer_of(&service, context, args, told)
        {
            return Some(answer);
        }
        asked.extend([dir, project]);
    }
    None
}

fn answer_of(service: &Service, context: &Context, args: &Args, told: &HookInput) -> Option<String> {
    // An agent that a loop started belongs to that loop, and may end at any time.
    let is_inside = context.caller.is_attempt();
    match args.event {
        SessionEvent::SubagentStop => None,
        SessionEvent::Stop => match service.at_stop(args.agent, told, is_inside) {
            TurnDecision::GoOn(reason) => Some(hook::go_on(&reason)),
            TurnDecision::Ended(text) => Some(hook::show(&text)),
            TurnDecision::LetGo => None,
        },
        SessionEvent::SessionStart => {
            service.at_start(args.agent, told, is_inside).map(|text| hook::tell(&text))
        }
    }
}
