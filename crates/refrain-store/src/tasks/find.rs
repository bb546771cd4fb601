//! Finds the file with the tasks of a tag: SCUD's per-tag file, else the tag in one of its files of all tags; without a
//! tag the active one, else the only one. A file that is given by its path is used as it is.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::plan::file::{FileError, Shape, has_task_headings, tags};
use refrain_core::text::nearest;

use super::TasksError;
use super::file::{self, TaskFile};
use crate::Project;

/// SCUD's files of all tags.
const ALL_TAGS: [&str; 2] = ["tasks.json", "tasks.scg"];

/// Finds the task file of `tag`. A `plan` that has tasks of its own is that file if no tag is given; one in SCUD's
/// shapes always is.
/// Errors: [`TasksError`] if there is none, or it is unclear which.
pub fn find(project: &Project, tag: Option<&str>, plan: Option<&Utf8Path>) -> Result<TaskFile, TasksError> {
    let folder = folder(project);
    if let Some(path) = plan
        && let Some(found) = given(project, path, tag, folder.is_dir())?
    {
        return Ok(found);
    }
    let tag = tag.map(str::to_owned).or_else(|| active(&folder));
    // Its own file, independent of the contents of the others.
    if let Some(tag) = tag.as_ref().filter(|tag| !tag.contains('/')) {
        let own = folder.join(format!("{tag}.json"));
        if own.exists() && !ALL_TAGS.contains(&own.file_name().unwrap_or_default()) {
            return Ok(TaskFile::new(project, own, Shape::TagJson, tag.clone()));
        }
    }
    let known = known(&folder)?;
    let tag = match (tag, &known[..]) {
        (Some(tag), _) => tag,
        (None, []) => return Err(TasksError::Nothing(folder)),
        (None, [(only, ..)]) => only.clone(),
        (None, many) => return Err(TasksError::Which { folder, known: names(many) }),
    };
    match known.iter().find(|(name, ..)| *name == tag) {
        Some((_, path, shape)) => Ok(TaskFile::new(project, path.clone(), *shape, tag)),
        None => Err(no_tag(&tag, &folder, names(&known))),
    }
}

/// SCUD's folder of tasks: in the person's checkout, else in the project's main one.
fn folder(project: &Project) -> Utf8PathBuf {
    let own = project.worktree.join(".scud/tasks");
    if own.is_dir() { own } else { project.root.join(".scud/tasks") }
}

/// The file of that path, if its tasks are meant.
fn given(
    project: &Project,
    path: &Utf8Path,
    tag: Option<&str>,
    has_others: bool,
) -> Result<Option<TaskFile>, TasksError> {
    let text = file::text(path)?;
    let malformed =
        |source: FileError| TasksError::Malformed { path: path.to_owned(), source: source.into() };
    let Some(shape) = Shape::of(path.as_str(), &text).map_err(malformed)? else {
        return Err(TasksError::Unfit {
            path: path.to_owned(),
            why: "is neither Markdown, nor JSON, nor SCUD's .scg",
        });
    };
    // With a tag it is only the plan of those tasks, and so it is where others are meant more plainly.
    if shape == Shape::Markdown && (tag.is_some() || (has_others && !has_task_headings(&text))) {
        return Ok(None);
    }
    let known = tags(&text, shape).map_err(malformed)?;
    let tag = match (tag, &known[..]) {
        (Some(tag), []) => tag.to_owned(),
        (Some(tag), _) if known.iter().any(|known| known == tag) => tag.to_owned(),
        (Some(tag), _) => return Err(no_tag(tag, path, known)),
        (None, []) => path.file_stem().unwrap_or_default().to_owned(),
        (None, [only]) => only.clone(),
        (None, _) => return Err(TasksError::Which { folder: path.to_owned(), known }),
    };
    Ok(Some(TaskFile::new(project, path.to_owned(), shape, tag)))
}

fn no_tag(tag: &str, folder: &Utf8Path, known: Vec<String>) -> TasksError {
    let nearest = nearest(tag, known.iter().map(String::as_str)).map(str::to_owned);
    TasksError::NoTag { tag: tag.to_owned(), folder: folder.to_owned(), nearest, known }
}

/// Every tag with its file, by name. Of several files of one tag the first in the order of [`find`] counts.
fn known(folder: &Utf8Path) -> Result<Vec<(String, Utf8PathBuf, Shape)>, TasksError> {
    let mut own = Vec::new();
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    for entry in entries.filter(|entry| !ALL_TAGS.contains(&entry.file_name())) {
        if let (Some(tag), Some(extension @ ("json" | "scg"))) =
            (entry.path().file_stem(), entry.path().extension())
        {
            own.push((extension.to_owned(), tag.to_owned(), entry.path().to_owned()));
        }
    }
    own.sort();
    let mut known = Vec::new();
    let mut add = |tag: String, path: &Utf8Path, shape: Shape| {
        if known.iter().all(|(name, ..): &(String, _, _)| *name != tag) {
            known.push((tag, path.to_owned(), shape));
        }
    };
    for (_, tag, path) in own.iter().filter(|(extension, ..)| extension == "json") {
        add(tag.clone(), path, Shape::TagJson);
    }
    let all = ALL_TAGS.map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    let scg = own.into_iter().filter(|(extension, ..)| extension == "scg").map(|(_, _, path)| path);
    for path in all.chain(scg) {
        let text = file::text(&path)?;
        let malformed =
            |source: FileError| TasksError::Malformed { path: path.clone(), source: source.into() };
        if let Some(shape) = Shape::of(path.as_str(), &text).map_err(malformed)? {
            let tags = tags(&text, shape).map_err(malformed)?;
            tags.into_iter().for_each(|tag| add(tag, &path, shape));
        }
    }
    known.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    Ok(known)
}

fn names(known: &[(String, Utf8PathBuf, Shape)]) -> Vec<String> {
    known.iter().map(|(name, ..)| name.clone()).collect()
}

/// The tag that SCUD works on: `.scud/active-tag`, or `active_group` in `.scud/workflow-state.json`.
fn active(folder: &Utf8Path) -> Option<String> {
    let scud = folder.parent()?;
    let newer = file::text(&scud.join("active-tag")).ok().map(|text| text.trim().to_owned());
    newer.filter(|tag| !tag.is_empty()).or_else(|| {
        let state = file::text(&scud.join("workflow-state.json")).ok()?;
        let state: serde_json::Value = serde_json::from_str(&state).ok()?;
        state["active_group"].as_str().filter(|tag| !tag.is_empty()).map(str::to_owned)
    })
}
