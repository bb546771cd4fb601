//! Starts and stops the notifier of a loop or plan that this process drives. The ways of `notify` report long waits;
//! the configured webhook gets waits and every end. A failed notification is reported once and changes nothing.

use std::io;

use refrain_app::Context;
use refrain_core::spec::Millis;
use refrain_core::view::notice::{Notice, NoticeKind};
use refrain_engine::config::AgentChoice;
use refrain_engine::config::keys::Notify;
use refrain_engine::{Audience, Notifier, Service, Webhook, chain};

use crate::{notify, out};
use refrain_app::options::notify::NotifyArgs;

/// Starts the notifier for what this process is about to drive, if one is configured in its project. The loop's own
/// worktree may not exist yet.
pub(crate) fn begin(
    context: &Context,
    service: &Service,
    notify: &NotifyArgs,
    notifier: impl FnOnce(Audience) -> io::Result<Notifier>,
) -> Option<Notifier> {
    let config = configured(context, service)?;
    let (longest, webhook) = (longest(&config), webhook(context, &config));
    let is_asked = webhook.is_some() || (longest.is_some() && notify.is_asked());
    let (context, notify) = (context.clone(), notify.clone());
    let tell = Box::new(move |notice: &Notice| {
        // The runner itself reports an end.
        if notice.kind == NoticeKind::Waits {
            notify::tell_wait(&notify, &context, notice);
        }
    });
    is_asked.then(|| notifier(Audience { longest, webhook, tell }).ok()).flatten()
}

/// Waits some seconds for pending notifications, and reports what is left for later.
pub(crate) fn finish(notifier: Option<Notifier>) {
    if let Some(why) = notifier.and_then(Notifier::finish) {
        out::tell_line("", &format!("refrain: the webhook was not told: {why}"));
    }
}

/// Sends the webhook the pending notifications of this project's loops and plans that have no runner.
pub(crate) fn deliver_owed(context: &Context, service: &Service) {
    let Some(config) = configured(context, service) else { return };
    let Some(webhook) = webhook(context, &config) else { return };
    let why = match service.deliver_owed(longest(&config), &webhook) {
        Ok(why) => why,
        Err(error) => Some(chain(&error)),
    };
    if let Some(why) = why {
        out::tell_line("", &format!("refrain: the webhook was not told: {why}"));
    }
}

/// Reports why the webhook cannot be used before a runner is started: a detached runner has no terminal to report it
/// on.
pub(crate) fn note_objection(context: &Context, service: &Service) {
    if let Some(config) = configured(context, service) {
        webhook(context, &config);
    }
}

/// The configuration; none if it cannot be read. The code that starts the loop reports that error.
fn configured(context: &Context, service: &Service) -> Option<Notify> {
    let settings = service.settings(AgentChoice::default(), context.has_variables()).ok()?;
    Some(settings.config.notify)
}

fn longest(config: &Notify) -> Option<Millis> {
    config.wait_longer_than.and_then(Option::from)
}

fn webhook(context: &Context, config: &Notify) -> Option<Webhook> {
    let made = Webhook::configured(config, &context.host, context.has_variables())?;
    made.inspect_err(|error| {
        out::tell_line("", &format!("note: the webhook gets nothing: {}", chain(error)));
    })
    .ok()
}
