use owo_colors::OwoColorize;
use refrain_core::agent::Usd;
use refrain_core::budget::CapUsage;
use refrain_core::event::Asker;
use refrain_core::spec::Millis;
use refrain_core::text::{printable, thousands};
use refrain_core::view::{self, Charset, StatusWord, Tone, Usage, Verification};
use textwrap::core::display_width;

pub(crate) use refrain_core::view::progress;

use crate::values::charset;

/// How hard a task is; none if it is not rated.
pub(crate) fn complexity(rated: u32) -> Option<String> {
    (rated > 0).then(|| rated.to_string())
}

pub(crate) fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

pub(crate) fn iterations(count: u32) -> String {
    counted(count, "iteration", "iterations")
}

/// The known usage; empty if there is none.
pub(crate) fn used(usage: &Usage) -> String {
    let (mut parts, mut has_said) = (Vec::new(), false);
    let mut incomplete = |words: String, at_least: bool| {
        let words = view::sum(&words, at_least && !has_said);
        // Said once, it applies to all that follows.
        has_said |= at_least;
        words
    };
    if let Some(input) = usage.input_tokens.filter(|input| *input > 0) {
        let cached = usage.cached_input_tokens.filter(|cached| *cached > 0);
        let cached = cached.map(|cached| format!(" ({} cached)", thousands(cached))).unwrap_or_default();
        parts.push(incomplete(format!("{}{cached} tokens in", thousands(input)), usage.tokens_at_least));
    }
    if let Some(output) = usage.output_tokens.filter(|output| *output > 0) {
        parts.push(incomplete(format!("{} out", thousands(output)), usage.tokens_at_least));
    }
    if let Some(cost) = usage.cost_usd.filter(|cost| *cost > 0.0) {
        parts.push(incomplete(Usd::from(cost).to_string(), usage.cost_at_least));
    }
    parts.join(", ")
}

/// The status of limits that loops share; empty if there are none.
pub(crate) fn caps(caps: &[CapUsage]) -> String {
    let one =
        |it: &CapUsage| format!("{} of {it} spent, {} reserved, {} left", it.spent, it.reserved, it.left());
    caps.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The words after a comma, if there are any.
pub(crate) fn after(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(", {words}") }
}

pub(crate) struct Row {
    name: &'static str,
    value: String,
    /// Whether it may be wrapped. Text to type or copy may not: a command, a path.
    may_break: bool,
    tone: Option<Tone>,
}

impl Row {
    pub(crate) fn prose(name: &'static str, value: String) -> Self {
        Self { name, value, may_break: true, tone: None }
    }

    pub(crate) fn exact(name: &'static str, value: String) -> Self {
        Self { name, value, may_break: false, tone: None }
    }

    /// The same, its value in the colour of `tone`.
    pub(crate) fn with_tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

/// The facts, one a line after `margin`, their names `column` wide; wrapped if that fits better into `width`.
pub(crate) fn rows(rows: &[Row], margin: &str, column: usize, width: Option<usize>) -> String {
    let mut text = String::new();
    for Row { name, value, may_break, tone } in rows.iter().filter(|row| !row.value.is_empty()) {
        let begin = format!("{margin}{:<column$} ", name.dimmed());
        let value = printable(value).replace('\n', " ");
        let indent = margin.len() + column + 1;
        let lines = broken(&begin, indent, &value, width.filter(|_| *may_break));
        // Each line by itself: a terminal ends a colour at the end of its line.
        let line = |line: &str| match (tone, line.strip_prefix(&begin)) {
            (None, _) => line.to_owned(),
            (Some(tone), Some(rest)) => format!("{begin}{}", coloured(*tone, rest)),
            (Some(tone), None) => {
                let rest = line.trim_start();
                format!("{}{}", &line[..line.len() - rest.len()], coloured(*tone, rest))
            }
        };
        text.push_str(&lines.split('\n').map(line).collect::<Vec<_>>().join("\n"));
        text.push('\n');
    }
    text
}

/// The text after `begin`, in lines of at most `width` that are aligned below its first character; at the left edge of
/// a terminal too narrow for that. One line without a terminal.
pub(crate) fn broken(begin: &str, column: usize, text: &str, width: Option<usize>) -> String {
    let Some(columns) = width else { return format!("{begin}{text}") };
    let indent = indent(column, width);
    let options = textwrap::Options::new(columns)
        .initial_indent(begin)
        .subsequent_indent(&indent)
        // An option broken after its hyphen, or a broken path, cannot be copied.
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(text, options)
}

/// The indentation to a column; small on a terminal too narrow for it.
pub(crate) fn indent(column: usize, width: Option<usize>) -> String {
    const NARROWEST: usize = 24;
    " ".repeat(if width.is_some_and(|width| width < column + NARROWEST) { 2 } else { column })
}

/// The begin of a line, as much of it as fits into so many columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if display_width(line) <= columns {
        return line.to_owned();
    }
    let (dots, mut begin) = (in_charset("…"), line.to_owned());
    while display_width(&begin) + display_width(dots) > columns && begin.pop().is_some() {}
    format!("{begin}{dots}")
}

/// So many seconds, whole ones.
pub(crate) fn seconds(count: i64) -> String {
    match u64::try_from(count).unwrap_or_default() {
        count @ 0..60 => format!("{count}s"),
        count => Millis(count.saturating_mul(1000)).to_string(),
    }
}

pub(crate) fn coloured(tone: Tone, text: &str) -> String {
    match tone {
        Tone::Good => text.green().bold().to_string(),
        Tone::Active => text.cyan().to_string(),
        Tone::Bad => text.red().bold().to_string(),
        Tone::Attention => text.yellow().bold().to_string(),
    }
}

/// A mark, in the characters that the surroundings can show.
pub(crate) fn in_charset(mark: &'static str) -> &'static str {
    match (mark, charset()) {
        ("✔", Charset::Ascii) => "[v]",
        ("…", Charset::Ascii) => "...",
        ("·", Charset::Ascii) => "-",
        ("→", Charset::Ascii) => ">",
        ("¦", Charset::Ascii) => "|",
        _ => mark,
    }
}

/// The label of a result, in the characters that the surroundings can show.
pub(crate) fn label(verification: Verification) -> &'static str {
    verification.label(charset())
}

/// The label of a result, else the status: `✔ verified`, `stuck`.
pub(crate) fn outcome(verification: Verification, status: StatusWord) -> &'static str {
    verification.label_or(status, charset())
}

/// What was asked of a loop or a plan, with who asked where that is no person.
pub(crate) fn asked_by(by: Asker, text: &str) -> String {
    match by {
        Asker::Agent => format!("an agent asked, no person: {text}"),
        Asker::Unknown => format!("an unknown sender asked: {text}"),
        Asker::Person => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_usage_is_shown_as_at_least() {
        let usage = |tokens_at_least, cost_at_least, cost_usd| Usage {
            input_tokens: Some(3_430),
            output_tokens: Some(110),
            cost_usd,
            tokens_at_least,
            cost_at_least,
            ..Usage::default()
        };
        for (usage, words) in [
            (usage(false, false, Some(0.5)), "3.4k tokens in, 110 out, $0.50"),
            (usage(true, true, Some(0.5)), "at least 3.4k tokens in, 110 out, $0.50"),
            (usage(false, true, Some(0.5)), "3.4k tokens in, 110 out, at least $0.50"),
            (usage(false, true, None), "3.4k tokens in, 110 out"),
            (Usage { tokens_at_least: true, cost_at_least: true, ..Usage::default() }, ""),
        ] {
            assert_eq!(used(&usage), words);
        }
    }

    #[test]
    fn counts_are_singular_or_plural_as_needed() {
        assert_eq!([0, 1, 2].map(iterations), ["0 iterations", "1 iteration", "2 iterations"]);
        assert_eq!(counted(3, "process", "processes"), "3 processes");
    }
}
