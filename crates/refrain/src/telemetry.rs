//! Whether a collector is told of what this process drives. What cannot be told is said once, and changes nothing.

use refrain_engine::config::Chosen;
use refrain_engine::{Exporter, Runner, Service, Telemetry, chain};

use crate::cli::Context;
use crate::out;

/// Somebody tells a collector of the loop that this process is about to drive, where one is named.
pub(crate) fn begin(context: &Context, runner: &Runner) -> Option<Exporter> {
    let settings = Service::open(runner.worktree(), context.host.clone())
        .ok()
        .and_then(|service| service.settings(Chosen::default(), context.inside.is_none()).ok());
    let endpoint = settings.and_then(|settings| settings.config.telemetry.endpoint);
    let telemetry = Telemetry::new(endpoint.as_deref(), &context.host);
    let telemetry = telemetry.inspect_err(|error| {
        out::tell_line("", &format!("note: no collector is told anything: {}", chain(error)));
    });
    runner.export(telemetry.ok()??).ok()
}

/// Waits for what is still to be sent, for some seconds, and says what came to nothing.
pub(crate) fn finish(exporter: Option<Exporter>) {
    if let Some(why) = exporter.and_then(Exporter::finish) {
        out::tell_line("", &format!("note: the collector was not told all: {why}"));
    }
}
