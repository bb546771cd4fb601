//! Seed 001's `.scud/loop-state.json`: how far it got with the tasks of a tag. The task file says what is left, so only
//! the words that continue it are read.

use serde::Deserialize;

use super::foreign_loop::{ForeignLoop, System, Unread};

pub(super) const FILE: &str = ".scud/loop-state.json";

#[derive(Deserialize)]
struct MirrorFile {
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    tag: String,
    plan_path: Option<String>,
}

/// Longer than any value that a person types, in bytes.
const LONGEST: usize = 2000;

/// Never a loop: what a person types in its place.
pub(super) fn read(text: &str) -> Result<ForeignLoop, Unread> {
    let system = System::Scud;
    let MirrorFile { config: Config { tag, plan_path } } =
        serde_json::from_str(text).map_err(|error| system.damaged(&error))?;
    // Its verification is omitted: a file of unknown origin must not give the user a command to paste.
    let plan = plan_path.map(|path| format!("--plan={path}"));
    let words: Vec<_> = [format!("--tag={tag}")].into_iter().chain(plan).collect();
    let words = shlex::try_join(words.iter().map(String::as_str)).map_err(|error| system.damaged(&error))?;
    if words.len() > LONGEST {
        return Err(system.damaged(&"its tag, plan and command are too long"));
    }
    Err(Unread::Plan { tag, words })
}
