use crate::UNITS;

/// A span of so many seconds, in as few parts as it takes: `5400` is `1h30m`.
pub fn human(seconds: u64) -> String {
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
