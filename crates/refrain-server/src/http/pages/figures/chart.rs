//! Charts as SVG, with an axis, and the value of each mark under the pointer. The SVG stretches with the page; its texts
//! are beside it.

use askama::Template;
use refrain_core::spec::Millis;
use refrain_core::text::grouped;

/// How many marks have a label each.
const MOST_LABELS: usize = 8;

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Money,
    Tokens,
    /// In milliseconds.
    Time,
    Count,
}

/// A value of a chart.
pub(crate) struct Point {
    /// On the axis below.
    pub(crate) label: String,
    /// None if it is unknown.
    pub(crate) value: Option<f64>,
    /// What else the pointer shows.
    pub(crate) note: String,
    /// Of its colour.
    pub(crate) class: &'static str,
}

#[derive(Template)]
#[template(path = "chart.html")]
pub(crate) struct Chart {
    title: &'static str,
    /// All of it in a sentence.
    says: String,
    /// Of the axis, from above.
    ticks: [String; 3],
    marks: Vec<Mark>,
    /// A path through all values; empty for columns.
    line: String,
    /// How far below the top the limit is, and its name.
    cap: Option<(String, String)>,
    labels: Vec<String>,
}

/// A column, or a point of a line, in hundredths of the chart.
struct Mark {
    x: String,
    width: String,
    /// Where the pointer is for it.
    from: String,
    band: String,
    /// None if the value is unknown.
    top: Option<(String, String)>,
    class: &'static str,
    says: String,
}

impl Chart {
    /// A column for each value; none if no value is known.
    pub(crate) fn columns(title: &'static str, unit: Unit, says: String, points: &[Point]) -> Option<Self> {
        let most = points.iter().filter_map(|point| point.value).reduce(f64::max)?;
        let scale = Scale::of(unit, most);
        let marks = marks(points, &scale);
        Some(Self {
            title,
            says,
            ticks: scale.ticks(),
            marks,
            line: String::new(),
            cap: None,
            labels: labels(points),
        })
    }

    /// A line through values that only grow, with the limit if it is near; none if no value is known.
    pub(crate) fn line(title: &'static str, unit: Unit, points: &[Point], cap: Option<f64>) -> Option<Self> {
        let most = points.iter().filter_map(|point| point.value).reduce(f64::max)?;
        let near = cap.filter(|cap| *cap <= most * 5.0);
        let scale = Scale::of(unit, near.map_or(most, |cap| cap.max(most)));
        let mut line = String::new();
        for (at, value) in points.iter().enumerate().filter_map(|(at, point)| Some((at, point.value?))) {
            let x = (number(at) + 0.5) * 100.0 / number(points.len());
            line.push_str(&format!(
                "{}{x:.2} {:.2}",
                if line.is_empty() { "M" } else { "L" },
                scale.top(value)
            ));
        }
        let says = match cap {
            Some(cap) => format!("{} of at most {}", unit.say(most), unit.say(cap)),
            None => unit.say(most),
        };
        Some(Self {
            title,
            says,
            ticks: scale.ticks(),
            marks: marks(points, &scale),
            line,
            cap: near.map(|cap| (format!("{:.2}", scale.top(cap)), format!("at most {}", unit.say(cap)))),
            labels: labels(points),
        })
    }

    /// The same with marks that are iterations.
    pub(crate) fn by_iteration(mut self) -> Self {
        self.marks.iter_mut().for_each(|mark| mark.says.insert_str(0, "Iteration "));
        self
    }
}

fn marks(points: &[Point], scale: &Scale) -> Vec<Mark> {
    let band = 100.0 / number(points.len());
    let width = (band * 0.72).min(6.0);
    let mark = |(at, point): (usize, &Point)| {
        let from = number(at) * band;
        let value = point.value.map_or_else(|| "unknown".to_owned(), |value| scale.unit.say(value));
        let note = if point.note.is_empty() { String::new() } else { format!(" ({})", point.note) };
        // Nothing is shown if it is a result.
        let least = if point.class.is_empty() { 100.0 } else { 98.5 };
        let top = point.value.map(|value| scale.top(value).min(least));
        Mark {
            x: format!("{:.2}", from + (band - width) / 2.0),
            width: format!("{width:.2}"),
            from: format!("{from:.2}"),
            band: format!("{band:.2}"),
            top: top.map(|top| (format!("{top:.2}"), format!("{:.2}", 100.0 - top))),
            class: point.class,
            says: format!("{}: {value}{note}", point.label),
        }
    };
    points.iter().enumerate().map(mark).collect()
}

/// All of few labels, else the first, the middle and the last one.
fn labels(points: &[Point]) -> Vec<String> {
    let label = |at: usize| points.get(at).map(|point| point.label.clone());
    match points.len() {
        count if count <= MOST_LABELS => (0..count).filter_map(label).collect(),
        count => [0, count / 2, count - 1].into_iter().filter_map(label).collect(),
    }
}

/// The axis: from nothing to a round number.
struct Scale {
    unit: Unit,
    most: f64,
}

impl Scale {
    fn of(unit: Unit, most: f64) -> Self {
        let step = match unit {
            Unit::Time if most > 7_200_000.0 => 3_600_000.0,
            Unit::Time if most > 120_000.0 => 60_000.0,
            Unit::Time if most > 2_000.0 => 1_000.0,
            Unit::Time => 100.0,
            Unit::Money | Unit::Tokens | Unit::Count => 1.0,
        };
        let least = if unit == Unit::Money { 0.01 } else { 2.0 };
        Self { unit, most: round(most.max(0.0) / step, least) * step }
    }

    /// How far a value is below the top, in hundredths.
    fn top(&self, value: f64) -> f64 {
        (100.0 - value * 100.0 / self.most).clamp(0.0, 100.0)
    }

    fn ticks(&self) -> [String; 3] {
        [self.most, self.most / 2.0, 0.0].map(|value| self.unit.say(value))
    }
}

/// A round number that is at least this one.
fn round(value: f64, least: f64) -> f64 {
    let value = value.max(least);
    let tens = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0];
    steps.into_iter().map(|step| step * tens).find(|round| *round >= value * 0.999).unwrap_or(tens * 10.0)
}

#[expect(clippy::cast_precision_loss, reason = "no chart has so many values")]
fn number(count: usize) -> f64 {
    count as f64
}

impl Unit {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no value is negative, or so large"
    )]
    pub(crate) fn say(self, value: f64) -> String {
        match self {
            Self::Money if value > 0.0 && value < 0.1 => format!("${value:.3}"),
            Self::Money if value >= 1_000.0 => format!("${}", grouped(value.round() as u64)),
            Self::Money => format!("${value:.2}"),
            Self::Tokens if value >= 1_000_000.0 => format!("{:.1}M", value / 1_000_000.0),
            Self::Tokens if value >= 1_000.0 => format!("{:.0}k", value / 1_000.0),
            Self::Time => Millis(value as u64).to_string(),
            Self::Tokens | Self::Count => grouped(value.round() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[Option<f64>]) -> Vec<Point> {
        let point = |(at, value): (usize, &Option<f64>)| Point {
            label: (at + 1).to_string(),
            value: *value,
            note: String::new(),
            class: "",
        };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn an_axis_ends_with_a_round_number() {
        for (unit, most, ticks) in [
            (Unit::Money, 3.2, ["$4.00", "$2.00", "$0.00"]),
            (Unit::Money, 0.0, ["$0.010", "$0.005", "$0.00"]),
            (Unit::Count, 1.0, ["2", "1", "0"]),
            (Unit::Count, 43.0, ["60", "30", "0"]),
            (Unit::Count, 9_000.0, ["10,000", "5,000", "0"]),
            (Unit::Money, 3_200.0, ["$4,000", "$2,000", "$0.00"]),
            (Unit::Tokens, 1_900_000.0, ["2.0M", "1.0M", "0"]),
            (Unit::Time, 65_000.0, ["1m 20s", "40s", "0.0s"]),
            (Unit::Time, 300_000.0, ["6m 0s", "3m 0s", "0.0s"]),
        ] {
            assert_eq!(Scale::of(unit, most).ticks(), ticks, "{unit:?} {most}");
        }
    }

    #[test]
    fn an_unknown_value_is_no_column_and_a_limit_is_a_line() {
        let chart = Chart::columns("Time", Unit::Count, String::new(), &points(&[Some(1.0), None])).unwrap();
        let marks: Vec<_> = chart.marks.iter().map(|it| (it.says.as_str(), it.top.is_some())).collect();
        assert_eq!(marks, [("1: 1", true), ("2: unknown", false)]);
        let chart =
            Chart::line("Cost", Unit::Money, &points(&[Some(1.0), None, Some(2.0)]), Some(4.0)).unwrap();
        assert_eq!(
            (chart.line.as_str(), chart.says.as_str()),
            ("M16.67 75.00L83.33 50.00", "$2.00 of at most $4.00")
        );
        assert_eq!(chart.cap, Some(("0.00".into(), "at most $4.00".into())));
        assert!(Chart::columns("Cost", Unit::Money, String::new(), &points(&[None])).is_none());
    }
}
