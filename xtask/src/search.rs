//! `cargo xtask where WORDS`: finds the file to change, from the pages about the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::failure::{Result, fail};
use crate::pages::{Page, load, quoted};
use crate::workspace::Workspace;

const MOST: usize = 5;

/// Words that say nothing about a place.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "an", "and", "are", "as", "at", "be", "by", "can", "change", "changed",
    "counts", "crate", "crates", "do", "does", "for", "from", "has", "have", "how", "i", "if", "in", "into",
    "is", "it", "its", "long", "made", "make", "may", "new", "not", "of", "on", "one", "or", "over", "rs",
    "src", "that", "the", "this", "to", "was", "we", "what", "when", "where", "which", "why", "with",
    "would",
];

/// The weight of a word in the name of a file or of its folder, and in a title; in the text it is 1.
const IN_FILE_NAME: f64 = 2.0;
const IN_TITLE: f64 = 1.5;

/// The extra weight of a row of the table "Where would I change …?": its words are chosen for the search.
const IN_QUESTION: f64 = 1.5;

/// A sentence or a row of a page, and the files that it names.
#[derive(Debug)]
struct Entry {
    page: String,
    heading: String,
    text: String,
    paths: Vec<PathBuf>,
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let entries: Vec<Entry> = load(&Workspace::load()?)?.iter().flat_map(entries).collect();
    let best = rank(&entries, &words.join(" "));
    if best.is_empty() {
        return fail("no page has these words: try others, or `git grep`");
    }
    for entry in best.into_iter().take(MOST) {
        println!("{}: {}\n  {}", entry.page, entry.heading, entry.text);
        for path in &entry.paths {
            println!("    {}", path.display());
        }
        println!();
    }
    Ok(())
}

/// The entries of a page that name files.
fn entries(page: &Page) -> Vec<Entry> {
    let (mut found, mut title, mut heading) = (Vec::new(), String::new(), String::new());
    for (_, line) in page.lines() {
        if let Some(text) = line.strip_prefix("# ") {
            title = text.to_owned();
        } else if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        let cells: Vec<&str> = line.strip_prefix('|').into_iter().flat_map(|row| row.split('|')).collect();
        let row = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect::<Vec<_>>();
        let sentences = if row.is_empty() { line.split_inclusive(". ").collect() } else { vec![line] };
        for sentence in sentences {
            let text = if row.is_empty() { sentence.trim().to_owned() } else { row.join(": ") };
            let of_line = [sentence, line].map(|text| paths(page, text));
            let Some(paths) = of_line.into_iter().find(|paths| !paths.is_empty()) else { continue };
            found.push(Entry { page: title.clone(), heading: heading.clone(), text, paths });
        }
    }
    found
}

fn paths(page: &Page, text: &str) -> Vec<PathBuf> {
    quoted(text).filter_map(|path| page.resolve(path)).collect()
}

/// The entries that have some of the words, the best first.
fn rank<'a>(entries: &'a [Entry], question: &str) -> Vec<&'a Entry> {
    let wanted: BTreeSet<String> = words(question).collect();
    let weights: Vec<BTreeMap<String, f64>> = entries.iter().map(weights).collect();
    // A rare word is more significant.
    let rarity: BTreeMap<&str, f64> = wanted
        .iter()
        .map(|word| {
            let having = weights.iter().filter(|weights| weight(weights, word) > 0.0).count();
            let rarity = (entries.len() as f64 / (having as f64 + 1.0)).ln().max(0.1);
            (word.as_str(), rarity)
        })
        .collect();
    let score = |entry: &Entry, weights: &BTreeMap<String, f64>| {
        let scores = rarity.iter().map(|(word, rarity)| weight(weights, word) * rarity);
        let scores: Vec<f64> = scores.filter(|score| *score > 0.0).collect();
        // An entry with all words is better than one with a single word in its file's name.
        let score = scores.iter().sum::<f64>() * scores.len() as f64;
        if entry.heading.starts_with("Where would I change") { score * IN_QUESTION } else { score }
    };
    let mut scored: Vec<(f64, &Entry)> =
        entries.iter().zip(&weights).map(|(entry, weights)| (score(entry, weights), entry)).collect();
    scored.retain(|(score, _)| *score > 0.0);
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.text.len().cmp(&second.text.len())));
    scored.into_iter().map(|(_, entry)| entry).collect()
}

fn weights(entry: &Entry) -> BTreeMap<String, f64> {
    let mut weights = BTreeMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            let known = weights.entry(word).or_insert(weight);
            *known = weight.max(*known);
        }
    };
    add(&entry.text, 1.0);
    add(&entry.page, IN_TITLE);
    add(&entry.heading, IN_TITLE);
    for path in &entry.paths {
        add(&path.file_stem().unwrap_or_default().to_string_lossy(), IN_FILE_NAME);
        let folder = path.parent().and_then(|folder| folder.file_name());
        add(&folder.unwrap_or_default().to_string_lossy(), IN_FILE_NAME);
    }
    weights
}

/// The weight of a wanted word among these: `gate` finds `gates`, `wait` finds `waiting`.
fn weight(weights: &BTreeMap<String, f64>, wanted: &str) -> f64 {
    let is_form = |a: &str, b: &str| a.len() >= 4 && b.len() <= a.len() + 3 && b.starts_with(a);
    let forms = weights.iter().filter(|(word, _)| {
        word.as_str() == wanted || is_form(word.as_str(), wanted) || is_form(wanted, word.as_str())
    });
    forms.map(|(_, weight)| *weight).fold(0.0, f64::max)
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).filter(|word| !STOP_WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const READ: usize = 3;

    #[test]
    fn questions_of_newcomers_lead_to_the_file() {
        let entries: Vec<Entry> =
            load(&Workspace::load().unwrap()).unwrap().iter().flat_map(entries).collect();
        let mut wrong = Vec::new();
        for (question, file) in [
            ("how long Refrain waits after an outage", "refrain-core/src/loop/provider_faults.rs"),
            ("which files are protected", "refrain-core/src/protect/paths.rs"),
            ("what the agent's prompt contains", "refrain-core/src/prompt.rs"),
            ("exit codes", "refrain-app/src/error.rs"),
            ("how a gate's output is judged", "refrain-core/src/gate/outcome.rs"),
            ("how an agent's stream is parsed", "refrain-agents/src/claude/reader.rs"),
            ("add a new agent", "refrain-agents/src/adapter.rs"),
            ("what counts as stuck", "refrain-core/src/stuck.rs"),
            ("secrets that are refused in a commit", "refrain-secrets/src/rules.rs"),
            ("pull request title", "refrain-core/src/prompt/pull_request.rs"),
            ("HTTP bounds", "refrain-server/src/http/guard.rs"),
            ("MCP tools", "refrain-server/src/mcp/tools.rs"),
            ("stop ladder of processes", "refrain-proc/src/keeper/process.rs"),
            ("a key in the configuration file", "refrain-store/src/config/keys.rs"),
            ("who may cancel a loop", "refrain-app/src/caller.rs"),
            ("format of a journal line", "refrain-store/src/journal/line.rs"),
            ("what a key does in top", "refrain-tui/src/update.rs"),
            ("commit message", "refrain-git/src/commit/message.rs"),
            ("next task of a plan", "refrain-core/src/plan/schedule.rs"),
            ("how long a gate may run", "refrain-core/src/loop/child.rs"),
            ("add a setting", "refrain-store/src/config/keys.rs"),
            ("add a subcommand", "refrain/src/cli.rs"),
            ("webhook delivery", "refrain-engine/src/observe/webhook.rs"),
        ] {
            let best = rank(&entries, question);
            let best: Vec<_> = best.iter().take(READ).collect();
            let file = Path::new("crates").join(file);
            if !best.iter().any(|entry| entry.paths.contains(&file)) {
                wrong.push((question, best.iter().map(|entry| entry.text.clone()).collect::<Vec<_>>()));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_question_without_a_word_of_any_page_has_no_answer() {
        let entry = Entry {
            page: "refrain-core".into(),
            heading: "Words".into(),
            text: "one loop".into(),
            paths: Vec::new(),
        };
        assert_eq!(rank(&[entry], "where is the zeppelin").len(), 0);
    }

    #[test]
    fn other_forms_of_a_word_are_found_and_longer_words_are_not() {
        let entry = |text: &str| Entry {
            page: String::new(),
            heading: String::new(),
            text: text.into(),
            paths: Vec::new(),
        };
        for (text, question, is_found) in [
            ("which gates run", "gate", true),
            ("the gate runs", "gates", true),
            ("waiting for it", "wait", true),
            ("a gateway", "gat", false),
            ("the gatekeeper", "gate", false),
        ] {
            assert_eq!(!rank(&[entry(text)], question).is_empty(), is_found, "{question} in {text}");
        }
    }
}
