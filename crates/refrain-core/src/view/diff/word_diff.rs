//! The words that differ between a removed line and the line added for it.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::{DiffKind, DiffLine};

/// A line with more words is not compared word by word.
const MOST_WORDS: usize = 240;

/// Marks the words that differ in each removed line and the added line at the same place of its block.
pub(super) fn mark(lines: &mut [DiffLine]) {
    let mut at = 0;
    while at < lines.len() {
        let removed = run(&lines[at..], DiffKind::Removed);
        let added = run(&lines[at + removed..], DiffKind::Added);
        for pair in 0..removed.min(added) {
            let (before, after) = (at + pair, at + removed + pair);
            let marks = compare(&lines[before].text, &lines[after].text);
            if let Some((old, new)) = marks {
                (lines[before].parts, lines[after].parts) = (old, new);
            }
        }
        at += (removed + added).max(1);
    }
}

fn run(lines: &[DiffLine], kind: DiffKind) -> usize {
    lines.iter().take_while(|line| line.kind == kind).count()
}

/// The parts of a line, and whether each differs.
type Parts = Vec<(bool, String)>;

/// Both lines in parts; none if they have too little in common.
fn compare(old: &str, new: &str) -> Option<(Parts, Parts)> {
    let (before, after) = (words(old), words(new));
    if before.len() > MOST_WORDS || after.len() > MOST_WORDS {
        return None;
    }
    let (mut old_parts, mut new_parts, mut shared) = (Parts::new(), Parts::new(), 0);
    for operation in capture_diff_slices(Algorithm::Myers, &before, &after) {
        let (removed, added) = (&before[operation.old_range()], &after[operation.new_range()]);
        let differs = operation.tag() != DiffTag::Equal;
        for (parts, words) in [(&mut old_parts, removed), (&mut new_parts, added)] {
            parts.extend((!words.is_empty()).then(|| (differs, words.concat())));
        }
        let same = removed.iter().filter(|word| !differs && !word.trim().is_empty());
        shared += same.map(|word| word.len()).sum::<usize>();
    }
    let longest = old.trim().len().max(new.trim().len());
    (shared * 3 >= longest && shared > 0).then_some((old_parts, new_parts))
}

/// Runs of letters and digits, runs of spaces, and each other character by itself.
fn words(line: &str) -> Vec<&str> {
    let class = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let (mut words, mut start, mut last) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        let this = class(c);
        if last.is_some_and(|last| last != this || this == 2) {
            words.push(&line[start..at]);
            start = at;
        }
        last = Some(this);
    }
    words.extend(Some(&line[start..]).filter(|rest| !rest.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &Parts) -> String {
        parts
            .iter()
            .map(|(differs, text)| if *differs { format!("[{text}]") } else { text.clone() })
            .collect()
    }

    #[test]
    fn changed_words_are_marked_if_the_lines_are_alike() {
        let (old, new) = compare("let total = price(item);", "let total = price(&item) - off;").unwrap();
        assert_eq!(shown(&old), "let total = price(item);");
        assert_eq!(shown(&new), "let total = price([&]item)[ - off];");
        let (old, new) = compare("fn añadir(x: u32)", "fn añadir(y: u64)").unwrap();
        assert_eq!(
            (shown(&old), shown(&new)),
            ("fn añadir([x]: [u32])".into(), "fn añadir([y]: [u64])".into())
        );
        assert_eq!(compare("alpha beta", "something else entirely"), None);
        assert_eq!(compare("", "x"), None);
        assert_eq!(compare(&"a ".repeat(300), "a"), None);
    }
}
