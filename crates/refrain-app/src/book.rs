//! The book below `docs/`, embedded: the pages that `refrain docs` prints and `refrain serve` shows.

use refrain_core::text::nearest;

/// A page of the book; its topic is the name of its file.
pub struct Page {
    pub part: &'static str,
    pub topic: &'static str,
    pub text: &'static str,
}

macro_rules! pages {
    ($($part:literal: $($topic:literal)+;)+) => {
        &[$($(Page {
            part: $part,
            topic: $topic,
            text: include_str!(concat!("../../../docs/", $part, "/", $topic, ".md")),
        },)+)+]
    };
}

/// The first page of the book: which of the others answers what.
pub const INDEX: &str = include_str!("../../../docs/README.md");

/// All pages, in the order of reading.
pub const PAGES: &[Page] = pages! {
    "tutorial": "first-loop" "claude-code" "first-plan" "morning-after";
    "how-to": "add-gates" "protect-tests" "use-a-sandbox" "merge-work" "pull-requests" "github-actions" "set-limits" "move-a-loop" "fleet" "when-stuck"
        "approve-from-afar" "loops-in-slack" "own-agent" "coming-from";
    "reference": "loops" "agents" "modes" "plans" "task-files" "protection" "sandbox" "reviewers" "publishing" "configuration"
        "budgets" "memory" "report" "top" "serve" "mcp" "slack" "sessions" "telemetry" "doctor" "callers";
    "explanation": "claims-and-gates" "durability" "what-git-sees" "stuck" "threat-model" "sandbox-limits" "comparison" "glossary"
        "performance";
};

impl Page {
    /// The page's first heading.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// The page about a topic.
///
/// # Errors
/// The topics that were probably meant, at most three.
pub fn find(topic: &str) -> Result<&'static Page, Vec<&'static str>> {
    let name = topic.trim_end_matches(".md").to_lowercase();
    let page =
        PAGES.iter().find(|page| page.topic == name || format!("{}/{}", page.part, page.topic) == name);
    page.ok_or_else(|| {
        let topics = || PAGES.iter().map(|page| page.topic);
        // A word of one topic alone means that; else it begins a word of the topics that are meant.
        let of =
            |is: &dyn Fn(&str) -> bool| topics().filter(|topic| topic.split('-').any(is)).collect::<Vec<_>>();
        let (whole, begun) = (of(&|word| word == name), of(&|word| word.starts_with(&name)));
        match (whole.len(), begun.len()) {
            (1, _) => whole,
            (_, 1..=3) => begun,
            _ => nearest(&name, topics()).into_iter().collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_page_of_the_book_is_embedded_once() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let parts: BTreeSet<_> = PAGES.iter().map(|page| page.part).collect();
        let files = parts.iter().flat_map(|part| std::fs::read_dir(docs.join(part)).unwrap());
        let files = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "md"));
        let files: BTreeSet<_> =
            files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let topics: Vec<_> = PAGES.iter().map(|page| page.topic.to_owned()).collect();
        assert_eq!(topics.len(), files.len(), "a topic has one page");
        assert_eq!(topics.into_iter().collect::<BTreeSet<_>>(), files);
        assert!(PAGES.iter().all(|page| page.text.starts_with("# ")));
    }

    #[test]
    fn a_topic_is_found_by_its_name_and_by_its_path() {
        for name in ["plans", "Plans", "reference/plans.md"] {
            assert_eq!(find(name).map(|page| page.topic).ok(), Some("plans"), "{name}");
        }
        for (name, topic) in [("claims", "claims-and-gates"), ("git", "what-git-sees"), ("loop", "loops")] {
            assert_eq!(find(name).map(|page| page.topic).err(), Some(vec![topic]), "{name}");
        }
        assert_eq!(find("plams").map(|page| page.topic).err(), Some(vec!["plans"]));
        for (name, topics) in
            [("gates", ["add-gates", "claims-and-gates"]), ("limit", ["set-limits", "sandbox-limits"])]
        {
            assert_eq!(find(name).map(|page| page.topic).err(), Some(topics.to_vec()), "{name}");
        }
        assert_eq!(find("xylophone").map(|page| page.topic).err(), Some(Vec::new()));
    }
}
