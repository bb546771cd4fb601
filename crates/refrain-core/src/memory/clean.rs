//! What is fit to be remembered: one line of plain words, which cannot claim, leave its quotation or look like a part
//! of our own prompts; and whether words try to talk a later agent out of its task.

use std::sync::LazyLock;

use regex::Regex;

use super::Kind;
use crate::text::{clip, in_order, printable, squeeze};

/// The text as it is kept: on one line, within the length of its kind, and with anything rewritten that could pass for
/// a claim or for a part of our prompts. None if nothing is left.
pub fn fit(text: &str, kind: Kind) -> Option<String> {
    let seen: String = in_order(&printable(text)).chars().filter(|c| !is_invisible(*c)).collect();
    let text = HEADINGS.iter().fold(without_tags(&squeeze(&seen)), |text, heading| {
        text.replace(&format!("{heading}:"), &format!("{heading} -"))
    });
    let text = text.replace("```", "'''");
    // Signs that make a line more than words at its begin.
    let text = text.trim_start_matches(['>', '#', '-', '*', '`', '~', '=', '+', ' ']);
    let text = clip(text.trim_end(), kind.longest());
    text.chars().any(char::is_alphanumeric).then(|| text.into_owned())
}

/// Invisible characters, which would hide a word from a search.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The begins of parts of our own prompts, and of an agent's messages to us.
const HEADINGS: [&str; 22] = [
    "How this loop works",
    "RECALLED MEMORIES",
    "STEERING",
    "STRATEGY SHIFT",
    "REVIEWER FEEDBACK",
    "CLAIM REFUSED",
    "CLAIM NOT HEARD",
    "QUESTION NOT ASKED",
    "STATUS NOT READ",
    "GATE FAILED",
    "FAILED TOO",
    "PROTECTED",
    "CONFLICT",
    "COMMIT REFUSED",
    "FAILED BEFORE YOU BEGAN",
    "LAST RUN FAILED",
    "BLOCKED",
    "TASK_BLOCKED",
    "SPEC_PASS",
    "FACTS",
    "EPISODES",
    "PROCEDURES",
];

/// Tags that claim something, or make words look like those of another speaker.
const TAGS: [&str; 8] =
    ["promise", "iteration-summary", "system", "user", "assistant", "instruction", "tool", "im_"];

/// The text with such tags in other brackets: readable, but without effect.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let tail = &rest[at..];
        let inside = tail.strip_prefix('<').or_else(|| tail.strip_prefix("&lt;"));
        let named = inside.map(|inside| inside.trim_start_matches([' ', '/', '|', '<']).to_lowercase());
        let is_one = named.is_some_and(|named| TAGS.iter().any(|tag| named.starts_with(tag)));
        let (kept, skipped) = match (is_one, inside) {
            (true, Some(inside)) => ("‹", tail.len() - inside.len()),
            _ => (&tail[..1], 1),
        };
        out.push_str(&rest[..at]);
        out.push_str(kept);
        rest = &tail[skipped..];
    }
    out.push_str(rest);
    out
}

/// Whether the words ask a later agent to get round its instructions, to claim, or to run what comes from elsewhere.
/// Only a person may have such words remembered; an honest note that reads so is lost, which costs less.
pub fn plants(text: &str) -> bool {
    let seen: String = printable(text).chars().filter(|c| !is_invisible(*c)).collect();
    let text = squeeze(&seen.to_lowercase());
    // Text that cannot be checked is not taken.
    PLANTED.as_ref().is_none_or(|planted| planted.is_match(&text))
}

static PLANTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let aims = "gates?|checks?|tests?|hooks?|rules?|instructions?|prompts?|protections?|guards?|reviewers?|verification";
    let ways = [
        format!(
            r"\b(?:ignor|disregard|forget|skip|bypass|disabl|circumvent|overrid|overrul|avoid|delet|remov|weaken|evad)\w*\b.{{0,60}}\b(?:{aims})\b"
        ),
        r"\b(?:print|output|say|emit|write|echo|answer|reply|respond|claim|promise|declare)\w*\b.{0,40}(?:</?promise|‹/?promise|\bcomplete\b|\bdone\b|\bspec_pass\b|\bpromise\b)".to_owned(),
        r"</?\s*promise|\btask_blocked\b|\bspec_pass\b|status: ?done".to_owned(),
        r"\b(?:curl|wget|fetch|invoke-webrequest|iwr)\b.{0,200}(?:\||\$\(|;|&&)\s*(?:sudo\s+)?(?:ba|z|da|k|fi)?sh\b|\b(?:ba|z|da|k)?sh\b.{0,20}(?:<\(|-c).{0,80}\b(?:curl|wget)\b".to_owned(),
        r"\b(?:curl|wget)\b.{0,20}https?://".to_owned(),
        r"\brm\s+-\w*[rf]|--no-verify|--dangerously|\bchmod\s+777|\beval\b.{0,20}\$\(|\bbase64\b.{0,10}-d".to_owned(),
        r"\byou are (?:now|no longer)\b|\bsystem prompt\b|\bnew instructions?\b|\bdo not tell\b|\bdon't tell\b|\bwithout (?:telling|asking)\b".to_owned(),
        r"\b(?:upload|send|post|exfiltrat|leak)\w*\b.{0,40}\b(?:secret|token|key|credential|password|\.env)".to_owned(),
    ];
    Regex::new(&ways.join("|")).ok()
});
