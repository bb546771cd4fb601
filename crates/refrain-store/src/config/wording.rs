use toml::Value;

/// The longest value that is shown whole, in bytes.
const SHOWN: usize = 60;

/// The value, as it could be written in a file. Tables are only named: one may hold an `env`.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        // As people write it: `toml` takes other quotes if there are quotes in it.
        Value::String(text) => format!("{text:?}"),
        Value::Table(_) => return kind(value).to_owned(),
        Value::Array(items) if items.iter().any(|item| item.is_table() || item.is_array()) => {
            return kind(value).to_owned();
        }
        other => other.to_string().replace('\n', " "),
    };
    if text.len() <= SHOWN { text } else { format!("a long {}", kind(value).trim_start_matches("a ")) }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "a switch",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}
