//! The plugin of each agent program: its files and their places, and entries for the user's settings. Pure: the texts
//! are those of `plugins/`, built in; the engine writes them (`engine/plugin`).

pub mod settings;

mod claude;
mod codex;
mod content;
mod gemini;
mod opencode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::spec::AgentKind;

pub use content::{Plugin, PluginFile, Shared};

/// The folders where agent programs look for their plugins.
#[derive(Clone, Copy, Debug)]
pub struct Homes<'a, V> {
    /// Looks up a variable that is not empty.
    pub variable: V,
    /// The folder for our own files that a program refers to.
    pub own: &'a Utf8Path,
    /// The program `refrain`: its name if that finds it, else its path.
    pub program: &'a str,
}

impl<'v, V: Fn(&str) -> Option<&'v str>> Homes<'_, V> {
    /// The plugin for this agent. None if the agent has none, or its home is unknown.
    pub fn plugin(&self, agent: AgentKind) -> Option<Plugin> {
        let command = shlex::try_quote(self.program).ok()?;
        Some(match agent {
            AgentKind::Claude => {
                claude::plugin(&self.below("CLAUDE_CONFIG_DIR", ".claude")?, self.own, &command)
            }
            AgentKind::Codex => codex::plugin(&self.below("CODEX_HOME", ".codex")?, &command),
            AgentKind::Gemini => {
                let home = self.path("GEMINI_CLI_HOME").or_else(|| self.path("HOME"))?;
                gemini::plugin(&home.join(".gemini"), &command)
            }
            AgentKind::Opencode => {
                let home = self.below("XDG_CONFIG_HOME", ".config")?.join("opencode");
                opencode::plugin(&home, &command, self.program)
            }
            AgentKind::Generic | AgentKind::Acp => return None,
        })
    }

    fn path(&self, name: &str) -> Option<Utf8PathBuf> {
        (self.variable)(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute())
    }

    fn below(&self, name: &str, otherwise: &str) -> Option<Utf8PathBuf> {
        self.path(name).or_else(|| Some(self.path("HOME")?.join(otherwise)))
    }
}

#[cfg(test)]
mod tests;
