use std::io::{ErrorKind, Read};
use std::process::ExitCode;

use refrain_app::differences::check_iteration;
use refrain_app::{Code, Context, RequestError};
use refrain_core::event::Event;
use refrain_core::gate::GateName;
use refrain_core::values::iteration;
use refrain_core::view::{Iteration, Status};
use refrain_core::{AttemptId, LoopId, Spec};
use refrain_engine::{AttemptDir, ByKind, FollowEvent, Service, read_log};

use super::selection::Selection;
use super::whole_logs::bring;
use crate::out;
use crate::render::agent_text::AgentText;
use crate::render::lines::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain logs docs-3f9c --follow
  refrain logs docs-3f9c --iteration 3")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Continue to show new output until the loop stops
    #[arg(short, long, conflicts_with_all = ["iteration", "at"])]
    follow: bool,
    /// Streams of events as they came, not made readable
    #[arg(long)]
    raw: bool,
    /// Only that iteration, all its attempts
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = iteration)]
    iteration: Option<u32>,
}

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Prints the logs of the attempts, oldest first.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let (service, id) = args.selection.open(context, "refrain logs")?;
    match service.find(&id)? {
        ByKind::Loop(_) => of_loop(context, &service, &id, args).map(|_| Code::Done.into()),
        ByKind::Plan(_) => of_plan(context, &service, &id, args),
    }
}

/// Prints the logs of a plan's loops, one round of a task after the other.
fn of_plan(context: &Context, service: &Service, id: &LoopId, args: &Args) -> Result<ExitCode, RequestError> {
    for (is_given, flag) in [(args.follow, "--follow"), (args.iteration.is_some(), "--iteration")] {
        if is_given {
            let error = RequestError::usage(format!("{flag}: {id} is a plan; use it with one of its loops"));
            return Err(error.hint(format!(
                "refrain list --plan {id} names them; refrain watch {id} shows all as they go on"
            )));
        }
    }
    for round in service.plan_rounds(id)? {
        let heading = format!("=== task {}, round {} ({})\n", round.task, round.round, round.id);
        if !out::print_raw(heading.as_bytes()) || !of_loop(context, service, &round.id, args)? {
            break;
        }
    }
    Ok(Code::Done.into())
}

/// Prints the logs of a loop; false once the reader is gone.
fn of_loop(context: &Context, service: &Service, id: &LoopId, args: &Args) -> Result<bool, RequestError> {
    let status = service.status(id)?;
    let attempts = attempts(&status, args.iteration);
    check_iteration(&status, args.iteration)?;
    if args.follow {
        return follow(service, id, args.raw);
    }
    bring(context, service, id, args.iteration)?;
    let (spec, dir) = (service.spec(id)?, service.locate(id)?.dir);
    let runs = gate_runs(service, id)?;
    let runs_of = |attempt| runs.iter().filter(move |(of, ..)| *of == attempt);
    if args.iteration.is_none() && runs_of(AttemptId::BEFORE).next().is_some() {
        out::print_raw(b"== before the first iteration\n");
        show_gates(&dir.attempt(AttemptId::BEFORE), runs_of(AttemptId::BEFORE));
    }
    for attempt in attempts {
        let place = dir.attempt(attempt);
        let is_read = show(service, &spec, &place, attempt, args.raw)?;
        if !is_read || !show_gates(&place, runs_of(attempt)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Every gate run with its attempt, in order.
fn gate_runs(service: &Service, id: &LoopId) -> Result<Vec<(AttemptId, GateName, u32)>, RequestError> {
    let mut of = AttemptId::BEFORE;
    let mut runs = Vec::new();
    for record in service.events(id)? {
        if let Event::AttemptStarted(attempt) = record.event {
            of = attempt;
        } else if let Event::GateStarted { gate, run } = record.event {
            runs.push((of, gate, run));
        }
    }
    Ok(runs)
}

/// Prints the output of gates; false once the reader is gone.
fn show_gates<'a>(dir: &AttemptDir, mut runs: impl Iterator<Item = &'a (AttemptId, GateName, u32)>) -> bool {
    runs.all(|(_, gate, run)| {
        let log = dir.gate(gate, *run);
        out::print_raw(gate_heading(gate).as_bytes()) && read_log(&log).map_or(true, copy)
    })
}

fn gate_heading(gate: &GateName) -> String {
    format!("-- gate {gate}\n")
}

fn attempts(status: &Status, only: Option<u32>) -> Vec<AttemptId> {
    let all = status.iterations.iter().flatten();
    all.map(Iteration::id).filter(|id| only.is_none_or(|n| id.iteration == n)).collect()
}

/// Prints one attempt; false once the reader is gone.
fn show(
    service: &Service,
    spec: &Spec,
    dir: &AttemptDir,
    attempt: AttemptId,
    raw: bool,
) -> Result<bool, RequestError> {
    if !out::print_raw(heading(attempt).as_bytes()) {
        return Ok(false);
    }
    // A turn of a session stores its last message, for every agent.
    let message = dir.stdout(false);
    if spec.agent.streams() && message.is_file() {
        return Ok(read_log(&message).map_or(true, copy));
    }
    let (mut said, mut open) = (AgentText::default(), true);
    // Output that is no event stream is printed as it is, and so is a stream with `--raw`.
    let streams = service.said(spec, dir, &mut |event| {
        open = open && !raw && out::print_part(&said.show(&event));
    })?;
    let printed = match (streams, raw) {
        (true, false) => open && out::print_part(&said.end()),
        (true, true) => read_log(&dir.stdout(true)).map_or(true, copy),
        // A stream that was never written to has no file.
        (false, _) => read_log(&dir.stdout(spec.agent.streams())).map_or(true, copy),
    };
    Ok(printed && read_log(&dir.stderr()).map_or(true, |kept| out::print_raw(b"-- stderr\n") && copy(kept)))
}

/// Prints a stored stream; false once the reader is gone.
fn copy(mut kept: impl Read) -> bool {
    let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK]);
    loop {
        match kept.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return out::print_raw(lines.end().as_bytes()),
            Ok(length) => {
                if !out::print_raw(lines.push(&chunk[..length]).as_bytes()) {
                    return false;
                }
            }
        }
    }
}

/// Everything so far, then as it comes.
fn follow(service: &Service, id: &LoopId, raw: bool) -> Result<bool, RequestError> {
    let follower = service.follow(id, true)?;
    let mut follower = if raw { follower.raw() } else { follower };
    let mut said = AgentText::default();
    let mut streams: [Lines; 2] = Default::default();
    let mut open = true;
    while open {
        let text = match follower.look().map_err(refrain_engine::EngineError::from)? {
            None => break,
            Some(FollowEvent::Said(event)) => said.show(&event),
            Some(FollowEvent::Joined | FollowEvent::Quiet) => String::new(),
            Some(FollowEvent::Output { stderr, bytes }) => streams[usize::from(stderr)].push(&bytes),
            Some(FollowEvent::Event(record) | FollowEvent::Past(record)) => {
                let heading = match &record.event {
                    Event::AttemptStarted(attempt) => heading(*attempt),
                    Event::GateStarted { gate, .. } => gate_heading(gate),
                    _ => String::new(),
                };
                streams.each_mut().map(Lines::end).concat() + &said.end() + &heading
            }
        };
        open = out::print_part(&text);
    }
    Ok(out::print_raw(streams.each_mut().map(Lines::end).concat().as_bytes()))
}

fn heading(attempt: AttemptId) -> String {
    format!("== iteration {attempt}\n")
}
