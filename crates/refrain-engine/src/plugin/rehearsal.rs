//! Plans the changes of installing and removing, from what is there and what was noted: every refusal is here.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::plugin::settings::{self, EntryState, SettingsError};
use refrain_agents::plugin::{Plugin, Shared};
use refrain_core::spec::AgentKind;
use refrain_core::splice::undo;
use refrain_store::outbox::plugins::{self, InstalledFiles, OwnFile, OwnSettings};

use super::{PluginChange, PluginError, is_noted};

pub(super) struct Rehearsal {
    pub(super) changes: Vec<PluginChange>,
    pub(super) kept: Vec<Utf8PathBuf>,
    pub(super) noted: InstalledFiles,
}

/// The changes of installing: our own files first, the person's last.
pub(super) fn install(
    (agent, program): (AgentKind, &str),
    plugin: &Plugin,
    before: &InstalledFiles,
    own: &Utf8Path,
) -> Result<Rehearsal, PluginError> {
    let (mut changes, mut kept, mut noted) = (Vec::new(), Vec::new(), before.clone());
    for file in &plugin.files {
        let present = read(&file.path)?;
        let is_ours = |text: &str| text == file.text || is_noted(&file.path, text, before);
        match present {
            Some(text) if !is_ours(&text) && before.files.contains_key(&file.path) => {
                kept.push(file.path.clone());
                continue;
            }
            Some(text) if !is_ours(&text) => return Err(PluginError::Taken(file.path.clone())),
            _ => {}
        }
        let hash = plugins::hash(&file.text);
        let known = before.files.get(&file.path);
        // What an update that broke off had still to replace is known longest.
        let was = present.as_deref().map(plugins::hash).filter(|there| known.is_some() && *there != hash);
        noted
            .files
            .insert(file.path.clone(), OwnFile { agent, hash, was, program: Some(program.to_owned()) });
        changes.extend(change(&file.path, present, Some(file.text.clone())));
    }
    if let Some(shared) = &plugin.settings {
        let present = read(&shared.path)?;
        let refuse = |why| PluginError::Misfit { path: shared.path.clone(), why };
        let own = before.settings.get(&shared.path);
        if let Some((after, settings)) = with(agent, shared, present.as_deref(), own).map_err(refuse)? {
            noted.settings.insert(shared.path.clone(), settings);
            changes.extend(change(&shared.path, present, Some(after)));
        }
    }
    let made = changes.iter().flat_map(|change| change.path.ancestors().skip(1));
    noted.folders.extend(made.filter(|folder| !own.starts_with(folder) && !folder.exists()).map(Into::into));
    Ok(Rehearsal { changes, kept, noted })
}

/// The person's file with what is ours, and what is noted of that; none if it is there already.
fn with(
    agent: AgentKind,
    shared: &Shared,
    present: Option<&str>,
    own: Option<&OwnSettings>,
) -> Result<Option<(String, OwnSettings)>, SettingsError> {
    let text = present.unwrap_or_default();
    let found: Vec<_> =
        shared.edits.iter().map(|edit| settings::look(text, edit)).collect::<Result<_, _>>()?;
    if present.is_some() && found.iter().all(|found| *found == EntryState::Same) {
        return Ok(None);
    }
    // Earlier additions are taken back first, so that the notes are complete.
    let bare = match own.filter(|_| present.is_some()) {
        Some(own) => without(shared, text, own)?,
        None => text.to_owned(),
    };
    let (after, splices) = settings::put(&bare, &shared.edits)?;
    let is_new = present.is_none() || own.is_some_and(|own| own.is_new);
    let hash = plugins::hash(&after);
    Ok(Some((after, OwnSettings { agent, is_new, hash, splices })))
}

/// The text as it was before, to the byte if it is unchanged since.
fn without(shared: &Shared, text: &str, own: &OwnSettings) -> Result<String, SettingsError> {
    let exact = if plugins::hash(text) == own.hash { undo(text, &own.splices) } else { None };
    exact.map_or_else(|| settings::take(text, &shared.edits), Ok)
}

/// The changes of removing: the person's file first, so that it names nothing that is gone.
pub(super) fn remove(
    agent: AgentKind,
    plugin: &Plugin,
    before: &InstalledFiles,
) -> Result<Rehearsal, PluginError> {
    let (mut changes, mut kept, mut noted) = (Vec::new(), Vec::new(), before.clone());
    noted.settings.retain(|_, own| own.agent != agent);
    noted.files.retain(|_, own| own.agent != agent);
    if let Some(shared) = &plugin.settings {
        let elsewhere =
            before.settings.iter().filter(|(path, own)| own.agent == agent && **path != shared.path);
        let elsewhere = elsewhere.map(|(path, _)| Shared { path: path.clone(), edits: shared.edits.clone() });
        for shared in elsewhere.chain([shared.clone()]) {
            changes.extend(bare(&shared, before)?);
        }
    }
    let of_agent = before.files.iter().filter(|(_, own)| own.agent == agent).map(|(path, _)| path);
    let wanted = plugin.files.iter().map(|file| &file.path);
    for path in wanted.chain(of_agent.filter(|path| plugin.files.iter().all(|file| file.path != **path))) {
        let Some(text) = read(path)? else { continue };
        let as_wanted = plugin.files.iter().any(|file| file.path == *path && file.text == text);
        if as_wanted || is_noted(path, &text, before) {
            changes.extend(change(path, Some(text), None));
        } else if before.files.contains_key(path) {
            kept.push(path.clone());
        }
    }
    Ok(Rehearsal { changes, kept, noted })
}

/// The user's file without what is ours; gone if it was made for that and holds nothing else.
fn bare(shared: &Shared, before: &InstalledFiles) -> Result<Option<PluginChange>, PluginError> {
    let Some(text) = read(&shared.path)? else { return Ok(None) };
    let own = before.settings.get(&shared.path);
    let after = match own {
        Some(own) => without(shared, &text, own),
        None => settings::take(&text, &shared.edits),
    };
    let after = after.map_err(|why| PluginError::Misfit { path: shared.path.clone(), why })?;
    let goes = own.is_some_and(|own| own.is_new) && settings::is_empty(&after);
    Ok(change(&shared.path, Some(text), Some(after).filter(|_| !goes)))
}

fn change(path: &Utf8Path, before: Option<String>, after: Option<String>) -> Option<PluginChange> {
    (before != after).then(|| PluginChange { path: path.to_owned(), before, after })
}

fn read(path: &Utf8Path) -> Result<Option<String>, PluginError> {
    plugins::read(path).map_err(PluginError::Unread)
}
