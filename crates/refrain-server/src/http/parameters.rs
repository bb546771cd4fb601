//! Parses the parameters of a query and of a body.

use refrain_app::remote::parameters::{check, is};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Parses the parameters of a query string.
pub(super) fn of_query<T: DeserializeOwned + JsonSchema>(said: Vec<(String, String)>) -> Result<T, String> {
    let schema = schema_for!(T).to_value();
    let mut object = Map::new();
    for (name, text) in said {
        let property = &schema["properties"][&name];
        let value = match text.parse() {
            Ok(number) if is(property, "integer") || is(property, "number") => Value::Number(number),
            _ if is(property, "boolean") && text == "true" => Value::Bool(true),
            _ if is(property, "boolean") && text == "false" => Value::Bool(false),
            _ => Value::String(text),
        };
        if object.insert(name.clone(), value).is_some() {
            return Err(format!("{name}: it is said twice"));
        }
    }
    taken(object, &schema)
}

/// Parses a body: a JSON object, or nothing if no field is required.
pub(super) fn of_body<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, String> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let accepted = "accepted: a JSON object";
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => taken(object, &schema_for!(T).to_value()),
        Ok(_) => Err(format!("the body is no object: {accepted}")),
        Err(error) if error.is_eof() => Err(format!("the body ends in the middle: {accepted}")),
        Err(error) => Err(format!(
            "the body is no JSON from line {}, column {} on: {accepted}",
            error.line(),
            error.column()
        )),
    }
}

fn taken<T: DeserializeOwned>(object: Map<String, Value>, schema: &Value) -> Result<T, String> {
    check(&object, schema).map_err(|(name, why)| format!("{name}{why}"))?;
    // Remaining errors are about the syntax of a value: an id, a name.
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "they are only read")]
    struct SampleRequest {
        goal: String,
        from: Option<u64>,
        #[schemars(range(min = 1, max = 200))]
        most: Option<u32>,
        cost: Option<f64>,
        #[serde(default)]
        now: bool,
        #[serde(default)]
        gates: Vec<String>,
    }

    #[rstest]
    #[case("goal=x", "")]
    #[case("goal=7&from=0&most=200&cost=0.5&now=true", "")]
    #[case("from=7", "goal is missing; accepted: texts")]
    #[case("goal=x&from=-1", "from -1: accepted: whole numbers from 0 on")]
    #[case("goal=x&from=", "from : accepted: whole numbers from 0 on")]
    #[case("goal=x&most=201", "most 201: accepted: whole numbers from 1 to 200")]
    #[case("goal=x&most=2.5", "most 2.5: accepted: whole numbers from 1 to 200")]
    #[case("goal=x&cost=much", "cost much: accepted: numbers")]
    #[case("goal=x&now=yes", "now yes: accepted: true and false")]
    #[case("goal=x&goal=y", "goal: it is said twice")]
    #[case(
        "goal=x&colour=red",
        "colour: there is no such parameter; accepted: cost, from, gates, goal, most, now"
    )]
    fn a_query_is_taken_or_refused_by_name(#[case] query: &str, #[case] says: &str) {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let read =
            of_query::<SampleRequest>(pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect());
        assert_eq!(read.err().unwrap_or_default(), says);
    }

    #[rstest]
    #[case(r#"{"goal": "x", "from": null, "gates": ["true"]}"#, "")]
    #[case("", "goal is missing; accepted: texts")]
    #[case("[]", "the body is no object: accepted: a JSON object")]
    #[case(r#"{"goal": "#, "the body ends in the middle: accepted: a JSON object")]
    #[case("{'", "the body is no JSON from line 1, column 2 on: accepted: a JSON object")]
    #[case(r#"{"goal": 7}"#, "goal 7: accepted: texts")]
    #[case(r#"{"goal": null}"#, "goal null: accepted: texts")]
    #[case(r#"{"goal": "x", "most": 0}"#, "most 0: accepted: whole numbers from 1 to 200")]
    #[case(r#"{"goal": "x", "most": "20"}"#, "most 20: accepted: whole numbers from 1 to 200")]
    #[case(r#"{"goal": "x", "now": "true"}"#, "now true: accepted: true and false")]
    #[case(r#"{"goal": "x", "gates": [1]}"#, "gates [1]: accepted: lists of texts")]
    fn a_body_is_taken_or_refused_by_name(#[case] body: &str, #[case] says: &str) {
        assert_eq!(of_body::<SampleRequest>(body.as_bytes()).err().unwrap_or_default(), says);
    }
}
