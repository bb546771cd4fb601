//! What people type, turned into values, each refusal naming the value and what is accepted; and what the surroundings
//! say. Nothing past here reads the environment or sees a raw text.

use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo};
use refrain_core::agent::Usd;
use refrain_core::spec::{Limits, Millis};
use refrain_core::{LoopId, Spec};
use refrain_engine::{Host, Service};

use crate::cli::Context;
use crate::error::{CliError, Code};

/// No limit of a loop is longer: beyond it there is none.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// A duration: a bare number is seconds, else like `90s`, `5m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Millis, String> {
    let accepted = "accepted are seconds, or like 90s, 5m, 1h30m, up to 366d";
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
        return Err(format!("it is nothing; {accepted}"));
    }
    if parsed > LONGEST {
        return Err(format!("it is too long; {accepted}"));
    }
    Ok(parsed.into())
}

/// A duration that may be nothing.
pub(crate) fn pause(text: &str) -> Result<Option<Millis>, String> {
    if text.trim() == "0" { Ok(None) } else { duration(text).map(Some) }
}

/// The number of an iteration.
pub(crate) fn iteration(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("accepted are whole numbers in 1..={}", u32::MAX))
}

/// How many iterations one start may grant.
pub(crate) fn iterations(text: &str) -> Result<u32, String> {
    let accepted = 1..=Limits::MAX_GRANT;
    let number = text.parse().ok().filter(|number| accepted.contains(number));
    number.ok_or_else(|| format!("accepted are whole numbers in {}..={}", accepted.start(), accepted.end()))
}

/// `K=V`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let accepted = "accepted is NAME=VALUE, its name without white space";
    let (name, value) = text.split_once('=').ok_or(accepted)?;
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) || value.contains('\0')
    {
        return Err(accepted.to_owned());
    }
    if name.starts_with("REFRAIN_") {
        return Err("REFRAIN_ variables are refrain's own".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// More than anybody means to spend on a loop, in US dollars.
const MOST_MONEY: f64 = 1_000_000.0;

/// A folder. An empty path would be the folder that somebody is in already, which is hardly meant.
pub(crate) fn folder(text: &str) -> Result<Utf8PathBuf, String> {
    if text.is_empty() { Err("accepted is a folder that is there".to_owned()) } else { Ok(text.into()) }
}

/// An amount of money.
pub(crate) fn usd(text: &str) -> Result<Usd, String> {
    let amount = text.strip_prefix('$').unwrap_or(text).parse::<f64>().ok();
    match amount.filter(|amount| *amount > 0.0 && *amount <= MOST_MONEY).map(Usd::from) {
        Some(usd) if usd > Usd(0) => Ok(usd),
        _ => Err(format!("accepted is an amount of US dollars above 0, like 5 or 0.50, up to {MOST_MONEY}")),
    }
}

/// So many tokens: `500000`, `500k`, `2M`.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1_000),
        Some((end, 'm' | 'M')) => (&text[..end], 1_000_000),
        _ => (text, 1),
    };
    let count =
        digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).filter(|count| *count > 0);
    count.ok_or_else(|| {
        format!("accepted is a number of tokens above 0, like 500000, 500k or 2M, up to {}", u64::MAX)
    })
}

/// The surroundings: read here and nowhere else.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub(crate) fn read_environment(dir: Option<Utf8PathBuf>) -> Result<Context, CliError> {
    let failed = |what: &str, error: std::io::Error| CliError::new(Code::Failed, format!("{what}: {error}"));
    let here = std::env::current_dir().map_err(|error| failed("the current folder is gone", error))?;
    let here = Utf8PathBuf::from_path_buf(here)
        .map_err(|path| CliError::usage(format!("{}: only UTF-8 paths are accepted", path.display())))?;
    let dir = dir.map_or(here.clone(), |dir| here.join(dir));
    if !dir.is_dir() {
        return Err(CliError::usage(format!("-C {dir}: there is no such folder")));
    }
    let path = |name| std::env::var(name).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let data_home = path("XDG_DATA_HOME")
        .or_else(|| path("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_else(|| Utf8PathBuf::from("/var/tmp"));
    let state_home = path("XDG_STATE_HOME")
        .or_else(|| path("HOME").map(|home| home.join(".local/state")))
        .unwrap_or_else(|| Utf8PathBuf::from("/var/tmp"));
    Ok(Context {
        dir,
        host: Host {
            // Not its path: what lies there may be replaced while a loop runs, and runner and keeper are one binary.
            program: "/proc/self/exe".into(),
            env: std::env::vars_os().collect(),
            data_home: data_home.join("refrain"),
            state_home: state_home.join("refrain"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        depth: std::env::var("REFRAIN_DEPTH")
            .ok()
            .map_or(0, |depth| depth.parse().unwrap_or(Spec::MAX_DEPTH)),
        inside: std::env::var("REFRAIN_LOOP_ID").ok(),
    })
}

/// The zone that this machine is in. Looking it up by name reads the whole tree of zones, which takes longer than all else
/// that `status` does; the file that says it needs no name.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub(crate) fn time_zone() -> TimeZone {
    let local = || TimeZone::tzif("local", &std::fs::read("/etc/localtime").ok()?).ok();
    match std::env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => local().unwrap_or_else(TimeZone::system),
    }
}

/// How many loops a refusal names.
const SHOWN: usize = 5;

/// The loop that is meant where none is named: the only one that the verb could mean.
pub(crate) fn only_loop(
    service: &Service,
    id: Option<&LoopId>,
    verb: &str,
    could_be: impl Fn(&refrain_core::view::Status) -> bool,
) -> Result<LoopId, CliError> {
    if let Some(id) = id {
        return Ok(id.clone());
    }
    let loops = service.list()?;
    let candidates: Vec<_> = loops
        .iter()
        .filter_map(|row| match row {
            refrain_engine::Listed::Loop(status) => Some(status.as_ref()),
            refrain_engine::Listed::Damaged { .. } => None,
        })
        .filter(|status| could_be(status))
        .collect();
    match candidates.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(CliError::usage(format!("no loop of this project can be meant by {verb} without an ID"))
            .hint("refrain list shows what there is")),
        several => {
            let error = CliError::usage(format!("{verb} needs an ID: {} loops can be meant", several.len()));
            let error = if several.len() > SHOWN {
                error.hint("the last of them; refrain list shows all:")
            } else {
                error
            };
            Err(several.iter().take(SHOWN).fold(error, |error, status| {
                error.hint(format!(
                    "{verb} {}   {} at iteration {}",
                    status.id,
                    status.status.as_str(),
                    status.iteration
                ))
            }))
        }
    }
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
    #[case("", None)]
    fn a_bare_number_is_seconds(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(duration(text).ok(), ms.map(Millis));
    }
}
