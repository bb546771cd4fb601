//! What people write, turned into values: the same on the command line, in variables and in configuration. A refusal
//! says what is accepted; the caller names the value and where it is.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use schemars::JsonSchema;
use serde_with::DeserializeFromStr;

use crate::agent::Usd;
use crate::promise::PromiseText;
use crate::spec::{Limits, Millis, Secret};

/// A limit that can be said not to be: `none` takes back what a lower layer of the configuration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit<T> {
    None,
    At(T),
}

impl<T> From<Limit<T>> for Option<T> {
    fn from(limit: Limit<T>) -> Self {
        match limit {
            Limit::None => None,
            Limit::At(value) => Some(value),
        }
    }
}

/// `none`, or what `read` takes.
pub fn limit<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Limit<T>, String> {
    if text.trim() == "none" {
        return Ok(Limit::None);
    }
    read(text).map(Limit::At).map_err(|accepted| format!("{accepted}, or none"))
}

/// What is done with a loop that is stuck, as people write it.
#[derive(Clone, Debug, PartialEq, Eq, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub enum OnStuck {
    /// `stop`.
    Stop,
    /// `ask`.
    Ask,
    /// `model=NAME`.
    Model(String),
    /// `agent=NAME`: an adapter, or an agent of the configuration.
    Agent(String),
}

impl FromStr for OnStuck {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.trim().split_once('=').filter(|(_, name)| !name.trim().is_empty());
        match (text.trim(), named) {
            ("stop", _) => Ok(Self::Stop),
            ("ask", _) => Ok(Self::Ask),
            (_, Some(("model", name))) => Ok(Self::Model(name.trim().to_owned())),
            (_, Some(("agent", name))) => Ok(Self::Agent(name.trim().to_owned())),
            (_, _) => Err("accepted: stop, ask, model=NAME and agent=NAME".to_owned()),
        }
    }
}

/// A variable of gates, as people write it: `NAME=VALUE`, or `NAME` for one that is passed on.
#[derive(Clone, Debug, PartialEq, Eq, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct GateVariable {
    /// Its name.
    pub name: String,
    /// Its value; none is the runner's own.
    pub value: Option<Secret>,
}

impl FromStr for GateVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        if !is_name || value.is_some_and(|value| value.contains('\0')) {
            return Err("accepted: NAME or NAME=VALUE, its name without white space".to_owned());
        }
        Ok(Self { name: name.to_owned(), value: value.map(|value| Secret::new(value.to_owned())) })
    }
}

/// No limit of a loop is longer: beyond it there is none.
const LONGEST: Duration = Duration::from_hours(366 * 24);
/// More than a user plans to spend on a loop, in US dollars.
const MOST_MONEY: f64 = 1_000_000.0;

/// A duration: a bare number is seconds, else like `90s`, `5m`, `1h 30m`.
pub fn duration(text: &str) -> Result<Millis, String> {
    let accepted = "accepted: seconds, or like 90s, 5m, 1h30m, up to 366d";
    let parsed = match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| accepted.to_owned())?,
        Err(_) => {
            let days = SpanRelativeTo::days_are_24_hours();
            let duration = text.parse::<Span>().and_then(|span| span.to_duration(days));
            let duration = duration.map_err(|_| accepted.to_owned())?;
            Duration::try_from(duration).map_err(|_| format!("it is negative; {accepted}"))?
        }
    };
    if parsed < Duration::from_millis(1) {
        return Err(format!("it is zero; {accepted}"));
    }
    if parsed > LONGEST {
        return Err(format!("it is too long; {accepted}"));
    }
    Ok(parsed.into())
}

/// A duration that may be nothing: `0` too.
pub fn pause(text: &str) -> Result<Limit<Millis>, String> {
    if text.trim() == "0" { Ok(Limit::None) } else { limit(text, duration) }
}

/// The whole numbers of a range, in words.
pub fn whole_numbers(least: u64, most: u64) -> String {
    match most < u64::from(u32::MAX) {
        true => format!("whole numbers from {least} to {most}"),
        false => format!("whole numbers from {least} on"),
    }
}

/// A whole number in a range.
pub fn whole_number<T>(text: &str, accepted: RangeInclusive<T>) -> Result<T, String>
where
    T: Copy + PartialOrd + FromStr + Into<u64>,
{
    let number = text.trim().parse().ok().filter(|number| accepted.contains(number));
    number.ok_or_else(|| {
        format!("accepted: {}", whole_numbers((*accepted.start()).into(), (*accepted.end()).into()))
    })
}

pub fn iteration(text: &str) -> Result<u32, String> {
    whole_number(text, 1..=u32::MAX)
}

/// How many iterations one start may grant.
pub fn iterations(text: &str) -> Result<u32, String> {
    whole_number(text, 1..=Limits::MAX_GRANT)
}

/// The most tasks that a plan works on at a time.
pub const MOST_JOBS: u32 = 64;

/// How many tasks a plan works on at a time.
pub fn jobs(text: &str) -> Result<u32, String> {
    whole_number(text, 1..=MOST_JOBS)
}

pub fn usd(text: &str) -> Result<Usd, String> {
    let accepted =
        || format!("accepted: an amount of US dollars above 0, like 5 or 0.50, up to {MOST_MONEY}");
    price(text).ok().filter(|usd| (Usd(1)..=Usd::from(MOST_MONEY)).contains(usd)).ok_or_else(accepted)
}

/// An amount of money that may be nothing.
pub fn price(text: &str) -> Result<Usd, String> {
    let amount = text.strip_prefix('$').unwrap_or(text).parse::<f64>().ok();
    let amount = amount.filter(|amount| amount.is_finite() && *amount >= 0.0);
    amount.map(Usd::from).ok_or_else(|| "accepted: an amount of US dollars, like 0.25".to_owned())
}

/// A number of tokens: `500000`, `500k`, `2M`.
pub fn tokens(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1_000),
        Some((end, 'm' | 'M')) => (&text[..end], 1_000_000),
        _ => (text, 1),
    };
    let count =
        digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).filter(|count| *count > 0);
    count.ok_or_else(|| {
        format!("accepted: a number of tokens above 0, like 500000, 500k or 2M, up to {}", u64::MAX)
    })
}

/// A number of bytes: `1048576`, `512KiB`, `10MiB`, `1GiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(name, shift)| Some((text.strip_suffix(name)?.trim_end(), *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let count = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
    let count = count.filter(|count| *count > 0);
    count.ok_or_else(|| "accepted: a number of bytes above 0, like 1048576, 512KiB or 10MiB".to_owned())
}

pub fn promise(text: &str) -> Result<PromiseText, String> {
    text.parse::<PromiseText>().map_err(|error| format!("{error}; accepted: words without < > and backticks"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("300", Some(300_000))]
    #[case("0.5", Some(500))]
    #[case("90s", Some(90_000))]
    #[case("1h 30m", Some(5_400_000))]
    #[case("1h30m", Some(5_400_000))]
    #[case("250ms", Some(250))]
    #[case("0", None)]
    #[case("-5", None)]
    #[case("-5s", None)]
    #[case("nan", None)]
    #[case("inf", None)]
    #[case("soon", None)]
    #[case("366d", Some(366 * 86_400_000))]
    #[case("1d 24h", Some(2 * 86_400_000))]
    #[case("367d", None)]
    #[case("99999999999999", None)]
    #[case("99999999999h", None)]
    #[case("none", None)]
    #[case("", None)]
    fn a_bare_number_is_seconds(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(duration(text).ok(), ms.map(Millis));
    }

    #[rstest]
    #[case("1", Some(1))]
    #[case("512KiB", Some(512 << 10))]
    #[case("10 MiB", Some(10 << 20))]
    #[case("1GiB", Some(1 << 30))]
    #[case("0", None)]
    #[case("-1", None)]
    #[case("10MB", None)]
    #[case("1.5MiB", None)]
    #[case("99999999999999999999", None)]
    #[case("99999999999GiB", None)]
    #[case("MiB", None)]
    fn bytes_have_binary_units(#[case] text: &str, #[case] count: Option<u64>) {
        assert_eq!(bytes(text).ok(), count);
    }

    #[test]
    fn a_limit_can_be_none() {
        assert_eq!(limit("none", usd), Ok(Limit::None));
        assert_eq!(limit("0.50", usd), Ok(Limit::At(Usd(500_000_000))));
        assert!(limit("nothing", usd).unwrap_err().ends_with("or none"));
        assert_eq!(
            (pause("0"), pause("none"), pause("1")),
            (Ok(Limit::None), Ok(Limit::None), Ok(Limit::At(Millis(1_000))))
        );
    }
}
