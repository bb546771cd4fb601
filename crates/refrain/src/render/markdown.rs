use owo_colors::OwoColorize;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

/// A Markdown text in styles for a terminal, wrapped at a width. HTML is omitted, and so are the targets of links.
pub(crate) fn render(text: &str, width: usize) -> String {
    let mut page = Page { width, ..Page::default() };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.finish_block("");
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    width: usize,
    /// The text of the block that is being read, with its styles.
    block: String,
    is_code: bool,
    is_bold: bool,
    /// The lists around the block: the next number of each, if it has numbers.
    lists: Vec<Option<u64>>,
    /// The sign of a list's item whose first block is not printed yet.
    sign: String,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.block.push_str(&text),
            Event::Text(text) if self.is_bold => self.block.push_str(&text.bold().to_string()),
            Event::Text(text) => self.block.push_str(&text),
            Event::Code(code) => self.block.push_str(&code.cyan().to_string()),
            Event::SoftBreak => self.block.push(' '),
            Event::HardBreak => self.block.push('\n'),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::List(first) => {
                self.finish_block("");
                self.lists.push(*first);
            }
            Tag::Item => {
                self.sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                }
            }
            Tag::CodeBlock(_) => {
                self.finish_block("");
                self.is_code = true;
            }
            Tag::Strong => self.is_bold = true,
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.finish_block("\n"),
            TagEnd::Heading(level) => {
                let heading = std::mem::take(&mut self.block);
                let heading = if level == HeadingLevel::H1 {
                    heading.bold().underline().to_string()
                } else {
                    heading.bold().to_string()
                };
                self.text.push_str(&format!("{heading}\n\n"));
            }
            TagEnd::Item => self.finish_block(""),
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() && !self.text.ends_with("\n\n") {
                    self.text.push('\n');
                }
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                let code = std::mem::take(&mut self.block);
                let margin = " ".repeat(self.margin() + 4);
                for line in code.lines() {
                    self.text.push_str(format!("{margin}{}", line.cyan()).trim_end());
                    self.text.push('\n');
                }
                self.text.push('\n');
            }
            TagEnd::Strong => self.is_bold = false,
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.block);
                self.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.finish_table(),
            _ => {}
        }
    }

    /// The columns in front of a block: those of the lists around it.
    fn margin(&self) -> usize {
        2 * self.lists.len()
    }

    /// Prints the block that was read, if there is one.
    fn finish_block(&mut self, after: &str) {
        let block = std::mem::take(&mut self.block);
        if block.trim().is_empty() {
            return;
        }
        let sign = std::mem::take(&mut self.sign);
        let margin = " ".repeat(self.margin());
        let first = format!("{}{sign}", " ".repeat(self.margin().saturating_sub(sign.width())));
        let options = textwrap::Options::new(self.width)
            .initial_indent(&first)
            .subsequent_indent(&margin)
            .break_words(false);
        for line in textwrap::wrap(&block, options) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.text.push_str(after);
    }

    /// Prints a table in columns if it fits, otherwise the cells of each row below its first one.
    fn finish_table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| textwrap::core::display_width(cell)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let fits = widths.iter().map(|width| width + 2).sum::<usize>() <= self.width;
        for (k, row) in rows.iter().enumerate().filter(|(_, row)| row.iter().any(|cell| !cell.is_empty())) {
            if fits {
                let mut line = String::new();
                for (cell, width) in row.iter().zip(&widths) {
                    let room = " ".repeat(width - textwrap::core::display_width(cell) + 2);
                    let cell = if k == 0 { cell.bold().to_string() } else { cell.clone() };
                    line.push_str(&format!("{cell}{room}"));
                }
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                continue;
            }
            let (first, rest) =
                row.split_first().map_or((String::new(), &[][..]), |(first, rest)| (first.clone(), rest));
            self.text.push_str(&format!("{}\n", first.bold()));
            for cell in rest.iter().filter(|cell| !cell.is_empty()) {
                let options = textwrap::Options::new(self.width)
                    .initial_indent("    ")
                    .subsequent_indent("    ")
                    .break_words(false);
                self.text.push_str(&(textwrap::wrap(cell, options).join("\n") + "\n"));
            }
        }
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_lists_code_and_tables_are_laid_out() {
        let text = "# Title\n\nOne two three\nfour `five` **six**.\n\n<!-- no -->\n- a b c d e f g h i j k l m\n  - inner\n\n1. one\n2. [two](x.md)\n\n```sh\nls   -l\n```\n\n| key | does |\n|---|---|\n| `q` | quits |\n";
        let plain = anstream::adapter::strip_str(&render(text, 24)).to_string();
        assert_eq!(
            plain,
            "Title\n\nOne two three four five\nsix.\n\n- a b c d e f g h i j k\n  l m\n  - inner\n\n1. one\n2. two\n\n    ls   -l\n\nkey  does\nq    quits\n\n"
        );
    }

    #[test]
    fn a_wide_table_becomes_rows_of_blocks() {
        let text = "| key | what it does |\n|---|---|\n| `enter` | opens the loop that is selected |\n";
        let plain = anstream::adapter::strip_str(&render(text, 20)).to_string();
        assert_eq!(plain, "key\n    what it does\nenter\n    opens the loop\n    that is selected\n\n");
    }

    #[test]
    fn every_page_of_the_book_fits() {
        for page in refrain_app::book::PAGES {
            let shown = render(page.text, 80);
            let shown = anstream::adapter::strip_str(&shown).to_string();
            assert!(shown.starts_with(&page.title().replace('`', "")), "{}", page.topic);
            assert!(!shown.contains("<!-- not run"), "{}", page.topic);
        }
    }
}
