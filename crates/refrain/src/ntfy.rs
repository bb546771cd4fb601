//! Replies by ntfy beside `serve`, if they are configured. A problem with them is reported, and the server runs without.

use camino::Utf8PathBuf;
use refrain_app::Context;
use refrain_engine::config::AgentChoice;
use refrain_engine::{Service, chain};
use refrain_server::ntfy::Replies;

use crate::out;

/// The reader of replies, if it is configured and possible.
pub(crate) fn open(context: &Context, roots: &[Utf8PathBuf]) -> Option<Replies> {
    let service = Service::open(&context.dir, context.host.clone()).ok()?;
    // Slack, which is opened before, reports a configuration that cannot be read.
    let settings = service.settings(AgentChoice::default(), context.has_variables()).ok()?;
    let url = settings.config.notify.ntfy_replies?;
    let say = Box::new(|what: &str| out::tell_line("", what));
    let replies = Replies::open(context, roots, &url, say);
    replies.map_err(|error| out::tell_line("", &format!("note: no reply is read: {}", chain(&error)))).ok()
}
