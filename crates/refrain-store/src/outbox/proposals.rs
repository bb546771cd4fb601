//! Proposals to a project's instructions for agents: a folder a proposal beside its loops, and the file itself, which
//! is a person's.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::evolution::Proposal;
use refrain_files::IfThere;

use crate::disk::atomic::replace_atomic;
use crate::{DiskError, OnPath, Project, create, make_dir_nofollow, write_nofollow};

fn folder(project: &Project) -> Utf8PathBuf {
    project.data.join("proposals")
}

pub fn place(project: &Project, id: &LoopId) -> Utf8PathBuf {
    folder(project).join(id.as_str())
}

/// Keeps a proposal, in the place of one of the same name, with the patch that people can look at.
pub fn keep(project: &Project, proposal: &Proposal, patch: &str) -> Result<(), DiskError> {
    let place = place(project, &proposal.id);
    make_dir_nofollow(&place)?;
    write_nofollow(&place.join("patch.diff"), patch.as_bytes())?;
    note(project, proposal)
}

/// The same, where only what became of it is another.
pub fn note(project: &Project, proposal: &Proposal) -> Result<(), DiskError> {
    let path = place(project, &proposal.id).join("proposal.json");
    let text = serde_json::to_string_pretty(proposal).map_err(std::io::Error::from).on("write", &path)?;
    write_nofollow(&path, format!("{text}\n").as_bytes())
}

/// A proposal; none if there is none of that name.
pub fn read(project: &Project, id: &LoopId) -> Result<Option<Proposal>, DiskError> {
    let path = place(project, id).join("proposal.json");
    let Some(text) = fs::read(&path).if_there().on("read", &path)? else { return Ok(None) };
    let proposal: Proposal = serde_json::from_slice(&text).map_err(std::io::Error::from).on("read", &path)?;
    match proposal.id == *id {
        true => Ok(Some(proposal)),
        false => Err(std::io::Error::other(format!("it is of {}", proposal.id))).on("read", &path),
    }
}

/// All proposals, the newest first.
pub fn list(project: &Project) -> Result<Vec<Proposal>, DiskError> {
    let folder = folder(project);
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).if_there().on("list", &folder)?.into_iter().flatten() {
        if let Some(id) = entry.on("list", &folder)?.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.extend(read(project, &id)?);
        }
    }
    found.sort_by_key(|proposal| std::cmp::Reverse(proposal.at));
    Ok(found)
}

/// What a file of the person's says; none if nothing is there. A link, or what is no text, is an error.
pub fn text_of(path: &Utf8Path) -> Result<Option<String>, DiskError> {
    match fs::symlink_metadata(path).if_there().on("look at", path)? {
        None => Ok(None),
        Some(meta) if meta.is_file() => fs::read_to_string(path).on("read", path).map(Some),
        Some(_) => Err(std::io::Error::other("it is no file")).on("read", path),
    }
}

/// Writes a file of the person's anew, or makes it, where it still says `old`; whether it did. A crash leaves the old
/// file or the new one.
pub fn rewrite(path: &Utf8Path, old: Option<&str>, new: &str) -> Result<bool, DiskError> {
    let Some(old) = old else { return create(path, new.as_bytes()) };
    replace_atomic(path, new.as_bytes(), || text_of(path).is_ok_and(|now| now.as_deref() == Some(old)))
}
