//! The files of a loop that moves between machines: those that go with it, and the folder in which they are laid out
//! before the loop exists here.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::git::Oid;
use refrain_files::{IfThere, read_regular, remove};

use crate::project::archive::bring_back;
use crate::project::layout::{LoopDir, Project};
use crate::{DiskError, OnPath, make_dir_nofollow, write_nofollow};

/// The name of the file with the commits by which this machine claims the loop.
const CLAIMS: &str = "claims";
/// The name of the file with the worktree that the loop gets on this machine.
const WORKTREE: &str = "arriving-worktree";
/// The largest file that goes with a loop, in bytes.
pub const LARGEST: u64 = 64 << 20;

/// The folder of a loop that is being taken over and does not exist here yet.
pub fn staging(project: &Project, id: &LoopId) -> LoopDir {
    LoopDir(project.data.join("moving").join(id.as_str()))
}

/// Gives the loop in its staging folder its place.
/// Errors: [`DiskError`], also if a loop of that id is there.
pub fn settle(project: &Project, id: &LoopId) -> Result<LoopDir, DiskError> {
    let staged = staging(project, id);
    make_dir_nofollow(&staged.inbox())?;
    bring_back(project, &staged, id)
}

/// Removes the staging folder of a loop that is not claimed.
pub fn discard_staging(project: &Project, id: &LoopId) {
    let staged = staging(project, id);
    if claims(&staged).is_empty() {
        // What stays is used again.
        let _ = std::fs::remove_dir_all(&staged.0);
        let _ = staged.0.parent().map(std::fs::remove_dir);
    }
}

/// The recorded output of a loop, relative to its folder: prompts, and logs of the agent, gates and critics. Links are omitted,
/// and so are the parts of a log that is past its cap: the log is read as one.
pub fn logs(dir: &LoopDir) -> Result<Vec<Utf8PathBuf>, DiskError> {
    let mut found = Vec::new();
    let mut folders = vec![dir.iterations()];
    while let Some(folder) = folders.pop() {
        let entries = match folder.symlink_metadata().if_there().on("look at", &folder)? {
            Some(meta) if meta.is_dir() => folder.read_dir_utf8().on("read", &folder)?,
            Some(_) | None => continue,
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(inside) = path.strip_prefix(&dir.0) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_file() && is_log(inside) => found.push(inside.to_owned()),
                Ok(kind) if kind.is_dir() && inside.components().count() < 4 && !is_part(path) => {
                    folders.push(path.to_owned());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a folder has the parts of one log.
fn is_part(folder: &Utf8Path) -> bool {
    matches!(folder.extension(), Some("tail" | "merged"))
}

/// Whether a path, relative to the folder of a loop, is one of recorded output. Another machine may have named it.
pub fn is_log(path: &Utf8Path) -> bool {
    let parts: Vec<_> = path.components().collect();
    let is_plain = |part: &Utf8Component<'_>| {
        matches!(part, Utf8Component::Normal(name) if !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')))
    };
    let is_below = parts.first().is_some_and(|first| first.as_str() == "iterations");
    is_below && (3..=4).contains(&parts.len()) && parts.iter().all(is_plain)
}

/// Writes a file of a loop that another machine kept.
pub fn write(dir: &LoopDir, path: &Utf8Path, content: &[u8]) -> Result<(), DiskError> {
    let path = dir.0.join(path);
    if let Some(folder) = path.parent() {
        make_dir_nofollow(folder)?;
    }
    write_nofollow(&path, content)
}

/// The commits by which this machine claims the loop: each push of one may arrive.
pub fn claims(dir: &LoopDir) -> Vec<Oid> {
    let text = read_regular(&dir.0.join(CLAIMS), 1 << 16).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(|line| line.parse().ok()).collect()
}

/// Records one more, before the remote gets it.
pub fn record_claim(dir: &LoopDir, commit: &Oid) -> Result<(), DiskError> {
    let all = claims(dir).into_iter().chain([commit.clone()]);
    write_nofollow(
        &dir.0.join(CLAIMS),
        all.map(|commit| format!("{commit}\n")).collect::<String>().as_bytes(),
    )
}

/// The worktree that an earlier call gives to the loop.
pub fn worktree(dir: &LoopDir) -> Option<Utf8PathBuf> {
    String::from_utf8(read_regular(&dir.0.join(WORKTREE), 1 << 16).ok()?).ok().map(Into::into)
}

/// Records it, before it is made.
pub fn record_worktree(dir: &LoopDir, path: &Utf8Path) -> Result<(), DiskError> {
    write_nofollow(&dir.0.join(WORKTREE), path.as_str().as_bytes())
}

/// Forgets them, and the worktree: the loop is here.
pub fn forget_claims(dir: &LoopDir) -> Result<(), DiskError> {
    [WORKTREE, CLAIMS].into_iter().try_for_each(|name| {
        let path = dir.0.join(name);
        remove(&path).on("remove", &path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recorded_output_is_taken_from_another_machine() {
        for path in ["iterations/0001/output.log", "iterations/0002.3/gates/tests.2.log"] {
            assert!(is_log(path.into()), "{path}");
        }
        for path in [
            "journal.jsonl",
            "runner.lock",
            "iterations/output.log",
            "iterations/../../x/y",
            "iterations/0001/../../x",
            "/iterations/0001/output.log",
            "iterations/0001/.hidden",
            "iterations/0001/a b",
            "iterations/1/2/3/4",
        ] {
            assert!(!is_log(path.into()), "{path}");
        }
    }
}
