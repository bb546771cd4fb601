//! Names of types and files: a noun that says what the value is, or what the file holds, not a pronoun or a participle
//! that needs its surroundings.

use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{read, rust_files};

/// Words that name no type.
const REFUSED: [&str; 34] = [
    "Answer", "Asked", "Begun", "Brought", "Came", "Found", "Given", "Happened", "Happens", "Heard", "Held",
    "How", "Kept", "Known", "Looking", "Made", "Place", "Ran", "Said", "Says", "Seen", "Sent", "Shown",
    "Sought", "Standing", "Struck", "Told", "Took", "Wanted", "What", "Which", "Who", "Why", "Written",
];

/// Words that name no file: the contents cannot be guessed from them.
const FILES: [&str; 40] = [
    "acting",
    "after",
    "afterwards",
    "again",
    "asked",
    "asking",
    "before",
    "behind",
    "carry",
    "deciding",
    "doing",
    "ends",
    "failing",
    "fixed",
    "found",
    "from",
    "given",
    "handling",
    "heard",
    "hearing",
    "how",
    "keeping",
    "left",
    "looking",
    "others",
    "outside",
    "published",
    "reading",
    "seeing",
    "spent",
    "standing",
    "starting",
    "taken",
    "telling",
    "told",
    "wanted",
    "watching",
    "which",
    "whole",
    "written",
];

/// Every type and shipped file of the repository with such a name.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in rust_files(root)? {
        let stem = Path::new(&name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if FILES.contains(&stem) && name.starts_with("crates/") && !name.contains("/tests/") {
            findings.push(Finding::error(&name, "its name does not say what it holds", "name it by a noun"));
        }
        for (at, line) in read(&root.join(&name))?.lines().enumerate() {
            if let Some(word) = refused(line) {
                let what = format!("calls a type `{word}`");
                findings.push(Finding::error(
                    format!("{name}:{}", at + 1),
                    what,
                    "name it by a noun: what the value is",
                ));
            }
        }
    }
    Ok(findings)
}

/// The refused name of the type that a line declares.
fn refused(line: &str) -> Option<&'static str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut declaration = words.by_ref().skip_while(|word| matches!(*word, "pub" | "crate" | "super" | "in"));
    if !matches!(declaration.next()?, "struct" | "enum" | "trait" | "type") {
        return None;
    }
    let name = declaration.next()?;
    REFUSED.into_iter().find(|word| *word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_and_nothing_else() {
        for (line, word) in [
            (concat!("    pub(super) enum ", "Heard {"), Some("Heard")),
            (concat!("struct ", "Told<'a>(&'a str);"), Some("Told")),
            (concat!("type ", "Seen = Option<u64>;"), Some("Seen")),
            ("    Found(u64),", None),
            ("let told = Told::default();", None),
            ("pub struct KnownCost {", None),
        ] {
            assert_eq!(refused(line), word, "{line}");
        }
    }
}
