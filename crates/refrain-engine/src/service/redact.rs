//! What must not leave with a report, or on a failure branch: values of variables that were set for the agent, and
//! everything that looks like a secret.

use std::ops::Range;

use refrain_core::Spec;
use refrain_core::git::Oid;
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
            let (shown, rest) = (&text[from.min(to)..to], &text.as_bytes()[at..]);
            at += line.len();
            let goes_on = in_key;
            match looks_like(line.strip_suffix('\n').unwrap_or(line), rest, &mut in_key) {
                _ if goes_on || shown.is_empty() => {}
                Some(what) => {
                    kept.push_str(&format!("[redacted: {what}]"));
                    kept.extend(shown.ends_with('\n').then_some('\n'));
                }
                None => kept.push_str(shown),
            }
        }
        kept
    }

    /// A patch of git without them, and whether it had none. A line that looks like one is replaced by another, so that `git apply`
    /// can take the patch; a binary file that has one, by its `content`, is omitted.
    pub(crate) fn clean_patch<E>(
        &self,
        patch: &[u8],
        content: impl Fn(&Oid) -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, bool), E> {
        let mut kept = Vec::with_capacity(patch.len());
        let (mut is_whole, mut in_key) = (true, false);
        // Of the file that the line is of: where it begins, its line of objects, and whether it is binary and shown.
        let (mut begin, mut index, mut is_shown_binary) = (0, "", None);
        let mut at = 0;
        for line in patch.split_inclusive(|byte| *byte == b'\n') {
            let rest = &patch[at..];
            at += line.len();
            if line.starts_with(b"diff --git ") {
                (begin, index, is_shown_binary, in_key) = (kept.len(), "", None, false);
            } else if let Some(objects) = line.strip_prefix(b"index ") {
                index = str::from_utf8(objects).unwrap_or_default();
                kept.extend_from_slice(line);
                continue;
            } else if line == b"GIT binary patch\n" {
                let mut is_shown = true;
                for object in objects(index) {
                    is_shown &= !self.has_secret(&content(&object)?);
                }
                if !is_shown {
                    kept.truncate(begin);
                }
                is_whole &= is_shown;
                is_shown_binary = Some(is_shown);
            }
            if let Some(is_shown) = is_shown_binary {
                kept.extend_from_slice(if is_shown { line } else { &[] });
                continue;
            }
            let words = line.strip_suffix(b"\n").unwrap_or(line);
            let text = String::from_utf8_lossy(words);
            let (mut clean, _) = self.without_values(&text, 0..text.len());
            if let Some(what) = looks_like(&clean, rest, &mut in_key) {
                let sign = clean.get(..1).filter(|sign| ["+", "-", " "].contains(sign)).unwrap_or_default();
                clean = format!("{sign}[redacted: {what}]");
            }
            if clean == text {
                kept.extend_from_slice(line);
            } else {
                is_whole = false;
                kept.extend_from_slice(clean.as_bytes());
                kept.extend_from_slice(&line[words.len()..]);
            }
        }
        Ok((kept, is_whole))
    }

    fn has_secret(&self, content: &[u8]) -> bool {
        let text = String::from_utf8_lossy(content);
        self.values.iter().any(|value| text.contains(value))
            || secrets::screen(b"text", content, None).is_some()
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

/// What the line looks like; `rest` is the text from the line on. `in_key`: whether the lines of a private key go on after it.
fn looks_like(line: &str, rest: &[u8], in_key: &mut bool) -> Option<&'static str> {
    let is_key = *in_key || secrets::begins_key(rest);
    *in_key = is_key && !line.contains("-----END ");
    match is_key {
        true => Some("a private key"),
        false => secrets::screen(b"text", line.as_bytes(), None).map(|found| found.what),
    }
}

/// The objects that git's line `index OLD..NEW MODE` names, as far as there are two.
fn objects(index: &str) -> impl Iterator<Item = Oid> {
    let names = index.split_whitespace().next().unwrap_or_default().split("..");
    names.filter(|name| name.bytes().any(|byte| byte != b'0')).filter_map(|name| name.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_keeps_its_bytes_and_its_count_of_lines() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let text =
            format!("diff --git a/x b/x\nindex {old}..{new} 100644\n--- a/x\n+++ b/x\n@@ -1 +1,5 @@\n-caf");
        let key = "+-----BEGIN PRIVATE KEY-----\n+MIIEowIBAAKC\n+-----END PRIVATE KEY-----\n";
        let text = [text.as_bytes(), b"\xe9\r\n+caf\xe9\x1b\r\n", key.as_bytes()].concat();
        let text = [&text[..], format!("+hunter2hunter2 \u{e9}\n+{token}\n").as_bytes()].concat();
        let binary = |name: &str, new: &str| {
            format!("diff --git a/{name} b/{name}\nindex {old}..{new}\nGIT binary patch\nliteral 3\nKcmZ\n\n")
        };
        let (shown, hidden) = (binary("shown", &"3".repeat(40)), binary("hidden", &"4".repeat(40)));
        let patch = [&text[..], hidden.as_bytes(), shown.as_bytes()].concat();
        let content = |blob: &Oid| match blob.as_str().starts_with('4') {
            true => Ok::<_, ()>([b"\0", token.as_bytes()].concat()),
            false => Ok(vec![0; 3]),
        };
        let (clean, is_whole) = redactor(&["hunter2hunter2"]).clean_patch(&patch, content).unwrap();
        let end =
            clean.strip_prefix(&text[..text.windows(7).position(|at| at == b"\n+-----").unwrap()]).unwrap();
        let key = "+[redacted: a private key]\n".repeat(3);
        let kept = format!("\n{key}+[redacted] \u{e9}\n+[redacted: ");
        let end = str::from_utf8(end).unwrap();
        assert!(end.starts_with(&kept) && end.ends_with(&format!("]\n{shown}")) && !is_whole, "{end}");
        let (same, is_whole) = redactor(&[]).clean_patch(shown.as_bytes(), content).unwrap();
        assert_eq!((same, is_whole), (shown.into_bytes(), true));
    }

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
    fn secrets_are_redacted_across_parts_as_in_the_whole() {
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
