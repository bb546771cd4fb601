//! The prompt of a task's loop: which task it is, its specification, what happened before, how to give up. The loop
//! itself adds how to claim, after all this.

use super::spec::RULE;
use super::{Again, Brief};
use crate::plan::Task;
use crate::promise::{GIVES_UP, PLACEHOLDER};
use crate::text::{printable, squeeze};

/// The prompt of a loop that works on `task` of the tag `tag`.
pub fn prompt(task: &Task, tag: &str, brief: &Brief, again: &[Again]) -> String {
    let line = |text: &str| squeeze(&printable(text));
    let header = format!(
        "You work on task {} of {}: {}\n\nDo this task and nothing else of the plan. Others work on other tasks at the same \
         time, each in a checkout of their own.",
        task.id,
        line(tag),
        line(&task.title)
    );
    // Not at the beginning of a line here: an agent that echoes its prompt would give up by it.
    let giving_up = format!(
        "If it cannot be done, after three serious attempts or because something is missing that you cannot make, stop, and \
         let a line of your final message say so and why: `{GIVES_UP} {PLACEHOLDER}`"
    );
    let mut parts = vec![header, brief.text().to_owned()];
    parts.extend(again.iter().map(Again::section));
    parts.push(giving_up);
    format!("{}\n", parts.join(RULE))
}
