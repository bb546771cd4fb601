//! Who is told of a loop, or a plan, while it is driven here: by the ways of `notify`, that it waits for long; by the webhook of the
//! configuration, of that and of each end. What cannot be told is said once, and changes nothing.

use std::io;

use camino::Utf8Path;
use refrain_app::Context;
use refrain_core::notice::{Notice, NoticeKind};
use refrain_core::spec::Millis;
use refrain_engine::config::Chosen;
use refrain_engine::config::keys::Notify;
use refrain_engine::{Audience, Notifier, Service, Webhook, chain};

use crate::notify;
use crate::out;
use refrain_app::options::notify::NotifyArgs;

/// Somebody tells of what this process is about to drive in that worktree, where that is configured.
pub(crate) fn begin(
    context: &Context,
    worktree: &Utf8Path,
    notify: &NotifyArgs,
    herald: impl FnOnce(Audience) -> io::Result<Notifier>,
) -> Option<Notifier> {
    let service = Service::open(worktree, context.host.clone()).ok()?;
    let config = configured(context, &service)?;
    let (longest, webhook) = (longest(&config), webhook(context, &config));
    let is_asked = webhook.is_some() || (longest.is_some() && notify.is_asked());
    let (context, notify) = (context.clone(), notify.clone());
    let tell = Box::new(move |notice: &Notice| {
        // Of an end the runner itself tells.
        if notice.kind == NoticeKind::Waits {
            notify::tell_wait(&notify, &context, notice);
        }
    });
    is_asked.then(|| herald(Audience { longest, webhook, tell }).ok()).flatten()
}

/// Waits for what is still to be told, for some seconds, and says what has to be left for later.
pub(crate) fn finish(herald: Option<Notifier>) {
    if let Some(why) = herald.and_then(Notifier::finish) {
        out::tell_line("", &format!("refrain: the webhook was not told: {why}"));
    }
}

/// Tells the webhook what it is owed by loops and plans of this project that nobody drives.
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

/// Says why the webhook would be told nothing, before anybody relies on it: a runner of its own has nobody to say it to.
pub(crate) fn note_objection(context: &Context, worktree: &Utf8Path) {
    let service = Service::open(worktree, context.host.clone()).ok();
    if let Some(config) = service.and_then(|service| configured(context, &service)) {
        webhook(context, &config);
    }
}

/// What is configured; one that cannot be read is told of by whoever starts the loop.
fn configured(context: &Context, service: &Service) -> Option<Notify> {
    let settings = service.settings(Chosen::default(), context.has_variables()).ok()?;
    Some(settings.config.notify)
}

fn longest(config: &Notify) -> Option<Millis> {
    config.wait_longer_than.and_then(Option::from)
}

fn webhook(context: &Context, config: &Notify) -> Option<Webhook> {
    let made = Webhook::new(config.webhook.as_ref()?, &context.host, context.has_variables());
    made.inspect_err(|error| {
        out::tell_line("", &format!("note: the webhook is told nothing: {}", chain(error)));
    })
    .ok()
}
