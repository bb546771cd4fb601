//! Replaces what differs from run to run, so that a test can compare whole outputs.

/// Parts of words that differ: `0` is a digit, `x` is a hexadecimal one.
const PARTS: [(&str, &str); 3] = [
    ("00000000-000000", "[time]"),
    ("0000-00-00T00-00-00Z", "[time]"),
    ("worktrees/project-xxxxxxxx", "worktrees/project-[id]"),
];

/// Replaces, word by word: durations (`0.1s`, `1m 2s` → `[took]`), times of day and timestamps (`[time]`), the number
/// after `pid` (`[pid]`), and the word after `on` that follows a pid (`[host]`). `roots` are paths and their names.
pub(crate) fn redact(text: &str, roots: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (path, name) in roots {
        text = text.replace(path, name);
    }
    for (form, name) in PARTS {
        while let Some((at, _)) = text.char_indices().find(|(at, _)| has_form(&text.as_bytes()[*at..], form))
        {
            text.replace_range(at..at + form.len(), name);
        }
    }
    let mut before = String::new();
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let end = word.trim_end_matches([' ', '\n']);
        let core = end.trim_end_matches([',', ':', ';', '.', ')']);
        let core = core.trim_start_matches('(');
        let new = match core {
            _ if is_duration(core) => "[took]",
            _ if is_time(core) => "[time]",
            _ if before == "pid" && core.bytes().all(|byte| byte.is_ascii_digit()) => "[pid]",
            _ => core,
        };
        out.push_str(&if core.is_empty() { word.to_owned() } else { word.replacen(core, new, 1) });
        before = core.to_owned();
    }
    out
}

fn has_form(text: &[u8], form: &str) -> bool {
    let fits = |(found, form): (&u8, u8)| match form {
        b'0' => found.is_ascii_digit(),
        b'x' => found.is_ascii_hexdigit(),
        _ => *found == form,
    };
    text.len() >= form.len() && text.iter().zip(form.bytes()).all(fits)
}

fn is_duration(word: &str) -> bool {
    let number = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let rest_is_separators = word.bytes().all(|byte| byte.is_ascii_digit() || b"-:TZ.+".contains(&byte));
    digits >= 4 && rest_is_separators && (word.contains(':') || word.matches('-').count() == 2)
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn varying_values_are_replaced_and_the_rest_stays() {
        let parts = "job-2026-11-28T04-15-56Z loop/20261128-041741-job worktrees/project-0a1b2c3d/job";
        let expected = "job-[time] loop/[time]-job worktrees/project-[id]/job";
        assert_eq!(redact(parts, &[]), expected);
        let text = "took 0.13s: at 2026-11-21T02:08:35Z (12:01:02), pid 412 in /tmp/x/p, 3/20\n";
        let expected = "took [took]: at [time] ([time]), pid [pid] in [root]/p, 3/20\n";
        assert_eq!(redact(text, &[("/tmp/x", "[root]")]), expected);
    }
}
