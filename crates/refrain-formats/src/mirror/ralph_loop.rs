//! The `.claude/ralph-loop.local.md` of Claude Code's own plugin: read, never written.

use refrain_core::prompt::state_file::front_matter;
use serde::Deserialize;

use super::LoopPhase;
use super::foreign_loop::{ForeignLoop, PromiseWords, System, Unread, counted, prompt, words};

pub const PATH: &str = ".claude/ralph-loop.local.md";

/// The note for a session that begins a loop beside one of that plugin (seed 000).
pub const ADVISORY: &str = "Note: --loop overrides Ralph Loop. The ralph-loop plugin's state file is unchanged; cancel the ralph loop separately if you want it gone.";

#[derive(Deserialize)]
struct MirrorFile {
    active: bool,
    iteration: u32,
    max_iterations: u32,
    completion_promise: Option<String>,
}

/// Whether a file of that plugin says that its loop is on.
pub fn is_active(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Active {
        active: bool,
    }
    let matter = front_matter(text).map(|(matter, _)| &text[matter]);
    matter.and_then(|matter| serde_saphyr::from_str::<Active>(matter).ok()).is_some_and(|read| read.active)
}

pub(super) fn read(matter: &str, body: &str) -> Result<ForeignLoop, Unread> {
    let system = System::RalphLoop;
    let read: MirrorFile = serde_saphyr::from_str(matter).map_err(|error| system.damaged(&error))?;
    Ok(ForeignLoop {
        system,
        id: None,
        began: None,
        prompt: prompt(body.trim())?,
        command: None,
        promised: match read.completion_promise.as_deref().map(words).transpose()? {
            Some(text) => PromiseWords::Words(text),
            // It continues until its iterations are used up, regardless of what its agent says.
            None => PromiseWords::Unsaid,
        },
        cap: Some(read.max_iterations).filter(|cap| *cap > 0),
        iteration: counted(read.iteration)?,
        standing: if read.active { LoopPhase::Running } else { LoopPhase::Cancelled },
        check: None,
    })
}
