//! Private words: a comment names the caller, the runner or the user, and no pronoun that stands for one of them.

use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{read, rust_files};

/// Words that are no subject of a sentence here.
const PRIVATE: [&str; 4] = ["whoever", "somebody", "nobody", "anybody"];

/// Every comment of the repository's Rust files with a private word.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in rust_files(root)? {
        for (at, line) in read(&root.join(&name))?.lines().enumerate() {
            if let Some(word) = private(line) {
                let remedy = "name the caller, the runner, the user, the other process";
                findings.push(Finding::error(format!("{name}:{}", at + 1), format!("says `{word}`"), remedy));
            }
        }
    }
    Ok(findings)
}

/// The first private word of a line that is a comment, or ends with one.
fn private(line: &str) -> Option<&'static str> {
    let trimmed = line.trim_start();
    let comment = if trimmed.starts_with("//") { trimmed } else { line.split_once(" // ")?.1 }.to_lowercase();
    let is_there = |word: &&str| comment.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word);
    PRIVATE.into_iter().find(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_are_read_and_whole_words() {
        for (line, word) in [
            ("    /// Whoever asks.", Some("whoever")),
            (concat!("let a = b; /", "/ for somebody's sake"), Some("somebody")),
            ("let uri = \"https://nobody\";", None),
            ("/// The caller.", None),
            ("/// A busybody.", None),
            ("fn nobody() {}", None),
        ] {
            assert_eq!(private(line), word, "{line}");
        }
    }
}
