//! The palette: commands and loops by a part of their names.

use crate::model::{Key, Model, seen};
use refrain_core::view::Kind;

/// How many entries it shows.
const MOST: usize = 12;

/// Something that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PaletteEntry {
    /// A command, with the key that does the same.
    Command(&'static str, char),
    /// A loop or a plan to open, and whether it is a plan.
    Open(Key, bool),
}

const COMMANDS: [(&str, char); 14] = [
    ("new loop", 'n'),
    ("changes", 'd'),
    ("latest log", 'l'),
    ("pause after the iteration", 'p'),
    ("pause at once", 'P'),
    ("resume", 'r'),
    ("cancel", 'c'),
    ("approve, send back or answer", 'a'),
    ("steer", 's'),
    ("merge", 'm'),
    ("archive", 'x'),
    ("next order of the list", 'o'),
    ("help", '?'),
    ("quit", 'q'),
];

/// The commands and then the loops that have all these words in their names.
pub(crate) fn entries(model: &Model, text: &str) -> Vec<PaletteEntry> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let has = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
    let commands = COMMANDS.into_iter().filter(|(name, _)| has(name));
    let commands = commands.map(|(name, key)| PaletteEntry::Command(name, key));
    let loops = model.list.entries.iter().filter_map(seen).filter(|seen| has(seen.brief.id.as_str()));
    let loops = loops.map(|seen| PaletteEntry::Open(Key::of(seen), seen.brief.kind == Kind::Plan));
    commands.chain(loops).take(MOST).collect()
}
