//! Merging the branch of a loop, or what a plan landed, into what is checked out here.

use refrain_core::LoopId;
use refrain_core::gate::{Check, GateSpec};
use refrain_core::git::path_names;
use refrain_core::spec::{AgentKind, PromptMode};
use refrain_core::view::StatusWord;
use refrain_engine::{
    GateNotice, MergeOptions, MergeRefusal, MergedBranch, Service, UnverifiedCause, works_in,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::discard::brings_back;
use crate::error::{Code, Message};
use crate::{Action, Context, RequestError};

/// How the work is merged.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Merge {
    /// Make one commit of all its work.
    pub squash: bool,
    /// Merge it although no gate verified it.
    pub unverified: bool,
}

/// Merges the work of the loop or plan. `notice` gets the gates that run on the merged tree.
pub async fn merge(
    context: &Context,
    service: &Service,
    id: &LoopId,
    Merge { squash, unverified }: Merge,
    notice: GateNotice<'_>,
) -> Result<MergedBranch, RequestError> {
    context.check_on(Action::Merge, service, id)?;
    Box::pin(service.merge(id, MergeOptions { squash, unverified, notice }))
        .await?
        .map_err(|refusal| refused(service, id, refusal))
}

fn refused(service: &Service, id: &LoopId, refusal: MergeRefusal) -> RequestError {
    let error = |text: String| RequestError::new(Code::Refused, text);
    match refusal {
        MergeRefusal::Running => {
            error(format!("{id} has not stopped")).hint(format!("refrain watch {id} shows it"))
        }
        MergeRefusal::Continues(word) => {
            error(format!("plan {id} is {}, and hands over its work itself when it continues", word.as_str()))
                .hint(format!("refrain plan resume {id}"))
                .hint(format!(
                    "or, to merge what it landed: refrain plan cancel {id}, then refrain merge {id}"
                ))
        }
        MergeRefusal::Landed { plan, task, commit } => {
            let of = format!("{id} has nothing to merge: task {task} of plan {plan} has landed");
            let diff = format!("refrain diff {plan} shows what the plan landed");
            match commit {
                None => error(format!("{of}, and changed nothing")).hint(diff),
                Some((commit, true)) => {
                    error(format!("{of} as commit {}, which is in what is checked out here", commit.short()))
                        .hint(diff)
                }
                Some((commit, false)) => {
                    error(format!("{of} as commit {}, which what is checked out here lacks", commit.short()))
                        .hint(format!("refrain plan status {plan} says why"))
                        .hint(diff)
                }
            }
        }
        MergeRefusal::Empty => {
            error(format!("plan {id} has landed nothing")).hint(format!("refrain plan status {id} shows why"))
        }
        MergeRefusal::Switched(other) => {
            error(format!("the work of {id} is {other}, to which its agent switched"))
                .hint(Message::own(&format!("git merge {}", other.revision())))
        }
        MergeRefusal::NoWork => error(format!("{id} committed nothing, so there is nothing to merge"))
            .hint(format!("refrain report {id} shows what it did")),
        MergeRefusal::NoBranch { folder, has_git: false, .. } => {
            error(format!("{id} worked in {folder}, which has its work already and no git repository"))
                .hint(format!("refrain report {id} shows what it did"))
        }
        MergeRefusal::NoBranch { worked_on, folder, uncommitted, unmerged, has_git: true } => {
            let on = worked_on.map(|branch| format!(" on branch {branch}")).unwrap_or_default();
            if let Some(revision) = unmerged {
                return error(format!(
                    "{id} has no branch of its own: it worked in {folder}{on}, and what is checked out here lacks its commits"
                ))
                .hint(by_hand(&revision))
                .hint(format!("refrain diff {id} shows them"));
            }
            let has = match uncommitted {
                0 => "which has its work already".to_owned(),
                files => format!("where {} not committed", counted(files, "file is", "files are")),
            };
            let shown = match uncommitted {
                0 => "it",
                _ => "what the loop changed; git status there names what is not committed",
            };
            error(format!("{id} has no branch of its own: it worked in {folder}{on}, {has}")).hint(format!(
                "refrain diff {id} shows {shown}; start loops with --worktree to merge their work yourself"
            ))
        }
        MergeRefusal::BranchGone { branch, last, discarded } => {
            let error = error(format!("branch {branch} of {id} is gone"));
            match (discarded, last) {
                (Some(reference), _) => error.hint(brings_back(id, Some(&branch), &reference)),
                (None, Some(last)) => {
                    let branch = shlex::try_quote(&branch).unwrap_or_default();
                    error.hint(format!("git branch {branch} {last} brings it back, then refrain merge {id}"))
                }
                (None, None) => error.hint(Message::from("its last commit is not in this repository")),
            }
        }
        MergeRefusal::Uncommitted { worktree, files, is_verified, with_files } => {
            let state = service.state(id);
            let commits = state.as_ref().is_ok_and(|state| state.spec.git.workflow.commits());
            let is_explained =
                state.is_ok_and(|state| state.git.last.is_some_and(|last| last.is_explained()));
            let folder = shlex::try_quote(worktree.as_str()).unwrap_or_default().into_owned();
            let (count, names) = (counted(files.len(), "file", "files"), path_names(&files, 3));
            let them = if files.len() == 1 { "it" } else { "them" };
            error(format!("{id} has {count} in no commit: {names}, in {worktree}"))
                .hint(match is_verified {
                    true => format!(
                        "remove {them} there, then refrain merge {id}; or commit {them} there, then refrain merge {id} \
                         --unverified, as the verified tree does not have {them}"
                    ),
                    false if with_files => format!(
                        "commit {them} there, then refrain merge {id}; it asks for --unverified if the gates checked \
                         something else"
                    ),
                    false => format!(
                        "commit or remove {them} there, then refrain merge {id} --unverified, as its work is not verified"
                    ),
                })
                .hint(match (commits, is_explained, is_verified) {
                    (true, true, _) => format!("refrain status {id} says why Refrain did not commit them"),
                    (false, _, false) => {
                        "start --git-workflow commit has Refrain commit the verified work".to_owned()
                    }
                    (true, false, _) | (false, _, true) => format!("git -C {folder} status shows them"),
                })
        }
        MergeRefusal::CheckedOut(branch) => error(format!("branch {branch} of {id} is checked out here"))
            .hint("git switch BRANCH, then merge again: the work goes into the branch that is checked out"),
        MergeRefusal::Used { folder, by } => error(works_in(&by, &folder)).hint(format!(
            "wait until it has stopped, or refrain -C FOLDER merge {id} from another worktree"
        )),
        MergeRefusal::AwaitsApproval => {
            let has_branch = service.state(id).is_ok_and(|state| state.spec.git.new_branch().is_some());
            let then =
                if has_branch { format!(", then refrain merge {id}") } else { " accepts it".to_owned() };
            error(format!("{id} waits for your approval"))
                .hint(format!("refrain diff {id} shows the work; refrain approve {id}{then}"))
        }
        MergeRefusal::Unverified(cause) => {
            let why = match cause {
                UnverifiedCause::NoGate => "no gate verified it".to_owned(),
                UnverifiedCause::Unsigned => "it is not signed with a key that you trust".to_owned(),
                UnverifiedCause::BranchChanged => "its branch was changed after it was verified".to_owned(),
                UnverifiedCause::NotCompleted(word) => format!("it is {}, not completed", word.as_str()),
            };
            let error = error(format!("{id} is unverified: {why}"));
            let error = match cause {
                UnverifiedCause::NotCompleted(StatusWord::Crashed | StatusWord::Paused) => {
                    error.hint(format!("refrain resume {id} continues it"))
                }
                UnverifiedCause::Unsigned => error.hint(format!("refrain status {id} says what to do")),
                UnverifiedCause::NotCompleted(_)
                | UnverifiedCause::NoGate
                | UnverifiedCause::BranchChanged => error,
            };
            error.hint(format!(
                "refrain diff {id} shows the work; refrain merge {id} --unverified merges it all the same"
            ))
        }
        MergeRefusal::Conflicts { revision, paths, gates } => {
            let first: Vec<_> = paths.iter().take(5).map(ToString::to_string).collect();
            let more = paths.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{revision} conflicts in {}{more}; nothing was changed", first.join(", "));
            let goal = format!("Merge {revision} and resolve the conflicts.");
            RequestError::new(Code::Failed, text)
                .hint(Message::from("a loop resolves them: ").then(mending_loop(service, id, &gates, &goal)))
                .hint(Message::from("or ").then(by_hand(&revision)))
        }
        MergeRefusal::GateFailed { revision, gate, log, gates } => {
            let text = format!("gate {gate} fails on the merged work; nothing was changed");
            let printed = match log.exists() {
                true => format!("{log} has what it printed"),
                false => "it printed nothing".to_owned(),
            };
            let goal = format!("Merge {revision} and make gate {gate} pass.");
            RequestError::new(Code::Failed, text)
                .hint(printed)
                .hint(Message::from("a loop mends it: ").then(mending_loop(service, id, &gates, &goal)))
                .hint(Message::from("or ").then(by_hand(&revision)))
        }
        MergeRefusal::Refused(why) => error(format!("{id} was not merged: {why}")),
    }
}

/// The command that merges without Refrain, and what it omits.
fn by_hand(revision: &str) -> String {
    let revision = shlex::try_quote(revision).unwrap_or_default();
    format!("git merge {revision} merges it by hand, whatever its gates say")
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The command of a loop that merges, with the agent and the gates of the one that cannot be merged.
fn mending_loop(service: &Service, id: &LoopId, gates: &[GateSpec], goal: &str) -> String {
    let (agent, gates) = (agent(service, id), gates.iter().filter_map(gate).collect::<String>());
    let goal = shlex::try_quote(goal).unwrap_or_default();
    format!("refrain start{agent}{gates} --worktree --git-workflow commit {goal}")
}

/// The option that requires a gate; none for a reviewer.
fn gate(gate: &GateSpec) -> Option<String> {
    match &gate.check {
        Check::Command(command) if gate.hard => {
            let text = format!("{}={command}", gate.name);
            Some(format!(" --gate {}", shlex::try_quote(&text).ok()?))
        }
        Check::Command(_) | Check::Review(_) => None,
    }
}

/// The options that name the agent of a loop or plan, and how it is started. Of a variable with a value of its own only
/// the name is said.
fn agent(service: &Service, id: &LoopId) -> String {
    let spec = service.state(id).map(|state| state.spec);
    let Ok(spec) = spec.or_else(|_| service.plan(id).map(|plan| *plan.spec.each)) else {
        return String::new();
    };
    let agent = &spec.agent;
    let (kind, mode, limit) =
        (agent.kind.to_string(), agent.prompt_mode.to_string(), spec.limits.timeout.map(|it| it.to_string()));
    let mut options = Vec::new();
    let command = std::iter::once(&agent.program).chain(&agent.args).map(String::as_str);
    let command = shlex::try_join(command).unwrap_or_default();
    match agent.kind {
        AgentKind::Generic => options.push(("--command", command.as_str())),
        _ => options.push(("--agent", kind.as_str())),
    }
    if agent.prompt_mode != PromptMode::Auto {
        options.push(("--prompt-mode", &mode));
    }
    options.extend(agent.env.keys().chain(&agent.env_names).map(|name| ("--env", name.as_str())));
    options.extend(limit.as_deref().map(|limit| ("--timeout", limit)));
    let option = |(name, value): (&str, &str)| Some(format!(" {name} {}", shlex::try_quote(value).ok()?));
    options.into_iter().filter_map(option).collect()
}
