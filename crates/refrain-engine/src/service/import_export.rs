//! Loops of other systems, and loops of Refrain's as others have them, if a person asks for it. Nothing of theirs is
//! ever written here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::mirror::Mirror;
use refrain_core::plan::{PlanSpec, PlanState};
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{self, StatusWord};
use refrain_formats::mirror::{self, ForeignLoop, LoopPhase, Unread};
use refrain_store::{journal, write_atomic};
use serde_json::{Value, json};

use crate::driver::liveness::{alive, look};
use crate::git_steps::failure_branch::each_text;
use crate::service::LoopLocation;
use crate::service::mirror::show_plan;
use crate::service::redact::Redactor;
use crate::{EngineError, Service, now};

/// No state of a loop is larger, in bytes: a prompt may be long, and a thousand iterations have a summary each.
const LARGEST: u64 = 32 << 20;

/// Why a loop cannot be resumed from a file of another system.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error(
        "it cannot be read as the state of a loop: {0}; accepted: a file of UTF-8 text of at most {LARGEST} bytes"
    )]
    File(io::Error),
    /// It says something that cannot be taken over.
    #[error(transparent)]
    Unread(#[from] Unread),
}

/// The loop that a file of another system describes. It is only read.
pub fn found_in(path: &Utf8Path) -> Result<ForeignLoop, ForeignError> {
    Ok(mirror::read(&text_of(path).map_err(ForeignError::File)?)?)
}

/// A text of a size that such files have; what is no file may never end, or never begin.
fn text_of(path: &Utf8Path) -> io::Result<String> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(io::Error::other("it is no file, or too large"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a loop as it was exported, whole or not at all. `false` where a file is there that is not Refrain's: it
/// stays.
/// Errors: [`EngineError`]; the file is as it was then.
pub fn write_exported(path: &Utf8Path, text: &str) -> Result<bool, EngineError> {
    let is_there = fs::symlink_metadata(path).is_ok();
    let is_own = is_there && text_of(path).is_ok_and(|text| mirror::shown_by(&text).is_some());
    if is_there && !is_own {
        return Ok(false);
    }
    write_atomic(path, text.as_bytes())?;
    Ok(true)
}

/// A plan in seed 001's words.
fn scud(spec: &PlanSpec, status: &PlanStatus) -> Value {
    let verify = spec.each.gates.iter().find(|gate| gate.name.as_str() == "verify");
    let is_over = status.status.has_stopped();
    let current = status.waves.iter().position(|wave| wave.tasks_done < wave.tasks_total);
    json!({
        "version": "1.0",
        "config": {
            "tag": spec.tag,
            "plan_path": spec.brief.document,
            "max_iterations_per_task": spec.limits.per_task,
            "max_total_iterations": spec.limits.total,
            "working_directory": spec.each.working_dir,
            "use_sub_agents": true,
            "verification_command": verify.map(|gate| gate.check.to_string()),
            "auto_commit_waves": true,
            "spec": {
                "include_task": true,
                "include_plan_section": true,
                "additional_specs": spec.brief.files,
                "max_spec_tokens": spec.brief.max_tokens,
                "spec_template": spec.brief.template.as_ref().map(ToString::to_string),
            },
        },
        "current_wave": current.map_or(status.waves.len(), |wave| wave + 1),
        "total_waves": status.waves.len(),
        "tasks_completed": status.tasks_done,
        "tasks_total": status.tasks_total,
        "iteration_count": status.usage.iterations_used,
        "wave_commits": status.wave_commits,
        "started_at": status.started_at,
        "last_activity_at": status.updated_at,
        "completed": status.status == StatusWord::Completed,
        "exit_reason": is_over.then_some(&status.reason),
        "blocked_tasks": status.blocked.iter().map(|task| json!({
            "task_id": task.task,
            "title": task.title,
            "reason": task.reason,
            "attempts": task.attempts,
            "blocked_at": task.blocked_at,
        })).collect::<Vec<_>>(),
        "refrain_loop": status.id,
        "refrain_started": status.started_at,
    })
}

/// The object as text, less what must not leave.
fn cleaned(spec: &PlanSpec, mut object: Value) -> String {
    let redactor = Redactor::new(&spec.each, []);
    each_text(&mut object, &|text: &str| redactor.clean(text));
    format!("{object:#}\n")
}

/// Brings the file that shows a plan to its state.
pub(crate) fn mirror_plan(state: &PlanState) {
    let status = view::plan::status(state, &BTreeMap::new(), Some(true), now());
    show_plan(&state.spec, &cleaned(&state.spec, scud(&state.spec, &status)));
}

impl Service {
    /// A loop as another system has it, or else as `status --json` does, less what must not leave: values that were set
    /// for its agent, and what looks like a secret.
    pub fn export(&self, id: &LoopId, to: Option<Mirror>) -> Result<String, EngineError> {
        let LoopLocation { dir, .. } = self.locate(id)?;
        let state = journal::read_signed(&dir, &self.host().signing())?.state;
        let is_driven = alive(&dir, &state).runner != Some(false);
        let redactor = Redactor::new(&state.spec, []);
        let clean = |text: &str| redactor.clean(text);
        let whole = |mut object: Value| {
            each_text(&mut object, &clean);
            format!("{object:#}\n")
        };
        let Some(to) = to else {
            // Nothing in it cannot be a value: `status` prints it.
            return Ok(whole(serde_json::to_value(look(&dir, &state)).unwrap_or_default()));
        };
        let text = mirror::document(to, &state, LoopPhase::of(&state, is_driven));
        Ok(serde_json::from_str(&text).map_or_else(|_| clean(&text), whole))
    }

    /// A plan as Descartes has it (`.scud/loop-state.json`), or else as `plan status --json` does, less what must not leave.
    pub fn export_plan(&self, id: &LoopId, is_scud: bool) -> Result<String, EngineError> {
        let (status, spec) = (self.plan_status(id)?, self.plan(id)?.spec);
        let object =
            if is_scud { scud(&spec, &status) } else { serde_json::to_value(&status).unwrap_or_default() };
        Ok(cleaned(&spec, object))
    }

    /// The note for a session that starts a loop here while Claude Code's own plugin has one: that file is only read.
    pub fn advisory(&self, here: &Utf8Path) -> Option<&'static str> {
        let is_on = |folder: &Utf8Path| {
            let path: Utf8PathBuf = folder.join(mirror::RALPH_LOOP);
            text_of(&path).is_ok_and(|text| mirror::is_ralph_loop_active(&text))
        };
        (is_on(&self.project().worktree) || is_on(here)).then_some(mirror::ADVISORY)
    }
}
