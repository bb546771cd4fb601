//! Modes: ways of working that a person names instead of writing them down (seed 002). The built-in texts are only
//! here, for every agent and for the plugins' commands, and so is how a prompt is built from one. The binary resolves
//! names of the configuration to texts.

/// The modes that are built in, sorted by name, each with its text.
pub const BUILT_IN: [(&str, &str); 2] =
    [("implement", include_str!("mode/implement.md")), ("research", include_str!("mode/research.md"))];

/// The rules of every mode, those of the configuration too.
const SHARED: &str = include_str!("mode/shared.md");

pub fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The prompt of a loop in a mode: how to work, what holds in every mode, and the task, if there is one. What is the
/// same in all loops comes first, so that a provider's cache of prompts hits.
pub fn prompt(text: &str, task: Option<&str>) -> String {
    let prompt = format!("{}\n\n{}", text.trim_end(), SHARED.trim_end());
    match task {
        Some(task) => with_section(&prompt, "Task", task),
        None => prompt,
    }
}

/// The prompt followed by a person's directions, as in seed 002.
pub fn directed(prompt: &str, directions: &str) -> String {
    with_section(prompt, "User Directions", directions)
}

/// What a loop in a mode is about, as its prompt says it.
pub fn task(prompt: &str) -> Option<&str> {
    let (_, task) = prompt.split_once("\n\n## Task\n\n")?;
    Some(task.split_once("\n\n## User Directions\n\n").map_or(task, |(task, _)| task).trim())
}

fn with_section(prompt: &str, title: &str, text: &str) -> String {
    format!("{}\n\n## {title}\n\n{}\n", prompt.trim_end(), text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::summary;

    #[test]
    fn a_prompt_is_the_mode_the_shared_rules_and_the_task_in_this_order() {
        let prompt = directed(&prompt("Work so.\n", Some("Mend it.\n\n")), "Slowly.");
        let shared = SHARED.trim_end();
        assert_eq!(
            prompt,
            format!("Work so.\n\n{shared}\n\n## Task\n\nMend it.\n\n## User Directions\n\nSlowly.\n")
        );
        assert_eq!(task(&prompt), Some("Mend it."));
        let without = super::prompt("Work so.", None);
        assert_eq!((without.as_str(), task(&without)), (format!("Work so.\n\n{shared}").as_str(), None));
    }

    #[test]
    fn the_built_in_modes_state_their_rules() {
        assert!(built_in("research").unwrap().contains("Write no production code"));
        assert!(built_in("implement").unwrap().contains("Verify it"));
        assert_eq!(built_in("poetry"), None);
        assert!(SHARED.contains(&format!("{}{}{}", summary::OPEN, summary::PLACEHOLDER, summary::CLOSE)));
        // How to claim comes after them, and a tag of theirs would keep it away.
        assert!(
            BUILT_IN.iter().all(|(_, text)| !text.contains("<promise>")) && !SHARED.contains("<promise>")
        );
        assert!(BUILT_IN.is_sorted());
    }
}
