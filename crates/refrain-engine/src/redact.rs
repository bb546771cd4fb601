//! What must not leave with a report, or on a failure branch: values of variables that were set for the agent, and whatever looks like a secret.

use refrain_core::Spec;
use refrain_core::spec::Secret;
use refrain_git::secrets;

/// The shortest value that is looked for: what is shorter is a number or a switch, and stands everywhere.
const SHORTEST: usize = 6;

/// Takes secrets out of texts.
pub(crate) struct Redactor {
    values: Vec<String>,
}

impl Redactor {
    /// For the texts of that loop; `logins` are hidden too.
    pub(crate) fn new(spec: &Spec, logins: impl IntoIterator<Item = String>) -> Self {
        let mut spec = spec.clone();
        let set = spec.agents_mut().flat_map(|agent| std::mem::take(&mut agent.env).into_values());
        let set: Vec<_> = set.map(|value| value.expose().to_owned()).collect();
        let mut values: Vec<_> = set.into_iter().chain(logins).collect();
        values.retain(|value| value.len() >= SHORTEST);
        // One may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text without them. A line that looks like one is left out as a whole, and a key with all its lines.
    pub(crate) fn clean(&self, text: &str) -> String {
        let named = |text: String, value: &String| text.replace(value, Secret::redacted().expose());
        let text = self.values.iter().fold(text.to_owned(), named);
        let mut kept = Vec::new();
        let mut in_key = false;
        for line in text.split('\n') {
            // The screen wants to see more of a key than its first line; here nobody waits for that.
            let begins = line.contains("-----BEGIN ") && line.contains("PRIVATE KEY");
            let found = match begins {
                true => Some("a private key"),
                false => secrets::screen(b"text", line.as_bytes(), None).map(|found| found.what),
            };
            match found {
                _ if in_key => {}
                Some(what) => kept.push(format!("[redacted: {what}]")),
                None => kept.push(line.to_owned()),
            }
            in_key = (in_key || begins) && !line.contains("-----END ");
        }
        kept.join("\n")
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

    #[test]
    fn all_else_stays_as_it_is() {
        let text = "cargo test --workspace\n\n12 passed; 0 failed\n";
        assert_eq!(redactor(&[]).clean(text), text);
    }
}
