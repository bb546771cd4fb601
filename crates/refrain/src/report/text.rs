//! A document as text for a terminal or a pipe.

use std::borrow::Cow;

use owo_colors::OwoColorize;

use super::document::Document;
use super::parts::{Block, Cell, Quote, Table, Tone};
use crate::render::phrase::{self, Row};
use crate::render::table::{self, Column, CutPosition};

/// How many lines of a quotation are shown.
const LINES: usize = 12;

/// The whole text, in lines of at most `width` if it is known.
pub(crate) fn text(document: &Document, width: Option<usize>) -> String {
    let Document { title, verdict, reason, sections } = document;
    let mut text = format!("{}: {}\n", title.bold(), painted(verdict, &verdict.text));
    text.push_str(&paragraph(reason, width));
    for section in sections {
        text.push_str(&format!("\n{}\n", section.title.bold()));
        section.blocks.iter().for_each(|block| text.push_str(&shown(block, width)));
    }
    text
}

fn shown(block: &Block, width: Option<usize>) -> String {
    match block {
        Block::Words(words) => paragraph(words, width),
        Block::Facts(facts) => {
            let column = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            let row = |(name, cell): &(&'static str, Cell)| match cell.tone {
                Tone::Code | Tone::Number => Row::exact(name, cell.text.clone()),
                Tone::Plain | Tone::Good | Tone::Caution | Tone::Bad => Row::prose(name, cell.text.clone()),
            };
            phrase::rows(&facts.iter().map(row).collect::<Vec<_>>(), "  ", column, width)
        }
        Block::Table(table) if table.page_only => {
            let rows = u32::try_from(table.rows.len()).unwrap_or(u32::MAX);
            paragraph(&format!("{}: {}", table.caption, phrase::counted(rows, "row", "rows")), width)
        }
        Block::Table(table) => rows(table, width),
        Block::Quote(quote) => quoted(quote),
    }
}

fn paragraph(words: &str, width: Option<usize>) -> String {
    format!("{}\n", phrase::broken("  ", 2, words, width))
}

fn rows(table: &Table, width: Option<usize>) -> String {
    let line = |cell: &Cell| cell.text.replace('\n', " ");
    let paint = |column: usize| {
        move |row: usize, text: &str| match table.rows.get(row).and_then(|row| row.get(column)) {
            Some(cell) => painted(cell, text),
            None => text.to_owned(),
        }
    };
    let paints: Vec<_> = (0..table.head.len()).map(paint).collect();
    let columns = table.head.iter().zip(&paints).enumerate().map(|(place, (title, paint))| {
        let cells: Vec<_> = table.rows.iter().filter_map(|row| row.get(place)).collect();
        Column {
            title,
            right: !cells.is_empty() && cells.iter().all(|cell| cell.tone == Tone::Number),
            cells: cells.iter().map(|cell| Cow::Owned(line(cell))).collect(),
            cut: CutPosition::End,
            paint,
        }
    });
    let columns: Vec<_> = columns.collect();
    let lines = table::lines(&columns, width.map(|width| width.saturating_sub(2)));
    lines.iter().map(|line| format!("  {line}")).collect()
}

/// The caption, followed by the lines from the beginning or the end.
fn quoted(quote: &Quote) -> String {
    let lines: Vec<&str> = quote.text.lines().collect();
    let left = lines.len().saturating_sub(LINES);
    let kept = if quote.is_end { &lines[left..] } else { &lines[..lines.len() - left] };
    let more = match left {
        0 => String::new(),
        left => format!("  | ... {left} more lines ...\n").dimmed().to_string(),
    };
    let kept: String = kept.iter().map(|line| format!("  | {line}\n")).collect();
    let caption = format!("  {}\n", quote.caption.dimmed());
    if quote.is_end { format!("{caption}{more}{kept}") } else { format!("{caption}{kept}{more}") }
}

fn painted(cell: &Cell, text: &str) -> String {
    match cell.tone {
        Tone::Good => text.green().to_string(),
        Tone::Caution => text.yellow().to_string(),
        Tone::Bad => text.red().to_string(),
        Tone::Plain | Tone::Code | Tone::Number => text.to_owned(),
    }
}
