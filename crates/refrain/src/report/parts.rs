//! The parts of a document: headings, facts, tables and quotations, for every renderer.

use refrain_core::text::{in_order, printable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Text to type or copy: a path, a hash, a command.
    Code,
    Good,
    /// It is done, on the agent's word alone.
    Caution,
    Bad,
    Number,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(crate) enum Block {
    Words(String),
    Facts(Vec<(&'static str, Cell)>),
    /// Rows of cells below their headings.
    Table(Table),
    Quote(Quote),
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) caption: &'static str,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Too much for a terminal: there it is counted.
    pub(crate) page_only: bool,
}

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

    pub(crate) fn quote(mut self, caption: impl AsRef<str>, text: &str, is_end: bool) -> Self {
        let text = shown(text.trim_matches('\n'));
        if !text.trim().is_empty() {
            self.blocks.push(Block::Quote(Quote { caption: shown(caption.as_ref()), text, is_end }));
        }
        self
    }
}
