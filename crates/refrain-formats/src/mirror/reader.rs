//! Reads a file of another system, which is recognized by its content, not by its name.

use refrain_core::prompt::state_file::front_matter;

use super::foreign_loop::{ForeignLoop, Unread};
use super::parts::Mark;
use super::{check, descartes, ralph, ralph_loop, randroid, scud, synthex};

/// Reads a loop from another system's file.
pub fn read(text: &str) -> Result<ForeignLoop, Unread> {
    let mut found = dispatch(text)?;
    if let Some(mark) = Mark::found(text) {
        found.id = found.id.or(Some(mark.refrain_loop));
        found.began = Some(mark.refrain_started);
    }
    found.check = found.check.or_else(|| check::of(text));
    Ok(found)
}

fn dispatch(text: &str) -> Result<ForeignLoop, Unread> {
    if let Some((matter, body)) = front_matter(text) {
        let (matter, body) = (&text[matter], &text[body..]);
        return match matter.lines().any(|line| line.starts_with("active:")) {
            true => ralph_loop::read(matter, body),
            false => randroid::read(matter, body),
        };
    }
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|_| Unread::Unknown)?;
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    match &object {
        _ if has(&["schema_version", "loop_id", "isolation"]) => synthex::read(text),
        _ if has(&["current_wave", "wave_commits", "tasks_total"]) => scud::read(text),
        _ if has(&["task_id", "stuck_count"]) => ralph::read(text),
        _ if has(&["config", "iteration_summaries", "exit_reason"]) => descartes::read(text),
        _ => Err(Unread::Unknown),
    }
}
