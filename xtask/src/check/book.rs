//! Checks the book below `docs/`: every link leads to a page and a heading, every page is in `docs/SUMMARY.md`, and the
//! pages for beginners have short sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{below, read, shown};

const SUMMARY: &str = "docs/SUMMARY.md";
/// Pages outside of `docs/` whose links are checked.
const OTHERS: [&str; 5] = ["README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CHANGELOG.md"];
/// Parts of the book whose sentences are counted.
const PLAIN: [&str; 2] = ["docs/tutorial/", "docs/how-to/"];
/// The most words of a sentence there, and of a sentence on average.
const LONGEST: usize = 25;
const MEAN: usize = 15;

pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for name in OTHERS {
        pages.insert(name.to_owned(), read(&root.join(name))?);
    }
    for path in
        below(&root.join("docs"))?.iter().filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        pages.insert(shown(path, root), read(path)?);
    }
    let mut findings = Vec::new();
    let mut in_summary = BTreeSet::new();
    for (name, text) in &pages {
        for (number, target) in links(text) {
            let place = format!("{name}:{number}");
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let leads_to = resolve(name, path);
            if !root.join(&leads_to).exists() {
                findings.push(Finding::error(place, format!("`{target}` does not exist"), "mend the link"));
                continue;
            }
            if let Some(page) = pages.get(&leads_to).filter(|_| !anchor.is_empty())
                && !anchors(page).contains(anchor)
            {
                let wrong = format!("{leads_to} has no heading `#{anchor}`");
                findings.push(Finding::error(place, wrong, "name a heading that is there"));
            }
            if name == SUMMARY {
                in_summary.insert(leads_to);
            }
        }
        if PLAIN.iter().any(|part| name.starts_with(part)) {
            findings.extend(long_sentences(name, text));
        }
    }
    let missing = pages.keys().filter(|name| {
        name.starts_with("docs/") && name.as_str() != SUMMARY && !in_summary.contains(name.as_str())
    });
    findings.extend(
        missing.map(|name| Finding::error(name, "the book does not list it", format!("add it to {SUMMARY}"))),
    );
    Ok(findings)
}

/// The lines of a page outside of blocks of code, without code in backticks; with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let plain =
            || line.split('`').enumerate().map(|(k, part)| if k % 2 == 0 { part } else { "code" }).collect();
        (!is_code && !is_fence).then(|| (index + 1, plain()))
    })
}

/// The targets of links inside the repository, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The path in the repository that a link of a page means.
fn resolve(page: &str, path: &str) -> String {
    if path.is_empty() {
        return page.to_owned();
    }
    let mut leads_to = PathBuf::new();
    for part in Path::new(page).parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => drop(leads_to.pop()),
            Component::CurDir => {}
            part => leads_to.push(part),
        }
    }
    leads_to.display().to_string()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1_usize..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|anchor| !found.contains(anchor));
        found.extend(free);
    }
    found
}

/// The sentences of a page that are too long, and the page itself if they are long on average.
fn long_sentences(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counts = Vec::new();
    let is_left_out =
        |line: &str| line.is_empty() || line.starts_with(['|', '#', '!']) || line.starts_with("<!--");
    let mut paragraph = String::new();
    let mut number = 1;
    let lines = prose(text).chain([(0, String::new())]);
    for (at, line) in lines {
        let line = line.trim();
        let is_item =
            line.starts_with("- ") || line.split_once(". ").is_some_and(|(k, _)| k.parse::<u32>().is_ok());
        if is_item || is_left_out(line) {
            for sentence in sentences(&paragraph) {
                let words = sentence.split_whitespace().count();
                counts.push(words);
                if words > LONGEST {
                    let wrong = format!(
                        "a sentence of {words} words: {}…",
                        sentence.chars().take(60).collect::<String>()
                    );
                    let remedy = format!("{LONGEST} is the limit: make two of it");
                    findings.push(Finding::error(format!("{name}:{number}"), wrong, remedy));
                }
            }
            paragraph.clear();
        }
        if !is_left_out(line) {
            if paragraph.is_empty() {
                number = at;
            }
            let text = if is_item { line.split_once(' ').map_or(line, |(_, text)| text) } else { line };
            paragraph.push_str(&format!("{text} "));
        }
    }
    let total: usize = counts.iter().sum();
    if total > MEAN * counts.len() {
        let wrong = format!("its sentences have {} words on average", total / counts.len().max(1));
        findings.push(Finding::error(name, wrong, format!("{MEAN} is the limit: shorten some")));
    }
    findings
}

/// The sentences of a paragraph, with the words of links in place of the links.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = paragraph;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let mut found = vec![String::new()];
    for word in text.split_whitespace() {
        let sentence = found.len() - 1;
        found[sentence].push_str(&format!("{word} "));
        if word.trim_end_matches(['*', ')', '"']).ends_with(['.', '!', '?']) {
            found.push(String::new());
        }
    }
    found.retain(|sentence| !sentence.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c) and `[no](no.md)`\n```text\n[no](no.md)\n```\n[x](https://x) ![i](p.svg)\n";
        assert_eq!(links(text), [(1, "b.md#c".to_owned()), (5, "p.svg".to_owned())]);
        for (page, path, leads_to) in [
            ("docs/how-to/a.md", "../reference/b.md", "docs/reference/b.md"),
            ("README.md", "docs/b.md", "docs/b.md"),
            ("docs/a.md", "", "docs/a.md"),
        ] {
            assert_eq!(resolve(page, path), leads_to);
        }
    }

    #[test]
    fn anchors_are_those_of_a_forge() {
        let found = anchors(
            "# The `[start]` table: defaults\n## What's new?\n```sh\n# no\n```\n## What's new?\n## What's new?\n",
        );
        let wanted = ["the-start-table-defaults", "whats-new", "whats-new-1", "whats-new-2"];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn sentences_are_counted_without_tables_and_code() {
        let short = "# A heading of any length\n\nOne two. Three [four five](x.md) six!\n\n- an item\n| a | table |\n";
        assert!(long_sentences("page", short).is_empty());
        let long =
            format!("Start here.\n\n{}end. Short one. Short two. Short three.\n", "word ".repeat(LONGEST));
        let found = long_sentences("page", &long);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().starts_with("error: page:3: a sentence of 26 words"), "{}", found[0]);
        let code = format!("A line.\n```text\n{}\n```\n", "word ".repeat(50));
        assert!(long_sentences("page", &code).is_empty());
        assert_eq!(long_sentences("page", &format!("{}end.", "word ".repeat(MEAN))).len(), 1);
    }
}
