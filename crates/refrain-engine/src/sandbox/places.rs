//! The places of a loop on this machine, for its sandbox.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::sandbox::Places;
use refrain_core::spec::AgentKind;

use crate::Host;

/// How deep submodules of submodules are looked for, and how many there may be.
const MODULE_DEPTH: u32 = 8;
const MOST_MODULES: usize = 200;

/// Variables that say where an agent's home is.
const HOMES: [(&str, AgentKind); 2] =
    [("CLAUDE_CONFIG_DIR", AgentKind::Claude), ("CODEX_HOME", AgentKind::Codex)];

/// The places, for a process that starts in `dir`. `show` are files of Refrain that it reads, and the layer over the
/// user's caches is kept in the loop's folder.
pub(super) fn places(
    spec: &Spec,
    host: &Host,
    dir: &Utf8Path,
    (mut show, loop_dir): (Vec<Utf8PathBuf>, Option<&Utf8Path>),
) -> Places {
    let variable = |name: &str| {
        let (_, value) = host.env.iter().rev().find(|(set, _)| set == name)?;
        value.to_str().filter(|value| value.starts_with('/')).map(Utf8PathBuf::from)
    };
    let checkout = (!dir.starts_with(&spec.worktree)).then(|| {
        let depth =
            spec.working_dir.strip_prefix(&spec.worktree).map_or(0, |inside| inside.components().count());
        dir.ancestors().nth(depth).unwrap_or(dir).to_owned()
    });
    // A gate in a checkout of its own reads its history.
    show.extend(checkout.as_deref().and_then(git_dirs).into_iter().flat_map(|(own, common)| [own, common]));
    let git = git_dirs(&spec.worktree);
    let modules = git.as_ref().map(|(_, common)| modules(&common.join("modules"))).unwrap_or_default();
    let (git_dir, common_dir) = git.unzip();
    let homes = HOMES.iter().filter_map(|(name, kind)| Some((*kind, variable(name)?)));
    Places {
        home: variable("HOME").unwrap_or_else(|| "/nonexistent".into()),
        checkout,
        worktree: spec.worktree.clone(),
        git_dir,
        common_dir,
        modules,
        own: vec![
            host.data_home.clone(),
            host.state_home.clone(),
            host.config_home.clone(),
            // Where a project without git has its loops.
            spec.project.join(".refrain/data"),
        ],
        show,
        agent_homes: homes.collect(),
        cache_layer: loop_dir.map(|dir| dir.join("caches")),
    }
}

/// The git folder of a worktree, and the one that it shares with others.
fn git_dirs(worktree: &Utf8Path) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
    let dot_git = worktree.join(".git");
    let own = if dot_git.is_dir() {
        dot_git
    } else {
        let text = fs::read_to_string(&dot_git).ok()?;
        worktree.join(text.strip_prefix("gitdir:")?.trim())
    };
    let own = own.canonicalize_utf8().ok()?;
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(text) => own.join(text.trim()).canonicalize_utf8().ok()?,
        Err(_) => own.clone(),
    };
    Some((own, common))
}

/// The git folders of submodules.
fn modules(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || found.len() >= MOST_MODULES {
                continue;
            }
            let is_git_dir = path.join("HEAD").is_file() && path.join("objects").is_dir();
            if is_git_dir {
                found.push(path.to_owned());
                open.push((path.join("modules"), depth + 1));
            } else if depth < MODULE_DEPTH {
                open.push((path.to_owned(), depth + 1));
            }
        }
    }
    found
}
