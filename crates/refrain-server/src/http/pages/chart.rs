//! Bar charts over iterations.

pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) most: String,
    pub(super) width: usize,
    pub(super) bars: Vec<Bar>,
}

pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: String,
    pub(super) height: String,
    pub(super) says: String,
}

/// How high the highest is.
const HIGH: f64 = 60.0;

/// A chart of these values, labelled by iteration; none if no value is known.
pub(super) fn chart(
    title: &'static str,
    values: &[(String, Option<f64>)],
    say: impl Fn(f64) -> String,
) -> Option<Chart> {
    let most = values.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let bar = |(place, (name, value)): (usize, &(String, Option<f64>))| {
        let value = (*value)?;
        let height = (value / most * HIGH).max(1.0);
        let says = format!("{name}: {}", say(value));
        Some(Bar {
            x: place * 10 + 2,
            y: format!("{:.1}", 62.0 - height),
            height: format!("{height:.1}"),
            says,
        })
    };
    let bars = values.iter().enumerate().filter_map(bar).collect();
    Some(Chart { title, most: say(most), width: (values.len() * 10 + 4).max(104), bars })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_as_high_as_it_goes_and_the_unknown_is_none() {
        let values = [("1".to_owned(), Some(2.0)), ("2".to_owned(), None), ("3".to_owned(), Some(4.0))];
        let chart = chart("Cost", &values, |value| format!("${value}")).unwrap();
        let bars: Vec<_> =
            chart.bars.iter().map(|bar| (bar.x, bar.height.as_str(), bar.says.as_str())).collect();
        assert_eq!(bars, [(2, "30.0", "1: $2"), (22, "60.0", "3: $4")]);
        assert!(super::chart("Cost", &[("1".to_owned(), None)], |_| String::new()).is_none());
    }
}
