//! OpenCode's plugin (1.18.33): a script, and a command.

use camino::Utf8Path;

use super::content::{Plugin, files, quoted};

const COMMAND: &[(&str, &str)] =
    &[("command/refrain-loop.md", include_str!("../../../../plugins/opencode/command/refrain-loop.md"))];

/// The plugin starts the program without a shell.
const SCRIPT: &str = include_str!("../../../../plugins/opencode/plugin/refrain.js");

const THEN: &[&str] = &[
    "start opencode anew; then, in a session: /refrain-loop PROMPT",
    "a session continues by itself on a terminal and under opencode serve; opencode run leaves when the session is idle",
];

pub(super) fn plugin(home: &Utf8Path, command: &str, program: &str) -> Plugin {
    let script = SCRIPT.replace("\"refrain\"", &format!("\"{}\"", quoted(program)));
    let mut files = files(home, command, COMMAND);
    files.push(super::content::PluginFile { path: home.join("plugin/refrain.js"), text: script });
    Plugin { files, settings: None, then: THEN }
}
