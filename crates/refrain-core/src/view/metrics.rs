//! What loops used, for machines that draw curves: the text format of Prometheus; and as a picture.

use std::fmt::Write;

use super::StatusWord;
use crate::agent::Usd;
use crate::text::{clip, printable};
use crate::usage::{By, Group, Report, Sum};

/// A label of a metric: its name, and its value.
type Label<'a> = (&'static str, &'a str);

/// The report, and how many of the listed loops stand how, in the text format of Prometheus (version 0.0.4). What nobody told
/// has no sample, as it is not 0.
#[must_use]
pub fn prometheus(report: &Report, listed: impl Iterator<Item = StatusWord>) -> String {
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
    let key = match report.by {
        By::Day => "day",
        By::Project => "project",
        By::Agent => "agent",
        By::Model => "model",
    };
    let groups: Vec<(Label<'_>, &Sum)> = report
        .groups
        .iter()
        .map(|group| ((key, group.key.as_deref().unwrap_or("unknown")), &group.used))
        .collect();
    type Count = fn(&Sum) -> Option<u64>;
    let counts: [(&str, &str, &[Label<'_>], Count); 4] = [
        ("refrain_attempts", "Attempts that ended.", &[], |sum| Some(sum.attempts)),
        ("refrain_tokens", "Tokens used.", &[("direction", "input")], |sum| sum.usage.input_tokens),
        ("refrain_tokens", "", &[("direction", "output")], |sum| sum.usage.output_tokens),
        ("refrain_attempts_without_cost", "Attempts whose cost nobody told.", &[], |sum| {
            Some(sum.without_cost)
        }),
    ];
    for (name, help, labels, count) in counts {
        if !help.is_empty() {
            text.head(name, "gauge", help);
        }
        for (group, sum) in &groups {
            if let Some(count) = count(sum) {
                text.sample(name, &[&[*group], labels].concat(), count);
            }
        }
    }
    text.head("refrain_cost_usd", "gauge", "Money spent, in US dollars.");
    for (group, sum) in &groups {
        sum.usage.cost_usd.iter().for_each(|cost| text.sample("refrain_cost_usd", &[*group], cost));
    }
    text.head("refrain_loops_stopped", "gauge", "Loops that stopped, by how.");
    for stop in &report.stops {
        let why = stop.why.and_then(|why| serde_json::to_value(why).ok());
        let why = why.as_ref().and_then(|why| why.as_str()).unwrap_or_default();
        let labels = [("status", stop.status.as_str()), ("why", why)];
        text.sample("refrain_loops_stopped", &labels, stop.loops);
    }
    if let Some(spread) = &report.iterations_to_done {
        text.head("refrain_iterations_to_done", "gauge", "Iterations that completed loops took.");
        for (quantile, count) in [("0.25", spread.p25), ("0.5", spread.median), ("0.75", spread.p75)] {
            text.sample("refrain_iterations_to_done", &[("quantile", quantile)], count);
        }
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
        let help = "Money spent in all for each of those, in US dollars.";
        text.head("refrain_cost_per_verified_loop_usd", "gauge", help);
        text.sample("refrain_cost_per_verified_loop_usd", &[], cost);
    }
    text.0
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

/// How large the picture is, and its parts.
const WIDTH: u32 = 720;
const ROW: u32 = 26;
const NAMES: u32 = 200;
const SUMS: u32 = 110;
/// So many groups are drawn: of days the last, of all else the dearest.
const DRAWN: usize = 40;

/// What each group cost, as bars: a picture in SVG that shows itself in light and dark. Where nobody told any cost, bars are
/// of attempts.
#[must_use]
pub fn picture(report: &Report) -> String {
    let has_cost = report.groups.iter().any(|group| group.used.usage.cost_usd.is_some());
    #[expect(clippy::cast_precision_loss, reason = "a bar is not that exact")]
    let length = |group: &Group| match has_cost {
        true => group.used.usage.cost_usd.unwrap_or_default(),
        false => group.used.attempts as f64,
    };
    let left_out = match report.by {
        By::Day => report.groups.len().saturating_sub(DRAWN),
        By::Project | By::Agent | By::Model => 0,
    };
    let groups: Vec<&Group> = report.groups.iter().skip(left_out).take(DRAWN).collect();
    let longest = groups.iter().map(|group| length(group)).fold(f64::MIN_POSITIVE, f64::max);
    let rows = u32::try_from(groups.len()).unwrap_or_default().max(1);
    let height = 60 + rows * ROW;
    let what = if has_cost { "Cost" } else { "Attempts" };
    let by = match report.by {
        By::Day => "day",
        By::Project => "project",
        By::Agent => "agent",
        By::Model => "model",
    };
    let whose = report.project.as_deref().unwrap_or("all projects");
    let title = escape(&format!("{what} by {by}: {whose}"));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<style>text{{font:13px sans-serif;fill:#222}}\
         rect{{fill:#2f6f9f}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}rect{{fill:#6fb1e0}}}}</style>\n\
         <text x=\"8\" y=\"24\" font-weight=\"bold\">{title}</text>\n"
    );
    for (row, group) in (0..).zip(&groups) {
        let y = 44 + row * ROW;
        let name = escape(&clip(group.key.as_deref().unwrap_or("unknown"), 30));
        let wide = length(group) / longest * f64::from(WIDTH - NAMES - SUMS);
        let sum = match (has_cost, group.used.usage.cost_usd) {
            (true, Some(cost)) => Usd::from(cost).to_string(),
            (true, None) => "unknown".to_owned(),
            (false, _) => group.used.attempts.to_string(),
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

fn escape(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::agent::{Tokens, Usage};
    use crate::event::{Blocked, ClaimSource, End};
    use crate::spec::AgentKind;
    use crate::usage::{Spent, Tally};

    fn report(by: By, model: &str) -> Report {
        let mut tally = Tally::new(by, TimeZone::UTC);
        let tokens = Tokens { input: Some(900), cached_input: None, output: Some(50) };
        for (of, cost, model) in [(1, Some(Usd(1_500_000_000)), Some(model.to_owned())), (2, None, None)] {
            let at = "2026-11-20T23:30:00Z".parse().unwrap();
            let usage = Usage { tokens, cost, at_least: false };
            let (project, agent) = ("/p".to_owned(), AgentKind::Claude);
            tally.spend(&Spent { of, project, agent, model, at, usage });
        }
        tally.stop(End::Completed { claim: ClaimSource::Promise }, 1, true);
        tally.stop(End::Blocked { why: Blocked::Login }, 2, false);
        tally.report(None, "UTC".into(), None)
    }

    #[test]
    fn a_scraper_finds_every_number_and_none_that_nobody_told() {
        let text =
            prometheus(&report(By::Model, "opus"), [StatusWord::Running, StatusWord::Running].into_iter());
        for line in [
            "# TYPE refrain_loops gauge",
            "refrain_loops{status=\"running\"} 2",
            "refrain_cost_usd{model=\"opus\"} 1.5",
            "refrain_tokens{model=\"unknown\",direction=\"input\"} 900",
            "refrain_attempts_without_cost{model=\"unknown\"} 1",
            "refrain_loops_stopped{status=\"blocked\",why=\"login\"} 1",
            "refrain_first_pass_ratio 1",
            "refrain_cost_per_verified_loop_usd 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing: {text}");
        }
        assert!(!text.contains("refrain_cost_usd{model=\"unknown\"}"), "{text}");
        let mut heads: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = heads.len();
        heads.dedup();
        assert_eq!(heads.len(), all, "a metric has one head: {text}");
    }

    #[test]
    fn what_others_named_stays_a_value() {
        let report = report(By::Model, "a\"} 9\nrefrain_x{b=\"<script>\u{1b}[2J\\");
        let text = prometheus(&report, std::iter::empty());
        assert!(text.contains("model=\"a\\\"} 9\\nrefrain_x{b=\\\"<script>\\\\\""), "{text}");
        let picture = picture(&report);
        assert!(!picture.contains("<script>") && picture.contains("&lt;script&gt;"), "{picture}");
        assert!(picture.starts_with("<svg ") && picture.contains("$1.50") && picture.contains("unknown"));
    }
}
