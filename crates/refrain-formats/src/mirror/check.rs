//! The check that another system ran on a loop's work. A command from its file is only shown.

use refrain_core::prompt::state_file::front_matter;

/// The check of a loop's work in another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Tests and a reviewer, as its system always has them.
    Gates,
    Command {
        key: String,
        command: String,
    },
}

/// Keys by which files of those systems, and what people add to them, name a command that checks the work.
const CHECKS: [&str; 14] = [
    "check",
    "check_command",
    "gate",
    "gate_command",
    "gates",
    "success_command",
    "success_criteria_command",
    "test_command",
    "tests_command",
    "validation_command",
    "verification",
    "verification_command",
    "verify",
    "verify_command",
];

/// The command that a file names as its check, at its top or one level below.
pub(super) fn of(text: &str) -> Option<Check> {
    let object: serde_json::Value = match front_matter(text) {
        Some((matter, _)) => serde_saphyr::from_str(&text[matter]).ok()?,
        None => serde_json::from_str(text).ok()?,
    };
    let top = object.as_object()?;
    let below = top.values().filter_map(serde_json::Value::as_object);
    std::iter::once(top).chain(below).flatten().find_map(|(key, value)| {
        let name = key.to_ascii_lowercase().replace('-', "_");
        let command = command(value).filter(|_| CHECKS.contains(&name.as_str()))?;
        Some(Check::Command { key: key.clone(), command })
    })
}

/// A command, or the first of several, as a text.
fn command(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        serde_json::Value::Array(all) => all.iter().find_map(command),
        serde_json::Value::Object(named) => named.values().find_map(command),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::at_its_top(r#"{"verification_command": "cargo test"}"#, Some(("verification_command", "cargo test")))]
    #[case::below(r#"{"config": {"success-command": "./ok"}}"#, Some(("success-command", "./ok")))]
    #[case::several(r#"{"gates": ["make", "make lint"]}"#, Some(("gates", "make")))]
    #[case::named(r#"{"gates": {"tests": "make"}}"#, Some(("gates", "make")))]
    #[case::objects(r#"{"gates": [{"command": "make"}]}"#, Some(("gates", "make")))]
    #[case::front_matter("---\nmode: implement\nverify: make check\n---\n\nDo it.\n", Some(("verify", "make check")))]
    #[case::empty(r#"{"verify": " ", "gates": []}"#, None)]
    #[case::no_command(r#"{"verify": true, "check": null, "gate": 3}"#, None)]
    #[case::another_word(r#"{"checked_at": "2026-05-27", "last_gate": "tests"}"#, None)]
    #[case::in_prose("---\nmode: implement\n---\n\nverify: make check\n", None)]
    #[case::no_object("[]", None)]
    fn a_file_names_its_check(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
        let expected = expected
            .map(|(key, command)| Check::Command { key: key.to_owned(), command: command.to_owned() });
        assert_eq!(of(text), expected);
    }
}
