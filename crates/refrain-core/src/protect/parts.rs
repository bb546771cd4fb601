//! Parts of manifests: the keys of a JSON or TOML file that gates run by.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::git::RepoPath;
use crate::text::printable;

/// Keys of one file that are protected where the rest of it may change. A file that is not there has none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The file: TOML where its name ends so, else JSON.
    pub path: RepoPath,
    /// Keys that stay as they are, or stay away: `scripts`, `tool.pytest`.
    pub frozen: Vec<String>,
    /// Keys of lists that may gain entries, but not change or lose them: `workspace.members`.
    pub may_gain: Vec<String>,
}

/// A protected part that was touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartViolation {
    /// The file.
    pub path: RepoPath,
    /// The key; none where the file cannot be read any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl fmt::Display for PartViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => {
                write!(f, "{} was changed at {}, which decides what the gates run", self.path, printable(key))
            }
            None => write!(f, "{} cannot be read any more, and it decides what the gates run", self.path),
        }
    }
}

impl Part {
    /// Every protected key that differs between the text of the base and that of the candidate; none is a file that is
    /// not there. A base that cannot be read proves nothing, so that any change of it counts.
    pub fn touched(&self, base: Option<&str>, now: Option<&str>) -> Vec<PartViolation> {
        let found = |key: Option<&String>| PartViolation { path: self.path.clone(), key: key.cloned() };
        if base == now {
            return Vec::new();
        }
        let (Some(base), Some(now)) = (self.read(base), self.read(now)) else { return vec![found(None)] };
        let differs = |key: &&String| at(&base, key) != at(&now, key);
        let loses = |key: &&String| !holds(at(&now, key), at(&base, key));
        let frozen = self.frozen.iter().filter(differs);
        frozen.chain(self.may_gain.iter().filter(loses)).map(|key| found(Some(key))).collect()
    }

    fn read(&self, text: Option<&str>) -> Option<Value> {
        let Some(text) = text else { return Some(Value::Null) };
        if self.path.as_str().ends_with(".toml") {
            toml::from_str(text).ok()
        } else {
            serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
        }
    }
}

fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    key.split('.').fold(value, |value, name| &value[name])
}

/// Whether a list still has every entry of another one. A base that had none holds nothing back.
fn holds(now: &Value, base: &Value) -> bool {
    match (now, base) {
        (_, Value::Null) => true,
        (Value::Array(now), Value::Array(base)) => base.iter().all(|entry| now.contains(entry)),
        (now, base) => now == base,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn part(path: &str) -> Part {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Part {
            path: RepoPath::from_bytes(path.as_bytes()),
            frozen: keys(&["scripts", "tool.pytest", "lib"]),
            may_gain: keys(&["workspace.members", "test"]),
        }
    }

    const JSON: &str = r#"{"scripts": {"test": "jest", "lint": "eslint"}, "dependencies": {}}"#;
    const TOML: &str = "[workspace]\nmembers = [\"a\", \"b\"]\n[[test]]\nname = \"x\"\n";

    #[rstest]
    #[case::nothing("package.json", Some(JSON), Some(JSON), &[])]
    #[case::a_dependency("package.json", Some(JSON), Some(r#"{"dependencies": {"a": "1"}, "scripts": {"lint": "eslint", "test": "jest"}}"#), &[])]
    #[case::a_script("package.json", Some(JSON), Some(r#"{"scripts": {"test": "true", "lint": "eslint"}}"#), &["scripts"])]
    #[case::a_script_more("package.json", Some(JSON), Some(r#"{"scripts": {"test": "jest", "lint": "eslint", "pretest": "exit 0"}}"#), &["scripts"])]
    #[case::the_file_is_gone("package.json", Some(JSON), None, &["scripts"])]
    #[case::it_cannot_be_read("package.json", Some(JSON), Some("{"), &[""])]
    #[case::it_could_not_be_read_before("package.json", Some("{"), Some(JSON), &[""])]
    #[case::a_new_file_with_such_a_key("pyproject.toml", None, Some("[tool.pytest.ini_options]\naddopts = \"--co\"\n"), &["tool.pytest"])]
    #[case::a_new_file_without("pyproject.toml", None, Some("[project]\nname = \"a\"\n"), &[])]
    #[case::a_member_more("Cargo.toml", Some(TOML), Some("[workspace]\nmembers = [\"b\", \"c\", \"a\"]\n[[test]]\nname = \"x\"\n[[test]]\nname = \"y\"\n"), &[])]
    #[case::a_member_less("Cargo.toml", Some(TOML), Some("[workspace]\nmembers = [\"a\"]\n[[test]]\nname = \"x\"\n"), &["workspace.members"])]
    #[case::a_test_switched_off("Cargo.toml", Some(TOML), Some("[workspace]\nmembers = [\"a\", \"b\"]\n[[test]]\nname = \"x\"\ntest = false\n"), &["test"])]
    #[case::tests_switched_off("Cargo.toml", Some(TOML), Some(&*format!("{TOML}[lib]\ntest = false\n")), &["lib"])]
    fn protected_parts_are_compared_by_value(
        #[case] path: &str,
        #[case] base: Option<&str>,
        #[case] now: Option<&str>,
        #[case] keys: &[&str],
    ) {
        let found = part(path).touched(base, now);
        let found: Vec<_> =
            found.iter().map(|violation| violation.key.as_deref().unwrap_or_default()).collect();
        assert_eq!(found, keys);
    }

    #[test]
    fn a_touched_part_is_described_in_words() {
        let found = part("web/package.json").touched(Some(JSON), None);
        assert_eq!(
            found[0].to_string(),
            "web/package.json was changed at scripts, which decides what the gates run"
        );
    }
}
