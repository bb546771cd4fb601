//! Tuning a task that was tried in vain (seed 001, "tune"): its prompt, its output and its failures, the question for
//! another agent, and which words of the answer count.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::TaskId;
use crate::prompt::fenced_as;
use crate::text::{cut_middle, printable};

/// How a task was tried: its last round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastRound {
    /// The task.
    pub task: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Why it is not done.
    pub reason: String,
    /// The loop of the round.
    #[serde(rename = "loop")]
    pub id_of_loop: String,
    /// What its agent was told first.
    pub told: String,
    /// Its attempts, the first first.
    pub attempts: Vec<TriedAttempt>,
    /// What it changed, as `git diff` tells it; nothing where it changed nothing, or that cannot be told.
    pub diff: String,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedAttempt {
    /// Which, as people say it.
    pub attempt: String,
    /// What the agent said last.
    pub said: String,
    /// The gates that failed after it.
    pub failed: Vec<TriedGate>,
}

/// A gate that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedGate {
    /// Which.
    pub gate: String,
    /// The end of what it printed.
    pub printed: String,
}

/// The mark before the words that count (seed 001).
const MARK: &str = "REFINEMENT:";
/// How much of a text is passed on, in bytes.
const EXCERPT: usize = 6 << 10;

/// The prompt of an agent that proposes how the task continues.
pub fn question(tried: &LastRound) -> String {
    let LastRound { task, title, reason, told, attempts, diff, .. } = tried;
    let mut text = format!(
        "Another agent tried a task in this repository, and it did not come to its end: {}. Find out why, from what it was \
         told, what it said and what failed, and say what it is to be told besides when it is tried again. Only read: change \
         no file, run nothing that changes one.\n\nEnd your answer with a line `{MARK}`, followed by your words to that agent \
         and nothing else: short, concrete, what to do differently and where.\n\n## Task {task}: {}\n\n## What it was told\n\n{}\n",
        line(reason),
        line(title),
        excerpt(told)
    );
    for TriedAttempt { attempt, said, failed } in attempts {
        // Writing into a string does not fail.
        let _ = write!(text, "\n## Attempt {attempt}\n\nIt said last:\n\n{}\n", excerpt(said));
        for TriedGate { gate, printed } in failed {
            let _ = write!(text, "\nGate {gate} failed:\n\n{}\n", excerpt(printed));
        }
    }
    if !diff.trim().is_empty() {
        let _ = write!(
            text,
            "\n## What it changed\n\n{}\n",
            fenced_as("diff", &cut_middle(&printable(diff), 2 * EXCERPT))
        );
    }
    text
}

fn line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

fn excerpt(text: &str) -> String {
    fenced_as("", &cut_middle(printable(text).trim(), EXCERPT))
}

/// The words that an answer proposes; none if it has none.
pub fn proposal(answer: &str) -> Option<String> {
    let answer = printable(answer);
    let words = after_mark(&answer, MARK)?.trim_matches(['*', '`', ' ', '\n', '#']).trim();
    (!words.is_empty()).then(|| words.to_owned())
}

/// What comes after the mark that begins a line. The last one counts: the text before it may mention the mark.
pub(super) fn after_mark<'a>(answer: &'a str, mark: &str) -> Option<&'a str> {
    let at = answer.match_indices(mark).filter(|(at, _)| begins_line(&answer[..*at])).last()?.0;
    Some(&answer[at + mark.len()..])
}

/// Whether only marks of emphasis come before it on its line.
fn begins_line(before: &str) -> bool {
    let begin = before.rsplit('\n').next().unwrap_or_default();
    begin.chars().all(|c| matches!(c, '*' | '#' | '`' | '_' | ' '))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Thinking.\n\nREFINEMENT: Use pine.\n", Some("Use pine."))]
    #[case(
        "I will write REFINEMENT: at the end.\nREFINEMENT:\n\nUse pine.\nAnd glue.",
        Some("Use pine.\nAnd glue.")
    )]
    #[case("**REFINEMENT:** Use pine.", Some("Use pine."))]
    #[case("REFINEMENT: oak\nNo, better:\nREFINEMENT: pine", Some("pine"))]
    #[case("REFINEMENT:   \n", None)]
    #[case("Nothing comes to mind.", None)]
    #[case("", None)]
    fn the_text_after_the_mark_is_the_proposal(#[case] answer: &str, #[case] words: Option<&str>) {
        assert_eq!(proposal(answer).as_deref(), words);
    }

    #[test]
    fn a_question_has_all_that_was_seen_and_nothing_that_moves_a_terminal() {
        let tried = LastRound {
            task: "3".parse().unwrap(),
            title: "Setup \u{1b}[31mdatabase".to_owned(),
            reason: "not proven in 3 iterations".to_owned(),
            id_of_loop: "x-3".to_owned(),
            told: "the prompt".to_owned(),
            attempts: vec![TriedAttempt {
                attempt: "2".to_owned(),
                said: "I am done.".to_owned(),
                failed: vec![TriedGate { gate: "tests".to_owned(), printed: "1 failed".to_owned() }],
            }],
            diff: "+let x = 1;".to_owned(),
        };
        let question = question(&tried);
        for part in [
            "not proven in 3",
            "Setup database",
            "the prompt",
            "Attempt 2",
            "I am done.",
            "tests",
            "1 failed",
            "+let x",
        ] {
            assert!(question.contains(part), "{part}: {question}");
        }
        assert!(!question.contains('\u{1b}'));
    }
}
