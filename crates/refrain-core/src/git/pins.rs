//! The programs that git runs, and where it pushes, pinned when a loop starts: by content, never by what an agent says
//! later.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The programs and places that git is configured with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitPins {
    /// The path of the `git` program.
    pub program: String,
    /// Each setting that names a program or a place, each file of the hooks folder, and the files of attributes outside of
    /// the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<GitPin>,
    /// Where the loop's branch is pushed; none without a remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushTarget>,
}

/// A setting or a file that decides what git runs. As text: the digest, a space, and the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct GitPin {
    /// The key of the setting, or the file: `filter.lfs.clean`, `hooks/pre-commit`.
    pub name: String,
    /// A digest of its value, and of the programs that the value names.
    pub digest: String,
}

impl From<String> for GitPin {
    fn from(text: String) -> Self {
        let (digest, name) = text.split_once(' ').unwrap_or(("", &text));
        Self { name: name.to_owned(), digest: digest.to_owned() }
    }
}

impl From<GitPin> for String {
    fn from(pin: GitPin) -> Self {
        format!("{} {}", pin.digest, pin.name)
    }
}

/// Where a branch is pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushTarget {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The name of the remote.
    pub remote: String,
    /// The name of the branch there.
    pub to: String,
    /// The address of the remote, without a password.
    pub url: String,
}

impl GitPins {
    /// Whether a setting or file is as it was.
    pub fn has(&self, pin: &GitPin) -> bool {
        self.pins.contains(pin)
    }

    /// The names of what was changed, added or removed since.
    pub fn changes<'a>(&'a self, now: impl IntoIterator<Item = &'a GitPin>) -> Vec<String> {
        let (then, now): (BTreeSet<_>, BTreeSet<_>) = (self.pins.iter().collect(), now.into_iter().collect());
        let names: BTreeSet<&str> = then.symmetric_difference(&now).map(|pin| pin.name.as_str()).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_added_and_removed_pins_are_each_named_once() {
        let pin = |name: &str, digest: &str| GitPin { name: name.to_owned(), digest: digest.to_owned() };
        let pins = GitPins { pins: vec![pin("a", "1"), pin("b", "1"), pin("c", "1")], ..GitPins::default() };
        let now = [pin("d", "1"), pin("c", "2"), pin("a", "1"), pin("a", "1")];
        assert_eq!(pins.changes(&now), ["b", "c", "d"]);
        assert!(pins.changes(&pins.pins).is_empty());
        assert!(pins.has(&now[2]) && !pins.has(&now[1]));
    }
}
