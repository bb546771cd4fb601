//! Texts about a loop's progress: its critic's verdict, a change of agent, and where unverified work is kept.

use refrain_core::event::{CritiqueFinished, PushReport};
use refrain_core::git::{Oid, RepoPath};
use refrain_core::spec::AgentSpec;
use refrain_core::text::squeeze;
use refrain_core::view;

pub(crate) fn criticised(finished: &CritiqueFinished) -> String {
    match (&finished.feedback, &finished.error) {
        (Some(said), _) => format!("the critic: {}", squeeze(said)),
        (None, Some(error)) => {
            format!("the critic failed, and the loop continues: {}", squeeze(error))
        }
        (None, None) => "the critic said nothing, and the loop continues".to_owned(),
    }
}

pub(crate) fn changed(agent: &AgentSpec) -> String {
    let model = agent.model.as_ref().map_or_else(String::new, |model| format!(" with model {model}"));
    format!("the loop is stuck; from here on it runs {}{model}", agent.program)
}

pub(crate) fn saved(
    branch: &str,
    commit: &Oid,
    pushed: Option<&PushReport>,
    mixed: &[RepoPath],
) -> Vec<String> {
    let yours = view::with_yours(mixed);
    let mut lines = vec![format!("its work is kept on branch {branch} ({}){yours}", commit.short())];
    if let Some(PushReport { remote, error }) = pushed {
        lines.push(match error {
            None => format!("{branch} was pushed to {remote}"),
            Some(error) => {
                format!("{branch} could not be pushed to {remote}, and is here only: {}", squeeze(error))
            }
        });
    }
    lines
}
