//! Notifies a person who looks elsewhere that a loop ended or needs them: on the terminal they watch, on their desktop,
//! or by their own command. It runs after the end, and its failure changes nothing.
//!
//! What an agent or a provider said is data here too: no control character, no markup, no shell.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use refrain_app::Context;
use refrain_app::options::notify::{DESKTOP, NotifyArgs, NotifyMode};
use refrain_core::LoopId;
use refrain_core::text::{clip, printable};
use refrain_core::view::notice::Notice;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{Status, StatusWord, Verification};
use refrain_engine::chain;
use refrain_engine::config::Command;
use refrain_engine::tool::Tool;

use crate::out;
use crate::render::phrase;

/// How long a program may take to show a notification.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest message, in bytes: a line on a screen.
const LONGEST: usize = 400;

pub(crate) struct StopNotice<'a> {
    pub(crate) status: StatusWord,
    verification: Verification,
    reason: &'a str,
    needs: Option<&'a str>,
}

impl<'a> From<&'a Status> for StopNotice<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            status: status.status,
            verification: status.verification(),
            reason: &status.reason,
            needs: status.needs.as_deref(),
        }
    }
}

impl<'a> From<&'a PlanStatus> for StopNotice<'a> {
    fn from(status: &'a PlanStatus) -> Self {
        Self {
            status: status.status,
            verification: status.verification(),
            reason: &status.reason,
            needs: status.needs.as_deref(),
        }
    }
}

struct Message {
    id: String,
    status: &'static str,
    title: String,
    /// The reason, and what to do next; one line.
    body: String,
}

/// Notifies that a loop or plan has stopped, unless the user just stopped it.
pub(crate) fn tell(args: &NotifyArgs, context: &Context, id: &LoopId, stopped: &StopNotice<'_>) {
    let message = match stopped.status {
        StatusWord::Paused | StatusWord::Moved | StatusWord::Cancelled => return,
        // A loop that has not stopped was released by a runner that failed.
        StatusWord::Running | StatusWord::Waiting | StatusWord::Crashed | StatusWord::Failed => "failed",
        stopped @ (StatusWord::Blocked
        | StatusWord::Completed
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck) => stopped.as_str(),
    };
    let next = stopped.needs.map(|needs| format!("; next: {needs}")).unwrap_or_default();
    let mut message = Message::new(id.as_str(), message, &format!("{}{next}", stopped.reason));
    if let Verification::Verified | Verification::Unverified = stopped.verification {
        message.title = title(id.as_str(), phrase::label(stopped.verification));
    }
    send(args, context, &message);
}

/// Notifies that a loop waits longer than the configured time.
pub(crate) fn tell_wait(args: &NotifyArgs, context: &Context, notice: &Notice) {
    send(args, context, &Message::new(notice.id.as_str(), "waiting", &notice.reason));
}

/// Notifies that a loop's runner could not continue.
pub(crate) fn tell_failure(args: &NotifyArgs, context: &Context, id: &str, error: &str) {
    send(args, context, &Message::new(id, "failed", error));
}

fn send(args: &NotifyArgs, context: &Context, message: &Message) {
    let on_terminal = match args.notify {
        Some(NotifyMode::Terminal | NotifyMode::Auto) => ring(context, message),
        Some(NotifyMode::Desktop | NotifyMode::Off) | None => false,
    };
    let desktop = match args.notify {
        Some(NotifyMode::Desktop) => true,
        Some(NotifyMode::Auto) => !on_terminal,
        Some(NotifyMode::Terminal | NotifyMode::Off) | None => false,
    };
    if desktop {
        errand(&desktop_words(message.title.clone(), message.body.clone()), context, message);
    }
    if let Some(Command { program, args: words }) = &args.notify_command
        && args.notify != Some(NotifyMode::Off)
    {
        errand(&[std::slice::from_ref(program), words].concat(), context, message);
    }
}

impl Message {
    fn new(id: &str, status: &'static str, body: &str) -> Self {
        let body = printable(body).replace(['\n', '\t'], " ");
        Self { id: id.to_owned(), status, title: title(id, status), body: clip(&body, LONGEST).into_owned() }
    }
}

fn title(id: &str, what: &str) -> String {
    format!("Refrain loop {id}: {what}")
}

/// Runs a program that shows the message. That it failed is said, once, and nothing else comes of it.
fn errand(argv: &[String], context: &Context, message: &Message) {
    let Message { id, status, title, body } = message;
    let Some((program, args)) = argv.split_first() else { return };
    let text = format!("{title}\n{body}\n");
    let errand = context.outside(Tool::errand(program, context.dir.as_std_path()));
    let errand = errand.args(args).input(text.as_bytes()).limit(LIMIT);
    let errand = errand.with("REFRAIN_NOTIFY_ID", id).with("REFRAIN_NOTIFY_STATUS", status);
    let error = match errand.run() {
        Ok(done) if done.status.success() => return,
        Ok(done) => {
            let complaint = String::from_utf8_lossy(&done.stderr);
            let last = complaint.trim().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            format!("{program} ended with {}{last}", done.status)
        }
        Err(error) => chain(&error),
    };
    let error = format!("the notification was not passed on: {error}");
    out::tell_line("", &format!("refrain: {error}"));
}

/// The program that shows a message on the desktop. Both take the texts as arguments of their own.
fn desktop_words(title: String, body: String) -> [String; 5] {
    let words = |words: [&str; 3]| words.map(str::to_owned);
    if cfg!(target_os = "macos") {
        let script =
            "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        let [program, flag, script] = words([DESKTOP, "-e", script]);
        return [program, flag, script, title, body];
    }
    // The desktop may read markup in it.
    let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let [program, name, end] = words([DESKTOP, "--app-name=Refrain", "--"]);
    [program, name, end, title, body]
}

/// Shows it on the terminal, if there is one; whether there is.
fn ring(context: &Context, message: &Message) -> bool {
    let text = sequence(
        &message.title,
        &message.body,
        context.variable("TERM").unwrap_or_default(),
        context.variable("TMUX").is_some(),
    );
    // Not through the stream that strips escape sequences: this one is no colour.
    let written = if std::io::stderr().is_terminal() {
        std::io::stderr().write_all(text.as_bytes())
    } else if std::io::stdout().is_terminal() {
        std::io::stdout().write_all(text.as_bytes())
    } else {
        return false;
    };
    written.is_ok()
}

/// The escape sequence that makes a terminal show a notification: OSC 777 or OSC 9, chosen by `TERM`. A terminal that
/// knows neither ignores it and rings its bell.
fn sequence(title: &str, body: &str, term: &str, in_tmux: bool) -> String {
    let notification = match term {
        "" | "dumb" => String::new(),
        term if term.starts_with("rxvt") || term.starts_with("foot") => {
            format!("\u{1b}]777;notify;{title};{body}\u{7}")
        }
        _ => format!("\u{1b}]9;{title}: {body}\u{7}"),
    };
    match in_tmux && !notification.is_empty() {
        // Passed to the outer terminal, if tmux allows it.
        true => format!("\u{1b}Ptmux;{}\u{1b}\\\u{7}", notification.replace('\u{1b}', "\u{1b}\u{1b}")),
        false => format!("{notification}\u{7}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_the_dialect_that_it_speaks_and_no_other_sequence() {
        let Message { title, body, .. } =
            Message::new("job", "blocked", "the provider said \u{1b}]0;owned\u{7}\u{9b}2J<b>\nno");
        assert_eq!(body, "the provider said <b> no");
        let shown = |term, tmux| sequence(&title, &body, term, tmux);
        let said = format!("{title}: {body}");
        assert_eq!(shown("xterm-256color", false), format!("\u{1b}]9;{said}\u{7}\u{7}"));
        assert_eq!(shown("foot", false), format!("\u{1b}]777;notify;{title};{body}\u{7}\u{7}"));
        assert_eq!(
            shown("tmux-256color", true),
            format!("\u{1b}Ptmux;\u{1b}\u{1b}]9;{said}\u{7}\u{1b}\\\u{7}")
        );
        assert_eq!(shown("dumb", false), "\u{7}");
    }

    #[test]
    fn a_desktop_gets_no_markup_and_no_options() {
        let words = desktop_words("--title".into(), "<a href=x>&".into());
        assert_eq!(words[2..], ["--", "--title", "&lt;a href=x&gt;&amp;"]);
    }
}
