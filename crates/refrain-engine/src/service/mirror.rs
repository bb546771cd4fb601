//! Files in which other systems look for a loop: written for them, never read back, and nothing depends on that. Their
//! content, and the owner of one that is there already, is decided in `refrain_formats::mirror`. What a person
//! asks for by name is in `foreign`.

use std::fs;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::mirror::Mirror;
use refrain_core::plan::PlanSpec;
use refrain_core::{LoopState, Spec};
use refrain_files::{Folder, read_text, remove, split};
use refrain_formats::mirror::{self, LOCK, LoopPhase, MirrorFiles, OF_PLAN, Owner, shown_by};
use refrain_proc::identity;
use refrain_store::LoopDir;

use crate::git_steps::failure_branch;
use crate::service::notes::close_notes;

/// What the mirrors of a driven or ended loop hold; `context` is the content of `context.md`.
pub(crate) fn files(state: &LoopState, context: Option<&str>) -> Vec<MirrorFiles> {
    as_it_stands(state, true, context)
}

fn as_it_stands(state: &LoopState, is_driven: bool, context: Option<&str>) -> Vec<MirrorFiles> {
    let standing = LoopPhase::of(state, is_driven);
    state.spec.mirrors.iter().map(|of| mirror::files(*of, state, standing, context)).collect()
}

/// Writes these files. Nothing depends on them: what cannot be written is not.
pub(crate) fn write(spec: &Spec, mirrored: &[MirrorFiles]) {
    mirrored.iter().for_each(|mirrored| put(spec, mirrored));
}

/// Opens the mirrors: a runner works there from now on.
pub(crate) fn open(spec: &Spec) {
    // A worktree of the loop's own is made later, and only where its folder is not there yet; no other system works in it.
    if has_lock(spec) && spec.working_dir.is_dir() {
        let _ = replace(&lock(spec), &format!("{}\n", identity::own().process.pid));
    }
}

/// The runner goes. A loop that has not ended, and that no session drives, broke off.
pub(crate) fn close(state: &LoopState, dir: &LoopDir) {
    close_notes(state, dir);
    if !state.spec.mirrors.is_empty() {
        let context = failure_branch::context(state, dir);
        write(&state.spec, &as_it_stands(state, state.session.is_some(), Some(&context)));
        if has_lock(&state.spec) {
            let _ = remove(&lock(&state.spec));
        }
    }
}

/// Whether the loop may write and remove the lock of seed 004: no other living process has it.
fn has_lock(spec: &Spec) -> bool {
    let own = identity::own().process.pid;
    spec.mirrors.contains(&Mirror::Ralph) && foreign_lock(spec).is_none_or(|pid| pid == own)
}

fn lock(spec: &Spec) -> Utf8PathBuf {
    spec.working_dir.canonicalize_utf8().unwrap_or_else(|_| spec.working_dir.clone()).join(LOCK)
}

fn put(spec: &Spec, mirrored: &MirrorFiles) {
    let Some((first, _)) = mirrored.files.first() else { return };
    // A loop's own worktree may be gone by now.
    let Ok(root) = mirror::root(mirrored.mirror, spec).canonicalize_utf8() else { return };
    let is_free = match there(&root, first) {
        MirrorPathState::Nothing => true,
        MirrorPathState::Text(text) => mirrored.owner(&text) == Owner::Own,
        MirrorPathState::Other => false,
    };
    if !is_free || !root.is_dir() {
        return;
    }
    for (name, text) in &mirrored.files {
        let path = root.join(name);
        let _ = match text {
            Some(text) => replace(&path, text),
            None => remove(&path),
        };
    }
}

/// Not synced: it is written anew.
fn replace(path: &Utf8Path, text: &str) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Folder::make(folder)?.replace_unsynced(name, text.as_bytes())
}

/// The state of the path that a mirror would write.
enum MirrorPathState {
    Nothing,
    Text(String),
    /// No file of text, or it is reached through a link, which may lead anywhere.
    Other,
}

fn there(root: &Utf8Path, name: &Utf8Path) -> MirrorPathState {
    let mut path = root.to_owned();
    let mut folders = name.components().peekable();
    while let Some(folder) = folders.next() {
        path.push(folder);
        let is_last = folders.peek().is_none();
        match fs::symlink_metadata(&path) {
            Ok(meta) if is_last && meta.is_file() => {}
            Ok(meta) if !is_last && meta.is_dir() => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return MirrorPathState::Nothing,
            Ok(_) | Err(_) => return MirrorPathState::Other,
        }
    }
    read_text(&path).map_or(MirrorPathState::Other, MirrorPathState::Text)
}

/// The files that the mirrors of such a loop would write but that others wrote: these mirrors are omitted.
pub fn left_to_others(spec: &Spec) -> Vec<Utf8PathBuf> {
    let is_others = |of: &&Mirror| match there(&mirror::root(**of, spec), &mirror::first(**of, &spec.id)) {
        MirrorPathState::Nothing => false,
        MirrorPathState::Text(text) => !text.is_empty() && shown_by(&text).is_none(),
        MirrorPathState::Other => true,
    };
    let others = spec.mirrors.iter().filter(is_others);
    others.map(|of| mirror::root(*of, spec).join(mirror::first(*of, &spec.id))).collect()
}

/// Writes the file that shows a plan, unless it is another system's. Nothing depends on it: what cannot be written is
/// not.
pub(crate) fn show_plan(spec: &PlanSpec, text: &str) {
    if plan_left_to_others(spec).is_none()
        && let Ok(root) = spec.each.worktree.canonicalize_utf8()
    {
        let _ = replace(&root.join(OF_PLAN), text);
    }
}

/// The file that would show a plan, if another system wrote it.
pub fn plan_left_to_others(spec: &PlanSpec) -> Option<Utf8PathBuf> {
    let root = &spec.each.worktree;
    let is_others = match there(root, Utf8Path::new(OF_PLAN)) {
        MirrorPathState::Nothing => false,
        MirrorPathState::Text(text) => !text.is_empty() && shown_by(&text).is_none(),
        MirrorPathState::Other => true,
    };
    is_others.then(|| root.join(OF_PLAN))
}

/// The process of another system that works in a loop's folder by its own lock, and runs. A lock whose process has ended is
/// stale, also where another process has its number since.
pub fn foreign_lock(spec: &Spec) -> Option<i32> {
    let lock = lock(spec);
    let text = read_text(&lock).ok()?;
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0)?;
    let written = fs::symlink_metadata(&lock).and_then(|meta| meta.modified()).ok();
    let ago = written.and_then(|written| written.elapsed().ok()).unwrap_or_default();
    identity::is_running_since(pid, ago).then_some(pid)
}
