//! A plan in Markdown, and which section of it is about a task (seed-systems.md section 8, conflict 24).

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::plan::{TaskId, file};

/// How much of a plan the prompt quotes if no heading of it names the task, in characters (seed 001).
const BEGINNING: usize = 2_000;

/// A plan's text, read once for all of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDocument {
    text: String,
    /// Where the section of a task begins and ends, by the task's name in its heading.
    sections: HashMap<String, Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    range: Range<usize>,
    /// Its heading says `Task`, and not only a number.
    says_task: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excerpt<'a> {
    Section(&'a str),
    /// No heading names it: the whole plan, which is short.
    Whole(&'a str),
    /// No heading names it: the beginning of the plan.
    Beginning(&'a str),
}

struct Heading {
    level: HeadingLevel,
    range: Range<usize>,
    words: String,
}

impl PlanDocument {
    /// The plan, with all sections found. A heading names a task by its exact id, at its beginning: `Task 1: …`, `1.
    /// …`, `1`, `1.2 …`; if two name the same task, the one that says `Task` counts, then the first. A section ends
    /// before the next heading of the same or a higher level.
    pub fn read(text: String) -> Self {
        let headings = headings(&text);
        let mut sections: HashMap<String, Section> = HashMap::new();
        for (at, heading) in headings.iter().enumerate() {
            let Some((says_task, name)) = named(&heading.words) else { continue };
            let next = headings[at + 1..].iter().find(|next| next.level <= heading.level);
            let range = heading.range.start..next.map_or(text.len(), |next| next.range.start);
            let section = Section { range, says_task };
            for name in [name, name.trim_end_matches(['.', ':', '-'])] {
                let known = sections.entry(name.to_owned()).or_insert_with(|| section.clone());
                if says_task && !known.says_task {
                    *known = section.clone();
                }
            }
        }
        Self { text, sections }
    }

    /// The plan if its headings, or its list, are the tasks themselves: the statuses in it are not the plan's words,
    /// except for what is done.
    pub fn of_task_file(text: &str) -> Self {
        Self::read(file::unmarked(text))
    }

    /// What the section of a task says before those of its parts; nothing if no heading names it.
    pub(super) fn before_parts(&self, task: &TaskId) -> Option<&str> {
        let range = &self.sections.get(task.as_str())?.range;
        let is_part = |name: &str| {
            name.strip_prefix(task.as_str()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
        };
        let parts =
            self.sections.iter().filter(|(name, part)| is_part(name) && range.contains(&part.range.start));
        let end = parts.map(|(_, part)| part.range.start).min().unwrap_or(range.end);
        Some(self.text.get(range.start..end)?.trim_end())
    }

    pub(super) fn about(&self, task: &TaskId) -> Excerpt<'_> {
        let section = self.sections.get(task.as_str());
        if let Some(text) = section.and_then(|section| self.text.get(section.range.clone())) {
            return Excerpt::Section(text.trim_end());
        }
        match self.text.char_indices().nth(BEGINNING) {
            Some((end, _)) => Excerpt::Beginning(self.text[..end].trim_end()),
            None => Excerpt::Whole(self.text.trim_end()),
        }
    }
}

/// The id in a heading that names a task, and whether it says `Task`.
fn named(words: &str) -> Option<(bool, &str)> {
    let words = words.trim_start();
    let behind = words.get(..4).filter(|word| word.eq_ignore_ascii_case("task")).map(|_| &words[4..]);
    let behind = behind.filter(|rest| rest.starts_with([' ', '\t', '#']));
    let rest = behind.unwrap_or(words).trim_start().trim_start_matches('#');
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-');
    let end = rest.find(|c| !is_of_id(c)).unwrap_or(rest.len());
    // A letter or digit right after it makes it another word.
    let is_whole = rest[end..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    (end > 0 && is_whole).then(|| (behind.is_some(), &rest[..end]))
}

fn headings(text: &str) -> Vec<Heading> {
    // Without this, the end of a front matter would make a heading of its last line.
    let parser = Parser::new_ext(text, Options::ENABLE_YAML_STYLE_METADATA_BLOCKS).into_offset_iter();
    let (mut headings, mut depth) = (Vec::new(), 0_usize);
    let mut open: Option<Heading> = None;
    for (event, range) in parser {
        if let Event::Start(Tag::Heading { level, .. }) = event
            && depth == 0
        {
            open = Some(Heading { level, range, words: String::new() });
        } else if let (Event::Text(words) | Event::Code(words), Some(heading)) = (&event, &mut open) {
            heading.words.push_str(words);
        } else if matches!(event, Event::End(TagEnd::Heading(_))) && open.is_some() {
            headings.extend(open.take());
        } else if open.is_none() && matches!(event, Event::Start(_)) {
            depth += 1;
        } else if open.is_none() && matches!(event, Event::End(_)) {
            depth = depth.saturating_sub(1);
        }
    }
    headings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const PLAN: &str = "\
# The plan

## 1. Overview

Words.

## Task 1: The floor

Lay it.

### Details of it

More.

## Task 10: The roof

### 5. Nails

Many.

#### 5.1 Long ones

Few.

## 5

Paint.
";

    fn section<'a>(plan: &'a PlanDocument, id: &str) -> Option<&'a str> {
        match plan.about(&id.parse().unwrap()) {
            Excerpt::Section(text) => Some(text),
            Excerpt::Whole(_) | Excerpt::Beginning(_) => None,
        }
    }

    #[rstest]
    #[case::one_that_says_task_before_a_number(
        "1",
        Some("## Task 1: The floor\n\nLay it.\n\n### Details of it\n\nMore.")
    )]
    #[case::not_the_one_that_begins_like_it(
        "10",
        Some("## Task 10: The roof\n\n### 5. Nails\n\nMany.\n\n#### 5.1 Long ones\n\nFew.")
    )]
    #[case::any_level_the_first("5", Some("### 5. Nails\n\nMany.\n\n#### 5.1 Long ones\n\nFew."))]
    #[case::a_part("5.1", Some("#### 5.1 Long ones\n\nFew."))]
    #[case::an_unknown_id("2", None)]
    #[case::a_part_of_an_unknown_id("1.1", None)]
    fn a_section_is_found_by_the_exact_id(#[case] id: &str, #[case] expected: Option<&str>) {
        assert_eq!(section(&PlanDocument::read(PLAN.to_owned()), id), expected);
    }

    #[rstest]
    #[case::with_a_title("## Task 7: x", true)]
    #[case::with_a_dash("## Task 7 - x", true)]
    #[case::with_a_long_dash("## Task 7 \u{2014} x", true)]
    #[case::in_parentheses("## 7) x", true)]
    #[case::a_number_sign("## Task #7: x", true)]
    #[case::in_small_letters("## task 7", true)]
    #[case::bold("## **Task 7**: x", true)]
    #[case::as_code("## `7`: x", true)]
    #[case::closed("## Task 7 ##", true)]
    #[case::with_a_full_stop("#### 7. x", true)]
    #[case::the_highest_level("# 7 x", true)]
    #[case::the_lowest("###### Task 7", true)]
    #[case::underlined("Task 7: x\n=========", true)]
    #[case::underlined_with_hyphens("7. x\n----", false)]
    #[case::underlined_bare("Task 7\n------", true)]
    #[case::indented_a_little("   ## Task 7", true)]
    #[case::in_a_fence("```\n## Task 7\n```", false)]
    #[case::in_a_fence_of_tildes("~~~md\n## Task 7\n~~~", false)]
    #[case::in_a_fence_that_does_not_end("```\n## Task 7", false)]
    #[case::indented_code("text\n\n    ## Task 7", false)]
    #[case::in_a_quotation("> ## Task 7", false)]
    #[case::in_a_list("- ## Task 7", false)]
    #[case::in_a_comment("<!--\n## Task 7\n-->", false)]
    #[case::in_a_front_matter("---\nTask 7\n---\n", false)]
    #[case::without_a_space("##Task 7", false)]
    #[case::seven_levels("####### Task 7", false)]
    #[case::a_longer_number("## Task 70", false)]
    #[case::a_part("## Task 7.1", false)]
    #[case::a_word_that_begins_so("## 7th of May", false)]
    #[case::letters_behind_it("## 7\u{e4}", false)]
    #[case::later_in_the_line("## On Task 7", false)]
    #[case::tasks("## Tasks 7", false)]
    fn a_heading_names_a_task(#[case] heading: &str, #[case] names: bool) {
        let plan = PlanDocument::read(format!("# Plan\n\n{heading}\n\nWords.\n"));
        assert_eq!(section(&plan, "7").is_some(), names, "{heading}");
    }

    #[test]
    fn a_section_ends_before_the_next_of_its_level_or_a_higher_one() {
        let plan = "### Task 1\na\n#### more\nb\n```\n# no heading\n```\nc\n\nTask 2\n------\nd\n# Task 3\ne";
        let plan = PlanDocument::read(plan.to_owned());
        assert_eq!(section(&plan, "1"), Some("### Task 1\na\n#### more\nb\n```\n# no heading\n```\nc"));
        assert_eq!(section(&plan, "2"), Some("Task 2\n------\nd"));
        assert_eq!(section(&plan, "3"), Some("# Task 3\ne"));
    }

    #[test]
    fn the_text_of_a_task_ends_before_its_parts() {
        let plan = "## Task 1: House\nOf stone.\n### Details\nGrey.\n### Task 1.1: Floor\na\n### Task 1.2: Roof\nb\n## Task 10\nc";
        let plan = PlanDocument::read(plan.to_owned());
        let said = |task: &str| plan.before_parts(&task.parse().unwrap());
        assert_eq!(said("1"), Some("## Task 1: House\nOf stone.\n### Details\nGrey."));
        assert_eq!(said("1.2"), Some("### Task 1.2: Roof\nb"));
        assert_eq!(said("2"), None);
    }

    #[test]
    fn ids_of_other_kinds_are_found_too() {
        let plan = PlanDocument::read("## Task auth:10.1 - x\na\n## set-up: y\nb\n## a_b\nc\n".to_owned());
        for id in ["auth:10.1", "set-up", "a_b"] {
            assert!(section(&plan, id).is_some(), "{id}");
        }
        assert_eq!(section(&plan, "Set-up"), None);
    }

    #[test]
    fn without_a_heading_for_the_task_the_beginning_is_quoted() {
        let short = PlanDocument::read("Build a house.\n".to_owned());
        assert_eq!(short.about(&"1".parse().unwrap()), Excerpt::Whole("Build a house."));
        let long = PlanDocument::read("\u{e4}".repeat(2_001));
        assert_eq!(long.about(&"1".parse().unwrap()), Excerpt::Beginning(&"\u{e4}".repeat(2_000)));
        let empty = PlanDocument::read(String::new());
        assert_eq!(empty.about(&"1".parse().unwrap()), Excerpt::Whole(""));
    }
}
