//! What a loop looks like in the files of other systems, and what their files say of a loop that continues here. A
//! written file is for their tools and for people: no loop reads its own back, because the journal is the only truth.
//! Where the files are and how they are written is in the engine.
//!
//! One module per system, each with a writer and a reader of its format; [`read`] recognizes a system by the content.

mod check;
mod command_line;
mod descartes;
mod foreign_loop;
mod parts;
mod ralph;
mod ralph_loop;
mod randroid;
mod reader;
mod scud;
mod synthex;
#[cfg(test)]
mod tests;

use camino::Utf8PathBuf;
use refrain_core::git::Checkout;
use refrain_core::ids::LoopId;
use refrain_core::r#loop::LoopState;
use refrain_core::mirror::Mirror;
use refrain_core::spec::Spec;
use serde::Deserialize;

pub use check::Check;
pub use foreign_loop::{CannotContinue, ForeignLoop, PromiseWords, Prompt, Unread, admits as admits_prompt};
pub use parts::LoopPhase;
pub use ralph_loop::{ADVISORY, PATH as RALPH_LOOP, is_active as is_ralph_loop_active};
pub use reader::read;

use parts::Mark;

/// The files that a mirror keeps of one loop, and which loop that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorFiles {
    pub mirror: Mirror,
    /// Each by its name below [`Mirror::root`], and its content; none if it is deleted. The first says which loop owns
    /// them all.
    pub files: Vec<(Utf8PathBuf, Option<String>)>,
    mark: Mark,
}

/// Which loop owns a file that is already where a mirror would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The loop's own, or an earlier one's of Refrain's.
    Own,
    /// A loop's of Refrain's that began later: a file that there is once in a project is that one's.
    Later,
    /// Not Refrain's: it is never written.
    Foreign,
}

/// The lock of seed 004: the number of the process that works there.
pub const LOCK: &str = ".ralph.lock";

/// The file that shows a plan, in the project.
pub const OF_PLAN: &str = scud::FILE;

/// The folder of its files: the project as a person sees it, which outlives a worktree of the loop's own; for seed
/// 004 the one that the agent works in.
pub fn root(mirror: Mirror, spec: &Spec) -> Utf8PathBuf {
    match (mirror, &spec.git.checkout) {
        (Mirror::Ralph, _) => spec.working_dir.clone(),
        (_, Checkout::Worktree { .. }) => spec.project.clone(),
        (_, Checkout::AsIs | Checkout::Branch(_)) => spec.worktree.clone(),
    }
}

/// The file that says whose all of its files are.
pub fn first(mirror: Mirror, id: &LoopId) -> Utf8PathBuf {
    match mirror {
        Mirror::Ralph => ralph::FILES[0].into(),
        Mirror::Synthex => format!("{}/{id}.json", synthex::FOLDER).into(),
        Mirror::Descartes => descartes::FILE.into(),
        Mirror::Randroid => randroid::FILE.into(),
    }
}

pub fn document(mirror: Mirror, state: &LoopState, standing: LoopPhase) -> String {
    let mark = Mark::of(state);
    match mirror {
        Mirror::Ralph => ralph::document(state, mark),
        Mirror::Synthex => synthex::document(state, standing, mark),
        Mirror::Descartes => descartes::document(state, standing, mark),
        Mirror::Randroid => randroid::document(state, standing, &mark),
    }
}

/// The files of a loop in this standing; `context` is the content of `context.md`.
pub fn files(mirror: Mirror, state: &LoopState, standing: LoopPhase, context: Option<&str>) -> MirrorFiles {
    // Seed 004: a successful loop leaves no file. Seed 002's file has no word for an end.
    let stays = match mirror {
        Mirror::Synthex | Mirror::Descartes => true,
        Mirror::Ralph | Mirror::Randroid => !state.is_final(),
    };
    let first = first(mirror, &state.spec.id);
    let mut files = vec![(first, stays.then(|| document(mirror, state, standing)))];
    if mirror == Mirror::Ralph {
        let context = context.filter(|_| stays).map(ralph::context);
        files.push((ralph::FILES[1].into(), context));
    }
    MirrorFiles { mirror, files, mark: Mark::of(state) }
}

impl MirrorFiles {
    /// Which loop owns an existing file with this content.
    pub fn owner(&self, there: &str) -> Owner {
        match Mark::found(there) {
            // Nothing is lost with it: a power loss may have left it so.
            None if there.is_empty() => Owner::Own,
            None => Owner::Foreign,
            Some(found) if found.refrain_loop == self.mark.refrain_loop => Owner::Own,
            Some(found) if found.refrain_started > self.mark.refrain_started => Owner::Later,
            Some(_) => Owner::Own,
        }
    }
}

/// The Refrain loop that a file shows, in another system's format or as `status --json` does; none if Refrain did not
/// write it.
pub fn shown_by(text: &str) -> Option<LoopId> {
    #[derive(Deserialize)]
    struct Status {
        id: LoopId,
        #[serde(rename = "schema")]
        _schema: u32,
        #[serde(rename = "charged")]
        _charged: u32,
    }
    let status = || serde_json::from_str(text).ok().map(|Status { id, .. }| id);
    Mark::found(text).map(|mark| mark.refrain_loop).or_else(status)
}

/// Whether a path in a repository is one that mirrors write: Refrain's, and never part of a candidate.
pub fn is_mirror(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let folder = synthex::FOLDER.as_bytes();
    ralph::FILES.iter().chain([&LOCK]).any(|own| own.as_bytes() == name)
        || path == descartes::FILE.as_bytes()
        || path == randroid::FILE.as_bytes()
        || path == scud::FILE.as_bytes()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
