//! `refrain hook EVENT`: what agents call when something happens in a session. It always exits 0 and says valid JSON or
//! nothing: whatever is odd lets the session do as it likes (contract.md).

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use refrain_core::spec::AgentKind;
use refrain_core::{LoopId, prompt};
use refrain_engine::hook::{self, Tail, Told};
use refrain_engine::{Said, Service, Turn};

use crate::cli::Context;
use crate::out;

/// Answer an agent's hook: reads its JSON on stdin
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What happened
    event: Happened,
    /// Whose hook it is
    #[arg(long, value_name = "KIND", value_parser = agent)]
    agent: AgentKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Happened {
    /// The session ends its turn
    Stop,
    /// A session starts, goes on, or was compacted
    SessionStart,
    /// An agent below the session ends: never a claim
    SubagentStop,
}

/// More is no hook's input, in bytes.
const LARGEST: u64 = 16 << 20;

/// How long a hook waits for a proof: half of what its harness gives it, which the plugins set to 60 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a transcript is looked into where the hook was not told the message: it may not be written yet.
const LOOKS: u32 = 5;

pub(super) fn agent(text: &str) -> Result<AgentKind, String> {
    let known = AgentKind::named(text).filter(|kind| kind.program().is_some());
    known.ok_or_else(|| "accepted are claude, codex, gemini and opencode".to_owned())
}

/// Answers.
pub(crate) fn run(context: &Context, args: &Args) -> ExitCode {
    let mut input = Vec::new();
    let read = std::io::stdin().take(LARGEST).read_to_end(&mut input);
    let told = read.ok().and_then(|_| hook::read(&input));
    if let Some(answer) = told.and_then(|told| answer(context, args, &told)) {
        out::print(&format!("{answer}\n"));
    }
    ExitCode::SUCCESS
}

fn answer(context: &Context, args: &Args, told: &Told) -> Option<String> {
    // An agent that a loop started is that loop's, and ends when it likes.
    if context.inside.is_some() {
        return None;
    }
    let dir = told.cwd.clone().unwrap_or_else(|| context.dir.clone());
    let service = Service::open(&dir, context.host.clone()).ok()?;
    match args.event {
        Happened::SubagentStop => None,
        Happened::Stop => stop(&service, args.agent, told),
        Happened::SessionStart => start(&service, args.agent, told),
    }
}

/// The session goes on where one of its loops does; where it has several, with the first that does.
fn stop(service: &Service, agent: AgentKind, told: &Told) -> Option<String> {
    if !told.is_stop() || told.has_background {
        return None;
    }
    let loops = service.loops_of_session(agent, &told.session).ok()?;
    if loops.is_empty() {
        return None;
    }
    let tail = tail(agent, told);
    if tail.as_ref().is_some_and(|tail| tail.asks) {
        return None;
    }
    let message = told.last_message(tail.as_ref().and_then(|tail| tail.message.as_deref()))?;
    let idle = tail.is_some_and(|tail| !tail.has_worked);
    let said = Said { message, claims: false, idle };
    let reason = loops.iter().find_map(|id| reason(service, id, &said))?;
    Some(hook::go_on(&reason))
}

/// What the transcript says, where it is one that is known. The message may come a moment after the hook is called.
fn tail(agent: AgentKind, told: &Told) -> Option<Tail> {
    let path = told.transcript.as_ref()?;
    let mut tail = hook::look(agent, path);
    for _ in 1..LOOKS {
        if told.message.is_some() || tail.as_ref().is_some_and(|tail| tail.message.is_some()) {
            break;
        }
        refrain_engine::wait_for_change(path, Duration::from_millis(200));
        tail = hook::look(agent, path);
    }
    tail
}

/// Why the session is to go on, if this loop is not at its end.
fn reason(service: &Service, id: &LoopId, said: &Said) -> Option<String> {
    match service.turn(id, Some(said), PATIENCE).ok()? {
        Turn::Next { marker, prompt } => Some(format!("{marker}\n\n{prompt}")),
        Turn::Under(_) | Turn::Stopped(_) => None,
        Turn::Proving => Some(hold(id)),
    }
}

/// What a session is told that has to wait for a proof.
fn hold(id: &LoopId) -> String {
    format!(
        "What you did for loop {id} is being checked, which takes a while. Run this now, and do what it says; change nothing \
         meanwhile: refrain tick hold {id}"
    )
}

/// What a session is told that may have forgotten its loop.
fn start(service: &Service, agent: AgentKind, told: &Told) -> Option<String> {
    let loops = service.loops_of_session(agent, &told.session).ok()?;
    let lines: Vec<String> = loops
        .iter()
        .filter_map(|id| {
            let state = service.state(id).ok()?;
            let marker = prompt::marker(&state, state.iteration);
            let notes = state.spec.state_file();
            Some(format!(
                "{marker} This session drives this loop. Its task and your notes are in {notes}. Go on with it; when you end \
                 your turn you are told what comes next. refrain status {id} says how it stands."
            ))
        })
        .collect();
    (!lines.is_empty()).then(|| hook::tell(&lines.join("\n")))
}
