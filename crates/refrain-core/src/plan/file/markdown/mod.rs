//! Plans and checklists in Markdown.
//!
//! If there are headings `Task 3: title`, at any level, each of them is a task, and `Task 3.1` below it is a part of
//! it. Boxes (`- [ ]`) in it are its steps; with all of them ticked it is done. Otherwise each item of a list with a
//! box is a task, one below another is a part of it, and a ticked one is done. Code is skipped.
//!
//! A heading's number is its id. So is that of an item that begins with one (`1.`, `1.2`, `T001`, `Task 3:`); the id of
//! any other is made from its words: if items were counted, a line inserted above would give the work of one task to
//! another.
//!
//! A status that a box cannot express is at the end of the title, and takes precedence: `(in-progress)`, `(blocked
//! after 3 attempts: the port is taken)`.

pub mod draft;
mod edit;
mod mark;
mod outline;
mod task_details;

pub(super) use edit::{set, unmarked};

use std::collections::HashSet;

use super::Tasks;
use super::error::FileError;
use crate::plan::{Task, TaskStatus};
use outline::{Outline, TaskItem};

const NOTHING: &str = "accepted: headings `## Task 1: …`, or a list of `- [ ] …`";

pub(super) fn read(text: &str) -> Result<Tasks, FileError> {
    let outline = Outline::of(text)?;
    if outline.found.is_empty() {
        return Err(FileError::Nothing(NOTHING));
    }
    let ids: Vec<_> = outline.found.iter().map(|found| found.id.clone()).collect();
    let mut tasks: Vec<_> = outline.found.into_iter().map(|found| found.into_task(&ids)).collect();
    let is_over = |task: &Task| matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled);
    let open: HashSet<_> =
        tasks.iter().filter(|task| !is_over(task)).filter_map(|task| task.parent.clone()).collect();
    let wholes: HashSet<_> = tasks.iter().filter_map(|task| task.parent.clone()).collect();
    for task in &mut tasks {
        // Its parts complete it, and it was not given up for them: a task that a person ticks before its parts are done
        // is done.
        if task.status == TaskStatus::Done && wholes.contains(&task.id) && !open.contains(&task.id) {
            task.status = TaskStatus::Expanded;
        }
    }
    Ok(Tasks { name: outline.name, tasks, verification: outline.verification, odd: Vec::new() })
}

pub(super) fn has_headings(text: &str) -> bool {
    Outline::of(text).is_ok_and(|outline| outline.by_headings)
}

/// The marks of the last heading of a task at the top, `##` if it is underlined; none if items are the tasks.
pub(super) fn heading_marks(text: &str) -> Option<String> {
    let outline = Outline::of(text).ok().filter(|outline| outline.by_headings)?;
    let last = outline.found.iter().rev().find(|found| found.parent.is_none())?;
    let begin = text[..last.title_end].rfind('\n').map_or(0, |end| end + 1);
    let marks: String = text[begin..].chars().skip_while(|c| *c == ' ').take_while(|c| *c == '#').collect();
    Some(if marks.is_empty() { "##".to_owned() } else { marks })
}

impl TaskItem {
    fn into_task(self, ids: &[crate::plan::TaskId]) -> Task {
        let status = self.status();
        let mut task = Task::new(self.id, self.title);
        task.status = status;
        task.note = self.mark.and_then(|mark| mark.note);
        task.parent = self.parent.map(|parent| ids[parent].clone());
        task.details = self.details;
        task.dependencies = self.said.dependencies;
        task.verification = self.said.verification;
        task.test_strategy = self.said.test_strategy;
        task.files = self.said.files;
        task
    }

    /// Its status: from its mark, else from its boxes.
    fn status(&self) -> TaskStatus {
        let natural = || self.by_boxes(self.boxes.iter().all(|tick| tick.is_ticked));
        self.mark.as_ref().map_or_else(natural, |mark| mark.status)
    }

    /// The same, were all of them ticked, or not.
    fn by_boxes(&self, all_ticked: bool) -> TaskStatus {
        match (self.boxes.is_empty(), all_ticked) {
            (false, true) => TaskStatus::Done,
            // The steps of a heading are its own work beside that of its parts; the box of an item is not.
            (false, false) if self.is_heading || !self.has_parts => TaskStatus::Pending,
            (true, _) if !self.has_parts => TaskStatus::Pending,
            (_, _) => TaskStatus::Expanded,
        }
    }
}
