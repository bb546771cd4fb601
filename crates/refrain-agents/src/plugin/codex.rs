//! Codex's plugin (0.169.0): hooks from `hooks.json` in its home, and skills, which a user names with `$`. It no
//! longer reads custom prompts of a user.

use camino::Utf8Path;

use super::content::{Plugin, Shared, calling, files, quoted};
use super::settings::{Edit, Kind};

const SKILL: &[(&str, &str)] =
    &[("refrain-loop/SKILL.md", include_str!("../../../../plugins/codex/skills/refrain-loop/SKILL.md"))];

const HOOKS: &str = include_str!("../../../../plugins/codex/hooks.json");

const THEN: &[&str] = &[
    "start codex in a terminal and choose \"Trust all and continue\": until then it passes over its new hooks without a word, also \
     where it runs without a terminal (--dangerously-bypass-hook-trust runs them untrusted)",
    "then, in a session: $refrain-loop PROMPT",
];

pub(super) fn plugin(home: &Utf8Path, command: &str) -> Plugin {
    Plugin {
        files: files(&home.join("skills"), command, SKILL),
        settings: Some(Shared { path: home.join("hooks.json"), edits: edits(command) }),
        then: THEN,
    }
}

/// An edit for each hook in our file: one per line.
fn edits(command: &str) -> Vec<Edit> {
    let lines = HOOKS.lines().filter_map(|line| {
        let (event, rest) = line.trim().strip_prefix('"')?.split_once("\": [")?;
        let value = rest.trim_end_matches(',').strip_suffix(']')?;
        let called = value.split_once(super::content::NAME)?.1;
        Some(Edit {
            path: vec!["hooks".to_owned(), event.to_owned()],
            value: calling(&quoted(command), value),
            kind: Kind::Element(called.split('"').next()?.to_owned()),
        })
    });
    lines.collect()
}
