//! Exports a loop that a session drove, once it has ended. Hooks are to be quick, so the process that records the end
//! starts another that exports it, and does not wait for that: `refrain drive ID --tell`.

use refrain_core::{LoopId, LoopState};
use refrain_proc::detach::{self, DetachedRunner};
use refrain_store::{LoopDir, config, journal};

use super::Telemetry;
use super::exporter::PendingExport;
use crate::service::redact::Redactor;
use crate::{EngineError, Host, Service, chain};

/// Exports a loop that a session drove and that has just ended here, if a collector is named.
pub(crate) fn tell_of_session(host: &Host, state: &LoopState, dir: &LoopDir) {
    if state.session.is_none() {
        return;
    }
    // A file that cannot be used is reported when a loop starts.
    let file = config::user_file(&host.config_home).ok().flatten();
    let own = file.and_then(|file| file.parse().ok()).and_then(|config| config.telemetry.endpoint);
    if !Telemetry::is_wanted(own.as_deref(), host) {
        return;
    }
    let words = ["-C", state.spec.project.as_str(), "drive", state.spec.id.as_str(), "--tell"];
    // It reports its own errors, as far as it gets; if it cannot be started, nothing breaks.
    let _ = detach::start(&host.program, "refrain", &words.map(str::to_owned), &host.env, &dir.runner_log())
        .map(DetachedRunner::reap);
}

impl Service {
    /// Exports a loop's last run, which has ended; answers with what went wrong.
    pub fn tell_whole(&self, id: &LoopId, telemetry: Telemetry) -> Result<Option<String>, EngineError> {
        let journal::Whole { records, state, .. } =
            journal::whole(&self.locate(id)?.dir, &self.host().signing())?;
        let redactor = Redactor::new(&state.spec, []);
        Ok(match PendingExport::new(telemetry, redactor) {
            Ok(owed) => owed.tell_all(&records),
            Err(error) => Some(chain(&error)),
        })
    }
}
