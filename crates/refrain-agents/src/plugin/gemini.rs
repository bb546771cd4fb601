//! Gemini CLI's plugin (0.61.0): an extension in a folder of its own, so no settings have to be edited. Its time
//! limits are in milliseconds.

use camino::Utf8Path;

use super::content::{Plugin, files};

macro_rules! texts {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("../../../../plugins/gemini/", $name)))),*] };
}

pub(super) const TEXTS: &[(&str, &str)] = texts![
    "commands/refrain/cancel-loop.toml",
    "commands/refrain/list-loops.toml",
    "commands/refrain/loop.toml",
    "gemini-extension.json",
    "hooks/hooks.json"
];

const THEN: &[&str] = &["nothing has to be trusted; in a new session: /refrain:loop PROMPT"];

pub(super) fn plugin(home: &Utf8Path, command: &str) -> Plugin {
    Plugin { files: files(&home.join("extensions/refrain"), command, TEXTS), settings: None, then: THEN }
}
