//! Slack beside `serve`, if it is configured. A problem with it is reported, and the server runs without it.

use refrain_app::Context;
use refrain_engine::config::AgentChoice;
use refrain_engine::{Service, chain};
use refrain_server::slack::Slack;

use crate::out;

/// The connection to Slack, if it is configured and possible.
pub(crate) fn open(context: &Context) -> Option<Slack> {
    let note = |why: String| out::tell_line("", &format!("note: Slack gets nothing: {why}"));
    let service = Service::open(&context.dir, context.host.clone()).ok()?;
    let config = match service.settings(AgentChoice::default(), context.has_variables()) {
        Ok(settings) => settings.config.slack,
        Err(error) => {
            note(error.to_string());
            return None;
        }
    };
    if !Slack::is_wanted(&config) {
        return None;
    }
    let say = Box::new(|what: &str| out::tell_line("", what));
    Slack::open(context, config, say).map_err(|error| note(chain(&error))).ok()
}
