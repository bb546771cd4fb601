//! Checks parameters against the schema that describes them, so that an error names the parameter and what is accepted.

use refrain_core::text::clip;
use refrain_core::values::whole_numbers;
use serde_json::{Map, Value};

/// The longest value that an error quotes, in bytes.
const LONGEST_QUOTE: usize = 60;

/// Checks the fields of an object, and their values.
/// Errors: The name of the parameter, and what to say behind it.
pub fn check(object: &Map<String, Value>, schema: &Value) -> Result<(), (String, String)> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let is_closed = schema["additionalProperties"] == Value::Bool(false);
    for (name, value) in object {
        let why = match properties.get(name) {
            Some(property) => misfit(value, property),
            None if is_closed => {
                let mut known: Vec<_> = properties.keys().map(String::as_str).collect();
                known.sort_unstable();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Some(format!(": there is no such parameter; accepted: {known}"))
            }
            None => None,
        };
        why.map_or(Ok(()), |why| Err((name.clone(), why)))?;
    }
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.find(|name| !object.contains_key(*name)).map_or(Ok(()), |name| {
        Err((name.to_owned(), format!(" is missing; accepted: {}", accepted(&properties[name]))))
    })
}

/// Whether a property may be of this type.
pub fn is(property: &Value, kind: &str) -> bool {
    match &property["type"] {
        Value::Array(kinds) => kinds.iter().any(|known| known == kind),
        only => only == kind,
    }
}

fn misfit(value: &Value, property: &Value) -> Option<String> {
    if let (Value::Array(items), Some(most)) = (value, property["maxItems"].as_u64())
        && items.len() as u64 > most
    {
        return Some(format!(" of {}: accepted: at most {most}", items.len()));
    }
    let quoted = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    };
    let says = || format!(" {}: accepted: {}", clip(&quoted, LONGEST_QUOTE), accepted(property));
    (!fits(value, property)).then(says)
}

fn fits(value: &Value, property: &Value) -> bool {
    match value {
        Value::Null => is(property, "null"),
        Value::Bool(_) => is(property, "boolean"),
        Value::Number(number) if is(property, "integer") => {
            let (least, most) = bounds(property);
            number.as_u64().is_some_and(|number| (least..=most).contains(&number))
        }
        Value::Number(number) => {
            let (above, most) = amounts(property);
            let fits =
                |number| above.is_none_or(|above| number > above) && most.is_none_or(|most| number <= most);
            is(property, "number") && number.as_f64().is_some_and(fits)
        }
        Value::String(_) => is(property, "string"),
        Value::Array(items) => is(property, "array") && items.iter().all(|it| fits(it, &property["items"])),
        Value::Object(_) => is(property, "object"),
    }
}

/// Which whole numbers there may be: all are counts.
fn bounds(property: &Value) -> (u64, u64) {
    let most = match property["format"].as_str() {
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        Some(_) | None => u64::MAX,
    };
    (property["minimum"].as_u64().unwrap_or(0), property["maximum"].as_u64().unwrap_or(most))
}

/// What other numbers have to be more than, and the largest.
fn amounts(property: &Value) -> (Option<f64>, Option<f64>) {
    (property["exclusiveMinimum"].as_f64(), property["maximum"].as_f64())
}

fn accepted(property: &Value) -> String {
    if is(property, "integer") {
        let (least, most) = bounds(property);
        return whole_numbers(least, most);
    }
    if let (Some(above), most) = amounts(property) {
        let most = most.map(|most| format!(", and at most {most}")).unwrap_or_default();
        return format!("more than {above}{most}");
    }
    let words = [
        ("number", "numbers"),
        ("boolean", "true and false"),
        ("array", "lists of texts"),
        ("object", "objects"),
        ("string", "texts"),
    ];
    words
        .iter()
        .find(|(kind, _)| is(property, kind))
        .map_or("what its schema says", |(_, word)| word)
        .to_owned()
}
