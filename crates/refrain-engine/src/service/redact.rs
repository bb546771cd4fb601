//! What must not leave with a report, or on a failure branch: values of variables that were set for the agent, and
//! everything that looks like a secret.

use std::ops::Range;

use refrain_core::Spec;
use refrain_core::spec::Secret;
use refrain_secrets as secrets;

/// The shortest value that is looked for: a shorter one is a number or a switch, and occurs everywhere.
const SHORTEST: usize = 6;

pub(crate) struct Redactor {
    values: Vec<String>,
}

impl Redactor {
    /// For the texts of that loop; `logins` are hidden too.
    pub(crate) fn new(spec: &Spec, logins: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<_> = logins.into_iter().collect();
        spec.clone().visit_secrets(|value| values.push(value.expose().to_owned()));
        values.retain(|value| value.len() >= SHORTEST);
        // One may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text without them. A line that looks like one is omitted as a whole, and a key with all its lines.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.clean_part("", text, "")
    }

    /// A part of a text without them: the text `before` and `behind` it decides about its edges.
    pub(crate) fn clean_part(&self, before: &str, part: &str, behind: &str) -> String {
        let whole = [before, part, behind].concat();
        let (text, part) = self.without_values(&whole, before.len()..before.len() + part.len());
        let (mut kept, mut at, mut in_key) = (String::new(), 0, false);
        for line in text.split_inclusive('\n') {
            let (from, to) = (at.max(part.start), (at + line.len()).min(part.end));
            let shown = &text[from.min(to)..to];
            at += line.len();
            let words = line.strip_suffix('\n').unwrap_or(line);
            // The screen needs more of a key than its first line; here lines are shown one by one.
            let begins = line.contains("-----BEGIN ") && line.contains("PRIVATE KEY");
            let found = match begins {
                true => Some("a private key"),
                false => secrets::screen(b"text", words.as_bytes(), None).map(|found| found.what),
            };
            match found {
                _ if in_key || shown.is_empty() => {}
                Some(what) => {
                    kept.push_str(&format!("[redacted: {what}]"));
                    kept.extend(shown.ends_with('\n').then_some('\n'));
                }
                None => kept.push_str(shown),
            }
            in_key = (in_key || begins) && !line.contains("-----END ");
        }
        kept
    }

    /// The text without the values, and where the part is in that: a value that lies across its begin is of what is
    /// before it.
    fn without_values(&self, text: &str, part: Range<usize>) -> (String, Range<usize>) {
        let found = self.values.iter().flat_map(|value| text.match_indices(value.as_str()));
        let mut found: Vec<_> = found.map(|(at, value)| at..at + value.len()).collect();
        // Of two that overlap the first, and of two that begin together the longer.
        found.sort_by_key(|it| (it.start, std::cmp::Reverse(it.end)));
        let (mut clean, mut at) = (String::new(), 0);
        let (mut from, mut to) = (None, None);
        for value in found {
            if value.end <= at {
                continue;
            }
            let start = value.start.max(at);
            let edge = |place: usize, edge: &mut Option<usize>| {
                if edge.is_none() && place <= start {
                    *edge = Some(clean.len() + (place - at));
                }
            };
            edge(part.start, &mut from);
            edge(part.end, &mut to);
            clean.push_str(&text[at..start]);
            if value.start >= at {
                clean.push_str(Secret::redacted().expose());
            }
            at = value.end;
            let inside = |place: usize, edge: &mut Option<usize>| {
                if edge.is_none() && place < at {
                    *edge = Some(clean.len());
                }
            };
            inside(part.start, &mut from);
            inside(part.end, &mut to);
        }
        let from = from.unwrap_or_else(|| clean.len() + (part.start - at));
        let to = to.unwrap_or_else(|| clean.len() + (part.end - at));
        clean.push_str(&text[at..]);
        (clean, from..to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(values: &[&str]) -> Redactor {
        Redactor { values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn secrets_do_not_leave() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let text = format!("one\nuse {token}\nthree hunter2hunter2 four");
        let clean = redactor(&["hunter2hunter2"]).clean(&text);
        assert!(!clean.contains(&token) && !clean.contains("hunter2"), "{clean}");
        assert!(
            clean.starts_with("one\n[redacted: ") && clean.ends_with("\nthree [redacted] four"),
            "{clean}"
        );
    }

    #[test]
    fn a_key_goes_with_all_its_lines() {
        let body = "MIIEowIBAAKCAQEAx7Jm0dQ2b8Zt1kq9uE4Wv5rY3nH6pL0sX2cV8bN4mK7jF1gD\n".repeat(3);
        let text =
            format!("before\n-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\nafter");
        let clean = redactor(&[]).clean(&text);
        assert!(clean.starts_with("before\n[redacted: ") && clean.ends_with("]\nafter"), "{clean}");
    }

    /// For any parts: together they say what the whole says, and none has a piece of a secret.
    #[test]
    fn parts_hide_what_the_whole_hides() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7Jm0dQ2b8Zt\nZtZtZtZt\n-----END PRIVATE KEY-----\n";
        let text =
            format!("one hunter2hunter2 two\nuse {token} so\n{key}hunter2hunter2hunter2 and on\nthe end");
        let redactor = redactor(&["hunter2hunter2", "hunter2"]);
        for first in 0..text.len() {
            for second in [first + 1, first + 7, first + 40, text.len()] {
                let second = second.min(text.len());
                let part = redactor.clean_part(&text[..first], &text[first..second], &text[second..]);
                for secret in ["hunter2", "g7H8i9", "MIIEow", "ZtZt"] {
                    assert!(!part.contains(secret), "{first}..{second}: {part:?}");
                }
            }
            let (before, behind) = text.split_at(first);
            let halves = redactor.clean_part("", before, behind) + &redactor.clean_part(before, behind, "");
            let is_in_line = |halves: &str| halves.matches("[redacted").count();
            assert!(is_in_line(&halves) <= is_in_line(&redactor.clean(&text)) + 1, "{first}: {halves:?}");
            assert!(halves.contains(" and on\nthe end") || first > text.len() - 20, "{first}: {halves:?}");
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        let text = "cargo test --workspace\n\n12 passed; 0 failed\n";
        assert_eq!(redactor(&[]).clean(text), text);
    }
}
