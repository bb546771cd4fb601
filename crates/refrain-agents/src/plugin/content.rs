//! The parts of a plugin: our own files, and our entries in the user's settings.

use camino::{Utf8Path, Utf8PathBuf};

use super::settings::Edit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    pub files: Vec<PluginFile>,
    /// Entries for a file of the user, if the program has no other place for them.
    pub settings: Option<Shared>,
    /// Steps and notes for the user before it works.
    pub then: &'static [&'static str],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFile {
    pub path: Utf8PathBuf,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    pub path: Utf8PathBuf,
    pub edits: Vec<Edit>,
}

/// The program's name in our texts, which is replaced if `refrain` is not found by its name.
pub(super) const NAME: &str = "refrain ";

/// A text of ours with the program's name replaced by the command that finds it.
pub(super) fn calling(command: &str, text: &str) -> String {
    if format!("{command} ") == NAME {
        return text.to_owned();
    }
    let mut parts = text.split(NAME);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A longer word with the same ending is something else.
        let is_own = !told.ends_with(|c: char| c.is_alphanumeric() || "/-.".contains(c));
        told.push_str(if is_own { command } else { NAME.trim_end() });
        told.push(' ');
        told.push_str(part);
    }
    told
}

/// The content of a string literal, for JSON, TOML and JavaScript alike.
pub(super) fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Our files in a folder, with the command that runs the program.
pub(super) fn files(folder: &Utf8Path, command: &str, texts: &[(&str, &str)]) -> Vec<PluginFile> {
    let own = texts.iter().map(|(name, text)| {
        let command = if name.ends_with(".md") { command.to_owned() } else { quoted(command) };
        PluginFile { path: folder.join(name), text: calling(&command, text) }
    });
    own.collect()
}
