//! Reads a message as it streams by: lines out of chunks that are cut anywhere, in bounded memory. Most lines of a long
//! message cannot hold a promise; for them only the block is tracked.

use std::borrow::Cow;

use aho_corasick::packed;
use memchr::{memchr, memchr2};

use super::block::{Block, LineKind};
use super::echo::{Echo, EchoMatch};
use super::give_up_line::{GIVES_UP, given_up};
use super::line::{self, LineMeaning};
use super::{Finding, MatchMode, NearMiss, OPEN, Promise};
use crate::prompt::summary;
use crate::spec::Spec;
use crate::text::{clip, printable};

/// How much of each end of a line is looked at. A promise in the middle of a longer line is a mention anyway.
const LINE_END: usize = 8 << 10;
const LONGEST_HELD: usize = 4 * LINE_END;
/// The longest tag that is spread over lines, in bytes.
const LONGEST_TAG: usize = 4 << 10;
/// The longest preview, in bytes.
pub const PREVIEW: usize = 160;

/// The result for one whole message without an echo. `is_gated` says whether a required gate decides about a claim.
pub fn scan(promise: &Promise, message: &str, is_gated: bool) -> Finding {
    let mut scanner = Scanner::new(Some(promise), "").gated(is_gated);
    scanner.push(message.as_bytes());
    scanner.finish()
}

/// The summary of an agent that was asked for one, without the tag around it (seed 002).
fn bare_summary(line: &str) -> &str {
    let inner = line.strip_prefix(summary::OPEN);
    inner.and_then(|inner| inner.strip_suffix(summary::CLOSE)).unwrap_or(line).trim()
}

#[derive(Debug)]
pub struct Scanner {
    promise: Option<Promise>,
    /// A required gate decides about a claim, so the promise may end the last line after other words.
    is_gated: bool,
    echo: Echo,
    /// A line must hold one of these to be of interest, found in one pass. A processor without the instructions has
    /// none: then every line is of interest.
    marks: Option<packed::Searcher>,
    may_give_up: bool,
    gave_up: Option<String>,
    summary: summary::Listener,
    /// The begin of a line whose end has not come; of an overlong one, both ends.
    held: Vec<u8>,
    /// The full length of that line.
    held_length: usize,
    lines: u64,
    block: Block,
    in_comment: bool,
    /// The findings within a possible echo, by line.
    unsettled: Vec<(u64, LineMeaning)>,
    /// Where that echo would begin, and the state before it.
    echo_begin: Option<(u64, Block, bool)>,
    /// A claim that nothing can take back.
    claimed: bool,
    near_miss: Option<NearMiss>,
    /// A tag that was opened on an earlier line, with all since.
    open_tag: String,
    last: LastLine,
    /// The last line before one that begins with a tag.
    before_tag: Vec<u8>,
}

#[derive(Debug, Default)]
struct LastLine {
    number: u64,
    bytes: Vec<u8>,
    says: Option<LineMeaning>,
    counts: bool,
}

impl Scanner {
    /// A scanner for the message of an attempt that was given `prompt`.
    pub fn of_attempt(spec: &Spec, prompt: &str) -> Self {
        let scanner = Self::new(spec.promise.as_ref(), prompt).gated(spec.has_hard_gates());
        if spec.task.is_some() { scanner.hearing_giving_up() } else { scanner }
    }

    /// A scanner for a message in which `prompt` may be echoed, and that no gate checks. Without a promise only the
    /// last line is kept.
    pub fn new(promise: Option<&Promise>, prompt: &str) -> Self {
        Self {
            promise: promise.cloned(),
            is_gated: false,
            echo: Echo::of(prompt),
            marks: packed::Searcher::new(["romise", "ROMISE", "<!--", summary::OPEN, GIVES_UP]),
            may_give_up: false,
            gave_up: None,
            summary: summary::Listener::default(),
            held: Vec::new(),
            held_length: 0,
            lines: 0,
            block: Block::new(),
            in_comment: false,
            unsettled: Vec::new(),
            echo_begin: None,
            claimed: false,
            near_miss: None,
            open_tag: String::new(),
            last: LastLine::default(),
            before_tag: Vec::new(),
        }
    }

    /// The same scanner, for a loop in which a required gate decides about a claim, or not.
    #[must_use]
    pub fn gated(self, is_gated: bool) -> Self {
        Self { is_gated, ..self }
    }

    /// The same scanner, for an agent that may give its task up.
    #[must_use]
    pub fn hearing_giving_up(self) -> Self {
        Self { may_give_up: true, ..self }
    }

    /// The next bytes of the message.
    pub fn push(&mut self, chunk: &[u8]) {
        // Asked of the whole chunk, because asking costs next to nothing there and a lot on every line.
        let special = self.is_special(chunk);
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.held_length == 0 {
                self.line(line, special);
            } else {
                self.hold(line);
                self.release();
            }
            rest = after;
        }
        self.hold(rest);
    }

    /// The finding of the whole message.
    pub fn finish(mut self) -> Finding {
        self.release();
        if !self.open_tag.is_empty() {
            self.note(self.lines, LineMeaning::Nearly(NearMiss::Unclosed));
        }
        // An echo that did not end was none.
        self.settle_before(u64::MAX);
        let text = String::from_utf8_lossy(&self.last.bytes);
        let text = printable(&text);
        let last_line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        // For lists a bare tag says nothing that the outcome does not.
        let is_tag = self.promise.as_ref().is_some_and(|promise| last_line.trim() == promise.tag());
        let before_tag = String::from_utf8_lossy(&self.before_tag);
        let preview =
            if is_tag && !before_tag.is_empty() { printable(&before_tag) } else { last_line.into() };
        if let (Some(promise), true) = (&self.promise, self.last.counts) {
            let bare = line::is_bare(last_line, promise.text.as_str());
            match (promise.mode, self.last.says) {
                (MatchMode::Tag | MatchMode::Plain, Some(LineMeaning::PromiseAtEnd)) if self.is_gated => {
                    self.claimed = true;
                }
                (MatchMode::Plain, _) if bare => self.claimed = true,
                (MatchMode::Tag, _) if bare => self.near_miss = Some(NearMiss::Untagged),
                (MatchMode::Tag | MatchMode::Plain | MatchMode::Substring, _) => {}
            }
        }
        Finding {
            claimed: self.claimed,
            near_miss: self.near_miss.filter(|_| !self.claimed),
            gave_up: self.gave_up.filter(|_| !self.claimed),
            summary: self.summary.finish(),
            last_line: clip(bare_summary(preview.trim()), PREVIEW).into_owned(),
        }
    }

    /// Whether lines of these bytes must be looked at closely.
    fn is_special(&self, bytes: &[u8]) -> bool {
        self.promise.as_ref().is_some_and(|promise| promise.mode == MatchMode::Substring)
            || has_control(bytes)
            || self.marks.as_ref().is_none_or(|marks| marks.find(bytes).is_some())
    }

    /// Keeps the begin of a line until its end comes; of an overlong one, both ends.
    fn hold(&mut self, mut part: &[u8]) {
        let before = self.held_length;
        self.held_length += part.len();
        if self.held_length <= LONGEST_HELD {
            self.held.extend_from_slice(part);
            return;
        }
        self.search_overlong(before, part);
        let head = LINE_END.saturating_sub(self.held.len()).min(part.len());
        self.held.extend_from_slice(&part[..head]);
        part = &part[head..];
        if part.len() >= LINE_END {
            self.held.truncate(LINE_END);
            self.held.extend_from_slice(&part[part.len() - LINE_END..]);
        } else {
            self.held.extend_from_slice(part);
            let middle = self.held.len().saturating_sub(2 * LINE_END);
            self.held.drain(LINE_END..LINE_END + middle);
        }
    }

    fn release(&mut self) {
        if self.held_length > 0 {
            let held = std::mem::take(&mut self.held);
            let special = self.is_special(&held);
            self.line(&held, special);
            self.held_length = 0;
        }
    }

    fn line(&mut self, whole: &[u8], special: bool) {
        self.lines += 1;
        let bytes = &*both_ends(whole);
        if special || self.in_comment || !self.open_tag.is_empty() || self.summary.is_open() {
            self.hear_echo(bytes, |scanner| {
                // A line that was too long to be held was searched as it came.
                if scanner.held_length <= LONGEST_HELD {
                    scanner.search(whole);
                }
                scanner.close_look(bytes);
            });
        } else {
            self.hear_echo(bytes, |scanner| {
                let place = scanner.block.enter(bytes);
                if place != LineKind::Blank && !is_blank(bytes) {
                    scanner.last.set(scanner.lines, bytes, place == LineKind::Text);
                }
            });
        }
    }

    /// Reads the line by `read`, and takes back what it said if it ends an echo of the prompt.
    fn hear_echo(&mut self, bytes: &[u8], read: impl FnOnce(&mut Self)) {
        let before = (self.block, self.in_comment);
        let heard = if is_blank(bytes) { None } else { Some(self.echo.hear(bytes)) };
        read(self);
        match heard {
            None => {}
            Some(EchoMatch::Nothing) => {
                self.echo_begin = None;
                self.settle_before(u64::MAX);
            }
            // Lines of the prompt can be the begin of another echo of it: the last begin is the one that counts.
            Some(EchoMatch::Partly(lines)) if lines == 1 || self.echo_begin.is_none() => {
                self.echo_begin = Some((self.lines, before.0, before.1));
                self.settle_before(self.lines);
            }
            Some(EchoMatch::Partly(_)) => {}
            Some(EchoMatch::Whole) => {
                let (begin, block, in_comment) =
                    self.echo_begin.take().unwrap_or((self.lines, before.0, before.1));
                self.unsettled.retain(|(line, _)| *line < begin);
                self.settle_before(u64::MAX);
                // A fence that the prompt left open does not swallow what the agent says.
                (self.block, self.in_comment) = (block, in_comment);
                self.open_tag.clear();
                if self.last.number >= begin {
                    self.last.counts = false;
                }
            }
        }
    }

    fn close_look(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = if self.lines == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        let text = printable(text);
        // Text that overwrites itself on a terminal is several lines.
        for part in text.split('\n') {
            self.part(part);
        }
    }

    fn part(&mut self, text: &str) {
        let place = self.block.enter(text.as_bytes());
        if place == LineKind::Blank || text.trim().is_empty() {
            return;
        }
        if text.trim_start().starts_with(OPEN) {
            self.before_tag.clone_from(&self.last.bytes);
        }
        self.last.set(self.lines, text.as_bytes(), place == LineKind::Text);
        let seen = match place {
            LineKind::Text => Some(line::visible(text, &mut self.in_comment)),
            LineKind::Blank | LineKind::Code | LineKind::Quote => None,
        };
        if let Some(seen) = &seen {
            self.hear_giving_up(&seen.text, text);
            // A line of the prompt is not the agent's word.
            if !self.echo.has_line(text) {
                self.summary.hear(&seen.text);
            }
        }
        let Some(promise) = self.promise.clone() else { return };
        let wanted = promise.text.as_str();
        if promise.mode == MatchMode::Substring {
            return;
        }
        let Some(seen) = seen else {
            let miss = if place == LineKind::Quote { NearMiss::InQuote } else { NearMiss::InCode };
            self.open_tag.clear();
            if text.contains(&promise.tag()) && !self.echo.has_line(text) {
                self.note(self.lines, LineMeaning::Nearly(miss));
            }
            return;
        };
        self.last.counts = !seen.text.trim().is_empty();
        if let Some(miss) = seen.hidden.filter(|_| !self.echo.has_line(text)) {
            self.note(self.lines, LineMeaning::Nearly(miss));
        }
        self.says(&seen.text, text, wanted);
    }

    /// A line of the prompt is not the agent's word.
    fn hear_giving_up(&mut self, seen: &str, text: &str) {
        if self.may_give_up && self.gave_up.is_none() && !self.echo.has_line(text) {
            // Inline code decides nothing, but may be a part of the reason.
            self.gave_up = given_up(seen).map(|reason| given_up(text).unwrap_or(reason));
        }
    }

    fn says(&mut self, seen: &str, text: &str, wanted: &str) {
        // A tag that an earlier line opened is read with this one, unless this one begins anew.
        let joined = !self.open_tag.is_empty() && !seen.contains(OPEN);
        let whole =
            if joined { Cow::Owned(format!("{} {seen}", self.open_tag)) } else { Cow::Borrowed(seen) };
        self.open_tag.clear();
        match line::read(&whole, wanted) {
            LineMeaning::Nothing => {}
            LineMeaning::Open if whole.len() <= LONGEST_TAG => {
                self.open_tag = whole.into_owned();
            }
            LineMeaning::Open => self.note(self.lines, LineMeaning::Nearly(NearMiss::Unclosed)),
            // A line of the prompt, with more on it than the promise, is not the agent's word.
            LineMeaning::PromiseAtEnd | LineMeaning::Nearly(_) if !joined && self.echo.has_line(text) => {}
            LineMeaning::PromiseAtEnd => {
                self.note(self.lines, LineMeaning::Nearly(NearMiss::InSentence));
                self.last.says = Some(LineMeaning::PromiseAtEnd);
            }
            said @ (LineMeaning::Promise | LineMeaning::Nearly(_)) => self.note(self.lines, said),
        }
    }

    /// Takes note of what a line said, for good only once it cannot be part of an echo any more.
    fn note(&mut self, line: u64, says: LineMeaning) {
        self.unsettled.push((line, says));
    }

    fn settle_before(&mut self, line: u64) {
        let settled = self.unsettled.iter().take_while(|(at, _)| *at < line).count();
        for (_, says) in self.unsettled.drain(..settled) {
            match says {
                LineMeaning::Promise => self.claimed = true,
                LineMeaning::Nearly(miss) => self.near_miss = Some(miss),
                LineMeaning::Nothing | LineMeaning::PromiseAtEnd | LineMeaning::Open => {}
            }
        }
    }

    /// In `substring` mode every part of a line counts. An overlong one is searched as it came, control characters and
    /// all, because it is never there as a whole.
    fn search(&mut self, line: &[u8]) {
        let Some(words) = self.wanted_anywhere() else { return };
        let text = String::from_utf8_lossy(line);
        let text = if line.len() > LONGEST_HELD { text } else { Cow::Owned(printable(&text).into_owned()) };
        if text.to_lowercase().contains(&words) && !self.echo.has_line(&text) {
            self.note(self.lines, LineMeaning::Promise);
        }
    }

    /// The same for the next part of a line that is too long to be held; `before` bytes of it have passed.
    fn search_overlong(&mut self, before: usize, part: &[u8]) {
        let Some(words) = self.wanted_anywhere() else { return };
        // The held bytes are the line's begin, or both its ends: only the end continues with this part.
        let seam = if before > LONGEST_HELD { self.held.len().saturating_sub(words.len()) } else { 0 };
        let text = [&self.held[seam..], part].concat();
        if String::from_utf8_lossy(&text).to_lowercase().contains(&words) {
            self.note(self.lines + 1, LineMeaning::Promise);
        }
    }

    fn wanted_anywhere(&self) -> Option<String> {
        let promise = self.promise.as_ref().filter(|promise| promise.mode == MatchMode::Substring)?;
        Some(promise.text.as_str().to_lowercase())
    }
}

impl LastLine {
    fn set(&mut self, number: u64, bytes: &[u8], counts: bool) {
        self.number = number;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.says = None;
        self.counts = counts;
    }
}

fn both_ends(line: &[u8]) -> Cow<'_, [u8]> {
    match line.len() {
        0..=16_384 => Cow::Borrowed(line),
        length => Cow::Owned([&line[..LINE_END], &line[length - LINE_END..]].concat()),
    }
}

/// Whether there may be a control character other than a line end or a tab: one of ASCII, or the first byte of one
/// above it. Eight bytes at a time: every byte of a long message passes through, and the published profile vectorises
/// no loop.
fn has_control(bytes: &[u8]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // The top bit of each byte below a space, and perhaps that of a space right above one.
    let below_space = |word: u64| word.wrapping_sub(each(b' ')) & !word & each(0x80);
    let is_control = |byte: &u8| *byte < b' ' && !matches!(*byte, b'\n' | b'\t');
    let (words, rest) = bytes.as_chunks::<8>();
    memchr2(0x7f, 0xc2, bytes).is_some()
        || words.iter().any(|word| below_space(u64::from_ne_bytes(*word)) != 0 && word.iter().any(is_control))
        || rest.iter().any(is_control)
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_character_is_found_wherever_it_stands() {
        let is_control = |byte: u8| matches!(byte, 0..=8 | 0x0b..=0x1f | 0x7f | 0xc2);
        for (byte, at) in (0..=u8::MAX).flat_map(|byte| (0..20).map(move |at| (byte, at))) {
            for around in [*b" ~\n\t \xff!z\xc3\xa4 \xe2\x80\xa2 ab\t\ncd", [b' '; 21]] {
                let mut text = around;
                text[at] = byte;
                assert_eq!(has_control(&text), is_control(byte), "{byte:#04x} at {at} of {around:?}");
            }
        }
        assert!(!has_control(b"") && has_control(b"\r"));
    }
}
