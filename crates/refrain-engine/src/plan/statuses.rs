//! Keeps the statuses in the task file in step with the journal. The file is written as things happen, and read again
//! when another program or a person wrote it.

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_core::plan::file::Change;
use refrain_core::plan::{Note, PlanEvent, PlanState, Task, TaskId, TaskState, TaskStatus};
use refrain_store::journal::Durability;
use refrain_store::tasks::{Stamp, TaskFile, TasksError};
use refrain_store::{Journal, Project};

use crate::{EngineError, Service, chain, now};

/// The last known state of a plan's task file.
#[derive(Clone, Debug)]
pub(super) struct Statuses {
    project: Project,
    path: Utf8PathBuf,
    tag: String,
    /// The file, once it could be read: it may be gone, or broken, when a plan is taken over.
    file: Option<TaskFile>,
    is_known: bool,
    /// The file as it was read, or written, last.
    stamp: Option<Stamp>,
    written: HashMap<TaskId, (TaskStatus, Option<Note>)>,
    tasks: Option<Arc<[Task]>>,
}

impl Statuses {
    pub(super) fn new(service: &Service, state: &PlanState) -> Self {
        Self {
            project: service.project().clone(),
            path: state.spec.tasks.clone(),
            tag: state.spec.tag.clone(),
            file: None,
            is_known: false,
            stamp: None,
            written: HashMap::new(),
            tasks: None,
        }
    }

    fn file(&mut self) -> Result<&TaskFile, TasksError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => TaskFile::at(&self.project, self.path.clone(), self.tag.clone())?,
        };
        Ok(self.file.insert(file))
    }

    /// The tasks, as they could be read last; none before they were read.
    pub(super) fn tasks(&self) -> Option<Arc<[Task]>> {
        self.tasks.clone()
    }

    /// Whether another program wrote or removed it since the last look; or there was no look yet.
    pub(super) fn is_changed(&self) -> bool {
        !self.is_known || Stamp::at(&self.path).ok() != self.stamp
    }

    /// Does `change` to a plan without a runner, and brings the file to where the plan is then. What a person wrote
    /// meanwhile is read before: what the change makes of a task is not to be taken for what was written of it. A file
    /// that cannot be read or written does not keep a plan from being changed: that is recorded.
    pub(super) fn around(
        service: &Service,
        journal: &mut Journal<PlanState>,
        change: impl FnOnce(&mut Journal<PlanState>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut statuses = Self::new(service, journal.state());
        if !journal.state().tasks.is_empty() {
            let event = statuses.read();
            journal.push(event, now())?;
        }
        change(journal)?;
        journal.commit(Durability::Synced)?;
        if let Err(error) = statuses.write(&statuses.changes(journal.state())) {
            journal.push(PlanEvent::TasksRefused { error: chain(&error) }, now())?;
            journal.commit(Durability::Synced)?;
        }
        Ok(())
    }

    /// Reads it; the event has its content, or why it cannot be used.
    pub(super) fn read(&mut self) -> PlanEvent {
        // Also if it is missing: it is not looked for again until it comes.
        (self.is_known, self.stamp) = (true, Stamp::at(&self.path).ok());
        match self.file().and_then(TaskFile::read) {
            Ok(read) => {
                self.stamp = Some(read.stamp);
                let tasks: Arc<[Task]> = read.tasks.tasks.into();
                let event = PlanEvent::of_tasks(&tasks);
                // Of a refused file nothing counts: what was read before stays valid.
                if let PlanEvent::TasksTaken { .. } = event {
                    let word = |task: &Task| (task.id.clone(), (task.status, task.note.clone()));
                    self.written = tasks.iter().map(word).collect();
                    self.tasks = Some(tasks);
                }
                event
            }
            Err(error) => PlanEvent::TasksRefused { error: chain(&error) },
        }
    }

    /// The changes that bring it to the state of the plan.
    pub(super) fn changes(&self, state: &PlanState) -> Vec<Change> {
        let change = |task: &TaskState| {
            let (from, said) = self.written.get(&task.card.id)?;
            let (id, status) = (&task.card.id, state.status_of(task));
            let note = state.blocked_because(task).map(|reason| Note { reason, attempts: task.iterations });
            // A note that is there already is not another for a different number in it.
            let is_new = *from != status || said.is_some() != note.is_some();
            is_new.then(|| Change { task: id.clone(), from: *from, status, note })
        };
        state.tasks.iter().filter_map(change).collect()
    }

    /// Writes them; blocks.
    pub(super) fn write(&mut self, changes: &[Change]) -> Result<(), TasksError> {
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.file()?.set(changes)?;
        // Changes of a person in between are theirs, and still to be read.
        for change in changes.iter().filter(|change| !written.left.contains(&change.task)) {
            self.written.insert(change.task.clone(), (change.status, change.note.clone()));
        }
        // What another program wrote in between is still to be read.
        if self.stamp == Some(written.found) {
            self.stamp = Some(written.stamp);
        }
        Ok(())
    }
}
