use crate::UNITS;

/// A span of so many seconds, in as few parts as it takes: `5400` is `1h30m`, and none at all is `0s`.
pub fn human(seconds: u64) -> String {
    if seconds == 0 {
        return "0s".to_owned();
    }
    let mut left = seconds;
    let mut text = String::new();
    for (letter, size) in UNITS {
        let count = left / size;
        left %= size;
        if count > 0 {
            text.push_str(&format!("{count}{letter}"));
        }
    }
    text
}
