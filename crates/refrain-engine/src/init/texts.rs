//! The texts that `init` writes. Nothing is read here.

use refrain_core::gate::Offer;

use super::{Choices, GitUse};

pub(super) const SECTION: &str = include_str!("agents.md");
/// The first line of the section. A file that has it has the section.
pub(super) const SECTION_BEGINS: &str = "<!-- refrain:begin -->";
pub(super) const TARGETS: &str = include_str!("refrain.mk");
pub(super) const TASKS: &str = include_str!("tasks.json");
/// What the label of every such task begins with.
pub(super) const TASK_BEGINS: &str = "\"Refrain: ";

/// A configuration file with the values that were chosen.
pub(super) fn configuration(choices: &Choices, offer: &Offer) -> String {
    let mut text = String::from(
        "# Refrain's settings for this project; options of the command line override them.\n\
         # refrain config show prints every key with its value. After a change: refrain trust\n\n[start]\n",
    );
    if let Some(agent) = &choices.agent {
        text.push_str(&format!("agent = {}\n", toml_text(agent)));
    }
    text.push_str(&match choices.gates && !offer.has_required() {
        true => "# No test was found that could be a gate; refrain start --gate CMD adds one.\n".to_owned(),
        false => format!("auto-gates = {}{}\n", choices.gates, remark(choices, offer)),
    });
    let (workflow, worktree) = match choices.git {
        GitUse::Worktree => ("commit", true),
        GitUse::Commit => ("commit", false),
        GitUse::None => ("none", false),
    };
    text.push_str(&format!("\n[git]\nworkflow = \"{workflow}\"\nworktree = {worktree}\n"));
    if choices.sandbox {
        text.push_str("\n[sandbox]\nmode = \"auto\"\n");
    }
    text
}

/// The gates that the project offers now, as a comment. Names of scripts and folders are data.
fn remark(choices: &Choices, offer: &Offer) -> String {
    let named = |hard: bool| {
        let gates = offer.gates.iter().filter(|gate| gate.hard == hard);
        gates.map(|gate| gate.check.to_string()).collect::<Vec<_>>().join(", ")
    };
    let (hard, soft) = (named(true), named(false));
    let text = match (hard.is_empty(), soft.is_empty()) {
        (true, _) => return String::new(),
        (false, true) => format!("   # {hard}"),
        (false, false) => format!("   # {hard}; advisory: {soft}"),
    };
    if choices.gates && !text.contains(char::is_control) { text } else { String::new() }
}

/// TOML needs the same quoting as JSON here.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_marks_that_they_are_known_by() {
        assert!(SECTION.starts_with(SECTION_BEGINS) && SECTION.ends_with("<!-- refrain:end -->\n"));
        assert!(TASKS.contains(TASK_BEGINS));
        assert!(serde_json::from_str::<serde_json::Value>(TASKS).is_ok());
    }
}
