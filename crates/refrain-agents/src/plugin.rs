//! What of ours each program loads: which files it wants where, and what has to stand in settings that are a person's. Pure: the
//! texts are those of `plugins/`, built in; who writes them is the engine's business (`engine/plugin`).

pub mod settings;

mod claude;
mod codex;
mod gemini;
mod opencode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::spec::AgentKind;

use settings::Edit;

/// All that a program is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Files that are ours alone.
    pub files: Vec<Owned>,
    /// What is to stand in a file that is the person's, where the program has nothing else.
    pub settings: Option<Shared>,
    /// What the person has to do, or to know, before it works.
    pub then: &'static [&'static str],
}

/// A file of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Where.
    pub path: Utf8PathBuf,
    /// What it holds.
    pub text: String,
}

/// A file of the person's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Where.
    pub path: Utf8PathBuf,
    /// What of it is ours.
    pub edits: Vec<Edit>,
}

/// Where the programs of a person look for what they load.
#[derive(Clone, Copy, Debug)]
pub struct Homes<'a, V> {
    /// A variable, where it is set to something.
    pub variable: V,
    /// Where files of our own lie that a program is told of.
    pub own: &'a Utf8Path,
    /// The program `refrain`: its name where that leads to it, else its path.
    pub program: &'a str,
}

impl<'v, V: Fn(&str) -> Option<&'v str>> Homes<'_, V> {
    /// What this agent is to have. None where it has nothing of the kind, or nobody knows where its home is.
    #[must_use]
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

/// The program's name in our texts, as it is called where it is found by that.
const NAME: &str = "refrain ";

/// A text of ours in which the program is called as it is found here.
fn calling(command: &str, text: &str) -> String {
    if format!("{command} ") == NAME {
        return text.to_owned();
    }
    let mut parts = text.split(NAME);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A word that only ends so is none.
        let is_own = !told.ends_with(|c: char| c.is_alphanumeric() || "/-.".contains(c));
        told.push_str(if is_own { command } else { NAME.trim_end() });
        told.push(' ');
        told.push_str(part);
    }
    told
}

/// What stands in a text between quotation marks, in JSON, TOML and JavaScript alike.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Files of ours below a folder, which call the program so.
fn files(folder: &Utf8Path, command: &str, texts: &[(&str, &str)]) -> Vec<Owned> {
    let own = texts.iter().map(|(name, text)| {
        let command = if name.ends_with(".md") { command.to_owned() } else { quoted(command) };
        Owned { path: folder.join(name), text: calling(&command, text) }
    });
    own.collect()
}

#[cfg(test)]
mod tests;
