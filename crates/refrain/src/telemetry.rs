//! Whether a collector receives telemetry of what this process drives. A failure is reported once and changes
//! nothing.

use std::io;

use refrain_app::{Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::config::AgentChoice;
use refrain_engine::{DETACHED_READY, Exporter, Service, Telemetry, chain};

use crate::out;

/// Starts the exporter of what this process is about to drive, if a collector is configured in its project.
pub(crate) fn begin(
    context: &Context,
    service: &Service,
    export: impl FnOnce(Telemetry) -> io::Result<Exporter>,
) -> Option<Exporter> {
    export(collector(context, service)?).ok()
}

/// The configured collector; errors in its configuration are reported.
fn collector(context: &Context, service: &Service) -> Option<Telemetry> {
    let settings = service.settings(AgentChoice::default(), context.has_variables()).ok();
    let endpoint = settings.and_then(|settings| settings.config.telemetry.endpoint);
    let telemetry = Telemetry::new(endpoint.as_deref(), &context.host);
    let telemetry = telemetry.inspect_err(|error| {
        out::tell_line("", &format!("note: nothing is sent to a collector: {}", chain(error)));
    });
    let telemetry = telemetry.ok()??;
    telemetry.notes().iter().for_each(|note| out::tell_line("", &format!("note: {note}")));
    Some(telemetry)
}

/// Waits some seconds for pending data, and reports what could not be sent.
pub(crate) fn finish(exporter: Option<Exporter>) {
    tell_trouble(exporter.and_then(Exporter::finish));
}

fn tell_trouble(trouble: Option<String>) {
    if let Some(why) = trouble {
        out::tell_line("", &format!("note: the collector was not told all: {why}"));
    }
}

/// Exports a loop that has ended, in a process of its own: the process that started it waits only for its first line.
pub(crate) fn tell_whole(context: &Context, service: &Service, id: &LoopId) -> Result<(), RequestError> {
    refrain_engine::leave_terminal();
    out::print(&format!("{DETACHED_READY}\n"));
    if let Some(telemetry) = collector(context, service) {
        tell_trouble(service.tell_whole(id, telemetry)?);
    }
    Ok(())
}
