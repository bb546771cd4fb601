//! A given report, compared with the one that the journal makes.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::object::{JournalMark, Report};
use crate::ids::LoopId;
use crate::view::StatusWord;

#[derive(Clone, Debug)]
pub struct ReportFile {
    pub id: LoopId,
    pub journal: JournalMark,
    /// Whether its loop had no runner then, and should have had one.
    pub is_crashed: bool,
    pub reported: String,
    whole: Value,
}

/// The fields of a report that are needed before it can be compared.
#[derive(Deserialize)]
struct Marks {
    schema: u32,
    id: LoopId,
    status: String,
    refrain: Reported,
    journal: JournalMark,
}

#[derive(Deserialize)]
struct Reported {
    reported: String,
}

impl ReportFile {
    /// Reads the output of `refrain report --json`.
    pub fn read(text: &str) -> Result<Self, String> {
        let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let marks = Marks::deserialize(&whole).map_err(|error| error.to_string())?;
        if marks.schema != super::SCHEMA {
            return Err(format!(
                "it has the shape {}, and this version knows {}",
                marks.schema,
                super::SCHEMA
            ));
        }
        Ok(Self {
            id: marks.id,
            journal: marks.journal,
            is_crashed: marks.status == StatusWord::Crashed.as_str(),
            reported: marks.refrain.reported,
            whole,
        })
    }

    /// Every place in which it differs from the report that was `made`: `proof.tree`, `proof.gates.0.log.end`. A key that
    /// only one of both has differs too. Of the `unknown` places nothing can be said now.
    /// Errors: If the one that was made is no JSON, which cannot be.
    pub fn differences(&self, made: &Report, unknown: &[String]) -> serde_json::Result<Differences> {
        // By way of its text: so amounts of money are read as those of the given one were.
        let made: Value = serde_json::from_str(&serde_json::to_string(made)?)?;
        let mut found = Differences::default();
        compare(
            "",
            Some(&self.whole),
            Some(&made),
            // Which keys the user trusts may have changed since.
            &|place| ["signed", "signature"].contains(&place) || unknown.iter().any(|it| it == place),
            &mut found,
        );
        Ok(found)
    }
}

/// The places in which two reports differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub certain: Vec<String>,
    /// One of both may be right: what the other was made from is not known any more, or was another set of keys.
    pub unknown: Vec<String>,
}

fn compare(
    place: &str,
    given: Option<&Value>,
    made: Option<&Value>,
    is_unknown: &dyn Fn(&str) -> bool,
    found: &mut Differences,
) {
    if given == made {
        return;
    }
    if is_unknown(place) {
        return found.unknown.push(place.to_owned());
    }
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match (given, made) {
        (Some(Value::Object(given)), Some(Value::Object(made))) => {
            let keys: BTreeSet<&String> = given.keys().chain(made.keys()).collect();
            for key in keys {
                compare(&below(key), given.get(key), made.get(key), is_unknown, found);
            }
        }
        (Some(Value::Array(given)), Some(Value::Array(made))) => {
            for place in 0..given.len().max(made.len()) {
                let key = below(&place.to_string());
                compare(&key, given.get(place), made.get(place), is_unknown, found);
            }
        }
        _ => found.certain.push(if place.is_empty() { "all of it".to_owned() } else { place.to_owned() }),
    }
}
