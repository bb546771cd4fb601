//! How memories are shown: as a table on a terminal, in full elsewhere.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use refrain_core::memory::Memory;
use refrain_core::text::printable;

use crate::render::table::{self, Column, CutPosition};
use crate::{out, values};

/// Prints them, with their projects if there are several.
pub(super) fn print(memories: &[&Memory], with_project: bool, nothing: &str) {
    if memories.is_empty() {
        out::print(nothing);
        return;
    }
    let zone = values::time_zone();
    let day = |memory: &Memory| day(memory, &zone);
    let column = |title, cut, cell: &dyn Fn(&Memory) -> String| Column {
        title,
        cells: memories.iter().map(|memory| Cow::Owned(cell(memory))).collect(),
        cut,
        right: false,
        paint: &table::plain,
    };
    let mut columns = vec![
        column("ID", CutPosition::No, &|it| it.id.to_string()),
        column("KIND", CutPosition::No, &|it| it.kind.to_string()),
        column("SINCE", CutPosition::No, &day),
        column("USED", CutPosition::No, &|it| it.uses.to_string()),
        column("TEXT", CutPosition::End, &|it| flat(&it.text)),
    ];
    if with_project {
        columns.insert(4, column("PROJECT", CutPosition::Begin, &|it| flat(&it.project)));
    }
    for line in table::lines(&columns, out::terminal_width()) {
        if !out::print_part(&line) {
            return;
        }
    }
}

pub(super) fn day(memory: &Memory, zone: &TimeZone) -> String {
    memory.created_at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string()
}

/// On one line, with control characters replaced.
pub(super) fn flat(text: &str) -> String {
    printable(text).replace('\n', " ")
}

pub(super) fn counted(count: usize) -> String {
    if count == 1 { "1 memory".to_owned() } else { format!("{count} memories") }
}
