use std::fmt;

use crate::UNITS;

#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// A unit without a number before it, or a number without a unit behind it.
    Incomplete,
    /// A letter that is no unit.
    Unit(char),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Incomplete => write!(f, "a number and a unit are needed"),
            Error::Unit(letter) => write!(f, "no such unit: {letter}"),
        }
    }
}

impl std::error::Error for Error {}

/// The seconds of a span: `1h30m` has 5,400.
pub fn parse(text: &str) -> Result<u64, Error> {
    let mut total = None;
    let mut number = None;
    for letter in text.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0) * 10 + u64::from(digit));
            continue;
        }
        let unit = UNITS.iter().find(|unit| unit.0 == letter).ok_or(Error::Unit(letter))?;
        total = Some(number.take().ok_or(Error::Incomplete)? * unit.1);
    }
    match (total, number) {
        (Some(total), None) => Ok(total),
        _ => Err(Error::Incomplete),
    }
}
