//! Checks the pages about the code: the names in them exist, each crate has a page, and the first page stays short.

use super::finding::Finding;
use crate::failure::Result;
use crate::pages::{FIRST, Page, load, page_of, quoted};
use crate::workspace::Workspace;

/// How many words the first page may have.
const MOST_WORDS: usize = 900;

pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let pages = load(workspace)?;
    let mut findings: Vec<Finding> = pages.iter().flat_map(missing).collect();
    findings.extend(pages.iter().filter(|page| page.name == FIRST).filter_map(length));
    for package in &workspace.packages {
        let name = page_of(package);
        if !pages.iter().any(|page| page.name == name) {
            let wrong = format!("`{}` has no page", package.name);
            findings.push(Finding::error(&name, wrong, format!("write it, and link it in {FIRST}")));
        }
    }
    Ok(findings)
}

/// Every path of a page that does not exist.
fn missing(page: &Page) -> Vec<Finding> {
    let paths = page.lines().flat_map(|(number, line)| quoted(line).map(move |path| (number, path)));
    paths
        .filter(|(_, path)| page.means_path(path) && page.resolve(path).is_none())
        .map(|(number, path)| {
            Finding::error(
                format!("{}:{number}", page.name),
                format!("`{path}` does not exist"),
                "name it as it is called now, relative to the repository or to the crate of the page",
            )
        })
        .collect()
}

fn length(page: &Page) -> Option<Finding> {
    let words = page.text.split_whitespace().count();
    let remedy = format!("{MOST_WORDS} is the limit: move details to the page of a crate");
    (words > MOST_WORDS).then(|| Finding::error(&page.name, format!("{words} words"), remedy))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn page(text: &str) -> Page {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        Page::new("docs/page.md".into(), text.into(), vec![root.to_owned(), root.join("xtask")])
    }

    #[test]
    fn only_paths_that_do_not_exist_are_found() {
        for (text, is_missing) in [
            ("`xtask/src/main.rs`", false),
            ("`src/main.rs` and `src/check`", false),
            ("`src/no.rs`", true),
            ("`no.rs`", true),
            ("`src/no`", true),
            ("`no/journal.jsonl`, `src/<name>`, `Cargo.tom`, `a/b c`", false),
            ("`target/tmp/pictures`", false),
            ("```text\n`src/no.rs`\n```", false),
            ("one line\n`src/main.rs`, `xtask/no.md`", true),
        ] {
            assert_eq!(missing(&page(text)).len(), usize::from(is_missing), "{text}");
        }
        let found = missing(&page("one line\n`src/no.rs`"))[0].to_string();
        assert!(found.starts_with("error: docs/page.md:2: `src/no.rs` does not exist"), "{found}");
    }

    #[test]
    fn a_page_may_have_so_many_words() {
        assert!(length(&page(&"word ".repeat(MOST_WORDS))).is_none());
        assert!(length(&page(&"word ".repeat(MOST_WORDS + 1))).is_some());
    }
}
