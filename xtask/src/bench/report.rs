//! Rows of figures, each with its goal and its verdict, and the table that shows them.

use super::measure::stats::{median, median_ratio, p10};

/// The verdict of a row on its goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// The goal is met, the aim beyond it is not.
    ShortOfAim,
    Missed,
    /// There is no goal; the figure is for the reader.
    Reported,
    /// Could not be measured here; why.
    Skipped(String),
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Missed }
    }

    pub(crate) fn spare(&mut self) {
        if matches!(self, Self::Pass | Self::ShortOfAim | Self::Missed) {
            *self = Self::Reported;
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Pass => "pass".into(),
            Self::ShortOfAim => "pass, short of the aim".into(),
            Self::Missed => "MISSED".into(),
            Self::Reported => "-".into(),
            Self::Skipped(why) => format!("skipped: {why}"),
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) subject: &'static str,
    pub(crate) what: String,
    pub(crate) goal: String,
    pub(crate) ours: String,
    /// The name of its floor, and the floor's figure.
    pub(crate) floor: String,
    pub(crate) ratio: String,
    pub(crate) verdict: Verdict,
    /// The load of the machine does not change the figure: a smoke run judges it too.
    pub(crate) is_steady: bool,
}

/// The unit of a figure, for showing it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Time,
    Memory,
    Bytes,
    Count,
}

impl Unit {
    /// The figure as one reads it.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Time if value.abs() >= 0.1 => format!("{:.0} ms", value * 1e3),
            Self::Time => format!("{:.2} ms", value * 1e3),
            Self::Memory => format!("{:.1} MiB", value / 1024.0),
            Self::Bytes => format!("{value:.0} B"),
            Self::Count if value.fract().abs() < 1e-9 => format!("{value:.0}"),
            Self::Count => format!("{value:.2}"),
        }
    }
}

impl Row {
    /// CPU time of both, round by round; the goal is at most so many times the floor's.
    pub(crate) fn cpu(
        subject: &'static str,
        what: &str,
        goal: Option<f64>,
        ours: &[f64],
        floor: (&str, &[f64]),
    ) -> Self {
        let ratio = median_ratio(ours, floor.1);
        Self::ratio(subject, format!("{what}: CPU"), goal, (median(ours), median(floor.1)), ratio, floor.0)
    }

    /// The same row with a second, stricter bound of the ratio that is hoped for but not asked.
    pub(crate) fn aiming_at(mut self, most: f64) -> Self {
        self.goal.push_str(&format!(", aim {most}"));
        if self.verdict == Verdict::Pass && self.ratio.parse().is_ok_and(|ratio: f64| ratio > most) {
            self.verdict = Verdict::ShortOfAim;
        }
        self
    }

    /// Wall time of both, round by round: for runs so long that disturbances are in all of them.
    pub(crate) fn time(
        subject: &'static str,
        what: &str,
        goal: Option<f64>,
        ours: &[f64],
        floor: (&str, &[f64]),
    ) -> Self {
        let figures = (median(ours), median(floor.1));
        let ratio = median_ratio(ours, floor.1);
        Self::ratio(subject, format!("{what}: time, median"), goal, figures, ratio, floor.0)
    }

    /// Wall time of both, compared at the tenth percentile.
    pub(crate) fn wall(
        subject: &'static str,
        what: &str,
        goal: Option<f64>,
        ours: &[f64],
        floor: (&str, &[f64]),
    ) -> Self {
        let figures = (p10(ours), p10(floor.1));
        Self::ratio(subject, format!("{what}: time, p10"), goal, figures, figures.0 / figures.1, floor.0)
    }

    fn ratio(
        subject: &'static str,
        what: String,
        goal: Option<f64>,
        figures: (f64, f64),
        ratio: f64,
        floor: &str,
    ) -> Self {
        Self {
            subject,
            what,
            goal: goal.map_or_else(|| "-".into(), |most| format!("<= {most} x {floor}")),
            ours: Unit::Time.show(figures.0),
            floor: format!("{floor} {}", Unit::Time.show(figures.1)),
            // Near one, a hundredth is much: goals there are a few of them.
            ratio: if (0.9..1.1).contains(&ratio) { format!("{ratio:.3}") } else { format!("{ratio:.2}") },
            verdict: goal.map_or(Verdict::Reported, |most| Verdict::of(ratio <= most)),
            is_steady: false,
        }
    }

    /// A figure with an upper bound of its own.
    pub(crate) fn limit(
        subject: &'static str,
        what: impl Into<String>,
        most: f64,
        ours: f64,
        unit: Unit,
    ) -> Self {
        Self {
            goal: format!("<= {}", unit.show(most)),
            verdict: Verdict::of(ours <= most),
            ..Self::reported(subject, what, ours, unit)
        }
    }

    /// A figure without a goal.
    pub(crate) fn reported(subject: &'static str, what: impl Into<String>, ours: f64, unit: Unit) -> Self {
        Self {
            subject,
            what: what.into(),
            goal: "-".into(),
            ours: unit.show(ours),
            floor: "-".into(),
            ratio: "-".into(),
            verdict: Verdict::Reported,
            is_steady: false,
        }
    }

    /// The same row for a figure that the load of the machine does not change.
    pub(crate) fn steady(mut self) -> Self {
        self.is_steady = true;
        self
    }

    /// The same row with the floor's figure beside it.
    pub(crate) fn beside(mut self, floor: &str, value: f64, unit: Unit) -> Self {
        self.floor = format!("{floor} {}", unit.show(value));
        self
    }

    /// A row without a figure, and why.
    pub(crate) fn skipped(subject: &'static str, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            ours: "-".into(),
            verdict: Verdict::Skipped(why.into()),
            ..Self::reported(subject, what, 0.0, Unit::Count)
        }
    }

    fn cells(&self) -> [&str; 5] {
        [&self.what, &self.goal, &self.ours, &self.floor, &self.ratio]
    }
}

const HEADINGS: [&str; 5] = ["what", "goal", "Refrain", "compared with", "ratio"];

/// The rows as plain aligned text, under their subjects.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; 5], verdict: &str| {
        let cells: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("  {}  {verdict}\n", cells.join("  "))
    };
    let mut text = String::new();
    let mut subject = "";
    for row in rows {
        if row.subject != subject {
            subject = row.subject;
            text.push_str(&format!("\n{subject}\n{}", line(HEADINGS, "verdict")));
        }
        text.push_str(&line(row.cells(), &row.verdict.text()));
    }
    text
}

/// The rows as Markdown, a table for each subject.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut subject = "";
    for row in rows {
        if row.subject != subject {
            subject = row.subject;
            text.push_str(&format!(
                "\n## {subject}\n\n| {} | verdict |\n|---|---|---|---|---|---|\n",
                HEADINGS.join(" | ")
            ));
        }
        text.push_str(&format!("| {} | {} |\n", row.cells().join(" | "), row.verdict.text()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_judged_by_its_goal() {
        let row = |goal| Row::cpu("s", "w", goal, &[0.003, 0.003], ("floor", &[0.001, 0.001]));
        assert_eq!(row(Some(3.5)).verdict, Verdict::Pass);
        assert_eq!(row(Some(2.5)).verdict, Verdict::Missed);
        assert_eq!(row(Some(5.0)).aiming_at(2.5).verdict, Verdict::ShortOfAim);
        assert_eq!(row(Some(5.0)).aiming_at(3.0).verdict, Verdict::Pass);
        assert_eq!(row(None).verdict, Verdict::Reported);
        assert_eq!(row(Some(2.5)).ratio, "3.00");
        assert_eq!(Row::wall("s", "w", None, &[0.371], ("bare run", &[0.36])).ratio, "1.031");
        assert_eq!(Row::limit("s", "w", 0.0, 1.0, Unit::Count).verdict, Verdict::Missed);
    }

    #[test]
    fn a_figure_that_is_not_a_number_misses_its_goal() {
        assert_eq!(Row::limit("s", "w", 1.0, f64::NAN, Unit::Time).verdict, Verdict::Missed);
    }
}
