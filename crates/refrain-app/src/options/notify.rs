//! Whom to tell when a loop ends or needs its user.

use clap::ValueEnum;
use refrain_engine::config::keys::{Notify, NotifyHow};
use refrain_engine::config::{Command, Settings};
use refrain_engine::{Webhook, chain};

use crate::{Context, RequestError};

/// The program that shows a notification on the desktop.
pub const DESKTOP: &str = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };

// What a person says of notifications.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NotifyArgs {
    /// Tell you when the loop ends or needs you
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub notify: Option<NotifyMode>,
    /// The same by a command of yours: the message on its standard input, REFRAIN_NOTIFY_ID and REFRAIN_NOTIFY_STATUS set;
    /// words are split like a shell's, no shell runs it
    #[arg(long, value_name = "CMD ARGS")]
    pub notify_command: Option<Command>,
}

/// Where a notification is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NotifyMode {
    /// On the terminal that shows the loop; on the desktop, where no terminal does
    Auto,
    /// On the terminal: its own notification where it has them, and its bell
    Terminal,
    /// On the desktop, by notify-send or osascript
    Desktop,
    /// Nowhere
    Off,
}

impl NotifyArgs {
    /// What the options leave out, the configuration says.
    pub fn or_configured(self, config: &Notify) -> Self {
        let how = config.how.map(|how| match how {
            NotifyHow::Auto => NotifyMode::Auto,
            NotifyHow::Terminal => NotifyMode::Terminal,
            NotifyHow::Desktop => NotifyMode::Desktop,
            NotifyHow::Off => NotifyMode::Off,
        });
        let command = config.command.clone();
        Self { notify: self.notify.or(how), notify_command: self.notify_command.or(command) }
    }

    /// The options that hand these on to a runner of its own.
    pub(crate) fn as_words(&self) -> Vec<String> {
        let how = self.notify.and_then(|how| how.to_possible_value());
        let how = how.map(|how| format!("--notify={}", how.get_name()));
        let command = self.notify_command.as_ref().map(|command| format!("--notify-command={command}"));
        how.into_iter().chain(command).collect()
    }

    pub fn is_asked(&self) -> bool {
        self.notify.is_some_and(|how| how != NotifyMode::Off) || self.notify_command.is_some()
    }

    /// Refuses a command whose program no folder of `PATH` outside of the project has.
    pub fn check(&self, context: &Context) -> Result<(), RequestError> {
        let is_name = |command: &&Command| !command.program.contains('/');
        match self.notify_command.as_ref().filter(is_name) {
            Some(Command { program, .. }) if context.program(program).is_none() => {
                let error = format!("--notify-command {program}: command not found");
                Err(RequestError::usage(error).hint("accepted: a program with its arguments"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Why the user would not be notified, or the webhook not called. `watched` is whether a terminal will show the loop.
    pub fn notes(&self, context: &Context, settings: &Settings, watched: bool) -> Vec<String> {
        let webhook = Webhook::configured(&settings.config.notify, &context.host, context.has_variables());
        let webhook = webhook.and_then(Result::err);
        let webhook = webhook.map(|error| format!("the webhook gets nothing: {}", chain(&error)));
        self.objection(context, watched).into_iter().chain(webhook).collect()
    }

    /// Why a notification may not arrive: no shell runs the command, or the desktop cannot show it. `watched` is whether a terminal will show the loop.
    pub fn objection(&self, context: &Context, watched: bool) -> Option<String> {
        let syntax = self.notify_command.as_ref().and_then(Command::shell_syntax);
        let unread = syntax.map(|word| {
            format!(
                "no shell runs --notify-command, so {word:?} is an argument of it; sh -c '…' runs a shell"
            )
        });
        let on_desktop = matches!(
            (self.notify, watched),
            (Some(NotifyMode::Desktop), _) | (Some(NotifyMode::Auto), false)
        );
        unread.or_else(|| {
            (on_desktop && context.program(DESKTOP).is_none()).then(|| {
                format!(
                    "{DESKTOP} is not installed, so the desktop shows nothing; --notify-command runs a program of yours instead"
                )
            })
        })
    }
}
