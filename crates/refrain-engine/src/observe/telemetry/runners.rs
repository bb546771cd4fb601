use super::Telemetry;
use super::exporter::{ExportMode, Exporter, FollowThread, PendingExport, TaskExport, follow};
use crate::service::redact::Redactor;
use crate::{PlanRunner, Runner};
use refrain_core::view::trace::{PlanTracer, Tracer};
use std::io;
use std::sync::Arc;
impl Runner {
    /// Exports what happens to the loop from here on. A loop that a session drives is exported at once when it ends,
    /// because no process lives long enough to follow it.
    pub fn export(&self, telemetry: Telemetry) -> io::Result<Exporter> {
        let exporter = Exporter::default();
        exporter.add(self.follow_for(telemetry)?);
        Ok(exporter)
    }

    fn follow_for(&self, telemetry: Telemetry) -> io::Result<FollowThread> {
        let state = self.journal.state();
        let redactor = Redactor::new(&state.spec, []);
        let when = if state.session.is_some() {
            ExportMode::AtTheEnd(self.past)
        } else {
            ExportMode::Behind(self.past)
        };
        follow::<Tracer, _>(
            &self.journal,
            Arc::clone(&self.live_progress),
            when,
            PendingExport::new(telemetry, redactor)?,
        )
    }
}

impl PlanRunner {
    /// Exports what happens to the plan, and to the loops of its tasks, from here on.
    pub fn export(&mut self, telemetry: Telemetry) -> io::Result<Exporter> {
        let (journal, live_progress) = self.observed();
        let redactor = Redactor::new(&journal.state().spec.each, []);
        // Its start, or resumption, is news.
        let when = ExportMode::Behind(journal.state().seq.saturating_sub(1));
        let following = follow::<PlanTracer, _>(
            journal,
            live_progress,
            when,
            PendingExport::new(telemetry.clone(), redactor)?,
        )?;
        let exporter = Exporter::default();
        exporter.add(following);
        self.telling = Some(TaskExport { telemetry, exporter: exporter.clone() });
        Ok(exporter)
    }
}

impl TaskExport {
    /// The loop is about to be driven. What cannot be exported does no harm.
    pub(crate) fn of(&self, runner: &Runner) {
        if let Ok(following) = runner.follow_for(self.telemetry.clone()) {
            self.exporter.add(following);
        }
    }
}
