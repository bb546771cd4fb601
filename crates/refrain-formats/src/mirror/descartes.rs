//! Seed 001's `.descartes/loop-state.json`, version 1.0.

use std::collections::BTreeMap;

use refrain_core::MachineEnd;
use refrain_core::event::Exit;
use refrain_core::git::Checkout;
use refrain_core::r#loop::{Attempt, LoopState};
use refrain_core::spec::{AgentKind, OutputFormat, PromptMode, Spec};
use refrain_core::text::clip;
use serde::{Deserialize, Serialize};

use super::foreign_loop::{ForeignLoop, PromiseWords, System, Unread, counted, prompt, value, words};
use super::parts::{LoopPhase, Mark, pretty};

/// Its path in a project: there is one.
pub(super) const FILE: &str = ".descartes/loop-state.json";

const VERSION: &str = "1.0";
/// How much of an iteration's message is shown, in bytes.
const PREVIEW: usize = 500;

#[derive(Serialize)]
struct State<'a> {
    version: &'a str,
    iteration: u32,
    config: Config<'a>,
    started_at: String,
    last_iteration_at: Option<String>,
    completed: bool,
    completion_detected_at: Option<String>,
    completion_text: Option<&'a str>,
    exit_reason: Reason,
    iteration_summaries: Vec<Summary>,
    error: Option<String>,
    #[serde(flatten)]
    mark: Mark,
}

#[derive(Serialize)]
struct Config<'a> {
    command: &'a str,
    args: &'a [String],
    prompt: &'a str,
    completion_promise: Option<&'a str>,
    max_iterations: Option<u32>,
    working_directory: &'a str,
    state_file: &'a str,
    include_iteration_context: bool,
    iteration_timeout_secs: Option<u64>,
    backend: Backend,
    git: Git,
}

#[derive(Serialize)]
struct Backend {
    backend_type: &'static str,
    prompt_mode: &'static str,
    /// The values of variables are private.
    environment: BTreeMap<String, String>,
    output_format: &'static str,
}

#[derive(Serialize)]
struct Git {
    auto_commit: bool,
    commit_template: String,
    create_branch: bool,
    branch_template: String,
}

#[derive(Serialize)]
struct Summary {
    iteration: u32,
    started_at: String,
    completed_at: String,
    exit_code: Option<i32>,
    output_preview: String,
    promise_checked: bool,
}

/// Why it ended; the words of the seed, and no others.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Reason {
    Running,
    CompletionPromiseDetected,
    MaxIterationsReached,
    UserCancelled,
    ProcessSuccess,
    Error { message: String },
    AwaitingHumanTune,
}

pub(super) fn document(state: &LoopState, standing: LoopPhase, mark: Mark) -> String {
    let spec = &state.spec;
    let ended = state.ended.map(|ended| ended.at.to_string());
    let charged = || state.attempts.iter().filter(|attempt| attempt.charged);
    let reason = reason(state, standing);
    let error = match &reason {
        Reason::Error { message } => Some(message.clone()),
        Reason::Running
        | Reason::CompletionPromiseDetected
        | Reason::MaxIterationsReached
        | Reason::UserCancelled
        | Reason::ProcessSuccess
        | Reason::AwaitingHumanTune => None,
    };
    let promise = spec.promise.as_ref().map(|promise| promise.text.as_str());
    let is_done = standing == LoopPhase::Completed;
    pretty(&State {
        version: VERSION,
        // It counts from 0 those that are over.
        iteration: state.charged,
        config: config(spec, state.limits.max_iterations, promise),
        started_at: state.started_at.to_string(),
        last_iteration_at: charged().next_back().map(|attempt| attempt.ended_at.to_string()),
        completed: standing != LoopPhase::Running,
        completion_detected_at: ended.filter(|_| is_done),
        completion_text: promise.filter(|_| is_done),
        exit_reason: reason,
        iteration_summaries: charged().map(|attempt| summary(attempt, spec)).collect(),
        error,
        mark,
    })
}

fn reason(state: &LoopState, standing: LoopPhase) -> Reason {
    match standing {
        LoopPhase::Running => Reason::Running,
        LoopPhase::Completed if state.spec.promise.is_some() => Reason::CompletionPromiseDetected,
        LoopPhase::Completed => Reason::ProcessSuccess,
        LoopPhase::Cancelled => Reason::UserCancelled,
        LoopPhase::MaxIterationsReached => Reason::MaxIterationsReached,
        LoopPhase::Crashed => {
            let how = state.ended.map_or("crashed", |ended| ended.end.name());
            Reason::Error { message: format!("the loop is {how}") }
        }
    }
}

fn config<'a>(
    spec: &'a Spec,
    max_iterations: Option<u32>,
    completion_promise: Option<&'a str>,
) -> Config<'a> {
    let agent = &spec.agent;
    Config {
        command: &agent.program,
        args: &agent.args,
        prompt: &spec.prompt,
        completion_promise,
        max_iterations,
        working_directory: spec.working_dir.as_str(),
        state_file: FILE,
        include_iteration_context: spec.iteration_context,
        iteration_timeout_secs: spec.limits.timeout.map(|limit| limit.0.div_ceil(1000)),
        backend: Backend {
            backend_type: match agent.kind {
                AgentKind::Claude => "claude",
                AgentKind::Opencode => "opencode",
                AgentKind::Generic | AgentKind::Codex | AgentKind::Gemini | AgentKind::Acp => "generic",
            },
            prompt_mode: match agent.prompt_mode {
                PromptMode::Auto | PromptMode::Arg | PromptMode::File => "arg",
                PromptMode::Stdin => "stdin",
                PromptMode::Env => "env",
            },
            environment: BTreeMap::new(),
            output_format: match agent.output_format {
                _ if agent.streams() => "stream-json",
                OutputFormat::Json => "json",
                OutputFormat::Auto | OutputFormat::Text | OutputFormat::StreamJson => "text",
            },
        },
        git: Git {
            auto_commit: spec.git.workflow.commits(),
            commit_template: spec.git.commit_template.to_string(),
            create_branch: spec.git.checkout != Checkout::AsIs,
            branch_template: "loop/{timestamp}".to_owned(),
        },
    }
}

fn summary(attempt: &Attempt, spec: &Spec) -> Summary {
    let finished = attempt.finished.as_deref();
    Summary {
        iteration: attempt.id.iteration.saturating_sub(1),
        started_at: attempt.started_at.to_string(),
        completed_at: attempt.ended_at.to_string(),
        exit_code: finished.and_then(|finished| match finished.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Lost | Exit::Unseen => None,
        }),
        output_preview: finished
            .map(|finished| clip(&finished.preview, PREVIEW).into_owned())
            .unwrap_or_default(),
        promise_checked: spec.promise.is_some(),
    }
}

/// What is read of it. Fields that are optional there are optional here.
#[derive(Deserialize)]
struct MirrorFile {
    version: String,
    iteration: u32,
    config: ReadConfig,
    completed: bool,
    exit_reason: Option<Reason>,
}

#[derive(Deserialize)]
struct ReadConfig {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    prompt: String,
    completion_promise: Option<String>,
    max_iterations: Option<u32>,
}

pub(super) fn read(text: &str) -> Result<ForeignLoop, Unread> {
    let system = System::Descartes;
    let MirrorFile { version, iteration, config, completed, exit_reason } =
        serde_json::from_str(text).map_err(|error| system.damaged(&error))?;
    if version != VERSION {
        return Err(value("version", &version, "is \"1.0\""));
    }
    let standing = match exit_reason {
        Some(Reason::Running) | None if !completed => LoopPhase::Running,
        Some(Reason::Error { .. } | Reason::AwaitingHumanTune) => LoopPhase::Crashed,
        Some(Reason::UserCancelled) => LoopPhase::Cancelled,
        Some(Reason::MaxIterationsReached) => LoopPhase::MaxIterationsReached,
        Some(Reason::CompletionPromiseDetected | Reason::ProcessSuccess | Reason::Running) | None => {
            LoopPhase::Completed
        }
    };
    let all = std::iter::once(&config.command).chain(&config.args).map(String::as_str);
    Ok(ForeignLoop {
        system,
        id: None,
        began: None,
        prompt: prompt(&config.prompt)?,
        command: Some(
            shlex::try_join(all).map_err(|error| system.damaged(&format!("config.command: {error}")))?,
        ),
        promised: match config.completion_promise {
            Some(text) => PromiseWords::Words(words(&text)?),
            None => PromiseWords::Never,
        },
        cap: config.max_iterations.filter(|cap| *cap > 0),
        iteration: counted(iteration)?,
        standing,
        check: None,
    })
}
