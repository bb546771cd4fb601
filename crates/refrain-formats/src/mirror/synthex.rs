//! Seed 000's `.synthex/loops/<id>.json`, schema version 1: every key is there, those that may be null as null.

use refrain_core::r#loop::LoopState;
use refrain_core::session::Isolation;
use refrain_core::spec::Limits;
use refrain_core::values::whole_numbers;
use serde::{Deserialize, Serialize};

use super::command_line::{Line, line};
use super::foreign_loop::{
    ForeignLoop, PromiseWords, Prompt, System, Unread, counted, id, present, value, words,
};
use super::parts::{LoopPhase, Mark, pretty};

/// The folder of its files in a project, one per loop.
pub(super) const FOLDER: &str = ".synthex/loops";

const VERSION: u32 = 1;

/// The keys of the schema. Those that may be null must be present.
#[derive(Serialize, Deserialize)]
struct State {
    schema_version: u32,
    loop_id: String,
    #[serde(deserialize_with = "present")]
    session_id: Option<String>,
    command: String,
    args: String,
    #[serde(deserialize_with = "present")]
    prompt_file: Option<String>,
    completion_promise: String,
    max_iterations: u32,
    iteration: u32,
    isolation: Isolation,
    status: LoopPhase,
    started_at: String,
    last_updated: String,
    #[serde(deserialize_with = "present")]
    exited_at: Option<String>,
    #[serde(deserialize_with = "present")]
    exit_reason: Option<String>,
}

#[derive(Serialize)]
struct MirrorDocument {
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    mark: Mark,
}

pub(super) fn document(state: &LoopState, standing: LoopPhase, mark: Mark) -> String {
    let spec = &state.spec;
    let most = state.limits.max_iterations.unwrap_or(Limits::MAX_GRANT);
    let most = most.clamp(1, Limits::MAX_GRANT);
    let (command, args, isolation) = match &spec.session {
        Some(begun) => (begun.command.clone(), begun.args.clone(), begun.isolation),
        // What Synthex itself would continue with: an agent of its own each time, with this prompt.
        None => {
            ("/synthex:loop".to_owned(), format!("--prompt {}", quoted(&spec.prompt)), Isolation::Subagent)
        }
    };
    let over = standing != LoopPhase::Running;
    let exited = state.ended.map_or(state.updated_at, |ended| ended.at);
    // A loop without a promise gets one that no agent makes.
    let promise =
        spec.promise.as_ref().map_or_else(|| format!("ALLDONE-{}", spec.id), |it| it.text.to_string());
    let state = State {
        schema_version: VERSION,
        loop_id: spec.id.to_string(),
        session_id: state.session.as_ref().and_then(|session| session.id.clone()),
        command,
        args,
        prompt_file: None,
        completion_promise: promise,
        max_iterations: most,
        iteration: state.iteration,
        isolation,
        status: standing,
        started_at: state.started_at.to_string(),
        last_updated: state.updated_at.to_string(),
        exited_at: over.then(|| exited.to_string()),
        exit_reason: reason(standing, most),
    };
    pretty(&MirrorDocument { state, mark })
}

fn reason(standing: LoopPhase, most: u32) -> Option<String> {
    Some(match standing {
        LoopPhase::Running => return None,
        LoopPhase::Completed => "completion-promise-emitted".to_owned(),
        LoopPhase::Cancelled => "Cancelled by /synthex:cancel-loop".to_owned(),
        LoopPhase::MaxIterationsReached => {
            format!("Reached max_iterations={most} without completion promise")
        }
        LoopPhase::Crashed => "Marked crashed".to_owned(),
    })
}

fn quoted(text: &str) -> String {
    // A NUL cannot be quoted, and no prompt has one that an agent was given.
    shlex::try_quote(text).map_or_else(|_| text.replace('\0', ""), |quoted| quoted.into_owned())
}

pub(super) fn read(text: &str) -> Result<ForeignLoop, Unread> {
    let system = System::Synthex;
    let version = serde_json::from_str::<serde_json::Value>(text).ok();
    let version = version.and_then(|object| object.get("schema_version").cloned());
    if let Some(found) = version.filter(|version| *version != VERSION) {
        return Err(value(
            "schema_version",
            &found.to_string(),
            "is 1; a file of another version is not gone on with",
        ));
    }
    let state: State = serde_json::from_str(text).map_err(|error| system.damaged(&error))?;
    let id = id(system, "loop_id", &state.loop_id)?;
    if !state.command.starts_with('/') {
        return Err(value("command", &state.command, "are commands that begin with /"));
    }
    if !(1..=Limits::MAX_GRANT).contains(&state.max_iterations) {
        let accepted = format!("are {}", whole_numbers(1, Limits::MAX_GRANT.into()));
        return Err(value("max_iterations", &state.max_iterations, accepted));
    }
    let times = [("started_at", Some(&state.started_at)), ("last_updated", Some(&state.last_updated))];
    for (key, time) in times.into_iter().chain([("exited_at", state.exited_at.as_ref())]) {
        if let Some(time) = time.filter(|time| !is_instant(time)) {
            return Err(value(key, time, "are times like 2026-01-15T10:30:00Z"));
        }
    }
    let is_running = state.status == LoopPhase::Running;
    for (key, is_there) in
        [("exited_at", state.exited_at.is_some()), ("exit_reason", state.exit_reason.is_some())]
    {
        if is_there == is_running {
            let accepted =
                if is_running { "is null while it is running" } else { "is a text where it is not running" };
            return Err(value(key, &is_there, accepted));
        }
    }
    let Line { prompt, file } = line(&state.command, &state.args);
    let prompt = match state.prompt_file.or(file) {
        Some(file) => Prompt::File(file),
        None => super::foreign_loop::prompt(&prompt)?,
    };
    Ok(ForeignLoop {
        system,
        id: Some(id),
        began: None,
        prompt,
        command: None,
        promised: PromiseWords::Words(words(&state.completion_promise)?),
        cap: Some(state.max_iterations),
        iteration: counted(state.iteration)?,
        standing: state.status,
        check: None,
    })
}

fn is_instant(text: &str) -> bool {
    text.contains('T') && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}
