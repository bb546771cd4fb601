//! Claude Code's plugin (2.1.329), loaded from a marketplace. Ours is a folder of our own; the user's settings
//! contain its path and enable the plugin.

use camino::Utf8Path;

use super::content::{Plugin, Shared, files, quoted};
use super::settings::{Edit, Kind};

macro_rules! texts {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("../../../../plugins/claude/", $name)))),*] };
}

pub(super) const TEXTS: &[(&str, &str)] = texts![
    ".claude-plugin/marketplace.json",
    ".claude-plugin/plugin.json",
    "commands/cancel-loop.md",
    "commands/help.md",
    "commands/implement.md",
    "commands/list-loops.md",
    "commands/loop.md",
    "commands/next-priority.md",
    "commands/plan.md",
    "commands/research.md",
    "commands/team-review.md",
    "hooks/hooks.json"
];

const THEN: &[&str] = &["nothing has to be trusted; in a new session: /refrain:loop PROMPT"];

pub(super) fn plugin(home: &Utf8Path, own: &Utf8Path, command: &str) -> Plugin {
    let folder = own.join("claude");
    let path = |keys: [&str; 2]| keys.map(str::to_owned).to_vec();
    let source = format!(
        "{{ \"source\": {{ \"source\": \"directory\", \"path\": \"{}\" }} }}",
        quoted(folder.as_str())
    );
    let edits = vec![
        Edit { path: path(["extraKnownMarketplaces", "refrain"]), value: source, kind: Kind::Key },
        Edit {
            path: path(["enabledPlugins", "refrain@refrain"]),
            value: "true".to_owned(),
            kind: Kind::SharedKey,
        },
    ];
    Plugin {
        files: files(&folder, command, TEXTS),
        settings: Some(Shared { path: home.join("settings.json"), edits }),
        then: THEN,
    }
}
