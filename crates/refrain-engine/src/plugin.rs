//! Installs and removes the plugins of agents. `refrain_agents::plugin` has their files and places; what is installed
//! is noted first (`refrain_store::outbox::plugins`), and everything is checked before anything is changed.

mod installation;
mod program;
mod rehearsal;

use std::fs;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::generic;
use refrain_agents::plugin::settings::{self, EntryState};
use refrain_agents::plugin::{Homes, Plugin, PluginFile, Shared};
use refrain_core::spec::AgentKind;
use refrain_core::view::plugin::{Part, PartState, PluginState, PluginStatus};
use refrain_store::outbox::plugins::{self, InstalledFiles};

use crate::{EngineError, Host, PluginError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginWork {
    /// What changes, in the order in which it does.
    pub changes: Vec<PluginChange>,
    /// Files of Refrain's that were changed by others, which are left as they are.
    pub kept: Vec<Utf8PathBuf>,
    /// The path by which agents call this program.
    pub program: String,
    /// What the user has to do, or to know.
    pub then: &'static [&'static str],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginChange {
    pub path: Utf8PathBuf,
    /// Its content; none if it was not there.
    pub before: Option<String>,
    /// Its content then; none if it is removed.
    pub after: Option<String>,
}

impl Host {
    /// Installs an agent's plugin, if it is not there already; or only says what that would change.
    /// Errors: [`EngineError::Plugin`] if something does not fit, or the agent's shell cannot run this program, and
    /// nothing was touched; [`EngineError::Disk`] if a file could not be written: what is there by then is noted, and a
    /// second try continues from there.
    pub fn install_plugin(&self, agent: AgentKind, is_rehearsal: bool) -> Result<PluginWork, EngineError> {
        let (program, plugin) = self.plugin_of(agent)?;
        if let Some(why) = program::problem(&program) {
            return Err(PluginError::NotCallable { program, why }.into());
        }
        let noted = InstalledFiles::read(&self.plugins())?;
        let plan = rehearsal::install((agent, &program), &plugin, &noted, &self.plugins())?;
        if !is_rehearsal {
            installation::install(&plan, &noted, &self.plugins())?;
        }
        Ok(PluginWork { changes: plan.changes, kept: plan.kept, program, then: plugin.then })
    }

    /// Removes an agent's plugin; or only says what that would change.
    pub fn remove_plugin(&self, agent: AgentKind, is_rehearsal: bool) -> Result<PluginWork, EngineError> {
        let (program, plugin) = self.plugin_of(agent)?;
        let noted = InstalledFiles::read(&self.plugins())?;
        let plan = rehearsal::remove(agent, &plugin, &noted)?;
        if !is_rehearsal {
            installation::remove(&plan, &noted, &self.plugins())?;
        }
        Ok(PluginWork { changes: plan.changes, kept: plan.kept, program, then: &[] })
    }

    pub fn plugin_status(&self, agent: AgentKind) -> Result<PluginStatus, EngineError> {
        let (_, Plugin { files, settings, .. }) = self.plugin_of(agent)?;
        let noted = InstalledFiles::read(&self.plugins())?;
        let files = files.into_iter().map(|file| Part { state: state(&file, &noted), path: file.path });
        let settings = settings.map(|shared| Part { state: shared_state(&shared), path: shared.path });
        let status = PluginStatus::of(agent, files.chain(settings).collect());
        if status.standing == PluginState::NotInstalled {
            return Ok(status);
        }
        let mut of_agent = noted.files.values().filter(|file| file.agent == agent);
        let program = of_agent.find_map(|file| file.program.clone());
        let problem = program.as_deref().and_then(program::problem);
        Ok(PluginStatus { program, problem, ..status })
    }

    /// The folder of Refrain's own files that programs are pointed to, and the notes of what was installed.
    fn plugins(&self) -> Utf8PathBuf {
        self.data_home.join("plugins")
    }

    fn plugin_of(&self, agent: AgentKind) -> Result<(String, Plugin), EngineError> {
        let program = self
            .called()
            .map_err(|error| EngineError::Process("the path of this program cannot be told", error))?;
        let variable = |name: &str| {
            let found = self.env.iter().rev().find(|(set, _)| set == name);
            found.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty())
        };
        let plugin = Homes { variable, own: &self.plugins(), program: &program }.plugin(agent);
        Ok((program, plugin.ok_or(PluginError::NoHome(agent))?))
    }

    /// The path by which agents call this program: their shells have a `PATH` of their own. A link in the user's
    /// `PATH` stays one, as an update may move what it leads to.
    fn called(&self) -> io::Result<String> {
        let own = fs::canonicalize(&self.program)?;
        let named = generic::in_path("refrain", &self.env).filter(|path| path.is_absolute());
        // Another program of that name may be of another version.
        let named = named.filter(|path| fs::canonicalize(path).is_ok_and(|path| path == own));
        let path = named.unwrap_or(own).into_os_string().into_string().ok();
        path.filter(|path| !path.contains(char::is_control)).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidFilename, "it cannot stand in a file of settings")
        })
    }
}

fn state(file: &PluginFile, noted: &InstalledFiles) -> PartState {
    match plugins::read(&file.path) {
        Ok(None) => PartState::Missing,
        Ok(Some(text)) if text == file.text => PartState::Present,
        Ok(Some(text)) if is_noted(&file.path, &text, noted) => PartState::Older,
        Ok(Some(_)) => PartState::Changed,
        Err(_) => PartState::Unfit,
    }
}

/// Whether a file holds what was written to it.
fn is_noted(path: &Utf8Path, text: &str, noted: &InstalledFiles) -> bool {
    let hash = plugins::hash(text);
    noted.files.get(path).is_some_and(|file| file.hash == hash || file.was.as_ref() == Some(&hash))
}

fn shared_state(shared: &Shared) -> PartState {
    let Ok(text) = plugins::read(&shared.path) else { return PartState::Unfit };
    let text = text.unwrap_or_default();
    let found: Result<Vec<_>, _> = shared.edits.iter().map(|edit| settings::look(&text, edit)).collect();
    match found {
        Err(_) => PartState::Unfit,
        Ok(found) if found.iter().all(|found| *found == EntryState::Same) => PartState::Present,
        Ok(found) if found.iter().all(|found| *found == EntryState::Nothing) => PartState::Missing,
        Ok(_) => PartState::Older,
    }
}
