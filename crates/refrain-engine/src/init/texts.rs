//! The texts that `init` writes. Nothing is read here.

use refrain_core::formats::detect::Offer;
use refrain_core::gate::{Check, GateSpec};

/// The section for agents, between its marks.
pub(super) const SECTION: &str = include_str!("agents.md");
/// The first line of the section. A file that has it has the section.
pub(super) const SECTION_BEGINS: &str = "<!-- refrain:begin -->";
/// The targets for Make.
pub(super) const TARGETS: &str = include_str!("refrain.mk");
/// The tasks for an editor.
pub(super) const TASKS: &str = include_str!("tasks.json");
/// What the label of every such task begins with.
pub(super) const TASK_BEGINS: &str = "\"Refrain: ";

/// A configuration file in which all but the headings of tables are comments, with the gates that the project offers.
pub(super) fn configuration(offer: &Offer) -> String {
    let mut text = include_str!("refrain.toml").to_owned();
    let gates: String = offer.gates.iter().filter_map(gate).collect();
    text.push_str(match gates.is_empty() {
        true => {
            "\n# No test was found that could be a gate: done is what gates pass.\n# [gates.test]\n# command = \"./test.sh\"\n"
        }
        false => "\n# Gates that this project offers: done is what they pass. Those with hard = false only inform.\n",
    });
    text + &gates
}

/// A gate in comments; none if it does not fit on a line.
fn gate(gate: &GateSpec) -> Option<String> {
    let Check::Command(command) = &gate.check else { return None };
    // Names of scripts and folders are data. TOML needs the same quoting as JSON here.
    let command = serde_json::to_string(command).ok().filter(|_| !command.contains(char::is_control))?;
    let soft = if gate.hard { "" } else { "# hard = false\n" };
    Some(format!("# [gates.{}]\n# command = {command}\n{soft}", gate.name))
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
