//! The messages of a running loop: a header, a line for each event that matters, the result of each attempt, and at the
//! end a summary and what to type next. When they are shown is decided in `screen`.

mod end_card;
mod header;

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use owo_colors::OwoColorize;
use refrain_core::LoopId;
use refrain_core::agent::Usage;
use refrain_core::event::{
    Ask, AttemptFinished, BlockReason, ClaimSource, Event, Exit, Record, StopReason, Urgency, Wait, WaitKind,
};
use refrain_core::r#loop::{Approval, Attempt, LoopState, Outcome};
use refrain_core::sandbox::{Host, RefusedHost};
use refrain_core::spec::Millis;
use refrain_core::text::{printable, thousands};
use refrain_core::view;
use refrain_engine::ladder;

use self::end_card::end_card;
pub(crate) use self::end_card::{EndFacts, next_commands};
use self::header::header;
use crate::render::phrase;
use crate::render::{commits, gates, progress, publication};

/// What one event says to a person, in lines that fit into `width` where there is one. `settled` is the attempt that it
/// ended, `told` what its agent said last: no fault is said twice. `end` is about a loop that ended.
pub(crate) fn lines(
    state: &LoopState,
    record: &Record,
    settled: Option<&Attempt>,
    told: &str,
    end: &EndFacts,
    width: Option<usize>,
) -> String {
    let is_ending = state.in_flight().is_some_and(|flight| flight.child.stopping.is_some());
    let mut text = match &record.event {
        Event::LoopStarted(_) => header(&state.spec, &state.limits, width),
        Event::IterationBegun { iteration, .. } => {
            let apart = if width.is_some() { "\n" } else { "" };
            apart.to_owned() + &marker(state, *iteration)
        }
        // What counts as the user's, which is not what is changed now: that may be the loop's own.
        Event::BaseTaken(base) => notes(commits::base(state.git.base.as_ref().unwrap_or(base), &state.spec)),
        Event::BaseRefused { .. } => note(&view::blocked(state, BlockReason::Repository)),
        Event::CommitSettled(report) => {
            notes(commits::settled(report, &state.git)) + &of_gates(gates::committed(state))
        }
        Event::PublishStarted { effect } => {
            publication::started(*effect).map(|what| note(&what)).unwrap_or_default()
        }
        Event::PublishSettled(report) => notes(publication::settled(report, state)),
        Event::CandidateTaken { .. } => of_gates(gates::candidate(state)),
        Event::CandidateRefused { error, .. } => {
            note(&format!("git does not say what is to be proven: {error}"))
        }
        Event::GateStarted { gate, run } => note(&gates::started(state, gate, *run)),
        Event::GateStopRequested { because } => note(gates::stopping(*because)),
        Event::GateSpawnFailed { error } => of_gates(gates::not_started(state, error)),
        Event::GateFinished(finished) => {
            of_gates(gates::finished(state, finished)) + &refused(&state.spec.id, &finished.refused)
        }
        Event::CritiqueStarted { .. } => note("the critic looks at the progress so far"),
        Event::CritiqueFailed { error } => {
            note(&format!("the critic could not be started, and the loop continues: {error}"))
        }
        Event::CritiqueStopRequested { .. } => note("ending the critic"),
        Event::CritiqueFinished(finished) => note(&progress::criticised(finished)),
        Event::AgentChanged(agent) => note(&progress::changed(agent)),
        Event::WorkSaved { branch, commit, pushed, mixed } => {
            notes(progress::saved(branch, commit, pushed.as_ref(), mixed))
        }
        Event::WorkUnsaved { why } => note(&format!("its work is on no branch: {why}")),
        Event::WorktreeReleased { .. } => note(&commits::released(state)),
        Event::AttemptStarted(attempt) if attempt.attempt > 1 => note(&format!("attempt {attempt}")),
        Event::AttemptStopRequested { because } => {
            let why = match because {
                StopReason::Cancel => "cancelled: ending the agent",
                StopReason::Interrupt => "this attempt is refunded: ending the agent",
                StopReason::TimeLimit => "the attempt took too long: ending the agent",
                StopReason::Silence => "the agent was silent for too long: ending it",
                StopReason::LoopDuration => "the loop's time is over: ending the agent",
                StopReason::Budget => "the budget is used up: ending the agent",
                StopReason::OutputLost => "what the agent prints cannot be kept: ending it",
                StopReason::ProviderWait => {
                    "the agent is waiting for its provider: Refrain stops it and waits itself"
                }
            };
            note(&format!("{why}, which takes {} at most", grace(state)))
        }
        Event::AttemptFinished(finished) => {
            git_changed(state, finished) + &refused(&state.spec.id, &finished.refused)
        }
        Event::AttemptSwept { killed, survivors, names } => swept(state, *killed, survivors, names),
        Event::AttemptSpawnFailed { error } => note(&format!("the agent could not be started: {error}")),
        Event::Asked { request, ask, by } => note(&phrase::asked_by(
            *by,
            &match ask {
                Ask::Pause(Urgency::AfterIteration) if request.is_none() => {
                    "pausing after this iteration; Ctrl-C again ends the agent now and refunds the attempt"
                        .to_owned()
                }
                Ask::Pause(Urgency::AfterIteration) => "asked to pause after this iteration".to_owned(),
                Ask::Pause(Urgency::Now) | Ask::Cancel(Urgency::Now) if state.is_killed() => {
                    "asked again: killing what has not ended yet".to_owned()
                }
                Ask::Pause(Urgency::Now) if is_ending => {
                    format!(
                        "still ending the agent: it has {} from when it was asked to end, then it is killed",
                        grace(state)
                    )
                }
                Ask::Pause(Urgency::Now) => "pausing now".to_owned(),
                Ask::Cancel(Urgency::AfterIteration) => "asked to cancel after this iteration".to_owned(),
                Ask::Cancel(Urgency::Now) => "cancelling now".to_owned(),
                Ask::Steer(words) => format!("the next prompt will say: {words}"),
                Ask::Proceed => "waiting no longer".to_owned(),
                Ask::Withdraw(_) => "an earlier request was taken back".to_owned(),
                Ask::AllowHost(host) => {
                    format!("its sandbox reaches {host} from the next run of a program on")
                }
            },
        )),
        // The checks' results are shown above it, and they are polled every minute.
        Event::WaitStarted(Wait { kind: WaitKind::Checks, .. }) => String::new(),
        Event::WaitStarted(wait) => waits(*wait, record.at),
        Event::LoopResumed { approved: Some(_), .. } => note("approved; it is looked at once more"),
        Event::LoopResumed { .. }
            if state.proof.as_ref().and_then(|proof| proof.approval)
                == Some(Approval::Refused(record.at)) =>
        {
            note("resumed without approval: it is sent back")
        }
        Event::LoopResumed { no_sandbox: true, .. } => note("resumed without its sandbox"),
        Event::LoopResumed { .. } => note("resumed"),
        Event::SessionBound(session) => {
            let which = session.id.as_deref().map(|id| format!(" {}", printable(id)));
            note(&format!("{} session{} drives it", session.agent, which.unwrap_or_default()))
        }
        Event::SessionLeft => note("no session drives it any more"),
        Event::RunnerStarted { interrupted: Some(attempt), adopted: Some(finished), .. }
            if finished.exit == Exit::Unseen =>
        {
            note(&format!("attempt {attempt} had finished when its runner was gone; its result is used"))
        }
        Event::RunnerStarted { interrupted: Some(attempt), .. } => {
            note(&format!("attempt {attempt} was interrupted; it is refunded and tried again"))
        }
        Event::LoopLeft(departure) => note(&format!("moved to {}", printable(&departure.to))),
        Event::LoopMoved(arrival) => note(&format!(
            "taken over from {} by machine {}",
            printable(&arrival.from),
            printable(&arrival.host)
        )),
        Event::JournalTorn { bytes, .. } => {
            note(&format!("the journal's last {bytes} bytes were torn, and put aside"))
        }
        Event::JournalRestored { kept_as: None, .. } => {
            note("the journal had been deleted, and was written back")
        }
        Event::JournalRestored { kept_as: Some(kept_as), .. } => note(&format!(
            "another process had changed the journal: its version is kept as {}, and the journal was written back",
            printable(kept_as)
        )),
        Event::LoopEnded(_)
        | Event::RunnerStarted { .. }
        | Event::AttemptStarted(_)
        | Event::AttemptSpawned { .. } => String::new(),
    };
    // A lost attempt was reported already.
    if let (Some(attempt), false) = (settled, matches!(record.event, Event::RunnerStarted { .. })) {
        text.push_str(&summary(attempt));
        text.push_str(&remarks(attempt, told));
    }
    if let Event::LoopEnded(_) = record.event {
        text.push_str(&end_card(state, end));
    }
    fit(text, width)
}

/// The text, with the lines of Refrain's own words wrapped if they do not fit, between words. Rows are wrapped already, and
/// the marker is a line of its own.
fn fit(text: String, width: Option<usize>) -> String {
    if width.is_none() {
        return text;
    }
    let is_whole = |line: &str| line.starts_with("  ") || line.contains("[loop ");
    let is_advice = |line: &str| {
        let line = anstream::adapter::strip_str(line).to_string();
        line.starts_with("  next: ") || line.starts_with("  note ")
    };
    let broken = |line: &str| match is_whole(line) {
        true if is_advice(line) => phrase::broken("", 8, line, width),
        true => line.to_owned(),
        false => phrase::broken("", 2, line, width),
    };
    text.lines().map(|line| broken(line) + "\n").collect()
}

/// What an attempt changed in what git runs, unless the attempt before changed the same.
fn git_changed(state: &LoopState, finished: &AttemptFinished) -> String {
    if finished.git_changed.is_empty() {
        return String::new();
    }
    let mut before = state.attempts.iter().rev().skip(1).filter_map(|attempt| attempt.finished.as_ref());
    if before.next().is_some_and(|before| before.git_changed == finished.git_changed) {
        return String::new();
    }
    let names = printable(&finished.git_changed.join(", ")).into_owned();
    note(&format!("changed since the start, and neither run nor used by Refrain's git: {names}"))
}

fn refused(id: &LoopId, hosts: &[RefusedHost]) -> String {
    let line = |host: &RefusedHost| {
        let (name, times) = (printable(&host.host), phrase::counted(host.count, "time", "times"));
        // An address in it was chosen by the program.
        let named = host.host.parse::<Host>().ok().filter(|host| host.address.is_none());
        let command = named.map(|named| {
            let inside = match (host.is_private, named.is_local()) {
                (true, _) => "it resolves to a private address",
                (false, true) => "it is a name of the local network",
                (false, false) => return format!("; refrain sandbox allow {id} {named} allows it"),
            };
            format!(": {inside}; refrain sandbox allow {id} {named}=ADDRESS allows that address")
        });
        note(&format!("the sandbox refused {name} ({times}){}", command.unwrap_or_default()))
    };
    hosts.iter().map(line).collect()
}

/// How long an agent has to end in its own way.
fn grace(state: &LoopState) -> Millis {
    ladder(state.spec.agent.kind).longest().into()
}

/// The line that an iteration begins with; agents and scripts look for it.
fn marker(state: &LoopState, iteration: u32) -> String {
    format!("{}\n", refrain_core::prompt::marker(state, iteration).bold())
}

fn waits(wait: Wait, now: Timestamp) -> String {
    let left = wait.until.duration_since(now).unsigned_abs();
    let what = match wait.kind {
        WaitKind::Pace => "rests",
        WaitKind::Limit => "waits for the provider's limit to be reset,",
        WaitKind::Outage => "waits for the provider to work again,",
        WaitKind::Checks => "looks at the checks again, and waits for that",
        WaitKind::Remote => "waits for its remote",
    };
    note(&format!("{what} until {} ({})", clock(wait.until), Millis::from(left)))
}

/// A line of Refrain's own among those of the agent.
pub(crate) fn note(text: &str) -> String {
    format!("{} {}\n", phrase::in_charset("·").dimmed(), printable(text).replace('\n', " ").dimmed())
}

/// What happened to the processes that an agent left running. The next iteration may have its heading by then, so the
/// iteration that left them is named.
fn swept(state: &LoopState, killed: u32, survivors: &[i32], names: &[String]) -> String {
    let mut text = String::new();
    let whose = state.attempts.last().map(|last| format!("iteration {}", last.id));
    let whose = whose.as_deref().unwrap_or("the agent");
    if killed > 0 {
        let processes = phrase::counted(killed, "process", "processes");
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        text.push_str(&note(&format!("ended {processes} that {whose} left behind{names}")));
    }
    if !survivors.is_empty() {
        text.push_str(&note(&format!("{whose} left processes behind that cannot be ended: {survivors:?}")));
    }
    text
}

fn notes(lines: Vec<String>) -> String {
    lines.iter().map(|line| note(line)).collect()
}

/// Results with their marks, among notes.
fn of_gates(lines: Vec<gates::Line>) -> String {
    let line = |line: &gates::Line| match line.mark {
        Some((tone, mark)) => {
            let text = printable(&line.text).replace('\n', " ");
            format!("{} {text}\n", phrase::coloured(tone, phrase::in_charset(mark)))
        }
        None => note(&line.text),
    };
    lines.iter().map(line).collect()
}

/// How an attempt ended, in one line.
fn summary(attempt: &Attempt) -> String {
    let took = Millis::from(attempt.ended_at.duration_since(attempt.started_at).unsigned_abs());
    let took = if attempt.finished.is_some() { format!(" took {took}") } else { String::new() };
    let how = match (attempt.outcome, attempt.finished.as_ref().map(|finished| finished.exit)) {
        (Outcome::Claimed, _) if matches!(attempt.claim, Some(ClaimSource::Gates | ClaimSource::Result)) => {
            "it ended well, which its gates are to prove".to_owned()
        }
        (Outcome::Claimed, _) => "it claims to be done".green().to_string(),
        (Outcome::Ended, _) => "no claim".to_owned(),
        (Outcome::Failed, Some(Exit::Code(code))) => format!("exit code {code}").yellow().to_string(),
        (Outcome::Failed, Some(Exit::Signal(signal))) => {
            format!("ended by signal {signal}").yellow().to_string()
        }
        (Outcome::Failed, _) => "failed".yellow().to_string(),
        (Outcome::TimeLimit, _) => {
            let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_ref());
            let tool = report.and_then(|report| report.last_tool.as_ref());
            let last = tool.map(|tool| format!(", last in its tool {tool}")).unwrap_or_default();
            format!("stopped at its time limit{last}").yellow().to_string()
        }
        (Outcome::Silence, _) => "stopped because it printed nothing".yellow().to_string(),
        (Outcome::LoopDuration, _) => "stopped at the loop's end".to_owned(),
        (Outcome::Cancelled, _) => "cancelled".to_owned(),
        (Outcome::Interrupted, _) => "interrupted, refunded".to_owned(),
        (Outcome::Lost, _) => "lost with its runner or supervisor, refunded".yellow().to_string(),
        (Outcome::NotStarted, _) => "not started".red().to_string(),
        (Outcome::Budget, _) => "stopped at its budget".yellow().to_string(),
        (Outcome::Limit, _) => "the provider's limit is used up, refunded".yellow().to_string(),
        (Outcome::Outage, _) => "the provider did not work, refunded".yellow().to_string(),
        (Outcome::Unable, _) => "it cannot work, refunded".red().to_string(),
        (Outcome::Unresponsive, _) => {
            "stopped before its program printed an event, refunded".yellow().to_string()
        }
        (Outcome::OutputLost, _) => "what it printed could not be kept, refunded".red().to_string(),
    };
    let used = phrase::after(&phrase::used(&attempt.usage.into()));
    let said = attempt.finished.as_ref().and_then(|finished| finished.summary.as_deref());
    let said = said.map(|said| format!("; it says: {}", printable(said))).unwrap_or_default();
    format!("{} iteration {}{took}{used}: {how}{said}\n", phrase::in_charset("·").dimmed(), attempt.id)
}

/// The agent program's text about a fault, and what was wrong with a near claim.
fn remarks(attempt: &Attempt, told: &str) -> String {
    let Some(finished) = &attempt.finished else { return String::new() };
    let mut text = String::new();
    let fault = finished.report.as_ref().and_then(|report| report.fault.as_ref());
    // The cause of a stop is known; what a person has to fix is shown at the loop's end, which follows at once.
    let is_news = matches!(attempt.outcome, Outcome::Failed | Outcome::Limit | Outcome::Outage);
    if let Some(fault) = fault.filter(|fault| is_news && fault.message.trim() != told) {
        text.push_str(&note(&fault.message));
    }
    if let Some(miss) = finished.near_miss.filter(|_| attempt.claim.is_none()) {
        text.push_str(&note(&format!("nearly a claim: {}", miss.hint())));
    }
    if let Some(fault) = finished.state_fault {
        text.push_str(&note(&format!("state.md: {}", fault.hint())));
    }
    text
}

const TOLD: usize = 10;

/// The state of a loop for a user who begins to watch: what it is, how its last attempts ended, and what runs.
pub(crate) fn digest(state: &LoopState, end: &EndFacts, width: Option<usize>) -> String {
    let id = &state.spec.id;
    let mut text = header(&state.spec, &state.limits, width);
    let earlier = state.attempts.len().saturating_sub(TOLD);
    if !state.attempts.is_empty() {
        let earlier = if earlier > 0 { format!("{earlier} earlier attempts, and ") } else { String::new() };
        text.push_str(&note(&format!("{earlier}what was printed so far: refrain logs {id}")));
    }
    for attempt in &state.attempts[earlier..] {
        text.push_str(&summary(attempt));
        text.push_str(&of_gates(gates::digest(state, attempt)));
    }
    if state.ended.is_some() {
        return fit(text + &end_card(state, end), width);
    }
    let settled =
        state.attempts.iter().any(|attempt| attempt.id.iteration == state.iteration && attempt.charged);
    if state.iteration > 0 && !settled {
        text.push_str(&marker(state, state.iteration));
    }
    if let Some(flight) = state.in_flight().filter(|flight| flight.id.attempt > 1) {
        text.push_str(&note(&format!("attempt {}", flight.id)));
    }
    if let Some(wait) = state.wait {
        text.push_str(&waits(wait, refrain_engine::now()));
    }
    let asked = |urgency| if urgency == Urgency::Now { "now" } else { "after this iteration" };
    if let Some(urgency) = state.pause {
        text.push_str(&note(&format!("asked to pause {}", asked(urgency))));
    }
    if let Some(urgency) = state.cancel {
        text.push_str(&note(&format!("asked to cancel {}", asked(urgency))));
    }
    fit(text, width)
}

/// How long an agent may be silent before that is worth a word.
const SILENT: i64 = 10;

/// What runs or is waited for, and the time left. `heard` is when the agent last printed something, `used` what its
/// running attempt reported. In a log, nothing for an agent that is not silent.
pub(crate) fn going_on(
    state: &LoopState,
    (heard, used): (Timestamp, Usage),
    is_log: bool,
    now: Timestamp,
) -> Option<String> {
    let id = &state.spec.id;
    let since = |then: Timestamp| now.duration_since(then).as_secs().max(0);
    if state.ended.is_some() {
        return None;
    }
    if let Some(wait) = state.wait {
        let left = match wait.until.duration_since(now).as_secs().max(0) {
            0 => "continues at any moment".to_owned(),
            left => format!("{} left", phrase::seconds(left)),
        };
        return Some(match wait.kind {
            WaitKind::Pace => format!("rests: {left}"),
            WaitKind::Limit => {
                format!("waits for the provider's limit: {left}; refrain resume {id} --now tries at once")
            }
            WaitKind::Outage => {
                format!("waits for the provider: {left}; refrain resume {id} --now tries at once")
            }
            WaitKind::Checks => match &state.git.published.checks {
                Some(checks) if checks.total > 0 => {
                    format!("waits for checks, of which {} of {} are over", checks.over, checks.total)
                }
                Some(_) | None => "waits for checks to begin".to_owned(),
            },
            WaitKind::Remote => {
                format!("waits for its remote: {left}; refrain resume {id} --now tries at once")
            }
        });
    }
    if let Some(running) = state.running_gate()
        && let Some(gate) = state.spec.gates.get(running.gate)
    {
        let ran = since(running.child.started_at);
        let left = seconds_of(gate.timeout).saturating_sub(ran).max(0);
        let (name, ran, left) = (&gate.name, phrase::seconds(ran), phrase::seconds(left));
        return Some(format!("gate {name} runs for {ran}; it has {left} more"));
    }
    let Some(flight) = state.in_flight() else {
        return state.sweeping.then(|| "what the agent left running is being ended".to_owned());
    };
    let (ran, silent) = (since(flight.child.started_at), since(heard.max(flight.child.started_at)));
    if silent < SILENT && is_log {
        return None;
    }
    let of = state.limits.max_iterations.map(|most| format!("/{most}")).unwrap_or_default();
    let mut text = format!("iteration {}{of} runs for {}", flight.id, phrase::seconds(ran));
    match silent {
        ..SILENT => {}
        _ if silent < ran => text.push_str(&format!(", silent for {}", phrase::seconds(silent))),
        _ => text.push_str(" in silence"),
    }
    let used = state.spent + used;
    let tokens = Some(used.tokens.counted()).filter(|count| *count > 0);
    let tokens = tokens.map(|count| format!("{} tokens", thousands(count)));
    let parts: Vec<_> = tokens.into_iter().chain(used.cost.map(|cost| cost.to_string())).collect();
    if !parts.is_empty() {
        text.push_str(&format!("; {}", parts.join(", ")));
    }
    let left =
        |limit: Option<Millis>, used: i64| limit.map(|limit| seconds_of(limit).saturating_sub(used).max(0));
    let patience = state.limits.idle_timeout.filter(|_| silent >= SILENT);
    match (left(state.limits.timeout, ran), left(patience, silent)) {
        _ if flight.child.stopping.is_some() => text.push_str("; it is being ended"),
        (Some(time), silence) if silence.is_none_or(|silence| time <= silence) => {
            text.push_str(&format!("; it has {} more", phrase::seconds(time)));
        }
        (_, Some(silence)) => {
            text.push_str(&format!("; ended in {} unless it speaks", phrase::seconds(silence)));
        }
        (_, None) => {}
    }
    Some(text)
}

fn seconds_of(limit: Millis) -> i64 {
    i64::try_from(limit.0 / 1000).unwrap_or(i64::MAX)
}

/// A command line as it could be typed.
pub(crate) fn words<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let words: Vec<&str> = words.map(String::as_str).collect();
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

/// A time of day here, with its date.
pub(crate) fn clock(at: jiff::Timestamp) -> String {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let zone = ZONE.get_or_init(crate::values::time_zone);
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
