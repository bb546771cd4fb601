//! Applies changes to a text and shows them as a patch. The changes are known to be in range, in order and apart.

use std::fmt::Write;

use super::Change;

/// How many lines are shown around what changes.
const AROUND: usize = 3;

pub(super) fn changed(old: &str, changes: &[Change]) -> String {
    let lines: Vec<&str> = old.lines().collect();
    let (mut new, mut at) = (Vec::new(), 0);
    for change in changes {
        let begin = change.line.saturating_sub(1).clamp(at, lines.len());
        new.extend_from_slice(&lines[at..begin]);
        new.extend(change.insert.iter().map(String::as_str));
        at = begin.saturating_add(change.remove).min(lines.len());
    }
    new.extend_from_slice(&lines[at..]);
    // The lines that stay end as they did.
    let end = if old.contains("\r\n") { "\r\n" } else { "\n" };
    new.iter().map(|line| format!("{line}{end}")).collect()
}

/// The changes of a file as a unified diff of one part.
pub fn diff(file: &str, old: &str, changes: &[Change]) -> String {
    let lines: Vec<&str> = old.lines().collect();
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return String::new() };
    let from = first.line.saturating_sub(1).saturating_sub(AROUND).min(lines.len());
    let until = last.line.saturating_add(last.remove).saturating_add(AROUND - 1).min(lines.len());
    let (mut body, mut at, mut added, mut removed) = (String::new(), from, 0, 0);
    for change in changes {
        let begin = change.line.saturating_sub(1).clamp(at, lines.len());
        let end = begin.saturating_add(change.remove).min(lines.len());
        show(&mut body, ' ', &lines[at..begin]);
        show(&mut body, '-', &lines[begin..end]);
        show(&mut body, '+', &change.insert);
        (at, added, removed) = (end, added + change.insert.len(), removed + end - begin);
    }
    // The numbers may come from a file that any process can write.
    let until = until.max(at);
    show(&mut body, ' ', &lines[at..until]);
    let before = until - from;
    let after = before + added - removed;
    let place = |many: usize| if many == 0 { from } else { from + 1 };
    let old_name = if lines.is_empty() { "/dev/null".to_owned() } else { format!("a/{file}") };
    let head = format!("@@ -{},{before} +{},{after} @@", place(before), place(after));
    format!("--- {old_name}\n+++ b/{file}\n{head}\n{body}")
}

fn show(body: &mut String, sign: char, lines: &[impl std::fmt::Display]) {
    for line in lines {
        // Writing into a string does not fail.
        let _ = writeln!(body, "{sign}{line}");
    }
}
