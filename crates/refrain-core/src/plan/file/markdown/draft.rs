//! A plan that an agent writes: the question to it, and the part of its answer that is the plan.

use std::fmt::Write;

use crate::plan::tune::after_mark;
use crate::prompt::fenced_as;
use crate::text::printable;

const MARK: &str = "PLAN:";

/// The prompt of an agent that writes a plan for an idea. A plan that it wrote before is shown with its problems.
pub fn question(idea: &str, before: Option<(&str, &[String])>) -> String {
    let mut text = format!(
        "Write a plan for this repository. Only read: change no file, run nothing that changes one.\n\n## Idea\n\n{}\n\n\
         ## How\n\n\
         - Split the idea into tasks. Each is done by an agent that sees only its own task, in one or a few runs.\n\
         - Make few tasks. Tasks that do not depend on each other are done at the same time: let them change different files.\n\
         - Each task says which files it changes, what is to be true in the end, and which command checks that. The command fails \
         now and passes when the task is done.\n\n\
         ## Format\n\n{}\n\n\
         `Depends on` names the tasks that have to be done before; omit it if there are none. End your answer with a line \
         `{MARK}`, followed by the plan and nothing else.\n",
        printable(idea).trim(),
        fenced_as("markdown", EXAMPLE)
    );
    if let Some((plan, problems)) = before {
        // Writing into a string does not fail.
        let _ = write!(text, "\n## Your last plan\n\nIt cannot be used:\n\n");
        for problem in problems {
            let _ = writeln!(text, "- {}", printable(problem).replace('\n', " "));
        }
        let _ = write!(text, "\n{}\n", fenced_as("markdown", plan));
    }
    text
}

const EXAMPLE: &str = "# The idea in a few words

## Task 1: Add the parser

What is to be done, and how it fits what is there.

Files: src/parser.rs

Verify: cargo test parser

## Task 2: Use the parser in the command line

What is to be done.

Depends on: Task 1

Verify: cargo test --test cli";

/// The plan in an answer; none if it has none.
pub fn draft(answer: &str) -> Option<String> {
    let answer = printable(answer);
    let plan = after_mark(&answer, MARK)?.trim_start_matches(['*', '`', ' ']).trim();
    let plan = unfenced(plan).trim();
    (!plan.is_empty()).then(|| format!("{plan}\n"))
}

/// The content of a fence, if all of the text is one.
fn unfenced(text: &str) -> &str {
    let Some((first, rest)) = text.split_once('\n') else { return text };
    let fence: String = first.chars().take_while(|c| *c == '`').collect();
    match rest.trim_end().strip_suffix(fence.as_str()) {
        Some(inner) if fence.len() >= 3 && inner.ends_with('\n') => inner,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::plan::file::{self, Shape};

    #[rstest]
    #[case("I looked.\n\nPLAN:\n# A\n\n## Task 1: B\n", Some("# A\n\n## Task 1: B\n"))]
    #[case("**PLAN:**\n```markdown\n# A\n\n```sh\ntrue\n```\n```\n", Some("# A\n\n```sh\ntrue\n```\n"))]
    #[case("PLAN: first\nNo:\nPLAN:\n- [ ] B", Some("- [ ] B\n"))]
    #[case("PLAN:\n```\n```", Some("```\n```\n"))]
    #[case("PLAN:\n", None)]
    #[case("There is no plan.", None)]
    fn the_plan_stands_behind_the_mark(#[case] answer: &str, #[case] plan: Option<&str>) {
        assert_eq!(draft(answer).as_deref(), plan);
    }

    #[test]
    fn the_example_is_a_plan() {
        let read = file::read(EXAMPLE, Shape::Markdown, "x").unwrap();
        assert_eq!(read.tasks.len(), 2);
        let asked = question("Parse it.", Some(("# A\n", &["task 1 is\nthere twice".to_owned()])));
        assert!(
            asked.contains("## Idea\n\nParse it.\n") && asked.contains("- task 1 is there twice\n"),
            "{asked}"
        );
    }
}
