//! Files in which other systems look for a loop: written for them, never read, and nothing depends on that. What stands in
//! them is decided in `refrain_core::mirror`.

use std::fs;

use refrain_core::mirror::{Mirror, Mirrored};
use refrain_core::{LoopState, Spec};
use refrain_proc::identity;
use refrain_store::write_atomic;

/// What a loop that stands like this looks like; `context` is what `context.md` says.
pub(crate) fn files(state: &LoopState, context: Option<&str>) -> Vec<Mirrored> {
    state.spec.mirrors.iter().flat_map(|mirror| mirror.files(state, context)).collect()
}

/// Writes these files.
pub(crate) fn write(spec: &Spec, files: &[Mirrored]) {
    files.iter().for_each(|file| put(spec, file));
}

/// The runner works there from here on, or does no more.
pub(crate) fn lock(spec: &Spec, works: bool) {
    for _ in &spec.mirrors {
        let text = works.then(|| format!("{}\n", identity::own().process.pid));
        put(spec, &Mirrored { name: Mirror::LOCK, text });
    }
}

/// Nobody depends on it: what cannot be written is not.
fn put(spec: &Spec, file: &Mirrored) {
    let path = spec.working_dir.join(file.name);
    let _ = match &file.text {
        Some(text) => write_atomic(&path, text.as_bytes()).is_ok(),
        None => fs::remove_file(&path).is_ok(),
    };
}

/// The process of another system that works in a loop's folder by its own lock, and lives. A lock of the dead is nobody's.
#[must_use]
pub fn foreign_lock(spec: &Spec) -> Option<i32> {
    let text = fs::read_to_string(spec.working_dir.join(Mirror::LOCK)).ok()?;
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0)?;
    identity::stat(pid).map(|_| pid)
}
