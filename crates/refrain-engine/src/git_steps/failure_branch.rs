//! The failure branch of a loop that gives up: its work, its state and what failed (design.md section 5; seed 004,
//! "Failure Handling").

use std::ffi::OsString;

use refrain_agents::environment;
use refrain_core::event::{Event, Record};
use refrain_core::git::RepoPath;
use refrain_core::prompt::{self, QuotedLogs, context};
use refrain_core::view::{self, Alive};
use refrain_core::{Live, LoopState, Step, next_step};
use refrain_git::{Bounds, Cancel, GitError, PushRequest, Repository, SaveRequest, Saved};
use refrain_store::LoopDir;

use crate::child::quotes;
use crate::git_steps::git_words;
use crate::service::redact::Redactor;

/// The state of the loop, as `refrain status --json` prints it, and what failed.
const STATE: &str = ".refrain-failure/state.json";
const CONTEXT: &str = ".refrain-failure/context.md";

/// Keeps the work of a loop that is about to give up, and pushes it if there is a remote.
pub(crate) fn save(
    state: &LoopState,
    dir: &LoopDir,
    env: &[(OsString, OsString)],
    open: impl FnOnce() -> Result<Repository, GitError>,
    cancel: &Cancel,
) -> Event {
    let base = state.git.base.as_ref().or(state.spec.git.before.as_deref());
    let saved = open().and_then(|repository| {
        let Some(base) = base else { return Err(GitError::NotARepository(state.spec.worktree.clone())) };
        let (wanted, mixed) = (branch(state), repository.mixed(base));
        let ended = as_ended(state, &wanted, &mixed);
        let told = RedactedTexts::new(state, &ended, dir, env);
        let saved = repository.save_work(SaveRequest {
            base,
            mixed: &mixed,
            id: &state.spec.id,
            iteration: state.iteration,
            branch: &wanted,
            message: &told.message,
            files: &[(STATE, told.state.as_bytes()), (CONTEXT, told.context.as_bytes())],
            index: &dir.index(),
            bounds: Bounds::of(&state.spec.git, Some(cancel)),
        })?;
        Ok((saved, mixed, repository))
    });
    match saved {
        Ok((None, ..)) => Event::WorkUnsaved { why: "no file changed".to_owned() },
        Ok((Some(Saved { branch, commit }), mixed, repository)) => {
            // The branch is what counts. It is kept even if the push is stopped.
            let pushed = repository.push_branch(PushRequest {
                branch: &branch,
                since: state.git.began.as_ref().or(base.and_then(|base| base.head.as_ref())),
                bounds: Bounds::of(&state.spec.git, Some(cancel)),
            });
            let pushed = pushed.unwrap_or_default();
            Event::WorkSaved { branch, commit, pushed, mixed }
        }
        Err(GitError::NotARepository(_)) => {
            Event::WorkUnsaved { why: "it was in no git repository when it began".to_owned() }
        }
        Err(error) => Event::WorkUnsaved { why: git_words::say(&error, git_words::LONGEST) },
    }
}

/// The branch: named after the last iteration's end, so that a repeated step looks for the same one.
fn branch(state: &LoopState) -> String {
    let last = state.last_charged().map_or(state.updated_at, |last| last.ended_at);
    format!("wip/ralph-fail-{}-{}", state.spec.id, git_words::stamp(last))
}

/// The state as it will be once the work is kept and the end is recorded.
fn as_ended(state: &LoopState, branch: &str, mixed: &[RepoPath]) -> LoopState {
    let mut ended = state.clone();
    let at = state.updated_at;
    let mut record = |event| {
        // If it does not fit, the message goes without it.
        let _ = ended.apply(&Record { seq: ended.seq + 1, at, event });
        next_step(&ended, &Live::default(), at)
    };
    // Any commit will do: it is not shown.
    if let Ok(commit) = "0".repeat(40).parse()
        && let Step::Finish(end) = record(Event::WorkSaved {
            branch: branch.to_owned(),
            commit,
            pushed: None,
            mixed: mixed.to_vec(),
        })
    {
        record(Event::LoopEnded(end));
    }
    ended
}

/// The texts about the work, with no secrets in them.
struct RedactedTexts {
    message: String,
    state: String,
    context: String,
}

impl RedactedTexts {
    fn new(state: &LoopState, ended: &LoopState, dir: &LoopDir, env: &[(OsString, OsString)]) -> Self {
        let redactor = Redactor::new(&state.spec, logins(env));
        let clean = |text: &str| redactor.clean(text);
        let mut status = view::status(ended, Alive { runner: Some(true), ..Alive::default() });
        status.saved.iter_mut().for_each(|saved| saved.commit = None);
        let message = format!(
            "wip: loop {} gave up after iteration {}\n\n{}",
            state.spec.id, state.iteration, status.reason
        );
        let mut status = serde_json::to_value(&status).unwrap_or_default();
        each_text(&mut status, &clean);
        Self {
            message: clean(&message),
            state: format!("{status:#}\n"),
            context: clean(&context(state, dir)),
        }
    }
}

/// The person's own logins: a program that fails over one may say it.
/// The values of variables that hold a login.
pub(crate) fn logins(env: &[(OsString, OsString)]) -> impl Iterator<Item = String> {
    let is_login = |name: &OsString| environment::SECRETS.iter().any(|secret| name == secret);
    let logins = env.iter().filter(move |(name, _)| is_login(name));
    logins.filter_map(|(_, value)| value.to_str().map(str::to_owned))
}

pub(crate) fn each_text(value: &mut serde_json::Value, change: &impl Fn(&str) -> String) {
    match value {
        serde_json::Value::String(text) => *text = change(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// What failed, as the next iteration's prompt would have had it.
pub(crate) fn context(state: &LoopState, dir: &LoopDir) -> String {
    let ahead = context::ahead(state);
    let quoted = quotes::read(&ahead.spec, dir, &prompt::quotes(&ahead));
    context::at_the_end(&ahead, QuotedLogs(&quoted))
}
