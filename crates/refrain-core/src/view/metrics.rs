//! The usage of loops for monitoring: the text format of Prometheus; and as a picture.

use std::fmt::Write;

use super::StatusWord;
use crate::text::printable;
use crate::view::usage::{Group, GroupBy, Report, Series, Sum};

/// A label of a metric: its name, and its value.
type Label<'a> = (&'static str, &'a str);

/// The report, each part's usage, and the number of listed loops by status, in the text format of Prometheus (version
/// 0.0.4). An unknown value has no sample, as it is not 0.
pub fn prometheus(
    report: &Report,
    series: &[(Series, Sum)],
    listed: impl Iterator<Item = StatusWord>,
) -> String {
    let mut text = Text::default();
    let mut standing: Vec<(StatusWord, u64)> = Vec::new();
    for word in listed {
        match standing.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => standing.push((word, 1)),
        }
    }
    text.head("refrain_loops", "gauge", "Loops and plans that are listed, by how they stand.");
    for (word, count) in &standing {
        text.sample("refrain_loops", &[("status", word.as_str())], *count);
    }
    used(&mut text, series);
    text.head("refrain_loops_stopped", "gauge", "Loops that stopped, by how.");
    for stop in &report.stops {
        let why = stop.why.and_then(|why| serde_json::to_value(why).ok());
        let why = why.as_ref().and_then(|why| why.as_str()).unwrap_or_default();
        let labels = [("status", stop.status.as_str()), ("why", why)];
        text.sample("refrain_loops_stopped", &labels, stop.loops);
    }
    if let Some(spread) = &report.iterations_to_done {
        text.head("refrain_iterations_to_done", "summary", "Iterations that completed loops took.");
        for (quantile, count) in [("0.25", spread.p25), ("0.5", spread.median), ("0.75", spread.p75)] {
            text.sample("refrain_iterations_to_done", &[("quantile", quantile)], count);
        }
        text.sample("refrain_iterations_to_done_sum", &[], spread.sum);
        text.sample("refrain_iterations_to_done_count", &[], spread.loops);
    }
    if let Some(share) = report.first_pass {
        text.head(
            "refrain_first_pass_ratio",
            "gauge",
            "Completed loops that were done in their first iteration.",
        );
        text.sample("refrain_first_pass_ratio", &[], share.ratio());
    }
    text.head("refrain_loops_verified", "gauge", "Loops that stopped, proven by their gates.");
    text.sample("refrain_loops_verified", &[], report.verified_loops);
    if let Some(cost) = report.cost_per_verified_loop_usd {
        let help = match report.total.usage.cost_at_least {
            true => "Money spent in all for each of those, in US dollars, at least.",
            false => "Money spent in all for each of those, in US dollars.",
        };
        text.head("refrain_cost_per_verified_loop_usd", "gauge", help);
        text.sample("refrain_cost_per_verified_loop_usd", &[], cost);
    }
    text.0
}

const INCOMPLETE: &str = "1 if an agent was cut off, or did not report all: the true value is larger.";

/// Usage only grows, unless loops are deleted: a scraper takes that for a new start from 0.
fn used(text: &mut Text, series: &[(Series, Sum)]) {
    type Amount = fn(&Sum) -> Option<f64>;
    #[expect(clippy::cast_precision_loss, reason = "no usage is so large")]
    let amounts: [(&str, &str, &[Label<'_>], Amount); 8] = [
        ("refrain_attempts_total", "Attempts that ended.", &[], |sum| Some(sum.attempts as f64)),
        ("refrain_attempts_without_cost_total", "Attempts that did not report their cost.", &[], |sum| {
            Some(sum.without_cost as f64)
        }),
        ("refrain_attempts_without_tokens_total", "Attempts that did not report their tokens.", &[], |sum| {
            Some(sum.without_tokens as f64)
        }),
        ("refrain_tokens_total", "Tokens used.", &[("direction", "input")], |sum| {
            sum.usage.input_tokens.map(|count| count as f64)
        }),
        ("refrain_tokens_total", "", &[("direction", "output")], |sum| {
            sum.usage.output_tokens.map(|count| count as f64)
        }),
        ("refrain_cost_usd_total", "Money spent, in US dollars.", &[], |sum| sum.usage.cost_usd),
        ("refrain_usage_incomplete", INCOMPLETE, &[("of", "tokens")], |sum| {
            Some(f64::from(u8::from(sum.usage.tokens_at_least)))
        }),
        ("refrain_usage_incomplete", "", &[("of", "cost")], |sum| {
            Some(f64::from(u8::from(sum.usage.cost_at_least)))
        }),
    ];
    for (name, help, labels, amount) in amounts {
        if !help.is_empty() {
            text.head(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
        }
        for (Series { project, agent, model, pool }, sum) in series {
            let (model, pool) = (model.as_deref().unwrap_or("unknown"), pool.as_deref().unwrap_or("unknown"));
            let of = [("project", project.as_str()), ("agent", agent), ("model", model), ("pool", pool)];
            if let Some(amount) = amount(sum) {
                text.sample(name, &[&of, labels].concat(), amount);
            }
        }
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string does not fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl std::fmt::Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let label = |(name, value): &Label<'_>| format!("{name}=\"{}\"", escaped(&printable(value)));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// The size of the picture, and of its parts.
const WIDTH: u32 = 720;
const ROW: u32 = 26;
const NAMES: u32 = 250;
const SUMS: u32 = 110;
/// How many groups are drawn: the last days, or the most expensive of all else.
const DRAWN: usize = 40;
/// How long a name may be, and the title, in characters: the end of a longer one says more.
const NAME: usize = 30;
const TITLE: usize = 80;

/// Every picture has it: it is Refrain's.
const PICTURE: &str = "<!-- made by refrain usage -->";

/// Whether a text is a picture that [`picture`] made; those of earlier versions have no mark, but such a title.
#[must_use]
pub fn is_picture(text: &str) -> bool {
    let marks = [PICTURE, "aria-label=\"Cost by ", "aria-label=\"Attempts by "];
    text.starts_with("<svg ") && marks.iter().any(|mark| text.contains(mark))
}

/// What each group cost, as bars: a picture in SVG that shows itself in light and dark. If no cost is known, the bars
/// are of attempts.
pub fn picture(report: &Report) -> String {
    let has_cost = report.groups.iter().any(|group| group.used.usage.cost_usd.is_some());
    #[expect(clippy::cast_precision_loss, reason = "a bar is not that exact")]
    let length = |group: &Group| match has_cost {
        true => group.used.usage.cost_usd.unwrap_or_default(),
        false => group.used.attempts as f64,
    };
    let left_out = match report.by {
        GroupBy::Day => report.groups.len().saturating_sub(DRAWN),
        GroupBy::Project | GroupBy::Agent | GroupBy::Model | GroupBy::Pool => 0,
    };
    let groups: Vec<&Group> = report.groups.iter().skip(left_out).take(DRAWN).collect();
    let longest = groups.iter().map(|group| length(group)).fold(f64::MIN_POSITIVE, f64::max);
    let rows = u32::try_from(groups.len()).unwrap_or_default().max(1);
    let height = 60 + rows * ROW;
    let what = if has_cost { "Cost" } else { "Attempts" };
    let whose = report.project.as_deref().unwrap_or("all projects");
    let title = escape(&format!("{what} by {}: {}", report.by.as_str(), end_of(whose, TITLE)));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n{PICTURE}\n<title>{title}</title>\n<style>text{{font-family:sans-serif;font-size:13px;fill:#222}}\
         rect{{fill:#2f6f9f}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}rect{{fill:#6fb1e0}}}}</style>\n\
         <text x=\"8\" y=\"24\" font-weight=\"bold\">{title}</text>\n"
    );
    for (row, group) in (0..).zip(&groups) {
        let y = 44 + row * ROW;
        let name = escape(&end_of(group.key.as_deref().unwrap_or("unknown"), NAME));
        let wide = length(group) / longest * f64::from(WIDTH - NAMES - SUMS);
        let sum = match has_cost {
            true => group.used.usage.cost().unwrap_or_else(|| "unknown".to_owned()),
            false => group.used.attempts.to_string(),
        };
        let (text, end) = (y + 15, f64::from(NAMES) + wide + 6.0);
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{text}\">{name}</text><rect x=\"{NAMES}\" y=\"{y}\" width=\"{wide:.1}\" height=\"18\" rx=\"2\"/>\
             <text x=\"{end:.1}\" y=\"{text}\">{sum}</text>"
        );
    }
    if groups.is_empty() {
        svg.push_str("<text x=\"8\" y=\"59\">Nothing was used.</text>\n");
    }
    svg + "</svg>\n"
}

/// The end of a text that is too long, with a mark.
fn end_of(text: &str, most: usize) -> String {
    let cut = text.chars().count().saturating_sub(most);
    if cut == 0 { text.to_owned() } else { format!("…{}", text.chars().skip(cut + 1).collect::<String>()) }
}

fn escape(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use jiff::tz::TimeZone;

    use super::*;
    use crate::agent::{Tokens, Usage, Usd};
    use crate::event::{BlockReason, ClaimSource, End};
    use crate::spec::AgentKind;
    use crate::view::usage::{Tally, UsageRecord};

    fn tally(by: GroupBy, model: &str) -> Tally {
        let mut tally = Tally::new(by, TimeZone::UTC).in_series();
        let tokens = Tokens { input: Some(900), cached_input: None, output: Some(50) };
        for (of, cost, model) in [(1, Some(Usd(1_500_000_000)), Some(model.to_owned())), (2, None, None)] {
            let at = "2026-11-20T23:30:00Z".parse().unwrap();
            let usage = Usage::of_run(Some(tokens), cost, true);
            let (project, agent, pool) = ("/p".to_owned(), AgentKind::Claude, model.clone());
            tally.spend(&UsageRecord { of, project, agent, model, pool, at, usage });
        }
        tally.stop(End::Completed { claim: ClaimSource::Promise }, 1, true);
        tally.stop(End::Blocked { why: BlockReason::Login }, 2, false);
        tally
    }

    fn scraped(model: &str) -> String {
        let tally = tally(GroupBy::Model, model);
        let series = tally.series();
        let listed = [StatusWord::Running, StatusWord::Running].into_iter();
        prometheus(&tally.report(None, "UTC".into(), None), &series, listed)
    }

    #[test]
    fn metrics_contain_every_known_number_and_no_unknown_one() {
        let text = scraped("opus");
        let of = "project=\"/p\",agent=\"claude\"";
        for line in [
            "# TYPE refrain_loops gauge",
            "refrain_loops{status=\"running\"} 2",
            &format!("refrain_cost_usd_total{{{of},model=\"opus\",pool=\"opus\"}} 1.5"),
            &format!(
                "refrain_tokens_total{{{of},model=\"unknown\",pool=\"unknown\",direction=\"input\"}} 900"
            ),
            &format!("refrain_attempts_without_cost_total{{{of},model=\"unknown\",pool=\"unknown\"}} 1"),
            "refrain_loops_stopped{status=\"blocked\",why=\"login\"} 1",
            "refrain_iterations_to_done{quantile=\"0.5\"} 1",
            "refrain_iterations_to_done_count 1",
            "refrain_first_pass_ratio 1",
            "refrain_cost_per_verified_loop_usd 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing: {text}");
        }
        let unknown = text.lines().filter(|line| line.starts_with("refrain_cost_usd_total{")).count();
        assert_eq!(unknown, 1, "{text}");
    }

    /// The name of a sample, its labels, and its value: a reader of the text format that takes nothing else.
    fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let mut labels = Vec::new();
        let mut rest = rest;
        if let Some(mut inside) = rest.strip_prefix('{') {
            loop {
                let (label, value) = inside.split_once("=\"").unwrap();
                let (mut said, mut chars) = (String::new(), value.char_indices());
                let end = loop {
                    match chars.next().unwrap() {
                        (_, '\\') => said.push(match chars.next().unwrap().1 {
                            'n' => '\n',
                            escaped @ ('\\' | '"') => escaped,
                            other => panic!("\\{other} in {line}"),
                        }),
                        (at, '"') => break at + 1,
                        (_, c) => said.push(c),
                    }
                };
                labels.push((label.to_owned(), said));
                match value[end..].strip_prefix(',') {
                    Some(more) => inside = more,
                    None => {
                        rest = value[end..].strip_prefix('}').unwrap();
                        break;
                    }
                }
            }
        }
        (name.to_owned(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
    }

    /// Checks the rules of `promtool check metrics`.
    #[test]
    fn metrics_follow_the_prometheus_text_format() {
        let text = scraped("a\"} 9\nrefrain_x{b=\"\\");
        let (mut types, mut helped, mut seen) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut family = String::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# HELP ") {
                let (name, help) = head.split_once(' ').unwrap();
                assert!(help.ends_with('.') && helped.insert(name.to_owned()), "{line}");
                family = name.to_owned();
            } else if let Some(head) = line.strip_prefix("# TYPE ") {
                let (name, kind) = head.split_once(' ').unwrap();
                assert_eq!(name, family, "the type stands behind the help");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            } else {
                let (name, labels, value) = sample(line);
                let base = match types[&family].as_str() {
                    "summary" => name.trim_end_matches("_sum").trim_end_matches("_count"),
                    _ => &name,
                };
                assert_eq!(base, family, "samples stand together, behind their head");
                let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                assert!(is_word(&name) && labels.iter().all(|(label, _)| is_word(label)), "{line}");
                let has_quantile = labels.iter().any(|(label, _)| label == "quantile");
                assert!(!has_quantile || types[&family] == "summary", "{line}");
                assert!(value.is_finite() && value >= 0.0 && seen.insert((name, labels)), "{line}");
            }
        }
        assert!(seen.iter().any(|(_, labels)| labels.iter().any(|(_, it)| it == "a\"} 9\nrefrain_x{b=\"\\")));
    }

    #[test]
    fn a_name_that_is_too_long_for_the_picture_shows_its_end() {
        assert_eq!(
            (end_of("abc", 3), end_of("äbcd", 3), end_of("", 3)),
            ("abc".into(), "…cd".into(), "".into())
        );
    }

    #[test]
    fn foreign_names_stay_escaped_values() {
        let model = "a\"} 9\nrefrain_x{b=\"<script>\u{1b}[2J\\";
        let text = scraped(model);
        assert!(text.contains("model=\"a\\\"} 9\\nrefrain_x{b=\\\"<script>\\\\\""), "{text}");
        let picture = picture(&tally(GroupBy::Model, model).report(None, "UTC".into(), None));
        assert!(!picture.contains("<script>") && picture.contains("&lt;script&gt;"), "{picture}");
        assert!(picture.starts_with("<svg ") && picture.contains("$1.50") && picture.contains("unknown"));
    }
}
