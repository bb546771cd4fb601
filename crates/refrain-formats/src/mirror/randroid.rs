//! Seed 002's `loop.local.md`: front matter, and the prompt as its body.

use std::fmt::Write as _;

use refrain_core::git::Workflow;
use refrain_core::r#loop::LoopState;
use serde::Deserialize;

use super::foreign_loop::{ForeignLoop, PromiseWords, System, Unread, counted, prompt, value, words};
use super::parts::{LoopPhase, Mark};

/// Its path in a project: there is one. The seed's own is in the folder of its skill, which no project has.
pub(super) const FILE: &str = "loop.local.md";

pub(super) fn document(state: &LoopState, standing: LoopPhase, mark: &Mark) -> String {
    let spec = &state.spec;
    let begun_by = spec.session.as_ref().map(refrain_core::session::SessionSpec::slug);
    // The seed knows two modes.
    let mode = match spec.mode.as_deref().or(begun_by) {
        Some("research") => "research",
        _ => "implement",
    };
    // 0 is until it is complete.
    let most = state.limits.max_iterations.unwrap_or(0);
    let promise = spec.promise.as_ref().map(|promise| promise.text.as_str());
    let mut text = format!("---\nmode: {mode}\niteration: {}\niterations: {most}\n", state.iteration);
    let workflow = serde_json::to_value(spec.git.workflow).unwrap_or_default();
    let _ = writeln!(text, "git_workflow: {}", workflow.as_str().unwrap_or_default());
    let _ = writeln!(text, "completion_promise: {}", scalar(promise));
    let _ = writeln!(text, "started_at: {}", state.started_at);
    let status = serde_json::to_value(standing).unwrap_or_default();
    let _ = writeln!(text, "status: {}", status.as_str().unwrap_or_default());
    let _ = writeln!(
        text,
        "refrain_loop: {}\nrefrain_started: {}\n---\n",
        mark.refrain_loop, mark.refrain_started
    );
    text.push_str(spec.prompt.trim_end());
    text.push('\n');
    text
}

/// A word that is a plain text in YAML, or one in quotation marks.
fn scalar(promise: Option<&str>) -> String {
    let Some(text) = promise else { return "null".to_owned() };
    let is_word = text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        && !matches!(text, "TRUE" | "FALSE" | "NULL");
    if is_word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[derive(Deserialize)]
struct MirrorFile {
    /// Only one of the seed's is a state of its.
    #[serde(rename = "mode")]
    _mode: Mode,
    iteration: u32,
    /// As the seed's own state has it, and as its hook looks for it.
    #[serde(alias = "max_iterations")]
    iterations: i64,
    #[serde(rename = "git_workflow")]
    _workflow: Option<Workflow>,
    completion_promise: Option<String>,
    status: Option<LoopPhase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Research,
    Implement,
}

pub(super) fn read(matter: &str, body: &str) -> Result<ForeignLoop, Unread> {
    let system = System::Randroid;
    let read: MirrorFile = serde_saphyr::from_str(matter).map_err(|error| system.damaged(&error))?;
    let cap = match read.iterations {
        -1 | 0 => None,
        cap => Some(
            u32::try_from(cap).map_err(|_| value("iterations", &cap, "are -1, 0 and whole numbers above"))?,
        ),
    };
    Ok(ForeignLoop {
        system,
        id: None,
        began: None,
        prompt: prompt(body.trim())?,
        command: None,
        promised: match read.completion_promise.as_deref().map(words).transpose()? {
            Some(text) => PromiseWords::Words(text),
            None => PromiseWords::Never,
        },
        cap,
        iteration: counted(read.iteration)?,
        standing: read.status.unwrap_or(LoopPhase::Running),
        check: None,
    })
}
