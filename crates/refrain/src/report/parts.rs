//! The parts of a document: headings, facts, tables and quotations, for every renderer.

use refrain_core::text::{in_order, printable};

/// How a text is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Words.
    Plain,
    /// Text to type or copy: a path, a hash, a command.
    Code,
    /// It is as it should be.
    Good,
    /// It is done, on the agent's word alone.
    Caution,
    Bad,
    /// A number, or a placeholder for one.
    Number,
}

/// A text, fit to be shown.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// A part of a document.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// The content of a section.
#[derive(Debug)]
pub(crate) enum Block {
    /// A sentence.
    Words(String),
    /// Facts by their names.
    Facts(Vec<(&'static str, Cell)>),
    /// Rows of cells below their headings.
    Table(Table),
    /// Quoted text, line by line.
    Quote(Quote),
}

#[derive(Debug)]
pub(crate) struct Table {
    /// Its description, for screen readers.
    pub(crate) caption: &'static str,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Too much for a terminal: there it is counted.
    pub(crate) page_only: bool,
}

/// A quotation.
#[derive(Debug)]
pub(crate) struct Quote {
    pub(crate) caption: String,
    pub(crate) text: String,
    /// Its end matters, not its begin.
    pub(crate) is_end: bool,
}

/// A foreign text, without control characters and without characters that change its direction.
pub(crate) fn shown(text: &str) -> String {
    in_order(&printable(text)).into_owned()
}

impl Cell {
    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { text: shown(text.as_ref()), tone }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }

    pub(crate) fn code(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Code, text)
    }

    pub(crate) fn number(text: impl ToString) -> Self {
        Self::new(Tone::Number, text.to_string())
    }

    /// Good or bad, in a word.
    pub(crate) fn verdict(is_good: bool, text: impl AsRef<str>) -> Self {
        Self::new(if is_good { Tone::Good } else { Tone::Bad }, text)
    }
}

impl Tone {
    /// The class of an element on a page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Code => "code",
            Self::Good => "good",
            Self::Caution => "caution",
            Self::Bad => "bad",
            Self::Number => "number",
        }
    }
}

impl Section {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, blocks: Vec::new() }
    }

    pub(crate) fn words(mut self, words: impl AsRef<str>) -> Self {
        self.blocks.push(Block::Words(shown(words.as_ref())));
        self
    }

    /// Adds the facts that have a value.
    pub(crate) fn facts(mut self, facts: Vec<(&'static str, Cell)>) -> Self {
        let facts: Vec<_> = facts.into_iter().filter(|(_, cell)| !cell.text.is_empty()).collect();
        if !facts.is_empty() {
            self.blocks.push(Block::Facts(facts));
        }
        self
    }

    pub(crate) fn table(
        mut self,
        caption: &'static str,
        head: &[&'static str],
        rows: impl Iterator<Item = Vec<Cell>>,
    ) -> Self {
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            let table = Table { caption, head: head.to_vec(), rows, page_only: false };
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// Hides the last table on terminals, because it is too large for them.
    pub(crate) fn on_pages_only(mut self) -> Self {
        if let Some(Block::Table(table)) = self.blocks.last_mut() {
            table.page_only = true;
        }
        self
    }

    /// Quotes the beginning of a text, or its end.
    pub(crate) fn quote(mut self, caption: impl AsRef<str>, text: &str, is_end: bool) -> Self {
        let text = shown(text.trim_matches('\n'));
        if !text.trim().is_empty() {
            self.blocks.push(Block::Quote(Quote { caption: shown(caption.as_ref()), text, is_end }));
        }
        self
    }
}
